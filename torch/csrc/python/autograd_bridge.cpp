// Gradient state of leaf tensors: the requires_grad flag, which is the tensor's Autograd dispatch key,
// and the stored gradient.
#include <torch/csrc/python/autograd_bridge.h>

#include <c10/core/TensorImpl.h>

namespace torch::python {
namespace {

struct LeafMeta final : c10::AutogradMetaInterface {
  at::Tensor grad;
};

LeafMeta* meta_of(const at::Tensor& tensor) {
  return dynamic_cast<LeafMeta*>(tensor.unsafeGetTensorImpl()->autograd_meta());
}

void check_grad(const at::Tensor& tensor, const at::Tensor& grad) {
  TORCH_CHECK(!grad.is_same(tensor), "can't assign Variable as its own grad");
  TORCH_CHECK(grad.scalar_type() == tensor.scalar_type(), "attempting to assign a gradient with dtype '",
              c10::info(grad.scalar_type()).name, "' to a tensor with grad_dtype '",
              c10::info(tensor.scalar_type()).name, "'");
  TORCH_CHECK(grad.device().type() == tensor.device().type(),
              "attempting to assign a gradient with device type '", grad.device().type(),
              "' to a tensor with device type '", tensor.device().type(), "'");
  TORCH_CHECK(grad.sizes() == tensor.sizes(), "attempting to assign a gradient of size '",
              grad.sizes(), "' to a tensor of size '", tensor.sizes(), "'");
}

} // namespace

bool is_leaf(const at::Tensor& tensor) {
  const c10::AutogradMetaInterface* meta = tensor.unsafeGetTensorImpl()->autograd_meta();
  return meta == nullptr || dynamic_cast<const LeafMeta*>(meta) != nullptr;
}

at::Tensor grad_of(const at::Tensor& tensor) {
  const LeafMeta* meta = meta_of(tensor);
  return meta ? meta->grad : at::Tensor();
}

void set_grad(const at::Tensor& tensor, const at::Tensor& grad) {
  if (grad.defined()) check_grad(tensor, grad);
  LeafMeta* meta = meta_of(tensor);
  if (!meta) {
    if (!grad.defined()) return;
    auto fresh = std::make_unique<LeafMeta>();
    meta = fresh.get();
    tensor.unsafeGetTensorImpl()->set_autograd_meta(std::move(fresh));
  }
  meta->grad = grad;
}

void set_requires_grad(const at::Tensor& tensor, bool value) {
  TORCH_CHECK(is_leaf(tensor) || value == tensor.requires_grad(),
              "you can only change requires_grad flags of leaf variables.");
  if (value) {
    TORCH_CHECK(tensor.is_floating_point() || tensor.is_complex(),
                "only Tensors of floating point and complex dtype can require gradients");
    TORCH_CHECK(!tensor.is_inference() || c10::tls_autograd_state.inference_mode,
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  }
  if (value != tensor.requires_grad()) tensor.unsafeGetTensorImpl()->set_autograd_key(value);
}

} // namespace torch::python
