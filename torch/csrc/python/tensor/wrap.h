// C++ results to new Python references. Overloads for every type an operator can return, so that
// generated code can say wrap(result) without knowing which it is. All return nullptr with the
// Python error set on failure.
#pragma once
#include <tuple>
#include <vector>

#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/types/types.h>

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymInt.h>

namespace torch::python {

// The Python object of a tensor: the one it already has, or a new torch.Tensor. The undefined
// tensor is None.
PyObject* wrap(const at::Tensor& tensor);
PyObject* wrap(at::Tensor&& tensor);
PyObject* wrap(const std::vector<at::Tensor>& tensors); // a tuple
PyObject* wrap(std::vector<at::Tensor>&& tensors);
PyObject* wrap(c10::ArrayRef<at::Tensor> tensors);
PyObject* wrap(const c10::Scalar& value);
PyObject* wrap(c10::SymInt value);
PyObject* wrap(const c10::Storage& storage);
inline PyObject* wrap(bool value) { return new_bool(value); }
inline PyObject* wrap(int64_t value) { return PyLong_FromLongLong(value); }
inline PyObject* wrap(double value) { return PyFloat_FromDouble(value); }
PyObject* wrap(const std::string& text);
PyObject* wrap(const std::vector<int64_t>& values); // a tuple
inline PyObject* wrap_void() { return new_none(); }

template <class... Ts> PyObject* wrap(std::tuple<Ts...>&& values) {
  PyObject* out = PyTuple_New(sizeof...(Ts));
  if (!out) return nullptr;
  bool ok = true;
  Py_ssize_t i = 0;
  auto put = [&](PyObject* item) {
    if (!item) {
      ok = false;
      return;
    }
    PyTuple_SET_ITEM(out, i++, item);
  };
  std::apply([&](auto&&... items) { (put(ok ? wrap(std::forward<Ts>(items)) : nullptr), ...); },
             std::move(values));
  if (ok) return out;
  Py_DECREF(out);
  return nullptr;
}

// A struct sequence type torch.return_types.<name>, made on first use.
struct NamedReturn {
  const char* name;
  const char* const* fields;
  int n;
  mutable PyTypeObject* type;
};
// The type of `def`, borrowed; nullptr with the error set.
PyTypeObject* named_type(const NamedReturn& def);

template <class... Ts> PyObject* wrap_named(const NamedReturn& def, std::tuple<Ts...>&& values) {
  PyTypeObject* type = named_type(def);
  PyObject* out = type ? PyStructSequence_New(type) : nullptr;
  if (!out) return nullptr;
  bool ok = true;
  Py_ssize_t i = 0;
  auto put = [&](PyObject* item) {
    ok = ok && item;
    if (item) PyStructSequence_SetItem(out, i++, item);
  };
  std::apply([&](auto&&... items) { (put(ok ? wrap(std::forward<Ts>(items)) : nullptr), ...); },
             std::move(values));
  if (ok) return out;
  Py_DECREF(out);
  return nullptr;
}

} // namespace torch::python
