// Attributes of tensors. A plain tensor's attribute is read directly; subclasses and modes are
// asked through __torch_function__ first, with `torch.Tensor.<name>.__get__` as the function.
#include <torch/csrc/python/dispatch/custom_geometry.h>
#include <torch/csrc/python/tensor/tensor.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/autograd/bridge.h>
#include <torch/csrc/python/autograd/hooks.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/sym/sym.h>

#include <ATen/core/WarnOnce.h>
#include <ATen/ops/detach.h>

namespace torch::python {
namespace {

using Getter = PyObject* (*)(PyObject* self);

// The closure of every property: its name and what reads it.
struct Property {
  const char* name;
  Getter get;
  int (*set)(PyObject* self, PyObject* value); // throws
};

PyObject* get_property(PyObject* self, void* closure) {
  const auto& property = *static_cast<const Property*>(closure);
  PyObject* result = nullptr;
  if (property_override(self, property.name, &result)) return result;
  return guarded([&] { return property.get(self); });
}

int set_property(PyObject* self, PyObject* value, void* closure) {
  const auto& property = *static_cast<const Property*>(closure);
  int status = 0;
  if (property_set_override(self, property.name, value, &status)) return status;
  return guarded([&] { return property.set(self, value); });
}

// ---- geometry and type --------------------------------------------------------------------------
PyObject* get_shape(PyObject* self) {
  if (PyRef answer = custom_answer(self, kCustomSizes, "sizes")) return answer.release();
  return size_of(tensor_of(self));
}
PyObject* get_ndim(PyObject* self) {
  if (PyRef answer = custom_answer(self, kCustomSizes, "dim")) return answer.release();
  return PyLong_FromLongLong(tensor_of(self).dim());
}
PyObject* get_dtype(PyObject* self) { return wrap(tensor_of(self).scalar_type()); }
PyObject* get_device(PyObject* self) {
  if (PyRef answer = custom_answer(self, kCustomDevice, "device")) return answer.release();
  return wrap(tensor_of(self).device());
}
PyObject* get_layout(PyObject* self) {
  if (PyRef answer = custom_answer(self, kCustomLayout, "layout")) return answer.release();
  return wrap(tensor_of(self).layout());
}
PyObject* get_itemsize(PyObject* self) { return PyLong_FromLongLong(tensor_of(self).itemsize()); }
PyObject* get_nbytes(PyObject* self) {
  const at::Tensor& tensor = tensor_of(self);
  TORCH_CHECK(tensor.layout() == at::kStrided || tensor.has_storage(),
              "nbytes is not defined for sparse tensors.  If you want the size of the constituent "
              "tensors, add the nbytes of the indices and values.  If you want the size of the "
              "equivalent dense tensor, multiply numel() by element_size()");
  return wrap(tensor.sym_numel() * tensor.itemsize());
}

template <c10::DeviceType kType> PyObject* get_is_device(PyObject* self) {
  return new_bool(tensor_of(self).device().type() == kType);
}
template <c10::Layout kLayout> PyObject* get_is_layout(PyObject* self) {
  return new_bool(tensor_of(self).layout() == kLayout);
}
PyObject* get_is_quantized(PyObject* self) { return new_bool(tensor_of(self).is_quantized()); }
PyObject* get_is_nested(PyObject* self) { return new_bool(tensor_of(self).is_nested()); }
PyObject* get_symbolic(PyObject* self) {
  return new_bool(tensor_of(self).unsafeGetTensorImpl()->has_symbolic_sizes());
}
PyObject* get_python_dispatch(PyObject* self) {
  return new_bool(tensor_of(self).key_set().has(c10::DispatchKey::Python));
}

// ---- autograd -----------------------------------------------------------------------------------
PyObject* get_requires_grad(PyObject* self) { return new_bool(tensor_of(self).requires_grad()); }
int put_requires_grad(PyObject* self, PyObject* value) {
  if (!value || !PyBool_Check(value)) raise(PyExc_RuntimeError, "requires_grad must be a bool");
  set_requires_grad(tensor_of(self), value == Py_True);
  return 0;
}
PyObject* get_grad(PyObject* self) {
  const at::Tensor& tensor = tensor_of(self);
  const at::Tensor grad = grad_of(tensor);
  if (!grad.defined()) {
    const autograd::AutogradMeta* meta = autograd::meta_of(tensor);
    if (meta && !meta->retains_grad && tensor.requires_grad() && !autograd::is_leaf(tensor)) {
      TORCH_WARN("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                 ".grad attribute won't be populated during autograd.backward(). If you indeed "
                 "want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() "
                 "on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
                 "you access the leaf Tensor instead.");
    }
  }
  return wrap(grad);
}
int put_grad(PyObject* self, PyObject* value) {
  if (!value || value == Py_None) {
    set_grad(tensor_of(self), at::Tensor());
    return 0;
  }
  if (!is_tensor(value)) {
    raise_type_error(c10::str("assigned grad expected to be a Tensor or None but got grad of type ",
                              type_name(value)));
  }
  set_grad(tensor_of(self), tensor_of(value));
  return 0;
}
PyObject* get_volatile(PyObject*) {
  TORCH_WARN("volatile was removed (Variable.volatile is always False)");
  return new_bool(false);
}
int put_volatile(PyObject*, PyObject*) {
  TORCH_WARN("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.");
  return 0;
}
PyObject* get_grad_fn(PyObject* self) { return grad_fn_object(tensor_of(self)); }
PyObject* get_retains_grad(PyObject* self) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor_of(self));
  return new_bool(meta && meta->retains_grad);
}
PyObject* get_output_nr(PyObject* self) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor_of(self));
  return PyLong_FromUnsignedLong(meta ? meta->output_nr : 0);
}
PyObject* get_name(PyObject* self) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor_of(self));
  return meta && !meta->name.empty() ? wrap(meta->name) : new_none();
}
PyObject* get_is_leaf(PyObject* self) { return new_bool(is_leaf(tensor_of(self))); }
PyObject* get_version(PyObject* self) {
  const at::Tensor& tensor = tensor_of(self);
  TORCH_CHECK(!tensor.is_inference(), "Inference tensors do not track version counter.");
  return PyLong_FromUnsignedLong(tensor.unsafeGetTensorImpl()->version());
}
PyObject* get_base(PyObject* self) {
  const c10::TensorImpl* impl = tensor_of(self).unsafeGetTensorImpl();
  return impl->is_view() ? wrap(at::Tensor(impl->base())) : new_none();
}
PyObject* get_cdata(PyObject* self) {
  return PyLong_FromVoidPtr(tensor_of(self).unsafeGetTensorImpl());
}
PyObject* get_data(PyObject* self) {
  const at::Tensor& tensor = tensor_of(self);
  // A subclass that defines its operators says itself what is left without history.
  if (tensor.key_set().has(c10::DispatchKey::Python)) return wrap(at::_ops::detach::call(tensor));
  return wrap(autograd::variable_data(tensor));
}
int put_data(PyObject* self, PyObject* value) {
  if (!value || !is_tensor(value)) {
    raise_type_error(c10::str("Variable data has to be a tensor, but got ",
                              value ? type_name(value) : "nothing"));
  }
  const at::Tensor& to = tensor_of(self);
  const at::Tensor& from = tensor_of(value);
  TORCH_CHECK(
      !to.requires_grad() || from.is_floating_point() || from.is_complex(),
      "data set to a tensor that requires gradients must be floating point or complex dtype");
  TORCH_CHECK(to.has_storage() == from.has_storage() || to.layout() == from.layout(),
              "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
              "incompatible tensor type: ",
              to.layout(), " and ", from.layout(), ".");
  c10::TensorImpl* impl = to.unsafeGetTensorImpl();
  const bool requires_grad = impl->requires_grad();
  impl->copy_metadata_from(*from.unsafeGetTensorImpl());
  impl->set_autograd_key(requires_grad);
  forget_accumulator(to);
  return 0;
}

// The dictionaries of hooks are kept as Python sees them; the engine calls what they hold.
PyObject* get_backward_hooks(PyObject* self) {
  PyObject* hooks = reinterpret_cast<PyTensor*>(self)->backward_hooks;
  // After an in-place write the hooks belong to the value before it, no longer to this tensor.
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor_of(self));
  if (!hooks || !meta || meta->hooks.empty()) return new_none();
  Py_INCREF(hooks);
  return hooks;
}
PyObject* get_post_accumulate_hooks(PyObject* self) {
  PyObject* hooks = reinterpret_cast<PyTensor*>(self)->post_accumulate_grad_hooks;
  if (!hooks) return new_none();
  Py_INCREF(hooks);
  return hooks;
}
int put_hooks(PyObject* self, PyObject* value, PyObject*& slot,
              void (*install)(const at::Tensor&, PyObject*)) {
  PyObject* fresh = value == Py_None ? nullptr : value;
  install(tensor_of(self), fresh);
  Py_XINCREF(fresh);
  PyObject* old = slot;
  slot = fresh;
  Py_XDECREF(old);
  return 0;
}
int put_backward_hooks(PyObject* self, PyObject* value) {
  return put_hooks(self, value, reinterpret_cast<PyTensor*>(self)->backward_hooks,
                   set_tensor_hooks);
}
int put_post_accumulate_hooks(PyObject* self, PyObject* value) {
  return put_hooks(self, value, reinterpret_cast<PyTensor*>(self)->post_accumulate_grad_hooks,
                   set_post_accumulate_hooks);
}

// ---- views --------------------------------------------------------------------------------------
PyRef run_method(const char* name, PyObject* self) {
  const Function* function = find_function("torch.Tensor", name);
  if (!function) function = find_function("torch", name);
  TORCH_CHECK_NOT_IMPLEMENTED(function != nullptr, "the operator ", name, " is not implemented");
  const bool method = std::string_view(function->module) == "torch.Tensor";
  return checked(call(*function, method ? self : nullptr, &self, method ? 0 : 1, nullptr));
}

PyObject* get_T(PyObject* self) {
  const at::Tensor& tensor = tensor_of(self);
  const int64_t n = tensor.dim();
  if (n != 2 && n != 0) {
    AT_WARN_ONCE(
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
        "deprecated "
        "and it will throw an error in a future release. Consider `x.mT` to transpose batches of "
        "matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a "
        "tensor.");
  }
  c10::DimVector order;
  for (int64_t d = n - 1; d >= 0; --d) order.push_back(d);
  return wrap(tensor.permute(order));
}
PyObject* get_mT(PyObject* self) {
  const at::Tensor& tensor = tensor_of(self);
  TORCH_CHECK(tensor.dim() >= 2 || tensor.dim() == 0,
              "tensor.mT is only supported on matrices or batches of matrices. Got ", tensor.dim(),
              "-D tensor.");
  return tensor.dim() == 0 ? wrap(tensor) : wrap(tensor.transpose(-2, -1));
}
PyObject* conjugated(PyRef tensor) {
  return tensor_of(tensor.get()).is_complex() ? run_method("conj", tensor.get()).release()
                                              : tensor.release();
}
PyObject* get_H(PyObject* self) {
  const at::Tensor& tensor = tensor_of(self);
  TORCH_CHECK(tensor.dim() == 2 || tensor.dim() == 0,
              "tensor.H is only supported on matrices (2-D tensors). Got ", tensor.dim(),
              "-D tensor.",
              tensor.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  return conjugated(checked(get_mT(self)));
}
PyObject* get_mH(PyObject* self) {
  const at::Tensor& tensor = tensor_of(self);
  TORCH_CHECK(tensor.dim() >= 2 || tensor.dim() == 0,
              "tensor.mH is only supported on matrices or batches of matrices. Got ", tensor.dim(),
              "-D tensor.");
  return conjugated(checked(get_mT(self)));
}
PyObject* get_real(PyObject* self) {
  if (!tensor_of(self).is_complex()) {
    Py_INCREF(self);
    return self;
  }
  return run_method("real", self).release();
}
PyObject* get_imag(PyObject* self) {
  TORCH_CHECK(tensor_of(self).is_complex(),
              "imag is not implemented for tensors with non-complex dtypes.");
  return run_method("imag", self).release();
}
int put_part(PyRef part, PyObject* value, const char* name) {
  if (!value) raise_type_error(c10::str("the attribute ", name, " of a tensor cannot be deleted"));
  if (!part) throw python_error();
  check_status(PyObject_SetItem(part.get(), Py_Ellipsis, value));
  return 0;
}
int put_real(PyObject* self, PyObject* value) {
  return put_part(PyRef(get_real(self)), value, "real");
}
int put_imag(PyObject* self, PyObject* value) {
  return put_part(PyRef(get_imag(self)), value, "imag");
}

#define CRESSET_PROPERTY(name, get, set) const Property property_##name = {#name, get, set}
#define CRESSET_READ(name, get) CRESSET_PROPERTY(name, get, nullptr)
CRESSET_READ(shape, get_shape);
CRESSET_READ(ndim, get_ndim);
CRESSET_READ(dtype, get_dtype);
CRESSET_READ(device, get_device);
CRESSET_READ(layout, get_layout);
CRESSET_READ(itemsize, get_itemsize);
CRESSET_READ(nbytes, get_nbytes);
CRESSET_READ(is_cpu, get_is_device<c10::DeviceType::CPU>);
CRESSET_READ(is_cuda, get_is_device<c10::DeviceType::CUDA>);
CRESSET_READ(is_meta, get_is_device<c10::DeviceType::Meta>);
CRESSET_READ(is_xpu, get_is_device<c10::DeviceType::XPU>);
CRESSET_READ(is_ipu, get_is_device<c10::DeviceType::IPU>);
CRESSET_READ(is_xla, get_is_device<c10::DeviceType::XLA>);
CRESSET_READ(is_mps, get_is_device<c10::DeviceType::MPS>);
CRESSET_READ(is_maia, get_is_device<c10::DeviceType::MAIA>);
CRESSET_READ(is_mtia, get_is_device<c10::DeviceType::MTIA>);
CRESSET_READ(is_vulkan, get_is_device<c10::DeviceType::Vulkan>);
CRESSET_READ(is_sparse, get_is_layout<c10::Layout::Sparse>);
CRESSET_READ(is_sparse_csr, get_is_layout<c10::Layout::SparseCsr>);
CRESSET_READ(is_mkldnn, get_is_layout<c10::Layout::Mkldnn>);
CRESSET_READ(is_quantized, get_is_quantized);
CRESSET_READ(is_nested, get_is_nested);
CRESSET_READ(_has_symbolic_sizes_strides, get_symbolic);
CRESSET_READ(_python_dispatch, get_python_dispatch);
CRESSET_PROPERTY(requires_grad, get_requires_grad, put_requires_grad);
CRESSET_PROPERTY(grad, get_grad, put_grad);
CRESSET_PROPERTY(_grad, get_grad, put_grad);
CRESSET_READ(grad_fn, get_grad_fn);
CRESSET_READ(_grad_fn, get_grad_fn);
CRESSET_READ(is_leaf, get_is_leaf);
CRESSET_READ(retains_grad, get_retains_grad);
CRESSET_READ(output_nr, get_output_nr);
CRESSET_PROPERTY(volatile, get_volatile, put_volatile);
CRESSET_READ(name, get_name);
CRESSET_READ(_version, get_version);
CRESSET_READ(_base, get_base);
CRESSET_READ(_cdata, get_cdata);
CRESSET_PROPERTY(data, get_data, put_data);
CRESSET_PROPERTY(_backward_hooks, get_backward_hooks, put_backward_hooks);
CRESSET_PROPERTY(_post_accumulate_grad_hooks, get_post_accumulate_hooks, put_post_accumulate_hooks);
CRESSET_READ(T, get_T);
CRESSET_READ(mT, get_mT);
CRESSET_READ(H, get_H);
CRESSET_READ(mH, get_mH);
CRESSET_PROPERTY(real, get_real, put_real);
CRESSET_PROPERTY(imag, get_imag, put_imag);
#undef CRESSET_READ
#undef CRESSET_PROPERTY

PyGetSetDef row(const Property& property) {
  return {property.name, get_property, property.set ? set_property : nullptr, nullptr,
          const_cast<Property*>(&property)};
}

} // namespace

PyGetSetDef tensor_properties[] = {row(property_shape),
                                   row(property_ndim),
                                   row(property_dtype),
                                   row(property_device),
                                   row(property_layout),
                                   row(property_itemsize),
                                   row(property_nbytes),
                                   row(property_is_cpu),
                                   row(property_is_cuda),
                                   row(property_is_meta),
                                   row(property_is_xpu),
                                   row(property_is_ipu),
                                   row(property_is_xla),
                                   row(property_is_mps),
                                   row(property_is_maia),
                                   row(property_is_mtia),
                                   row(property_is_vulkan),
                                   row(property_is_sparse),
                                   row(property_is_sparse_csr),
                                   row(property_is_mkldnn),
                                   row(property_is_quantized),
                                   row(property_is_nested),
                                   row(property__has_symbolic_sizes_strides),
                                   row(property__python_dispatch),
                                   row(property_requires_grad),
                                   row(property_grad),
                                   row(property__grad),
                                   row(property_grad_fn),
                                   row(property__grad_fn),
                                   row(property_is_leaf),
                                   row(property_retains_grad),
                                   row(property_output_nr),
                                   row(property_volatile),
                                   row(property_name),
                                   row(property__version),
                                   row(property__base),
                                   row(property__cdata),
                                   row(property_data),
                                   row(property__backward_hooks),
                                   row(property__post_accumulate_grad_hooks),
                                   row(property_T),
                                   row(property_mT),
                                   row(property_H),
                                   row(property_mH),
                                   row(property_real),
                                   row(property_imag),
                                   {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict,
                                    "The attributes that were set on this object.", nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

} // namespace torch::python
