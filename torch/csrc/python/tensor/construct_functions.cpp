// The Python functions on top of construct.cpp: torch.tensor, as_tensor, asarray, from_numpy,
// frombuffer, Tensor.new_tensor, Tensor.new and the old constructors.
#include <torch/csrc/python/tensor/construct.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/args/keyword_args.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/tensor/interop.h>
#include <torch/csrc/python/tensor/storage.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/pin_memory.h>

namespace torch::python {
namespace {

using at::Tensor;

// When a torch-function mode is active it gets the call; true with the outcome in *result.
bool mode_takes_over(const char* name, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                     PyObject** result) {
  if (C10_LIKELY(!function_mode_active())) return false;
  PyRef positional = checked(PyTuple_New(nargs));
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(positional.get(), i, args[i]);
  }
  PyRef keywords = checked(PyDict_New());
  const Py_ssize_t count = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < count; ++k) {
    check_status(PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, k), args[nargs + k]));
  }
  PyRef func(public_callable("torch", name));
  if (!func) throw python_error();
  const std::string public_name = std::string("torch.") + name;
  *result = run_torch_function(func.get(), Overloads(), positional.get(), keywords.get(),
                               public_name.c_str());
  return true;
}

void warn(const std::string& message) {
  check_status(PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1));
}

void warn_copy_construct(const char* call) {
  warn(c10::str(
      "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
      "or sourceTensor.detach().clone().requires_grad_(True), rather than ",
      call, "(sourceTensor)."));
}

// ---- torch.tensor, as_tensor, asarray ----------------------------------------------------------

PyObject* py_tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    PyObject* result = nullptr;
    if (mode_takes_over("tensor", args, nargs, kwnames, &result)) return result;
    KeywordArgs a("tensor", {"data", "dtype", "device", "requires_grad", "pin_memory", "names"}, 1,
                  1, args, nargs, kwnames);
    ConstructOptions options{a.dtype(1), a.device(2), /*copy=*/true};
    const bool pin = a.boolean(4, false);
    if (a.present(5))
      throw c10::NotImplementedError("torch.tensor: named tensors are not implemented");
    if (is_tensor(a[0])) warn_copy_construct("torch.tensor");
    Tensor out = tensor_from_data(a[0], options);
    if (pin) out = at::_ops::pin_memory::call(out, std::nullopt);
    return finish_factory(std::move(out), a.boolean(3, false));
  });
}

PyObject* py_as_tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    PyObject* result = nullptr;
    if (mode_takes_over("as_tensor", args, nargs, kwnames, &result)) return result;
    KeywordArgs a("as_tensor", {"data", "dtype", "device"}, 1, 1, args, nargs, kwnames);
    ConstructOptions options{a.dtype(1), a.device(2), /*copy=*/false};
    if (is_tensor(a[0])) {
      // Unlike data from elsewhere a tensor keeps its history.
      const Tensor& self = tensor_of(a[0]);
      return wrap(converted(self, options.device.value_or(self.device()),
                            options.dtype.value_or(self.scalar_type())));
    }
    return wrap(tensor_from_data(a[0], options));
  });
}

// What asarray may share memory with: a tensor, an array, a storage, a DLPack exporter or a buffer.
// Undefined for numbers and sequences.
Tensor shared_source(PyObject* o, std::optional<c10::ScalarType> dtype) {
  if (is_tensor(o)) return tensor_of(o);
  if (is_numpy_array(o)) return tensor_from_numpy(o, true);
  if (Tensor shared = tensor_from_storage(o, dtype); shared.defined()) return shared;
  if (PyCapsule_CheckExact(o)) return tensor_from_dlpack_capsule(o);
  if (PyObject_HasAttrString(o, "__dlpack__")) {
    PyRef capsule = checked(PyObject_CallMethod(o, "__dlpack__", nullptr));
    return tensor_from_dlpack_capsule(capsule.get());
  }
  if (PyObject_CheckBuffer(o) && !is_numpy_scalar(o)) {
    return tensor_from_buffer(o, dtype.value_or(c10::get_default_dtype()), -1, 0);
  }
  return {};
}

Tensor asarray(PyObject* data, const KeywordArgs& a, bool* is_source_grad) {
  const auto dtype = a.dtype(1);
  const auto device = a.device(2);
  const bool copy_given = a.present(3);
  const bool copy = a.boolean(3, false);
  const Tensor source = shared_source(data, dtype);
  if (!source.defined()) {
    TORCH_CHECK_VALUE(!copy_given || copy, "can't alias arbitrary sequence into a tensor.");
    return tensor_from_data(data, {dtype, device, true});
  }
  *is_source_grad = source.requires_grad();
  const c10::Device target = device.value_or(source.device());
  const c10::ScalarType type = dtype.value_or(source.scalar_type());
  if (copy_given && !copy) {
    TORCH_CHECK_VALUE(source.device() == target, "can't alias tensor from device '",
                      source.device(), "' to '", target, "'.");
    TORCH_CHECK_VALUE(source.scalar_type() == type, "can't alias tensor with dtype '",
                      source.scalar_type(), "' into dtype '", type, "'.");
  }
  return converted(source, target, type, copy);
}

PyObject* py_asarray(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    PyObject* result = nullptr;
    if (mode_takes_over("asarray", args, nargs, kwnames, &result)) return result;
    KeywordArgs a("asarray", {"obj", "dtype", "device", "copy", "requires_grad"}, 1, 1, args, nargs,
                  kwnames);
    bool source_grad = false;
    Tensor out = asarray(a[0], a, &source_grad);
    const bool requires_grad = a.boolean(4, source_grad);
    if (out.requires_grad() && !requires_grad) out = out.detach();
    if (!out.requires_grad() && requires_grad) return finish_factory(std::move(out), true);
    return wrap(std::move(out));
  });
}

PyObject* py_from_numpy(PyObject*, PyObject* array) {
  return guarded([&]() -> PyObject* {
    if (!is_numpy_array(array)) {
      raise_type_error(c10::str("expected np.ndarray (got ", type_name(array), ")"));
    }
    return wrap(tensor_from_numpy(array, true));
  });
}

PyObject* py_frombuffer(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    KeywordArgs a("frombuffer", {"buffer", "dtype", "count", "offset", "requires_grad"}, 1, 2, args,
                  nargs, kwnames);
    const auto dtype = a.dtype(1);
    if (!dtype) a.wrong_type(1, "torch.dtype");
    return finish_factory(tensor_from_buffer(a[0], *dtype, a.integer(2, -1), a.integer(3, 0)),
                          a.boolean(4, false));
  });
}

PyObject* py_new_tensor(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                        PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    KeywordArgs a("new_tensor",
                  {"data", "dtype", "device", "requires_grad", "layout", "pin_memory"}, 1, 1, args,
                  nargs, kwnames);
    const Tensor& like = tensor_of(self);
    ConstructOptions options{a.dtype(1).value_or(like.scalar_type()),
                             a.device(2).value_or(like.device()), /*copy=*/true};
    if (is_tensor(a[0])) warn_copy_construct("tensor.new_tensor");
    return finish_factory(tensor_from_data(a[0], options), a.boolean(3, false));
  });
}

// ---- the old constructors ----------------------------------------------------------------------

[[noreturn]] void invalid_combination(PyObject* args, PyObject* kwargs) {
  std::string got;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    got += c10::str(i ? ", " : "", type_name(PyTuple_GET_ITEM(args, i)));
  }
  PyObject *key, *value;
  for (Py_ssize_t cursor = 0; kwargs && PyDict_Next(kwargs, &cursor, &key, &value);) {
    got += c10::str(got.empty() ? "" : ", ", text_of(key), "=", type_name(value));
  }
  raise_type_error(c10::str("new() received an invalid combination of arguments - got (", got,
                            "), but expected one of:\n * (*, torch.device device = None)\n"
                            " * (torch.Storage storage)\n * (Tensor other)\n"
                            " * (tuple of ints size, *, torch.device device = None)\n"
                            " * (object data, *, torch.device device = None)\n"));
}

c10::DimVector read_sizes(PyObject* tuple) {
  c10::DimVector sizes;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (!is_integer_like(item)) {
      raise_type_error(c10::str("new(): argument 'size' failed to unpack the object at pos ",
                                int64_t(i + 1), " with error \"type must be tuple of ints,but got ",
                                type_name(item), "\""));
    }
    sizes.push_back(to_int64(item));
    TORCH_CHECK(sizes.back() >= 0, "Trying to create tensor with negative dimension ", sizes.back(),
                ": ", c10::IntArrayRef(sizes));
  }
  return sizes;
}

// The one argument of a call such as torch.Tensor(x): a storage, a tensor, a torch.Size or data.
Tensor legacy_from_one(c10::ScalarType dtype, c10::Device device, PyObject* o, bool same_type) {
  if (is_storage(o)) {
    check_storage_dtype(o, dtype);
    const c10::Storage storage = storage_of(o);
    const int64_t count = static_cast<int64_t>(storage->nbytes()) / c10::elementSize(dtype);
    return at::detail::checked_tensor(storage, dtype, {count}, {1}, 0);
  }
  if (is_tensor(o)) {
    const Tensor& other = tensor_of(o);
    if (same_type && (other.scalar_type() != dtype || other.device().type() != device.type())) {
      raise_type_error(c10::str("expected a tensor of dtype torch.", c10::info(dtype).name, " on ",
                                device, " (got torch.", c10::info(other.scalar_type()).name, " on ",
                                other.device(), ")"));
    }
    return at::alias(other.detach());
  }
  if (is_size(o)) return at::detail::empty(read_sizes(o), dtype, device);
  if (PyUnicode_Check(o) || PyBytes_Check(o)) {
    raise_type_error(c10::str("new(): invalid data type '", type_name(o), "'"));
  }
  if (!PySequence_Check(o)) {
    raise_type_error(c10::str("new(): data must be a sequence (got ", type_name(o), ")"));
  }
  return tensor_from_data(o, {dtype, device, true});
}

Tensor legacy_construct(c10::ScalarType dtype, c10::Device device, PyObject* args, PyObject* kwargs,
                        bool same_type) {
  PyObject* one = nullptr;
  PyObject *key, *value;
  for (Py_ssize_t cursor = 0; kwargs && PyDict_Next(kwargs, &cursor, &key, &value);) {
    const std::string_view name = utf8(key);
    if (name == "device") {
      if (value != Py_None && !device_from_object(value, &device))
        invalid_combination(args, kwargs);
    } else if ((name == "data" || name == "other" || name == "storage") && !one) {
      one = value;
    } else if (name == "size" && !one && PyTuple_Check(value)) {
      return at::detail::empty(read_sizes(value), dtype, device);
    } else {
      invalid_combination(args, kwargs);
    }
  }
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (one && count > 0) invalid_combination(args, kwargs);
  if (count == 1) one = PyTuple_GET_ITEM(args, 0);
  if (!one && count == 0) return at::detail::empty({0}, dtype, device);
  const bool sizes = !one || (is_integer_like(one) && !PyBool_Check(one) && !is_tensor(one));
  if (count > 1 && !is_integer_like(PyTuple_GET_ITEM(args, 0))) invalid_combination(args, kwargs);
  if (sizes) return at::detail::empty(read_sizes(args), dtype, device);
  return legacy_from_one(dtype, device, one, same_type);
}

// torch._C._legacy_tensor_new(dtype, device, *args, **kwargs): torch.FloatTensor(...) and its like.
PyObject* py_legacy_tensor_new(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (PyTuple_GET_SIZE(args) < 2 || !is_dtype(PyTuple_GET_ITEM(args, 0))) {
      raise_type_error("_legacy_tensor_new(): expected a dtype and a device");
    }
    c10::Device device;
    if (!device_from_object(PyTuple_GET_ITEM(args, 1), &device)) {
      raise_type_error("_legacy_tensor_new(): argument 2 must be torch.device");
    }
    PyRef rest = checked(PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args)));
    return wrap(legacy_tensor(dtype_value(PyTuple_GET_ITEM(args, 0)), device, rest.get(), kwargs));
  });
}

// x.new(...) of a COO tensor makes another: of sizes, or of indices, values and perhaps a size.
PyObject* new_sparse(const Tensor& like, PyObject* args, PyObject* kwargs) {
  static PyObject* maker = nullptr;
  PyRef dtype(wrap(like.scalar_type()));
  PyRef all = checked(PyTuple_New(1 + PyTuple_GET_SIZE(args)));
  PyTuple_SET_ITEM(all.get(), 0, dtype.release());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* item = PyTuple_GET_ITEM(args, i);
    Py_INCREF(item);
    PyTuple_SET_ITEM(all.get(), i + 1, item);
  }
  PyObject* make = cached_attribute(maker, "torch.sparse._legacy_types", "sparse_new");
  return make ? PyObject_Call(make, all.get(), kwargs) : nullptr;
}

PyObject* py_new(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    const Tensor& like = tensor_of(self);
    if (like.is_sparse()) return new_sparse(like, args, kwargs);
    return wrap(legacy_tensor(like.scalar_type(), like.device(), args, kwargs));
  });
}

PyMethodDef functions[] = {
    {"tensor", as_method(py_tensor), METH_FASTCALL | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n\n"
     "A tensor with a copy of data: a number, a nested sequence or an array."},
    {"as_tensor", as_method(py_as_tensor), METH_FASTCALL | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n\n"
     "A tensor of data that shares its memory where that is possible."},
    {"asarray", as_method(py_asarray), METH_FASTCALL | METH_KEYWORDS,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None)\n\n"
     "A tensor of obj: a tensor, an array, a DLPack exporter, a buffer, a number or a sequence."},
    {"from_numpy", py_from_numpy, METH_O,
     "from_numpy(ndarray)\n\nA tensor that shares the memory of a NumPy array."},
    {"frombuffer", as_method(py_frombuffer), METH_FASTCALL | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n\n"
     "A one-dimensional tensor that shares the memory of a buffer."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef private_functions[] = {{"_legacy_tensor_new", as_method(py_legacy_tensor_new),
                                    METH_VARARGS | METH_KEYWORDS,
                                    "The constructor behind torch.FloatTensor and its like."},
                                   {nullptr, nullptr, 0, nullptr}};

PyMethodDef methods[] = {
    {"new_tensor", as_method(py_new_tensor), METH_FASTCALL | METH_KEYWORDS,
     "new_tensor(data, *, dtype=None, device=None, requires_grad=False, layout=None, "
     "pin_memory=False)\n\n"
     "A tensor with a copy of data, of this tensor's dtype and device."},
    {"new", as_method(py_new), METH_VARARGS | METH_KEYWORDS,
     "new(...)\n\nThe old constructor with this tensor's dtype and device."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

Tensor legacy_tensor(c10::ScalarType dtype, c10::Device device, PyObject* args, PyObject* kwargs) {
  return legacy_construct(dtype, device, args, kwargs, /*same_type=*/true);
}

PyObject* legacy_tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  Tensor made = legacy_construct(c10::get_default_dtype(), c10::Device(at::kCPU), args, kwargs,
                                 /*same_type=*/false);
  if (type == TensorClass) return wrap(std::move(made));
  return new_tensor_object(type, std::move(made));
}

bool init_construct(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) return false;
  if (PyModule_AddFunctions(module, private_functions) < 0) return false;
  return add_tensor_methods(methods);
}

} // namespace torch::python
