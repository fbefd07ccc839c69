// Python data to tensor elements. Three passes, each a plain walk over the nested sequences: the
// shape (from the first item of each level), the dtype (unless given), the elements. The last
// checks every length against the shape, so a list that other code changes meanwhile cannot make it
// write outside.
#include <torch/csrc/python/tensor/construct.h>

#include <cmath>

#include <torch/csrc/python/sym/sym.h>
#include <torch/csrc/python/tensor/interop.h>
#include <torch/csrc/python/tensor/storage.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/types/types.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/ops/lift_fresh.h>
#include <ATen/ops/to.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SmallVector.h>

namespace torch::python {
namespace {

using at::Tensor;
using c10::DimVector;
using c10::ScalarType;

// Deeper nests are a list that contains itself, or text.
constexpr size_t kMaxDims = 128;

bool is_text(PyObject* o) { return PyUnicode_Check(o) || PyBytes_Check(o); }

// Tensors are leaves: a list of tensors is a list of their single values.
bool is_nested(PyObject* o) {
  return !PyFloat_CheckExact(o) && !PyLong_CheckExact(o) && !is_tensor(o) && PySequence_Check(o);
}

[[noreturn]] void throw_text(PyObject* o) {
  raise_type_error(c10::str("new(): invalid data type '", type_name(o), "'"));
}

DimVector nested_sizes(PyObject* data) {
  DimVector sizes;
  PyRef current = PyRef::borrow(data);
  while (is_nested(current.get())) {
    const Py_ssize_t length = PySequence_Length(current.get());
    if (length < 0) throw python_error();
    sizes.push_back(length);
    if (sizes.size() > kMaxDims) {
      raise(PyExc_ValueError, c10::str("too many dimensions '", type_name(current.get()), "'"));
    }
    if (length == 0) break;
    PyRef first(PySequence_GetItem(current.get(), 0));
    if (!first) {
      // Mappings and the like look like sequences until they are asked.
      PyErr_Clear();
      raise(PyExc_ValueError, c10::str("could not determine the shape of object type '",
                                       type_name(current.get()), "'"));
    }
    current = std::move(first);
  }
  return sizes;
}

// ---- dtype -------------------------------------------------------------------------------------

// The dtype of one value that is no sequence, or nullopt.
std::optional<ScalarType> leaf_type(PyObject* o) {
  if (PyFloat_CheckExact(o)) return c10::get_default_dtype();
  if (PyBool_Check(o)) return at::kBool;
  if (PyLong_CheckExact(o)) return at::kLong;
  if (is_tensor(o)) return tensor_of(o).scalar_type();
  if (is_numpy_scalar(o)) return numpy_scalar_type(o);
  if (PyFloat_Check(o)) return c10::get_default_dtype();
  if (PyLong_Check(o)) return at::kLong;
  if (PyComplex_Check(o)) return c10::get_default_complex_dtype();
  if (is_sym_int(o)) return at::kLong;
  if (is_sym_float(o)) return c10::get_default_dtype();
  if (is_sym_bool(o)) return at::kBool;
  return std::nullopt;
}

ScalarType infer(PyObject* o, size_t depth, at::Steps& steps);

ScalarType infer_sequence(PyObject* o, size_t depth, at::Steps& steps) {
  if (depth > kMaxDims)
    raise(PyExc_ValueError, c10::str("too many dimensions '", type_name(o), "'"));
  PyRef items = checked(PySequence_Fast(o, "not a sequence"));
  std::optional<ScalarType> common;
  // The list may shrink while __index__ or the like of an item runs: its length is asked each time.
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    steps.add(4);
    PyRef item = PyRef::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
    if (item.get() == o) raise_type_error("new(): self-referential lists are incompatible");
    const ScalarType type = infer(item.get(), depth + 1, steps);
    common = common ? (*common == type ? type : c10::promoteTypes(*common, type)) : type;
  }
  return common ? *common : c10::get_default_dtype();
}

ScalarType infer(PyObject* o, size_t depth, at::Steps& steps) {
  if (const std::optional<ScalarType> type = leaf_type(o)) return *type;
  if (is_numpy_array(o)) {
    if (const std::optional<ScalarType> type = numpy_scalar_type(o)) return *type;
    return tensor_from_numpy(o, false).scalar_type(); // raises with the reason
  }
  if (is_text(o)) throw_text(o);
  if (PySequence_Check(o)) return infer_sequence(o, depth, steps);
  raise(PyExc_RuntimeError, c10::str("Could not infer dtype of ", type_name(o)));
}

// ---- elements ----------------------------------------------------------------------------------

template <class T> [[noreturn]] void throw_overflow() {
  throw c10::Error(c10::str("value cannot be converted to type ",
                            c10::info(c10::scalar_type_of<T>).name, " without overflow"));
}

c10::Scalar tensor_item(PyObject* o) {
  const Tensor& tensor = tensor_of(o);
  if (tensor.numel() != 1) {
    raise(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  }
  return tensor.item();
}

template <class T> T integer_from_double(double value) {
  if (!c10::Scalar::in_integer_range<T>(value)) throw_overflow<T>();
  return static_cast<T>(value);
}

template <class T> T integer_from_long(PyObject* o) {
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (C10_UNLIKELY(overflow != 0)) {
    if constexpr (std::is_same_v<T, uint64_t>) {
      const uint64_t wide = PyLong_AsUnsignedLongLong(o);
      if (!(wide == UINT64_MAX && PyErr_Occurred())) return wide;
      PyErr_Clear();
    }
    raise(PyExc_ValueError, "Overflow when unpacking long long");
  }
  if constexpr (sizeof(T) < 8) {
    const int64_t high = static_cast<int64_t>(std::numeric_limits<T>::max());
    const int64_t low =
        std::is_unsigned_v<T> ? -high : static_cast<int64_t>(std::numeric_limits<T>::min());
    if (value > high || value < low) throw_overflow<T>();
  }
  return static_cast<T>(value);
}

template <class T> T read_integer(PyObject* o) {
  if (PyLong_Check(o)) return integer_from_long<T>(o);
  if (PyFloat_Check(o)) return integer_from_double<T>(PyFloat_AS_DOUBLE(o));
  if (is_tensor(o)) return tensor_item(o).to<T>();
  if (is_numpy_scalar(o) && !PyIndex_Check(o) && !PyComplex_Check(o)) {
    const double value = PyFloat_AsDouble(o);
    if (value == -1.0 && PyErr_Occurred()) throw python_error();
    return integer_from_double<T>(value);
  }
  PyRef number = checked(PyNumber_Index(o));
  return integer_from_long<T>(number.get());
}

double read_double(PyObject* o) {
  if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
  if (is_tensor(o)) return tensor_item(o).to<double>();
  const double value = PyFloat_AsDouble(o);
  if (value == -1.0 && PyErr_Occurred()) throw python_error();
  return value;
}

c10::complex<double> read_complex(PyObject* o) {
  if (is_tensor(o)) return tensor_item(o).toComplexDouble();
  const Py_complex value = PyComplex_AsCComplex(o);
  if (value.real == -1.0 && PyErr_Occurred()) throw python_error();
  return {value.real, value.imag};
}

bool read_bool(PyObject* o) {
  if (is_tensor(o)) return tensor_item(o).toBool();
  const int value = PyObject_IsTrue(o);
  if (value < 0) throw python_error();
  return value != 0;
}

template <class T> T read_element(PyObject* o) {
  if constexpr (std::is_same_v<T, bool>) {
    return read_bool(o);
  } else if constexpr (std::is_integral_v<T>) {
    return read_integer<T>(o);
  } else if constexpr (c10::is_complex_v<T>) {
    using R = typename T::value_type;
    const c10::complex<double> z = read_complex(o);
    if constexpr (std::is_same_v<R, double>) {
      return z;
    } else {
      return T(static_cast<R>(static_cast<float>(z.real_)),
               static_cast<R>(static_cast<float>(z.imag_)));
    }
  } else if constexpr (std::is_same_v<T, double>) {
    return read_double(o);
  } else {
    return static_cast<T>(static_cast<float>(read_double(o)));
  }
}

template <class T> class Filler {
 public:
  Filler(const DimVector& sizes, T* out) : sizes_(sizes), next_(out) {}

  void fill(PyObject* data, size_t dim) {
    if (dim == sizes_.size()) {
      *next_++ = read_element<T>(data);
      return;
    }
    PyRef items = checked(PySequence_Fast(data, "not a sequence"));
    const Py_ssize_t expected = static_cast<Py_ssize_t>(sizes_[dim]);
    check_length(items.get(), expected, dim);
    const bool last = dim + 1 == sizes_.size();
    for (Py_ssize_t i = 0; i < expected; ++i) {
      steps_.add(4);
      check_length(items.get(), expected, dim);
      PyRef item = PyRef::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
      if (last) {
        *next_++ = read_element<T>(item.get());
      } else {
        fill(item.get(), dim + 1);
      }
    }
  }

 private:
  void check_length(PyObject* items, Py_ssize_t expected, size_t dim) {
    const Py_ssize_t length = PySequence_Fast_GET_SIZE(items);
    if (C10_UNLIKELY(length != expected)) {
      raise(PyExc_ValueError, c10::str("expected sequence of length ", int64_t(expected),
                                       " at dim ", int64_t(dim), " (got ", int64_t(length), ")"));
    }
  }

  const DimVector& sizes_;
  T* next_;
  at::Steps steps_;
};

void fill_elements(const Tensor& out, const DimVector& sizes, PyObject* data) {
  switch (out.scalar_type()) {
#define CRESSET_FILL(T, Name)                                                                      \
  case ScalarType::Name:                                                                           \
    Filler<T>(sizes, static_cast<T*>(out.data_ptr())).fill(data, 0);                               \
    return;
    CRESSET_FORALL_ARITHMETIC_TYPES(CRESSET_FILL)
    CRESSET_FORALL_FLOAT8_TYPES(CRESSET_FILL)
    CRESSET_FILL(c10::Float8_e8m0fnu, Float8_e8m0fnu)
#undef CRESSET_FILL
  default:
    throw c10::NotImplementedError(c10::str("torch.tensor: elements of dtype torch.",
                                            c10::info(out.scalar_type()).name,
                                            " cannot be made from Python numbers (cpu)"));
  }
}

Tensor from_sequence(PyObject* data, ScalarType dtype) {
  const DimVector sizes = nested_sizes(data);
  Tensor out = at::detail::empty(sizes, dtype);
  if (out.numel() > 0) {
    fill_elements(out, sizes, data);
  } else if (!sizes.empty()) {
    // Even without elements the lengths of the levels have to agree.
    uint8_t none;
    Filler<uint8_t>(sizes, &none).fill(data, 0);
  }
  return out;
}

} // namespace

Tensor lifted(Tensor made) {
  using Key = c10::DispatchKey;
  constexpr c10::DispatchKeySet kModes{Key::Fake,
                                       Key::Python,
                                       Key::FunctionalizeMode,
                                       Key::FuncTorchDynamicLayerFrontMode,
                                       Key::Functionalize,
                                       Key::PreDispatch};
  const c10::LocalDispatchKeySet& local = c10::tls_dispatch_keys;
  if (C10_LIKELY((local.included & ~local.excluded & kModes.raw()) == 0)) return made;
  return at::_ops::lift_fresh::call(made);
}

at::Tensor converted(const Tensor& tensor, c10::Device device, ScalarType dtype, bool copy) {
  if (!copy && tensor.device() == device && tensor.scalar_type() == dtype) return tensor;
  return at::_ops::to_device::call(tensor, device, dtype, /*non_blocking=*/false, copy,
                                   std::nullopt);
}

Tensor tensor_from_storage(PyObject* data, std::optional<ScalarType> dtype) {
  // What comes here most is refused before attributes are looked up.
  if (PyList_Check(data) || PyTuple_Check(data) || PyNumber_Check(data)) return {};
  if (!is_storage(data)) return {};
  const c10::Storage storage = storage_of(data);
  ScalarType own = dtype.value_or(at::kLong);
  if (dtype) check_storage_dtype(data, *dtype);
  if (!PyObject_TypeCheck(data, &StorageBaseType)) {
    PyRef given = checked(PyObject_GetAttrString(data, "dtype"));
    if (!dtype_from_object(given.get(), &own)) raise_type_error("storage: dtype is no torch.dtype");
  }
  const int64_t bytes = static_cast<int64_t>(storage->nbytes());
  const int64_t size = c10::elementSize(own);
  TORCH_CHECK_VALUE(bytes % size == 0, "a storage of ", bytes, " bytes does not hold a whole ",
                    "number of elements of dtype torch.", c10::info(own).name, " (", size,
                    " bytes each)");
  const Tensor shared = at::detail::checked_tensor(storage, own, {bytes / size}, {1}, 0);
  return converted(shared, shared.device(), dtype.value_or(own));
}

// What another library's array shares by DLPack; undefined for anything else.
static Tensor tensor_from_exporter(PyObject* data) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(data));
  if (PySequence_Check(data) || PyNumber_Check(data)) return {};
  if (!PyObject_HasAttrString(type, "__dlpack__")) return {};
  static PyObject* cache = nullptr;
  PyObject* import = cached_attribute(cache, "torch.utils.dlpack", "from_dlpack");
  if (!import) throw python_error();
  PyRef shared = checked(PyObject_CallOneArg(import, data));
  return is_tensor(shared.get()) ? tensor_of(shared.get()) : Tensor();
}

ScalarType infer_scalar_type(PyObject* data) {
  at::Steps steps;
  return infer(data, 0, steps);
}

Tensor tensor_from_data(PyObject* data, const ConstructOptions& options) {
  if (is_text(data)) throw_text(data);
  if (is_tensor(data)) {
    const Tensor source = tensor_of(data).detach();
    return converted(source, options.device.value_or(source.device()),
                     options.dtype.value_or(source.scalar_type()), options.copy);
  }
  if (is_numpy_array(data)) {
    const Tensor shared = lifted(tensor_from_numpy(data, !options.copy));
    return converted(shared, options.device.value_or(c10::Device(at::kCPU)),
                     options.dtype.value_or(shared.scalar_type()), options.copy);
  }
  if (const Tensor shared = tensor_from_storage(data, options.dtype); shared.defined()) {
    return converted(shared, options.device.value_or(shared.device()), shared.scalar_type(),
                     options.copy);
  }
  if (const Tensor shared = tensor_from_exporter(data); shared.defined()) {
    return converted(shared, options.device.value_or(shared.device()),
                     options.dtype.value_or(shared.scalar_type()), options.copy);
  }
  // The shape comes first: its complaints about a nest are the better ones.
  if (!options.dtype) nested_sizes(data);
  const ScalarType dtype = options.dtype ? *options.dtype : infer_scalar_type(data);
  const Tensor made = lifted(from_sequence(data, dtype));
  return options.device ? converted(made, *options.device, dtype) : made;
}

Tensor indexing_tensor_from_data(PyObject* data, c10::Device device) {
  if (is_text(data)) throw_text(data);
  if (is_numpy_array(data)) {
    const Tensor shared = lifted(tensor_from_numpy(data, false));
    const ScalarType type = shared.scalar_type();
    const bool mask = type == at::kByte || type == at::kBool;
    return converted(shared, device, mask ? type : at::kLong);
  }
  const ScalarType type = infer_scalar_type(data);
  const bool mask = type == at::kByte || type == at::kBool;
  const ScalarType kept = mask ? type : at::kLong;
  return converted(lifted(from_sequence(data, kept)), device, kept);
}

} // namespace torch::python
