// The methods of at::Tensor that concern gradients (ATen/core/TensorUser.inc).
#undef CRESSET_KERNEL_TU // kernel files do not see these methods
#include <ATen/core/Undefined.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {
namespace {

// A hook written in C++. Removal leaves its place empty, so that positions stay what they were.
struct FunctionHook final : TensorHook {
  explicit FunctionHook(std::function<Tensor(const Tensor&)> f) : function(std::move(f)) {}
  Tensor call(const Tensor& grad) override { return function ? function(grad) : Tensor(); }
  std::function<Tensor(const Tensor&)> function;
};

} // namespace
} // namespace torch::autograd

namespace at {
namespace ag = torch::autograd;

const Tensor& Tensor::set_requires_grad(bool requires_grad) const {
  at::detail::check_defined(*this, "set_requires_grad");
  TORCH_CHECK(!requires_grad || is_floating_point() || is_complex(),
              "Only Tensors of floating point and complex dtype can require gradients");
  ag::set_requires_grad(*this, requires_grad);
  return *this;
}
bool Tensor::is_leaf() const {
  at::detail::check_defined(*this, "is_leaf");
  return ag::is_leaf(*this);
}
int64_t Tensor::output_nr() const {
  at::detail::check_defined(*this, "output_nr");
  const ag::AutogradMeta* meta = ag::meta_of(*this);
  return meta ? meta->output_nr : 0;
}
NodePtr Tensor::grad_fn() const {
  at::detail::check_defined(*this, "grad_fn");
  return NodePtr(ag::grad_fn_of(*this));
}

const Tensor& Tensor::grad() const {
  at::detail::check_defined(*this, "grad");
  static const Tensor undefined;
  const ag::AutogradMeta* meta = ag::meta_of(*this);
  if (!is_leaf() && !(meta && (meta->retains_grad || meta->grad.defined())))
    TORCH_WARN("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
               ".grad attribute won't be populated during autograd.backward(). If you indeed want "
               "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
               "non-leaf Tensor.");
  return meta ? meta->grad : undefined;
}
Tensor& Tensor::mutable_grad() const {
  at::detail::check_defined(*this, "mutable_grad");
  return ag::ensure_meta(*this).grad;
}

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      std::optional<ArrayRef<Tensor>> inputs) const {
  at::detail::check_defined(*this, "backward");
  TORCH_CHECK(!inputs || !inputs->empty(), "'inputs' argument to backward cannot be empty");
  ag::backward(ArrayRef<Tensor>(*this), ArrayRef<Tensor>(gradient), retain_graph, create_graph,
               inputs.value_or(ArrayRef<Tensor>()));
}
void Tensor::retain_grad() const {
  at::detail::check_defined(*this, "retain_grad");
  ag::retain_grad(*this);
}
bool Tensor::retains_grad() const {
  at::detail::check_defined(*this, "retains_grad");
  const ag::AutogradMeta* meta = ag::meta_of(*this);
  return meta && meta->retains_grad;
}
Tensor Tensor::variable_data() const {
  at::detail::check_defined(*this, "variable_data");
  return ag::variable_data(*this);
}
Tensor Tensor::tensor_data() const {
  at::detail::check_defined(*this, "tensor_data");
  return ag::detach(*this);
}

void Tensor::set_data(const Tensor& other) const {
  at::detail::check_defined(*this, "set_data");
  TORCH_CHECK(other.defined(), "set_data: the new tensor is undefined");
  TORCH_CHECK(device().type() == other.device().type() && layout() == other.layout(),
              "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
              "incompatible tensor type.");
  TORCH_CHECK(!requires_grad() || c10::isFloatingType(other.scalar_type()) ||
                  c10::isComplexType(other.scalar_type()),
              "data set to a tensor that requires gradients must be floating point or complex "
              "dtype");
  const bool recorded = requires_grad();
  impl_->copy_metadata_from(*other.unsafeGetTensorImpl());
  if (recorded) impl_->set_autograd_key(true);
}
const std::string& Tensor::name() const {
  at::detail::check_defined(*this, "name");
  return ag::ensure_meta(*this).name;
}
const Tensor Tensor::_base() const {
  at::detail::check_defined(*this, "_base");
  TORCH_CHECK(impl_->is_view(), "Can't get base of non-view Tensor");
  return Tensor(impl_->base());
}

unsigned Tensor::add_hook(std::function<Tensor(const Tensor&)> hook) const {
  at::detail::check_defined(*this, "add_hook");
  TORCH_CHECK(requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  ag::register_hook(*this, std::make_shared<ag::FunctionHook>(std::move(hook)));
  return static_cast<unsigned>(ag::meta_of(*this)->hooks.size() - 1);
}
void Tensor::remove_hook(unsigned position) const {
  at::detail::check_defined(*this, "remove_hook");
  ag::AutogradMeta* meta = ag::meta_of(*this);
  TORCH_CHECK(meta && position < meta->hooks.size(), "Invalid index, no hook at position ",
              position);
  if (auto* hook = dynamic_cast<ag::FunctionHook*>(meta->hooks[position].get()))
    hook->function = nullptr;
}

} // namespace at
