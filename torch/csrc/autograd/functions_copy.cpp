// Gradients of copies between devices and dtypes. See functions.h.
#include <ATen/ops/to.h>
#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {

Tensor moved_like(const Tensor& grad, const at::TensorOptions& options) {
  if (grad.device() == options.device()) return grad.to(options.dtype());
  return at::_ops::to_device::call(grad, options.device(), options.dtype(), false, false,
                                   std::nullopt);
}

} // namespace torch::autograd::generated
