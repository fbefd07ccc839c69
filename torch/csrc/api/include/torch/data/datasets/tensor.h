// The rows of a tensor, or the tensors of a list, as examples without targets.
#pragma once
#include <torch/data/datasets/base.h>

namespace torch::data::datasets {

struct TensorDataset : public Dataset<TensorDataset, TensorExample> {
  explicit TensorDataset(const std::vector<at::Tensor>& tensors)
      : TensorDataset(at::stack(tensors)) {}
  explicit TensorDataset(at::Tensor tensor) : tensor(std::move(tensor)) {}
  TensorExample get(size_t index) override { return tensor[static_cast<int64_t>(index)]; }
  std::optional<size_t> size() const override { return static_cast<size_t>(tensor.size(0)); }
  at::Tensor tensor;
};

} // namespace torch::data::datasets
