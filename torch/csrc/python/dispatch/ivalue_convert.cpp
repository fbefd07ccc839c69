// The table of types between Python and the boxed world.
#include <torch/csrc/python/dispatch/ivalue_convert.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/sym/sym.h>
#include <torch/csrc/python/tensor/storage.h>

#include <ATen/core/EmptyTensor.h>
#include <c10/core/SymbolicGeometry.h>

namespace torch::python {
namespace {

using Kind = at::SchemaType::Kind;

struct Where {
  const char* function;
  const char* argument;
};

[[noreturn]] void mismatch(PyObject* o, const at::SchemaType& type, const Where& where) {
  raise(PyExc_RuntimeError,
        c10::str(where.function, "() Expected a value of type '", type.str(), "' for argument '",
                 where.argument, "' but instead found type '", type_name(o), "'."));
}

bool fits_item(PyObject* o, Kind kind) {
  c10::ScalarType dtype = c10::kFloat;
  c10::Device device;
  switch (kind) {
  case Kind::Tensor:
    return is_tensor(o) || is_number_like(o);
  case Kind::Int:
  case Kind::SymInt:
    return is_integer_like(o);
  case Kind::Float:
    return is_number_like(o) && !PyComplex_Check(o);
  case Kind::Bool:
    return PyBool_Check(o) || is_sym_bool(o);
  case Kind::Str:
    return PyUnicode_Check(o);
  case Kind::Scalar:
  case Kind::Complex:
    return is_number_like(o);
  case Kind::ScalarType:
    // Serialised programs carry dtypes as numbers.
    return PyLong_CheckExact(o) || dtype_from_object(o, &dtype);
  case Kind::Layout:
    return is_layout(o);
  case Kind::MemoryFormat:
    return is_memory_format(o);
  case Kind::Device:
    return device_from_object(o, &device);
  case Kind::Generator:
    return is_generator(o);
  case Kind::Storage:
    return is_storage(o);
  default:
    return false;
  }
}

at::IValue item_to_ivalue(PyObject* o, Kind kind, const at::SchemaType& type, const Where& where) {
  if (!fits_item(o, kind)) mismatch(o, type, where);
  switch (kind) {
  case Kind::Tensor:
    if (is_tensor(o)) return at::IValue(tensor_of(o));
    // A number passes for a 0-d tensor that promotes like a number.
    return at::IValue(number_as_tensor(to_scalar(o)));
  case Kind::SymInt:
    if (is_sym_int(o)) return at::IValue(sym_int_value(o));
    [[fallthrough]];
  case Kind::Int:
    return at::IValue(to_int64(o));
  case Kind::Float:
    return at::IValue(to_double(o));
  case Kind::Bool:
    if (is_sym_bool(o)) return at::IValue(sym_scalar_value(o).toBool());
    return at::IValue(o == Py_True);
  case Kind::Str:
    return at::IValue(std::string(utf8(o)));
  case Kind::Scalar:
  case Kind::Complex:
    return at::IValue(to_scalar(o));
  case Kind::ScalarType: {
    if (PyLong_CheckExact(o)) return at::IValue(to_int64(o));
    c10::ScalarType dtype = c10::kFloat;
    dtype_from_object(o, &dtype);
    return at::IValue(dtype);
  }
  case Kind::Layout:
    return at::IValue(layout_value(o));
  case Kind::MemoryFormat:
    return at::IValue(memory_format_value(o));
  case Kind::Device: {
    c10::Device device;
    device_from_object(o, &device);
    return at::IValue(device);
  }
  case Kind::Generator:
    return at::IValue(generator_value(o));
  case Kind::Storage:
    return at::IValue(storage_of(o));
  default:
    mismatch(o, type, where);
  }
}

// Reading an item may run Python code (__index__), which may change the list.
template <class T, class Read> std::vector<T> read_items(PyObject* o, Read&& read) {
  const PyRef items = checked(PySequence_Tuple(o));
  std::vector<T> out;
  const Py_ssize_t n = PyTuple_GET_SIZE(items.get());
  out.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) out.push_back(read(PyTuple_GET_ITEM(items.get(), i)));
  return out;
}

at::IValue list_to_ivalue(PyObject* o, const at::SchemaType& type, const Where& where) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    // int[N] takes a single number for N equal ones.
    if (type.list_size <= 0) mismatch(o, type, where);
    const at::IValue item = item_to_ivalue(o, type.kind, type, where);
    if (item.isInt() || item.isSymbol()) {
      return at::IValue(
          std::vector<int64_t>(static_cast<size_t>(type.list_size), item.toSymInt().raw()));
    }
    if (item.isDouble()) {
      return at::IValue(std::vector<double>(static_cast<size_t>(type.list_size), item.toDouble()));
    }
    mismatch(o, type, where);
  }
  auto item = [&](PyObject* x) { return item_to_ivalue(x, type.kind, type, where); };
  switch (type.kind) {
  case Kind::Tensor:
    if (type.element_optional) {
      return at::IValue(read_items<std::optional<at::Tensor>>(o, [&](PyObject* x) {
        return x == Py_None ? std::nullopt : std::optional<at::Tensor>(item(x).toTensor());
      }));
    }
    return at::IValue(read_items<at::Tensor>(o, [&](PyObject* x) { return item(x).toTensor(); }));
  case Kind::Int:
  case Kind::SymInt:
    return at::IValue(
        read_items<int64_t>(o, [&](PyObject* x) { return item(x).toSymInt().raw(); }));
  case Kind::Float:
    return at::IValue(read_items<double>(o, [&](PyObject* x) { return item(x).toDouble(); }));
  case Kind::Bool:
    return at::IValue(read_items<bool>(o, [&](PyObject* x) { return item(x).toBool(); }));
  case Kind::Scalar:
    return at::IValue(read_items<c10::Scalar>(o, [&](PyObject* x) { return item(x).toScalar(); }));
  default:
    return at::IValue(read_items<at::IValue>(o, item));
  }
}

template <class List, class Wrap> PyRef list_from(const List& values, Wrap&& wrap_item) {
  PyRef out = checked(PyList_New(static_cast<Py_ssize_t>(values.size())));
  Py_ssize_t i = 0;
  for (const auto& value : values) {
    PyList_SET_ITEM(out.get(), i++, checked(wrap_item(value)).release());
  }
  return out;
}

} // namespace

bool fits_type(PyObject* o, const at::SchemaType& type) {
  if (o == Py_None) return type.optional;
  if (!type.is_list) return fits_item(o, type.kind);
  if (!PyTuple_Check(o) && !PyList_Check(o)) return type.list_size > 0 && fits_item(o, type.kind);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    if (item == Py_None ? !type.element_optional : !fits_item(item, type.kind)) return false;
  }
  return true;
}

at::IValue to_ivalue(PyObject* o, const at::SchemaType& type, const char* function,
                     const char* argument) {
  if (type.kind == Kind::Tensor && !type.is_list && is_plain_tensor(o)) {
    return at::IValue(tensor_of(o));
  }
  const Where where{function, argument};
  if (o == Py_None) {
    if (!type.optional) mismatch(o, type, where);
    return at::IValue();
  }
  return type.is_list ? list_to_ivalue(o, type, where) : item_to_ivalue(o, type.kind, type, where);
}

PyRef from_ivalue(const at::IValue& value, const at::SchemaType* type) {
  using Tag = at::IValue::Tag;
  switch (value.tag) {
  case Tag::None:
    return PyRef::borrow(Py_None);
  case Tag::Tensor: {
    const at::Tensor tensor = value.toTensor();
    // A number that passed for a tensor is the number again.
    if (const int64_t handle = c10::symbolic_number(*tensor.unsafeGetTensorImpl()))
      return checked(wrap_handle(handle));
    return checked(wrap(tensor));
  }
  case Tag::Int:
    // Numbers that stand for enumerations in schemas.
    if (type && type->kind == Kind::ScalarType) {
      return checked(wrap(static_cast<c10::ScalarType>(value.toInt())));
    }
    if (type && type->kind == Kind::Float) return checked(PyFloat_FromDouble(value.toDouble()));
    return checked(wrap(value.toSymInt()));
  case Tag::Symbol:
    return checked(wrap_handle(value.toSymInt().raw()));
  case Tag::Double:
    return checked(PyFloat_FromDouble(value.toDouble()));
  case Tag::Bool:
    return PyRef::borrow(value.toBool() ? Py_True : Py_False);
  case Tag::Complex:
    return checked(wrap(value.toScalar()));
  case Tag::String:
    return checked(wrap(value.toStringRef()));
  case Tag::Device:
    return checked(wrap(value.toDevice()));
  case Tag::ScalarType:
    return checked(wrap(value.toScalarType()));
  case Tag::Layout:
    return checked(wrap(value.toLayout()));
  case Tag::MemoryFormat:
    return checked(wrap(value.toMemoryFormat()));
  case Tag::Generator:
    return checked(wrap(value.toGenerator()));
  case Tag::Storage:
    return checked(wrap(value.toStorage()));
  case Tag::IntList:
    return list_from(value.toIntList(), [](int64_t v) { return wrap(c10::SymInt::from_raw(v)); });
  case Tag::DoubleList:
    return list_from(value.toDoubleList(), [](double v) { return PyFloat_FromDouble(v); });
  case Tag::BoolList:
    return list_from(value.toBoolList(), [](bool v) { return new_bool(v); });
  case Tag::TensorList:
    return list_from(value.toTensorList(), [](const at::Tensor& v) { return wrap(v); });
  case Tag::OptionalTensorList:
    return list_from(value.toOptionalTensorList(),
                     [](const std::optional<at::Tensor>& v) { return v ? wrap(*v) : new_none(); });
  case Tag::ScalarList:
    return list_from(value.toScalarList(), [](const c10::Scalar& v) { return wrap(v); });
  case Tag::List:
    return list_from(value.toList(),
                     [](const at::IValue& v) { return from_ivalue(v, nullptr).release(); });
  case Tag::Opaque:
    break;
  }
  raise(PyExc_RuntimeError, c10::str("a value of kind ", value.kind(), " has no Python form"));
}

} // namespace torch::python
