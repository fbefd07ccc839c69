// See aoti_archive.h.
#include <torch/csrc/inductor/aoti_archive.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <torch/csrc/utils/zip.h>

namespace torch::inductor {
namespace {

constexpr const char* kFolder = "data/aotinductor/";
constexpr const char* kProgram = "/program.bin";
constexpr const char* kWeights = "/weights.bin";

struct Close {
  void operator()(FILE* file) const { std::fclose(file); }
};

// The bytes of a file in memory that begins on a page, since weights are used where they lie.
std::shared_ptr<void> read_file(const std::string& path, size_t& size) {
  const std::unique_ptr<FILE, Close> file(std::fopen(path.c_str(), "rb"));
  TORCH_CHECK(file, "cannot open the compiled model ", path, ": ", std::strerror(errno));
  TORCH_CHECK(std::fseek(file.get(), 0, SEEK_END) == 0, "cannot read the compiled model ", path);
  const long end = std::ftell(file.get());
  TORCH_CHECK(end >= 0 && end < (1L << 46), "cannot read the compiled model ", path,
              ": it is no file");
  std::rewind(file.get());
  constexpr size_t kPage = 4096;
  size = static_cast<size_t>(end);
  void* memory = std::aligned_alloc(kPage, (size / kPage + 1) * kPage);
  TORCH_CHECK(memory, "there is no memory for the compiled model ", path, " of ", size, " bytes");
  std::shared_ptr<void> keeper(memory, [](void* p) { std::free(p); });
  TORCH_CHECK(std::fread(memory, 1, size, file.get()) == size, "cannot read the compiled model ",
              path);
  return keeper;
}

} // namespace

AotiArchive::AotiArchive(const std::string& path) {
  size_t size = 0;
  keeper_ = read_file(path, size);
  zip_ = std::make_unique<serialize::ZipReader>(
      std::string_view(static_cast<const char*>(keeper_.get()), size));
}

AotiArchive::~AotiArchive() = default;

std::vector<std::string> AotiArchive::models() const {
  std::vector<std::string> found;
  const std::string_view folder(kFolder), end(kProgram);
  for (const std::string& name : zip_->names()) {
    const std::string_view view(name);
    if (view.size() <= folder.size() + end.size() || view.substr(0, folder.size()) != folder ||
        view.substr(view.size() - end.size()) != end)
      continue;
    found.emplace_back(view.substr(folder.size(), view.size() - folder.size() - end.size()));
  }
  return found;
}

AotiFile AotiArchive::model(const std::string& name) const {
  const std::string place = kFolder + name + kProgram;
  if (!zip_->has(place)) {
    std::string others;
    for (const std::string& other : models()) others += (others.empty() ? "" : ", ") + other;
    TORCH_CHECK(false, "Failed to find a compiled model named '", name,
                "' in the archive. It has: ", others.empty() ? "none" : others);
  }
  return read_aoti(zip_->get(place));
}

AotiBytes AotiArchive::weights(const std::string& name) const {
  const std::string place = kFolder + name + kWeights;
  return {keeper_, zip_->has(place) ? zip_->get(place) : std::string_view()};
}

} // namespace torch::inductor
