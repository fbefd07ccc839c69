// Handwritten digits from the four files of the MNIST database.
#pragma once
#include <string>

#include <torch/data/datasets/base.h>

namespace torch::data::datasets {

class TORCH_API MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  // `root` is the folder with train-images-idx3-ubyte and its companions, unpacked. Throws Error
  // for files that are missing or no such files.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  // float32 [1, 28, 28] between 0 and 1, and the digit as int64.
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override;
  bool is_train() const noexcept { return is_train_; }
  const at::Tensor& images() const { return images_; }
  const at::Tensor& targets() const { return targets_; }

 private:
  bool is_train_;
  at::Tensor images_, targets_;
};

} // namespace torch::data::datasets
