// Written with operators that have gradients: these send the parts back.
#include <torch/csrc/autograd/functions/comm.h>

#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/split_with_sizes.h>
#include <ATen/ops/to.h>
#include <ATen/ops/unsqueeze.h>

namespace torch::autograd {
namespace {
Tensor on(const Tensor& t, at::Device device) {
  return at::_ops::to_device::call(t, device, t.scalar_type(), /*non_blocking=*/true,
                                   /*copy=*/false, std::nullopt);
}
} // namespace

Scatter::Scatter(std::vector<at::Device> devices, std::optional<std::vector<int64_t>> chunk_sizes,
                 int64_t dim)
    : devices_(std::move(devices)), chunk_sizes_(std::move(chunk_sizes)), dim_(dim) {
  TORCH_CHECK(!devices_.empty(), "Scatter: expected at least one device, got none");
  TORCH_CHECK(!chunk_sizes_ || chunk_sizes_->size() == devices_.size(),
              "Scatter: expected a size for each of the ", devices_.size(), " devices, got ",
              chunk_sizes_ ? chunk_sizes_->size() : 0);
}

TensorVec Scatter::apply(const TensorVec& inputs) const {
  TORCH_CHECK(inputs.size() == 1 && inputs[0].defined(), "Scatter: expected one tensor, got ",
              inputs.size());
  const std::vector<Tensor> parts =
      chunk_sizes_ ? at::split_with_sizes(inputs[0], *chunk_sizes_, dim_)
                   : at::chunk(inputs[0], static_cast<int64_t>(devices_.size()), dim_);
  TensorVec out;
  for (size_t i = 0; i < parts.size(); ++i) out.push_back(on(parts[i], devices_[i]));
  return out;
}

TensorVec Gather::apply(const TensorVec& inputs) const {
  TORCH_CHECK(!inputs.empty(), "Gather: expected at least one tensor, got none");
  std::vector<Tensor> parts;
  for (const Tensor& t : inputs) {
    TORCH_CHECK(t.defined(), "Gather: tensor ", parts.size(), " is undefined");
    const Tensor moved = on(t, destination_);
    parts.push_back(t.dim() == 0 ? at::unsqueeze(moved, 0) : moved);
  }
  return {at::cat(parts, dim_)};
}

} // namespace torch::autograd
