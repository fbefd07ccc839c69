// Python objects to the C++ values operators take. The matcher has checked the types; what can
// still fail here is the value: an overflow, an item of a list, a bad device string.
#include <torch/csrc/python/args/arg_parser.h>

#include <torch/csrc/python/sym/sym.h>
#include <torch/csrc/python/tensor/storage.h>

#include <ATen/core/EmptyTensor.h>

#include <cstring>
#include <deque>

namespace torch::python {

// Converted values that must live as long as the call. Deques never move their elements.
struct ArgValues::Kept {
  std::deque<at::Tensor> tensors;
  std::deque<std::vector<at::Tensor>> tensor_lists;
  std::deque<std::vector<std::optional<at::Tensor>>> optional_lists;
  std::deque<std::vector<c10::Scalar>> scalar_lists;
  std::deque<std::vector<double>> float_lists;
  std::deque<std::vector<int64_t>> int_lists;
};

ArgValues::Kept& ArgValues::kept() {
  if (!kept_) kept_ = new Kept;
  return *kept_;
}
void ArgValues::free_kept() noexcept { delete kept_; }

namespace {

bool is_numpy(PyObject* o) { return std::strncmp(type_name(o), "numpy.", 6) == 0; }

c10::Scalar scalar_from_long(PyObject* o) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (C10_LIKELY(!overflow)) {
    if (value == -1 && PyErr_Occurred()) throw python_error();
    return c10::Scalar(static_cast<int64_t>(value));
  }
  const unsigned long long large = PyLong_AsUnsignedLongLong(o);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_OverflowError, "int too big to convert");
  }
  return c10::Scalar(static_cast<uint64_t>(large));
}

c10::Scalar scalar_from_numpy(PyObject* o) {
  if (std::strncmp(type_name(o) + 6, "bool", 4) == 0) {
    const int truth = PyObject_IsTrue(o);
    if (truth < 0) throw python_error();
    return c10::Scalar(truth != 0);
  }
  if (PyIndex_Check(o)) return scalar_from_long(checked(PyNumber_Index(o)).get());
  if (std::strncmp(type_name(o) + 6, "complex", 7) == 0) {
    const Py_complex z = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw python_error();
    return c10::Scalar(c10::complex<double>(z.real, z.imag));
  }
  return c10::Scalar(to_double(o));
}

// The k-th of the n items a list had when its conversion began. Items are converted by Python code
// (__index__, __float__) that may change the list: each is held while it is looked at.
PyRef item_of_list(PyObject* list, Py_ssize_t k, Py_ssize_t n) {
  if (C10_UNLIKELY(PySequence_Fast_GET_SIZE(list) != n)) {
    raise(PyExc_RuntimeError, "a list changed its length while it was converted");
  }
  return PyRef::borrow(PySequence_Fast_GET_ITEM(list, k));
}

} // namespace

int64_t to_int64(PyObject* o) {
  int overflow = 0;
  if (C10_LIKELY(PyLong_Check(o))) {
    const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (C10_UNLIKELY(overflow != 0)) raise(PyExc_ValueError, "Overflow when unpacking long long");
    if (value == -1 && PyErr_Occurred()) throw python_error();
    return value;
  }
  if (is_tensor(o)) return tensor_of(o).item().toLong();
  return to_int64(checked(PyNumber_Index(o)).get());
}

// A number that may be symbolic; the value of a traced tensor is a symbol.
static c10::SymInt to_symint(PyObject* o) {
  if (C10_UNLIKELY(is_sym_int(o))) return sym_int_value(o);
  if (C10_LIKELY(!is_tensor(o))) return c10::SymInt(to_int64(o));
  const c10::Scalar value = tensor_of(o).item();
  return value.is_symbolic() ? c10::SymInt::from_raw(value.symbolic_raw())
                             : c10::SymInt(value.toLong());
}

double to_double(PyObject* o) {
  if (C10_LIKELY(PyFloat_Check(o))) return PyFloat_AS_DOUBLE(o);
  if (is_tensor(o)) return tensor_of(o).item().toDouble();
  const double value = PyFloat_AsDouble(o);
  if (value == -1.0 && PyErr_Occurred()) throw python_error();
  return value;
}

c10::Scalar to_scalar(PyObject* o) {
  if (PyFloat_CheckExact(o)) return c10::Scalar(PyFloat_AS_DOUBLE(o));
  if (PyBool_Check(o)) return c10::Scalar(o == Py_True);
  if (PyLong_Check(o)) return scalar_from_long(o);
  if (is_tensor(o)) return tensor_of(o).item();
  if (PyFloat_Check(o)) return c10::Scalar(PyFloat_AS_DOUBLE(o));
  if (PyComplex_Check(o)) {
    const Py_complex z = PyComplex_AsCComplex(o);
    return c10::Scalar(c10::complex<double>(z.real, z.imag));
  }
  if (is_numpy(o)) return scalar_from_numpy(o);
  if (is_sym_number(o)) return sym_scalar_value(o);
  raise_type_error(c10::str("expected a number, got ", type_name(o)));
}

const at::Tensor& ArgValues::tensor_slow(int i) {
  static const at::Tensor undefined;
  PyObject* o = values_[i];
  if (!o || o == Py_None) return undefined;
  if (is_tensor(o)) return tensor_of(o);
  // The matcher let a number pass for a tensor.
  return kept().tensors.emplace_back(number_as_tensor(to_scalar(o)));
}

c10::Scalar ArgValues::scalar(int i) const { return to_scalar(values_[i]); }
int64_t ArgValues::integer(int i) const { return to_int64(values_[i]); }
c10::SymInt ArgValues::symint(int i) const { return to_symint(values_[i]); }
double ArgValues::floating(int i) const { return to_double(values_[i]); }
std::string_view ArgValues::string(int i) const { return utf8(values_[i]); }

bool ArgValues::boolean(int i) const {
  PyObject* o = values_[i];
  if (C10_LIKELY(o == Py_True)) return true;
  if (C10_LIKELY(o == Py_False)) return false;
  const int truth = PyObject_IsTrue(o);
  if (truth < 0) throw python_error();
  return truth != 0;
}

void ArgValues::fail_item(int i, Py_ssize_t position, PyObject* item, const char* wanted) const {
  std::string why;
  if (PyErr_Occurred()) {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyRef t(type), v(value), b(trace);
    why = v ? text_of(v.get()) : "";
  } else {
    why = c10::str("type must be ", wanted, ",but got ", type_name(item));
  }
  raise_type_error(c10::str(function_->name, "(): argument '", signature_->params[i].name,
                            "' failed to unpack the object at pos ",
                            static_cast<long>(position + 1), " with error \"", why, "\""));
}

int64_t* ArgValues::take_ints(size_t n) {
  if (C10_LIKELY(ints_used_ + n <= kInlineInts)) {
    int64_t* out = ints_ + ints_used_;
    ints_used_ += static_cast<int>(n);
    return out;
  }
  return kept().int_lists.emplace_back(n).data();
}

// Plain integers, or raw SymInts: then symbolic items stay what they are.
template <bool symbolic> c10::IntArrayRef ArgValues::read_ints(int i) {
  PyObject* o = values_[i];
  const auto number = [](PyObject* item) {
    return symbolic ? to_symint(item).raw() : to_int64(item);
  };
  const auto convert = [&](Py_ssize_t k, PyObject* item) {
    if (!is_integer_like(item)) fail_item(i, k, item, "tuple of ints");
    try {
      return number(item);
    } catch (const python_error&) {
      fail_item(i, k, item, "tuple of ints");
    }
  };
  if (i == varargs_index_) {
    int64_t* out = take_ints(static_cast<size_t>(varargs_count_));
    for (Py_ssize_t k = 0; k < varargs_count_; ++k) out[k] = convert(k, varargs_[k]);
    return {out, static_cast<size_t>(varargs_count_)};
  }
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    // A single number stands for a list of N copies of it.
    const int8_t size = signature_->params[i].size;
    int64_t* out = take_ints(size);
    const int64_t value = number(o);
    for (int8_t k = 0; k < size; ++k) out[k] = value;
    return {out, static_cast<size_t>(size)};
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  int64_t* out = take_ints(static_cast<size_t>(n));
  for (Py_ssize_t k = 0; k < n; ++k) out[k] = convert(k, item_of_list(o, k, n).get());
  return {out, static_cast<size_t>(n)};
}

c10::IntArrayRef ArgValues::int_list(int i) { return read_ints<false>(i); }
c10::SymIntArrayRef ArgValues::symint_list(int i) {
  return c10::as_symint_array(read_ints<true>(i));
}

c10::ArrayRef<double> ArgValues::float_list(int i) {
  PyObject* o = values_[i];
  std::vector<double>& out = kept().float_lists.emplace_back();
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    out.assign(signature_->params[i].size, to_double(o));
    return out;
  }
  for (Py_ssize_t k = 0, n = PySequence_Fast_GET_SIZE(o); k < n; ++k) {
    const PyRef held = item_of_list(o, k, n);
    PyObject* item = held.get();
    if (!is_number_like(item) || PyComplex_Check(item)) fail_item(i, k, item, "tuple of floats");
    out.push_back(to_double(item));
  }
  return out;
}

c10::ArrayRef<c10::Scalar> ArgValues::scalar_list(int i) {
  PyObject* o = values_[i];
  std::vector<c10::Scalar>& out = kept().scalar_lists.emplace_back();
  for (Py_ssize_t k = 0, n = PySequence_Fast_GET_SIZE(o); k < n; ++k) {
    out.push_back(to_scalar(item_of_list(o, k, n).get()));
  }
  return out;
}

at::TensorList ArgValues::tensor_list(int i) {
  PyObject* o = values_[i];
  if (!o || o == Py_None) return {};
  std::vector<at::Tensor>& out = kept().tensor_lists.emplace_back();
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  out.reserve(static_cast<size_t>(n));
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, k);
    if (!is_tensor(item)) fail_item(i, k, item, "tuple of Tensors");
    out.push_back(tensor_of(item));
  }
  return out;
}

c10::ArrayRef<std::optional<at::Tensor>> ArgValues::opt_tensor_list_items(int i) {
  PyObject* o = values_[i];
  std::vector<std::optional<at::Tensor>>& out = kept().optional_lists.emplace_back();
  for (Py_ssize_t k = 0; o && o != Py_None && k < PySequence_Fast_GET_SIZE(o); ++k) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, k);
    if (item == Py_None) {
      out.emplace_back();
    } else if (is_tensor(item)) {
      out.emplace_back(tensor_of(item));
    } else {
      fail_item(i, k, item, "tuple of Tensors");
    }
  }
  return out;
}

void ArgValues::read_bools(int i, bool* out, size_t n) {
  PyObject* o = values_[i];
  if (static_cast<size_t>(PySequence_Fast_GET_SIZE(o)) != n) {
    raise_type_error(c10::str(function_->name, "(): argument '", signature_->params[i].name,
                              "' must have ", n, " elements, got ",
                              static_cast<long>(PySequence_Fast_GET_SIZE(o))));
  }
  const auto count = static_cast<Py_ssize_t>(n);
  for (Py_ssize_t k = 0; k < count; ++k) {
    const int truth = PyObject_IsTrue(item_of_list(o, k, count).get());
    if (truth < 0) throw python_error();
    out[k] = truth != 0;
  }
}

c10::ScalarType ArgValues::scalar_type(int i) const {
  c10::ScalarType out = c10::kFloat;
  dtype_from_object(values_[i], &out);
  return out;
}
c10::Layout ArgValues::layout(int i) const { return layout_value(values_[i]); }
c10::MemoryFormat ArgValues::memory_format(int i) const { return memory_format_value(values_[i]); }
c10::Device ArgValues::device(int i) const {
  c10::Device out;
  device_from_object(values_[i], &out);
  return out;
}
std::optional<at::Generator> ArgValues::generator(int i) const {
  if (!present(i)) return std::nullopt;
  return generator_value(values_[i]);
}
c10::Storage ArgValues::storage(int i) const {
  if (values_[0] && is_tensor(values_[0]))
    check_storage_dtype(values_[i], tensor_of(values_[0]).scalar_type());
  return storage_of(values_[i]);
}

PyObject* wrap_self(ArgValues& values) { return wrap_given(values, 0); }

PyObject* wrap_given(ArgValues& values, int index) {
  PyObject* o = values.object(index);
  const bool as_given = o && (is_tensor(o) || PyList_Check(o) || PyTuple_Check(o));
  if (!as_given) return wrap(values.tensor(index));
  Py_INCREF(o);
  return o;
}

} // namespace torch::python
