// Reads the files of the MNIST database: a magic number, the sizes of the dimensions, one byte per
// value, numbers in the order of the network.
#include <torch/data/datasets/mnist.h>

#include <fstream>

namespace torch::data::datasets {
namespace {

constexpr uint32_t kImagesMagic = 0x803;
constexpr uint32_t kLabelsMagic = 0x801;

uint32_t read_number(std::istream& file, const std::string& path) {
  unsigned char bytes[4] = {};
  file.read(reinterpret_cast<char*>(bytes), sizeof bytes);
  TORCH_CHECK(file, "MNIST: ", path, " ends before its header does");
  return uint32_t(bytes[0]) << 24 | uint32_t(bytes[1]) << 16 | uint32_t(bytes[2]) << 8 | bytes[3];
}

// The bytes of a file whose header has `magic` and as many sizes as its lowest byte says.
at::Tensor read_file(const std::string& path, uint32_t magic) {
  std::ifstream file(path, std::ios::binary);
  TORCH_CHECK(file, "MNIST: error opening ", path);
  const uint32_t found = read_number(file, path);
  TORCH_CHECK(found == magic, "MNIST: ", path, " starts with ", found, ", expected ", magic);
  std::vector<int64_t> sizes;
  for (uint32_t i = 0; i < (magic & 0xff); ++i) sizes.push_back(read_number(file, path));
  file.seekg(0, std::ios::end);
  const int64_t bytes = static_cast<int64_t>(file.tellg()) - 4 * (1 + int64_t(sizes.size()));
  int64_t wanted = 1;
  for (int64_t size : sizes)
    TORCH_CHECK(!__builtin_mul_overflow(wanted, size, &wanted), "MNIST: ", path, ": sizes ",
                c10::IntArrayRef(sizes), " are too large");
  TORCH_CHECK(bytes == wanted, "MNIST: ", path, " has ", bytes, " values, its header says ",
              wanted);
  const at::Tensor out = at::empty(sizes, at::kByte);
  file.seekg(4 * (1 + int64_t(sizes.size())));
  file.read(static_cast<char*>(out.data_ptr()), bytes);
  TORCH_CHECK(file, "MNIST: error reading ", path);
  return out;
}

std::string join(const std::string& root, const char* name) {
  return root.empty() || root.back() == '/' ? root + name : root + "/" + name;
}

} // namespace

MNIST::MNIST(const std::string& root, Mode mode) : is_train_(mode == Mode::kTrain) {
  const at::Tensor images = read_file(
      join(root, is_train_ ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte"), kImagesMagic);
  const at::Tensor labels = read_file(
      join(root, is_train_ ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte"), kLabelsMagic);
  TORCH_CHECK(images.size(0) == labels.size(0), "MNIST: ", images.size(0), " images and ",
              labels.size(0), " labels in ", root);
  images_ = images.unsqueeze(1).to(at::kFloat).div_(255);
  targets_ = labels.to(at::kLong);
}

Example<> MNIST::get(size_t index) {
  return {images_[static_cast<int64_t>(index)], targets_[static_cast<int64_t>(index)]};
}
std::optional<size_t> MNIST::size() const { return static_cast<size_t>(images_.size(0)); }

} // namespace torch::data::datasets
