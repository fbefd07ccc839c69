// NumPy and the buffer protocol, without NumPy's C headers: arrays are read through the buffer
// protocol (shape, strides, format, memory in one call) and made with numpy.ndarray(shape, dtype,
// buffer, ...) on a small exporter object that keeps the tensor alive.
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/tensor/interop.h>

#include <cstring>

#include <torch/csrc/python/args/keyword_args.h>
#include <torch/csrc/python/tensor/construct.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <ATen/core/Context.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/functorch/Level.h>
#include <ATen/native/sparse/SparseTensor.h>
#include <ATen/ops/resolve_conj.h>
#include <ATen/ops/resolve_neg.h>
#include <c10/core/MemoryExport.h>
#include <c10/util/NestedRelease.h>
#include <c10/util/SmallVector.h>

namespace torch::python {
namespace {

using at::Tensor;
using c10::DimVector;
using c10::ScalarType;

// ---- NumPy's types -----------------------------------------------------------------------------

struct NumpyName {
  const char* name;
  ScalarType type;
};
constexpr NumpyName kNumpyNames[] = {
    {"float32", at::kFloat},
    {"float64", at::kDouble},
    {"int64", at::kLong},
    {"int32", at::kInt},
    {"bool_", at::kBool},
    {"float16", at::kHalf},
    {"uint8", at::kByte},
    {"int8", at::kChar},
    {"int16", at::kShort},
    {"uint16", at::kUInt16},
    {"uint32", at::kUInt32},
    {"uint64", at::kUInt64},
    {"complex64", at::kComplexFloat},
    {"complex128", at::kComplexDouble},
};
constexpr int kNumpyTypeCount = sizeof(kNumpyNames) / sizeof(kNumpyNames[0]);

// Filled when NumPy is first seen in sys.modules; never released, as the module is not either.
struct NumpyTypes {
  PyTypeObject* array = nullptr;
  PyTypeObject* generic = nullptr; // base of all scalars
  PyObject* scalars[kNumpyTypeCount] = {};
  PyObject* dtypes[kNumpyTypeCount] = {};
};
NumpyTypes numpy_types;

bool load_numpy(PyObject* module) {
  NumpyTypes found;
  PyRef array(PyObject_GetAttrString(module, "ndarray"));
  PyRef generic(PyObject_GetAttrString(module, "generic"));
  PyRef dtype(PyObject_GetAttrString(module, "dtype"));
  if (!array || !generic || !dtype || !PyType_Check(array.get()) || !PyType_Check(generic.get())) {
    return false;
  }
  for (int i = 0; i < kNumpyTypeCount; ++i) {
    found.scalars[i] = PyObject_GetAttrString(module, kNumpyNames[i].name);
    if (!found.scalars[i]) return false;
    found.dtypes[i] = PyObject_CallFunctionObjArgs(dtype.get(), found.scalars[i], nullptr);
    if (!found.dtypes[i]) return false;
  }
  found.array = reinterpret_cast<PyTypeObject*>(array.release());
  found.generic = reinterpret_cast<PyTypeObject*>(generic.release());
  numpy_types = found;
  return true;
}

// Whether NumPy is loaded. A partly imported module counts as not loaded yet.
bool numpy_seen() {
  if (C10_LIKELY(numpy_types.array != nullptr)) return true;
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* module = modules ? PyDict_GetItemString(modules, "numpy") : nullptr;
  if (!module) return false;
  if (load_numpy(module)) return true;
  PyErr_Clear();
  return false;
}

bool is_common_builtin(PyObject* o) {
  return PyList_CheckExact(o) || PyTuple_CheckExact(o) || PyFloat_CheckExact(o) ||
         PyLong_CheckExact(o) || PyBool_Check(o);
}

// ---- buffers as storage ------------------------------------------------------------------------

// Owns a Py_buffer; handed to a storage, which releases it, with the GIL, when the last tensor
// goes.
struct HeldBuffer {
  Py_buffer view;
  ~HeldBuffer() { PyBuffer_Release(&view); }
};

void release_buffer(void* held) {
  // After the interpreter is gone the memory went with it.
  if (!python_exists()) return;
  // The buffer's owner may be an array on the memory of another such tensor, and so on.
  c10::release_nested(
      [](void* buffer) {
        WithGil gil;
        delete static_cast<HeldBuffer*>(buffer);
      },
      held);
}

c10::Storage storage_on(std::unique_ptr<HeldBuffer> held, void* data, size_t bytes) {
  HeldBuffer* raw = held.release();
  c10::DataPtr pointer(data, raw, release_buffer, c10::Device(at::kCPU));
  return c10::make_intrusive<c10::StorageImpl>(bytes, std::move(pointer), nullptr, false);
}

void warn_once(bool* warned, const char* message) {
  if (*warned && !at::globalContext().warn_always) return;
  *warned = true;
  check_status(PyErr_WarnEx(PyExc_UserWarning, message, 1));
}

// ---- ndarray to tensor -------------------------------------------------------------------------

std::optional<ScalarType> type_of_dtype(PyObject* dtype) {
  for (int i = 0; i < kNumpyTypeCount; ++i) {
    if (numpy_types.dtypes[i] == dtype) return kNumpyNames[i].type;
  }
  // int64 has two names in C (long and long long), and equal dtypes need not be one object.
  for (int i = 0; i < kNumpyTypeCount; ++i) {
    const int equal = PyObject_RichCompareBool(numpy_types.dtypes[i], dtype, Py_EQ);
    if (equal < 0) throw python_error();
    if (equal) return kNumpyNames[i].type;
  }
  return std::nullopt;
}

[[noreturn]] void throw_unsupported_array(PyObject* dtype) {
  PyRef swapped(PyObject_CallMethod(dtype, "newbyteorder", "s", "="));
  if (!swapped) throw python_error();
  if (type_of_dtype(swapped.get())) {
    raise(PyExc_ValueError, "given numpy array has byte order different from the native byte "
                            "order. Conversion between byte "
                            "orders is currently not supported.");
  }
  PyRef scalar = checked(PyObject_GetAttrString(dtype, "type"));
  PyRef name = checked(PyObject_GetAttrString(scalar.get(), "__name__"));
  raise_type_error(
      c10::str("can't convert np.ndarray of type numpy.", text_of(name.get()),
               ". The only supported types are: float64, float32, float16, complex64, "
               "complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and "
               "bool."));
}

DimVector element_strides(const Py_buffer& view, int64_t itemsize) {
  DimVector strides;
  for (int d = 0; d < view.ndim; ++d) {
    const int64_t bytes = view.strides[d];
    if (bytes % itemsize != 0) {
      raise(PyExc_ValueError, "given numpy array strides not a multiple of the element byte size. "
                              "Copy the numpy array to "
                              "reallocate the memory.");
    }
    if (bytes < 0) {
      raise(PyExc_ValueError, "At least one stride in the given numpy array is negative, and "
                              "tensors with negative strides "
                              "are not currently supported. (You can probably work around this by "
                              "making a copy of your "
                              "array  with array.copy().) ");
    }
    strides.push_back(bytes / itemsize);
  }
  return strides;
}

// ---- tensor to ndarray -------------------------------------------------------------------------

// Exports the memory of a tensor as bytes.
struct PyTensorBuffer {
  PyObject_HEAD Tensor tensor;
  c10::MemoryExport memory;
  Py_ssize_t bytes;
};

int export_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto* exporter = reinterpret_cast<PyTensorBuffer*>(self);
  static char nothing;
  void* data = exporter->tensor.unsafeGetTensorImpl()->data();
  if (data == nullptr && exporter->bytes > 0) {
    PyErr_SetString(PyExc_BufferError, "the tensor has no memory");
    view->obj = nullptr;
    return -1;
  }
  return PyBuffer_FillInfo(view, self, data ? data : &nothing, exporter->bytes, 0, flags);
}

void free_exporter(PyObject* self) {
  auto* exporter = reinterpret_cast<PyTensorBuffer*>(self);
  exporter->memory.~MemoryExport();
  exporter->tensor.~Tensor();
  Py_TYPE(self)->tp_free(self);
}

PyBufferProcs buffer_procs = {export_buffer, nullptr};
PyTypeObject TensorBufferType = type_object("torch._C._TensorBuffer");

bool ready_exporter() {
  PyTypeObject& type = TensorBufferType;
  type.tp_basicsize = sizeof(PyTensorBuffer);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  type.tp_dealloc = free_exporter;
  type.tp_as_buffer = &buffer_procs;
  type.tp_doc = "The memory of a tensor for other libraries.";
  return PyType_Ready(&type) == 0;
}

// Bytes from the first element to the end of the last.
int64_t span_bytes(const Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return (last + 1) * tensor.itemsize();
}

PyRef make_exporter(const Tensor& tensor) {
  auto* exporter = PyObject_New(PyTensorBuffer, &TensorBufferType);
  if (!exporter) throw python_error();
  new (&exporter->tensor) Tensor(tensor);
  new (&exporter->memory) c10::MemoryExport(tensor.storage());
  exporter->bytes = static_cast<Py_ssize_t>(span_bytes(tensor));
  return PyRef(reinterpret_cast<PyObject*>(exporter));
}

void check_convertible(const Tensor& tensor) {
  if (!tensor.is_cpu()) {
    raise_type_error(
        c10::str("can't convert ", tensor.device(),
                 " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                 "memory first."));
  }
  if (tensor.layout() != at::kStrided) {
    raise_type_error(c10::str("can't convert ", at::sparse::spelled(tensor.layout()),
                              " layout tensor to numpy. Use Tensor.to_dense() first."));
  }
  // Where no gradients are recorded, an array that shares the memory hides nothing from them.
  TORCH_CHECK(
      !tensor.requires_grad() || !c10::tls_autograd_state.grad_mode,
      "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  TORCH_CHECK(at::functorch::wrapper_of(tensor) == nullptr,
              "Cannot access data pointer of Tensor that doesn't have storage");
  TORCH_CHECK(!tensor.is_conj(), "Can't call numpy() on Tensor that has conjugate bit set. Use "
                                 "tensor.resolve_conj().numpy() instead.");
  TORCH_CHECK(!tensor.is_neg(), "Can't call numpy() on Tensor that has negative bit set. Use "
                                "tensor.resolve_neg().numpy() instead.");
}

PyObject* numpy_dtype(ScalarType type) {
  for (int i = 0; i < kNumpyTypeCount; ++i) {
    if (kNumpyNames[i].type == type) return numpy_types.dtypes[i];
  }
  raise_type_error(c10::str("Got unsupported ScalarType ", type));
}

PyRef byte_strides(const Tensor& tensor) {
  PyRef tuple = checked(PyTuple_New(tensor.dim()));
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    PyRef item = checked(PyLong_FromLongLong(tensor.stride(d) * tensor.itemsize()));
    PyTuple_SET_ITEM(tuple.get(), d, item.release());
  }
  return tuple;
}

PyObject* py_numpy(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* result = nullptr;
  if (method_override("numpy", self, args, nargs, kwnames, &result)) return result;
  return guarded([&]() -> PyObject* {
    KeywordArgs a("numpy", {"force"}, 0, 0, args, nargs, kwnames);
    return tensor_to_numpy(tensor_of(self), a.boolean(0, false));
  });
}

PyMethodDef methods[] = {{"numpy", as_method(py_numpy), METH_FASTCALL | METH_KEYWORDS,
                          "numpy(*, force=False)\n\nA NumPy array that shares this tensor's "
                          "memory; with force, a copy where "
                          "that is not possible."},
                         {nullptr, nullptr, 0, nullptr}};

} // namespace

bool is_numpy_array(PyObject* o) {
  if (is_common_builtin(o) || is_tensor(o) || !numpy_seen()) return false;
  return PyObject_TypeCheck(o, numpy_types.array);
}

bool is_numpy_scalar(PyObject* o) {
  if (is_common_builtin(o) || is_tensor(o) || !numpy_seen()) return false;
  return PyObject_TypeCheck(o, numpy_types.generic);
}

std::optional<ScalarType> numpy_scalar_type(PyObject* o) {
  if (!numpy_seen()) return std::nullopt;
  for (int i = 0; i < kNumpyTypeCount; ++i) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(o)) == numpy_types.scalars[i])
      return kNumpyNames[i].type;
  }
  PyRef dtype = checked(PyObject_GetAttrString(o, "dtype"));
  return type_of_dtype(dtype.get());
}

Tensor tensor_from_numpy(PyObject* array, bool warn_readonly) {
  PyRef dtype = checked(PyObject_GetAttrString(array, "dtype"));
  const std::optional<ScalarType> type = type_of_dtype(dtype.get());
  if (!type) throw_unsupported_array(dtype.get());
  auto held = std::make_unique<HeldBuffer>();
  std::memset(&held->view, 0, sizeof(held->view));
  check_status(PyObject_GetBuffer(array, &held->view, PyBUF_STRIDES | PyBUF_FORMAT));
  const Py_buffer& view = held->view;
  static bool warned = false;
  if (view.readonly && warn_readonly) {
    warn_once(
        &warned,
        "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. "
        "This means writing to this tensor will result in undefined behavior. You may want to copy "
        "the array to protect its data or make it writable before converting it to a tensor. This "
        "type of warning will be suppressed for the rest of this program.");
  }
  const int64_t itemsize = c10::elementSize(*type);
  const DimVector sizes(view.shape, view.shape + view.ndim);
  const DimVector strides = element_strides(view, itemsize);
  const int64_t bytes = c10::checked_storage_bytes(sizes, strides, itemsize, 0);
  void* data = view.buf;
  const c10::Storage storage = storage_on(std::move(held), data, static_cast<size_t>(bytes));
  return at::detail::checked_tensor(storage, *type, sizes, strides, 0);
}

Tensor tensor_from_buffer(PyObject* object, ScalarType dtype, int64_t count, int64_t offset) {
  TORCH_CHECK_VALUE(PyObject_CheckBuffer(object),
                    "object does not implement Python buffer protocol.");
  auto held = std::make_unique<HeldBuffer>();
  std::memset(&held->view, 0, sizeof(held->view));
  if (PyObject_GetBuffer(object, &held->view, PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    TORCH_CHECK_VALUE(PyObject_GetBuffer(object, &held->view, PyBUF_SIMPLE) == 0,
                      "could not retrieve buffer from object");
    static bool warned = false;
    warn_once(
        &warned,
        "The given buffer is not writable, and PyTorch does not support non-writable tensors. This "
        "means you can write to the underlying (supposedly non-writable) buffer using the tensor. "
        "You "
        "may want to copy the buffer to protect its data or make it writable before converting it "
        "to "
        "a tensor. This type of warning will be suppressed for the rest of this program.");
  }
  const int64_t itemsize = c10::elementSize(dtype);
  const int64_t length = held->view.len;
  TORCH_CHECK_VALUE(length > 0 && count != 0, "both buffer length (", length, ") and count (",
                    count, ") must not be 0");
  TORCH_CHECK_VALUE(offset >= 0 && offset < length, "offset (", offset,
                    " bytes) must be non-negative and no greater than buffer length (", length,
                    " bytes) minus 1");
  if (count < 0) {
    TORCH_CHECK_VALUE((length - offset) % itemsize == 0, "buffer length (", length - offset,
                      " bytes) after offset (", offset,
                      " bytes) must be a multiple of element size (", itemsize, ")");
    count = (length - offset) / itemsize;
  }
  TORCH_CHECK_VALUE(count <= (length - offset) / itemsize, "requested buffer length (", count,
                    " * ", itemsize, " bytes) after offset (", offset,
                    " bytes) must not be greater than actual buffer length (", length, " bytes)");
  void* data = static_cast<char*>(held->view.buf) + offset;
  const c10::Storage storage =
      storage_on(std::move(held), data, static_cast<size_t>(count * itemsize));
  return at::detail::checked_tensor(storage, dtype, {count}, {1}, 0);
}

PyObject* tensor_to_numpy(const Tensor& tensor, bool force) {
  if (force) {
    const Tensor plain = at::resolve_neg(at::resolve_conj(tensor.detach()));
    return tensor_to_numpy(converted(plain, c10::Device(at::kCPU), plain.scalar_type()), false);
  }
  check_convertible(tensor);
  if (!numpy_seen()) {
    PyRef module(PyImport_ImportModule("numpy"));
    if (!module) {
      PyErr_Clear();
      raise(PyExc_RuntimeError, "Numpy is not available");
    }
    if (!load_numpy(module.get())) throw python_error();
  }
  PyObject* dtype = numpy_dtype(tensor.scalar_type());
  PyRef exporter = make_exporter(tensor);
  PyRef shape = checked(make_int_tuple(tensor.sizes()));
  PyRef strides = byte_strides(tensor);
  PyRef zero = checked(PyLong_FromLong(0));
  return PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(numpy_types.array), shape.get(),
                                      dtype, exporter.get(), zero.get(), strides.get(), nullptr);
}

bool init_interop(PyObject* module) {
  return ready_exporter() && add_tensor_methods(methods) && init_dlpack(module);
}

} // namespace torch::python
