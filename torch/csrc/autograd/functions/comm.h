// Parts of a tensor on several devices and back, with gradients: what data parallelism is made of.
#pragma once
#include <optional>
#include <vector>

#include <c10/core/Device.h>
#include <torch/csrc/autograd/node.h>

namespace torch::autograd {

// Splits the one input along `dim` into a part for each device: of `chunk_sizes`, or as chunk()
// does, which may give fewer parts than there are devices.
class TORCH_API Scatter {
 public:
  explicit Scatter(std::vector<at::Device> devices,
                   std::optional<std::vector<int64_t>> chunk_sizes = std::nullopt, int64_t dim = 0);
  TensorVec apply(const TensorVec& inputs) const;

 private:
  std::vector<at::Device> devices_;
  std::optional<std::vector<int64_t>> chunk_sizes_;
  int64_t dim_;
};

// The inputs, from whatever devices, one behind the other on one device. Inputs without dimensions
// become the elements of a vector.
class TORCH_API Gather {
 public:
  explicit Gather(at::Device destination, int64_t dim = 0) : destination_(destination), dim_(dim) {}
  TensorVec apply(const TensorVec& inputs) const;

 private:
  at::Device destination_;
  int64_t dim_;
};

} // namespace torch::autograd
