// Index expressions. A key is read left to right; integers, slices, None and masks of one value
// become views at once, tensors are collected by the dimension they apply to and handled by one
// index or index_put_ call at the end. The three commonest keys (an int, a slice, a tuple of those)
// never allocate anything but the result.
#include <torch/csrc/python/tensor/indexing.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/sym/sym.h>
#include <torch/csrc/python/tensor/construct.h>
#include <torch/csrc/python/tensor/interop.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/functorch/Level.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/expand.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/select.h>
#include <ATen/ops/slice.h>
#include <c10/util/SmallVector.h>

namespace torch::python {
namespace {

using at::Tensor;
using IndexList = c10::SmallVector<std::optional<Tensor>, 6>;

int64_t unpack_index(PyObject* o) {
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow != 0) raise(PyExc_ValueError, "Overflow when unpacking long long");
  if (value == -1 && PyErr_Occurred()) throw python_error();
  return value;
}

// ---- single items ------------------------------------------------------------------------------

[[noreturn]] C10_NOINLINE void throw_out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  throw c10::IndexError(
      c10::str("index ", index, " is out of bounds for dimension ", dim, " with size ", size));
}

// `real_dim` is the place in the key, for the message.
Tensor apply_select(const Tensor& self, int64_t dim, c10::SymInt given, int64_t real_dim) {
  TORCH_CHECK_INDEX(self.dim() > 0,
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                    "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
  const bool symbolic = self.unsafeGetTensorImpl()->has_symbolic_sizes() || given.is_symbolic();
  if (C10_UNLIKELY(symbolic)) return at::_ops::select_int::call(self, dim, given);
  const int64_t size = self.size(dim), index = given.raw();
  if (C10_UNLIKELY(index < -size || index >= size)) throw_out_of_bounds(index, real_dim, size);
  return self.select(dim, index < 0 ? index + size : index);
}

// A slice's bound as an int64: numbers of any size are clamped, as Python's own slices do.
c10::SymInt slice_bound(PyObject* o) {
  if (C10_LIKELY(PyLong_Check(o))) {
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
    // Numbers below are not plain integers to the operators: see Note [Symbolic integers are
    // handles].
    constexpr int64_t kLowest = c10::SymInt::kSymbolicBound;
    return overflow > 0 ? INT64_MAX : overflow < 0 || value < kLowest ? kLowest : value;
  }
  if (is_sym_int(o)) return sym_int_value(o);
  if (!PyIndex_Check(o)) {
    raise_type_error("slice indices must be integers or None or have an __index__ method");
  }
  PyRef number = checked(PyNumber_Index(o));
  return slice_bound(number.get());
}

// `skip_whole`: a slice of everything gives the tensor itself. Inside a longer key such slices only
// hold a place, and no operator is called for them.
Tensor apply_slice(const Tensor& self, int64_t dim, PyObject* key, bool skip_whole = false) {
  auto* slice = reinterpret_cast<PySliceObject*>(key);
  const c10::SymInt step = slice->step == Py_None ? 1 : slice_bound(slice->step);
  if (C10_UNLIKELY(step <= 0)) {
    raise(PyExc_ValueError,
          step == 0 ? "slice step cannot be zero" : "step must be greater than zero");
  }
  TORCH_CHECK_INDEX(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  // Numbers in place of None, as those who listen to operators (__torch_dispatch__) expect.
  const c10::SymInt start = slice->start == Py_None ? 0 : slice_bound(slice->start);
  const c10::SymInt stop = slice->stop == Py_None ? INT64_MAX : slice_bound(slice->stop);
  const bool to_end =
      stop.raw() == INT64_MAX || c10::statically_known_true(c10::sym_eq(stop, self.sym_size(dim)));
  if (skip_whole && start.raw() == 0 && step.raw() == 1 && to_end) return self;
  return at::_ops::slice_Tensor::call(self, dim, start, stop, step);
}

// x[True] adds a dimension of length 1, x[False] one of length 0; as an index tensor that is [0] or
// [].
Tensor bool_index(bool value, c10::Device device) {
  Tensor index = at::detail::empty({value ? 1 : 0}, at::kLong, c10::Device(at::kCPU));
  if (value) *index.data_ptr<int64_t>() = 0;
  return device.is_cpu() ? index : converted(index, device, at::kLong);
}

// ---- whole keys --------------------------------------------------------------------------------

// Whether a sequence that is not a tuple stands for one: lists that hold slices, sequences,
// tensors, None or Ellipsis used to, and still do with a warning.
bool stands_for_tuple(PyObject* key) {
  if (PyTuple_Check(key)) return true;
  if (is_tensor(key) || !PySequence_Check(key) || is_numpy_array(key)) return false;
  const Py_ssize_t length = PySequence_Size(key);
  if (length < 0) {
    PyErr_Clear();
    return false;
  }
  if (length >= 32) return false;
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyRef item(PySequence_GetItem(key, i));
    if (!item) {
      PyErr_Clear();
      return false;
    }
    PyObject* o = item.get();
    if (is_tensor(o) || PySequence_Check(o) || PySlice_Check(o) || o == Py_Ellipsis ||
        o == Py_None) {
      check_status(PyErr_WarnEx(
          PyExc_UserWarning,
          "Using a non-tuple sequence for multidimensional indexing is deprecated and will be "
          "changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will "
          "be interpreted as tensor index, x[torch.tensor(seq)], which will result either in an "
          "error or a different result",
          1));
      return true;
    }
  }
  return false;
}

// The key as a tuple: itself, a tuple of the items of a sequence that stands for one, or a tuple of
// one.
PyRef key_tuple(PyObject* key) {
  if (PyTuple_Check(key)) return PyRef::borrow(key);
  if (stands_for_tuple(key)) return checked(PySequence_Tuple(key));
  return checked(PyTuple_Pack(1, key));
}

bool is_mask_type(c10::ScalarType t) { return t == at::kBool || t == at::kByte; }

// How many dimensions of the tensor the key speaks about.
int64_t count_specified(PyObject* const* items, Py_ssize_t n) {
  int64_t count = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = items[i];
    if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) continue;
    if (is_tensor(o) && is_mask_type(tensor_of(o).scalar_type())) {
      count += tensor_of(o).dim();
    } else {
      ++count;
    }
  }
  return count;
}

class KeyReader {
 public:
  KeyReader(const Tensor& self, IndexList* indices)
      : original_(self), result_(self), indices_(indices) {}

  Tensor read(PyObject* const* items, Py_ssize_t n) {
    const int64_t specified = count_specified(items, n);
    TORCH_CHECK_INDEX(specified <= original_.dim(), "too many indices for tensor of dimension ",
                      original_.dim());
    for (Py_ssize_t i = 0; i < n; ++i) read_item(items[i], specified);
    return std::move(result_);
  }

 private:
  void read_item(PyObject* o, int64_t specified) {
    if (PyLong_CheckExact(o)) {
      select(unpack_index(o));
    } else if (is_sym_int(o)) {
      select(sym_int_value(o));
    } else if (PySlice_Check(o)) {
      result_ = apply_slice(result_, dim_++, o, /*skip_whole=*/true);
      ++real_dim_;
    } else if (o == Py_Ellipsis) {
      const int64_t skipped = original_.dim() - specified;
      dim_ += skipped;
      real_dim_ += skipped;
    } else if (o == Py_None) {
      result_ = result_.unsqueeze(dim_++);
      ++real_dim_;
    } else if (PyBool_Check(o)) {
      read_bool(o == Py_True);
    } else if (is_tensor(o)) {
      read_tensor(tensor_of(o));
    } else {
      read_other(o);
    }
  }

  void select(c10::SymInt index) { result_ = apply_select(result_, dim_, index, real_dim_++); }

  void read_bool(bool value) {
    result_ = result_.unsqueeze(dim_);
    record(bool_index(value, original_.device()));
  }

  void read_tensor(const Tensor& index) {
    const c10::ScalarType dtype = index.scalar_type();
    if (index.dim() == 0 && c10::isIntegralType(dtype, true) && !index.is_meta() &&
        !at::functorch::varies_by_sample(index)) {
      if (is_mask_type(dtype)) {
        read_bool(index.item().toBool());
      } else {
        select(index.item().toLong());
      }
      return;
    }
    real_dim_ += is_mask_type(dtype) ? index.dim() : 1;
    record(index);
  }

  void read_other(PyObject* o) {
    if (is_numpy_array(o) || (PySequence_Check(o) && !PyIndex_Check(o))) {
      read_tensor(indexing_tensor_from_data(o, original_.device()));
      return;
    }
    if (is_numpy_scalar(o) && numpy_scalar_type(o) == at::kBool) {
      read_bool(PyObject_IsTrue(o) == 1);
      return;
    }
    if (PyIndex_Check(o)) {
      PyRef number = checked(PyNumber_Index(o));
      select(unpack_index(number.get()));
      return;
    }
    throw c10::IndexError(c10::str(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
        "valid indices (got ",
        type_name(o), ")"));
  }

  // A mask of several dimensions is one entry of the list and as many dimensions of result_.
  void record(Tensor index) {
    const int64_t width = is_mask_type(index.scalar_type()) ? std::max<int64_t>(index.dim(), 1) : 1;
    indices_->resize(dim_ - shared_);
    indices_->push_back(std::move(index));
    dim_ += width;
    shared_ += width - 1;
  }

  const Tensor& original_;
  Tensor result_;
  IndexList* indices_;
  int64_t dim_ = 0;      // of result_
  int64_t shared_ = 0;   // dimensions before dim_ that share their entry with the one before
  int64_t real_dim_ = 0; // of the tensor as the key shapes it
};

// Index tensors live on the tensor's device, except that small ones on the CPU may stay there.
at::OptionalTensorList on_device_of(const Tensor& self, IndexList& indices) {
  for (std::optional<Tensor>& index : indices) {
    if (index && index->defined() && index->device() != self.device() && !self.is_cpu()) {
      index = converted(*index, self.device(), index->scalar_type());
    }
  }
  return {indices.data(), indices.size()};
}

// Whether part of a key overrides: anything may, but numbers and slices are what keys are made of.
bool is_asked(PyObject* item) {
  return !PyLong_CheckExact(item) && !PySlice_Check(item) && has_override(item);
}
bool overridden(PyObject* self, PyObject* key, PyObject* value) {
  if (C10_UNLIKELY(function_mode_active()) || C10_UNLIKELY(has_override(self))) return true;
  if (value && is_tensor(value) && has_override(value)) return true;
  if (!PyTuple_Check(key)) return is_asked(key);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    if (is_asked(PyTuple_GET_ITEM(key, i))) return true;
  }
  return false;
}

Tensor get(const Tensor& self, PyObject* key) {
  if (C10_LIKELY(PyLong_CheckExact(key))) return apply_select(self, 0, unpack_index(key), 0);
  if (PySlice_Check(key)) return apply_slice(self, 0, key);
  if (key == Py_None) return self.unsqueeze(0);
  if (key == Py_Ellipsis) return at::alias(self);
  IndexList indices;
  PyRef tuple = key_tuple(key);
  Tensor view = KeyReader(self, &indices)
                    .read(reinterpret_cast<PyTupleObject*>(tuple.get())->ob_item,
                          PyTuple_GET_SIZE(tuple.get()));
  if (indices.empty()) return view.is_same(self) ? at::alias(view) : view;
  return at::index(view, on_device_of(view, indices));
}

// ---- assignment --------------------------------------------------------------------------------

// The value of an assignment: a tensor, or a number that takes the dtype of the target.
struct Value {
  Tensor tensor;
  std::optional<c10::Scalar> number;
};

Value read_value(const Tensor& self, PyObject* o) {
  Value out;
  if (is_tensor(o)) {
    out.tensor = tensor_of(o);
  } else if (PyBool_Check(o)) {
    out.number = c10::Scalar(o == Py_True);
  } else if (PyLong_Check(o)) {
    out.number = c10::Scalar(unpack_index(o));
  } else if (PyFloat_Check(o)) {
    out.number = c10::Scalar(PyFloat_AS_DOUBLE(o));
  } else if (PyComplex_Check(o)) {
    const Py_complex z = PyComplex_AsCComplex(o);
    out.number = c10::Scalar(c10::complex<double>(z.real, z.imag));
  } else if (PyIndex_Check(o) && !PySequence_Check(o)) {
    PyRef number = checked(PyNumber_Index(o));
    out.number = c10::Scalar(unpack_index(number.get()));
  } else if (is_numpy_scalar(o)) {
    out.number = to_scalar(o);
  } else {
    PyRef type = checked(PyObject_CallMethod(PyRef(wrap(self)).get(), "type", nullptr));
    raise_type_error(c10::str("can't assign a ", type_name(o), " to a ", text_of(type.get())));
  }
  return out;
}

// Without its leading dimensions of length 1, which assignment ignores.
Tensor without_leading_ones(const Tensor& value, int64_t keep) {
  int64_t skip = 0;
  while (value.dim() - skip > keep && value.sym_size(skip).raw() == 1) ++skip;
  return skip == 0 ? value : at::_ops::reshape::call(value, value.sym_sizes().slice(skip));
}

void store(const Tensor& target, const Value& value) {
  if (value.number && !value.tensor.defined()) {
    target.fill_(*value.number);
    return;
  }
  if (value.number) {
    Tensor place = target;
    at::_ops::fill__Tensor::call(place, value.tensor);
    return;
  }
  const Tensor& source = value.tensor;
  const c10::SymIntArrayRef wanted = target.sym_sizes();
  // The same numbers, or the same symbols.
  const bool fits =
      std::equal(wanted.begin(), wanted.end(), source.sym_sizes().begin(), source.sym_sizes().end(),
                 [](c10::SymInt a, c10::SymInt b) { return a.raw() == b.raw(); });
  if (fits) {
    target.copy_(source);
    return;
  }
  target.copy_(at::_ops::expand::call(without_leading_ones(source, target.dim()), wanted, false));
}

void store_indexed(const Tensor& view, IndexList& indices, const Value& value) {
  Tensor source = value.tensor;
  if (value.number && !source.defined()) {
    source = lifted(at::detail::scalar_tensor(*value.number, view.scalar_type()));
  }
  if (source.device() != view.device())
    source = converted(source, view.device(), source.scalar_type());
  source = without_leading_ones(source, 0);
  Tensor target = view;
  at::_ops::index_put_::call(target, on_device_of(view, indices), source, /*accumulate=*/false);
}

void set(const Tensor& self, PyObject* key, PyObject* object) {
  Value value = read_value(self, object);
  // Handlers see the number as the tensor it is stored from.
  if (C10_UNLIKELY(value.number && at::seen_by_handlers(self)))
    value.tensor = lifted(at::detail::scalar_tensor(*value.number, self.scalar_type()));
  if (C10_LIKELY(PyLong_CheckExact(key))) {
    store(apply_select(self, 0, unpack_index(key), 0), value);
    return;
  }
  if (PySlice_Check(key)) {
    store(apply_slice(self, 0, key), value);
    return;
  }
  if (key == Py_None || key == Py_True) {
    store(self.unsqueeze(0), value);
    return;
  }
  if (key == Py_False) return;
  if (key == Py_Ellipsis) {
    store(self, value);
    return;
  }
  IndexList indices;
  PyRef tuple = key_tuple(key);
  Tensor view = KeyReader(self, &indices)
                    .read(reinterpret_cast<PyTupleObject*>(tuple.get())->ob_item,
                          PyTuple_GET_SIZE(tuple.get()));
  if (indices.empty()) {
    store(view, value);
  } else {
    store_indexed(view, indices, value);
  }
}

bool is_sparse(const Tensor& t) {
  return t.layout() != at::kStrided && t.layout() != c10::Layout::Jagged;
}

// "\n  in torch.Tensor.__getitem__(self: float32[2, 3] cpu)": shapes help more than the key's text.
std::string context(const char* name, PyObject* self, PyObject* value) {
  std::string text =
      c10::str("\n  in torch.Tensor.", name, "(self: ", describe_tensor(tensor_of(self)));
  if (value && is_tensor(value)) text += c10::str(", value: ", describe_tensor(tensor_of(value)));
  return text + ")";
}

} // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* key) {
  try {
    if (C10_UNLIKELY(overridden(self, key, nullptr))) {
      PyObject* const args[] = {self, key};
      PyObject* result = nullptr;
      if (slot_override("__getitem__", args, 2, &result)) return result;
    }
    return wrap(get(tensor_of(self), key));
  } catch (...) {
    set_error_from_exception(context("__getitem__", self, nullptr));
    return nullptr;
  }
}

int tensor_setitem(PyObject* self, PyObject* key, PyObject* value) {
  try {
    if (value == nullptr) raise_type_error("Tensor does not support deleting items");
    if (C10_UNLIKELY(overridden(self, key, value))) {
      PyObject* const args[] = {self, key, value};
      PyObject* result = nullptr;
      if (slot_override("__setitem__", args, 3, &result)) {
        Py_XDECREF(result);
        return result ? 0 : -1;
      }
    }
    if (C10_UNLIKELY(is_sparse(tensor_of(self))))
      raise_type_error("Cannot assign to a sparse tensor");
    set(tensor_of(self), key, value);
    return 0;
  } catch (...) {
    set_error_from_exception(context("__setitem__", self, value));
    return -1;
  }
}

bool init_indexing(PyObject*) { return true; }

} // namespace torch::python
