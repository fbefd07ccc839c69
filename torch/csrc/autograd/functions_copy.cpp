// Gradients of copies between devices and dtypes. See functions.h.
#include <ATen/ops/real.h>
#include <ATen/ops/to.h>
#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {

Tensor moved_like(const Tensor& given, const at::TensorOptions& options) {
  // A real number that was copied into a complex one has the real part of its gradient.
  const bool real = given.is_complex() && !c10::isComplexType(options.dtype());
  const Tensor grad = real ? at::real(given) : given;
  if (grad.device() == options.device()) return grad.to(options.dtype());
  return at::_ops::to_device::call(grad, options.device(), options.dtype(), false, false,
                                   std::nullopt);
}

} // namespace torch::autograd::generated
