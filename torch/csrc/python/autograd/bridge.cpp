// The tensor type's view of autograd: thin, except for the checks that PyTorch makes when a
// gradient is assigned.
#include <ATen/native/CTypeName.h>
#include <torch/csrc/python/autograd/bridge.h>

#include <torch/csrc/autograd/set_grad.h>
#include <torch/csrc/python/autograd/node.h>

namespace torch::python {

namespace {

void check_grad(const at::Tensor& tensor, const at::Tensor& grad) {
  TORCH_CHECK(!grad.is_same(tensor), "can't assign Variable as its own grad");
  TORCH_CHECK(grad.scalar_type() == tensor.scalar_type(),
              "attempting to assign a gradient with dtype '",
              at::native::c_type_name(grad.scalar_type()), "' to a tensor with grad_dtype '",
              tensor.scalar_type(),
              "'. The gradient must match the tensor's grad_dtype, which is the tensor's dtype");
  TORCH_CHECK(grad.device().type() == tensor.device().type(),
              "attempting to assign a gradient with device type '", grad.device().type(),
              "' to a tensor with device type '", tensor.device().type(), "'");
  TORCH_CHECK(grad.sizes() == tensor.sizes(), "attempting to assign a gradient of size '",
              grad.sizes(), "' to a tensor of size '", tensor.sizes(),
              "'. Please ensure that the gradient and the tensor are the same size");
}

} // namespace

bool is_leaf(const at::Tensor& tensor) { return autograd::is_leaf(tensor); }

at::Tensor grad_of(const at::Tensor& tensor) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  return meta ? meta->grad : at::Tensor();
}

void set_grad(const at::Tensor& tensor, const at::Tensor& grad) {
  if (grad.defined()) check_grad(tensor, grad);
  autograd::set_grad(tensor, grad);
}

void set_requires_grad(const at::Tensor& tensor, bool value) {
  autograd::set_requires_grad(tensor, value);
}

PyObject* grad_fn_object(const at::Tensor& tensor) {
  return wrap_node(autograd::grad_fn_of(tensor));
}

void forget_accumulator(const at::Tensor& tensor) {
  if (autograd::AutogradMeta* meta = autograd::meta_of(tensor)) meta->grad_accumulator = {};
}

} // namespace torch::python
