// The Python object of a tensor: torch._C.TensorBase, its metaclass torch._C._TensorMeta, and the
// rules by which one C++ tensor has one Python object.
//
// Note [One object per tensor]
// A PyTensor owns its C++ tensor, and the tensor remembers the object without owning it. When the
// last Python reference goes while C++ still holds the tensor, the object is dropped if nothing
// could tell the difference; but if it has attributes, hooks, weak references or a class of its
// own, the ownership flips: the tensor then owns the object (TensorImpl::pyobj_owned) and the
// object's handle holds no count. The next wrap() flips it back. Needs the GIL throughout.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/Tensor.h>

namespace torch::python {

struct PyTensor {
  PyObject_HEAD at::Tensor tensor;
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* backward_hooks;             // what `_backward_hooks` shows, or null
  PyObject* post_accumulate_grad_hooks; // likewise
  uint8_t custom;                       // which questions its class answers: custom_geometry.h
};

extern PyTypeObject TensorMetaType;
extern PyTypeObject TensorBaseType;
// torch.Tensor and torch.nn.Parameter, from when the package has defined them. Both are plain:
// their
// __torch_function__ changes nothing.
extern PyTypeObject* TensorClass;
extern PyTypeObject* ParameterClass;

// A tensor whose operators need no look at __torch_function__. Accepts nullptr.
inline bool is_plain_tensor(PyObject* o) noexcept {
  return o != nullptr && (Py_TYPE(o) == TensorClass || Py_TYPE(o) == ParameterClass);
}
// Any tensor, subclasses included.
inline bool is_tensor(PyObject* o) noexcept {
  return is_plain_tensor(o) || PyObject_TypeCheck(o, &TensorBaseType);
}
// The C++ tensor inside; the caller has checked is_tensor. The reference is valid while `o` lives.
inline const at::Tensor& tensor_of(PyObject* o) noexcept {
  return reinterpret_cast<PyTensor*>(o)->tensor;
}

// A new object of class `type` (a subclass of TensorBase) for a tensor that has none yet; throws
// when it has one.
PyObject* new_tensor_object(PyTypeObject* type, at::Tensor tensor);

bool init_tensor(PyObject* module);
// Adds methods to the type; false with the error set.
bool add_tensor_methods(PyMethodDef* methods);

// ---- parts of the type, each in its own file ----------------------------------------------------
extern PyGetSetDef tensor_properties[];         // tensor_properties.cpp
extern PyMethodDef tensor_methods[];            // tensor_methods.cpp
extern PyMethodDef tensor_conversion_methods[]; // tensor_convert.cpp
void fill_number_slots(PyNumberMethods* slots); // tensor_number.cpp
PyObject* tensor_richcompare(PyObject* self, PyObject* other, int op);

} // namespace torch::python
