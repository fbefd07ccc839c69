// Results of operators as Python objects: lists, numbers, and the struct sequences of operators
// with named results. Tensors themselves are wrapped in tensor.cpp, next to the rules of ownership.
#include <torch/csrc/python/tensor/wrap.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/autograd/bridge.h>
#include <torch/csrc/python/sym/sym.h>
#include <torch/csrc/python/tensor/storage.h>

#include <string>

#include <structmember.h>

namespace torch::python {

PyObject* wrap(std::vector<at::Tensor>&& tensors) {
  PyRef out(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  if (!out) return nullptr;
  // Millions of pieces respond to Ctrl-C; its handler must not find the tuple before it is filled.
  constexpr size_t kMany = size_t(1) << 14;
  const bool many = tensors.size() > kMany;
  if (many) PyObject_GC_UnTrack(out.get());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (many && i % kMany == 0 && PyErr_CheckSignals() < 0) return nullptr;
    PyObject* item = wrap(std::move(tensors[i]));
    if (!item) return nullptr;
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
  }
  if (many) PyObject_GC_Track(out.get());
  return out.release();
}

PyObject* wrap(c10::ArrayRef<at::Tensor> tensors) { return wrap(tensors.vec()); }

PyObject* wrap(const std::vector<at::Tensor>& tensors) {
  return wrap(std::vector<at::Tensor>(tensors));
}

PyObject* wrap(const c10::Scalar& value) {
  switch (value.tag()) {
  case c10::Scalar::Tag::Bool:
    return new_bool(value.toBool());
  case c10::Scalar::Tag::Double:
    return PyFloat_FromDouble(value.toDouble());
  case c10::Scalar::Tag::UInt:
    return PyLong_FromUnsignedLongLong(value.to<uint64_t>());
  case c10::Scalar::Tag::Complex: {
    const c10::complex<double> z = value.toComplexDouble();
    return PyComplex_FromDoubles(z.real(), z.imag());
  }
  case c10::Scalar::Tag::SymInt:
  case c10::Scalar::Tag::SymFloat:
  case c10::Scalar::Tag::SymBool:
    return wrap_handle(value.symbolic_raw());
  case c10::Scalar::Tag::Int:
    break;
  }
  return PyLong_FromLongLong(value.toLong());
}

PyObject* wrap(c10::SymInt value) {
  return value.is_symbolic() ? wrap_handle(value.raw()) : PyLong_FromLongLong(value.raw());
}

PyObject* wrap(const c10::Storage& storage) {
  return guarded([&] { return wrap_storage(storage); });
}

PyObject* wrap(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

PyObject* wrap(const std::vector<int64_t>& values) { return make_int_tuple(values); }

namespace {
// One field to a line, as results of several tensors are read.
PyObject* named_repr(PyObject* self) {
  return guarded([&]() -> PyObject* {
    PyTypeObject* type = Py_TYPE(self);
    std::string text = std::string(type->tp_name) + "(\n";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      if (i > 0) text += ",\n";
      text += std::string(type->tp_members[i].name) + "=" + repr_of(PyTuple_GET_ITEM(self, i));
    }
    return wrap(text + ")");
  });
}
} // namespace

PyTypeObject* named_type(const NamedReturn& def) {
  if (C10_LIKELY(def.type != nullptr)) return def.type;
  std::vector<PyStructSequence_Field> fields;
  for (int i = 0; i < def.n; ++i) fields.push_back({def.fields[i], ""});
  fields.push_back({nullptr, nullptr});
  // The type keeps the pointer to its name.
  const std::string name = std::string("torch.return_types.") + def.name;
  char* kept = static_cast<char*>(PyMem_Malloc(name.size() + 1));
  if (!kept) {
    PyErr_NoMemory();
    return nullptr;
  }
  name.copy(kept, name.size());
  kept[name.size()] = '\0';
  PyStructSequence_Desc desc = {kept, nullptr, fields.data(), def.n};
  PyTypeObject* type = PyStructSequence_NewType(&desc);
  if (!type) return nullptr;
  type->tp_repr = named_repr;
  PyRef module(PyUnicode_FromString("torch.return_types"));
  if (!module ||
      PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), "__module__", module.get()) < 0) {
    return nullptr;
  }
  return def.type = type;
}

PyObject* finish_factory(at::Tensor tensor, bool requires_grad) {
  if (C10_UNLIKELY(requires_grad)) {
    TORCH_CHECK(tensor.is_floating_point() || tensor.is_complex(),
                "Only Tensors of floating point and complex dtype can require gradients");
    set_requires_grad(tensor, true);
  }
  return wrap(std::move(tensor));
}

} // namespace torch::python
