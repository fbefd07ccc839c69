// The table of types between Python and the boxed world.
#include <torch/csrc/python/dispatch/ivalue_convert.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/dispatch/custom_class.h>
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
  const std::string found = is_script_object(o) ? at::ivalue::type_name(script_object_value(o))
                                                : std::string(type_name(o));
  raise(PyExc_RuntimeError,
        c10::str(where.function, "() Expected a value of type '", type.str(), "' for argument '",
                 where.argument, "' but instead found type '", found, "'."));
}

// Types that consist of others, classes and values of any type.
bool is_compound(const at::SchemaType& type) {
  switch (type.kind) {
  case Kind::Class:
  case Kind::Tuple:
  case Kind::Dict:
  case Kind::List:
  case Kind::Any:
    return true;
  default:
    return false;
  }
}

bool fits_compound(PyObject* o, const at::SchemaType& type) {
  switch (type.kind) {
  case Kind::Class:
    return is_script_object(o) && at::ivalue::type_name(script_object_value(o)) == type.class_name;
  case Kind::Tuple:
    return PyTuple_Check(o) && static_cast<size_t>(PyTuple_GET_SIZE(o)) == type.contained.size();
  case Kind::Dict:
    return PyDict_Check(o);
  case Kind::List:
    return PyList_Check(o) || PyTuple_Check(o);
  default:
    return type.kind == Kind::Any;
  }
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

// The type that a value of Python has by itself; Error for objects that have none here.
at::SchemaType inferred_type(PyObject* o) {
  if (is_tensor(o)) return {Kind::Tensor};
  if (PyBool_Check(o)) return {Kind::Bool};
  if (PyFloat_Check(o)) return {Kind::Float};
  if (PyComplex_Check(o)) return {Kind::Complex};
  if (is_integer_like(o)) return {Kind::SymInt};
  if (PyUnicode_Check(o)) return {Kind::Str};
  for (const Kind kind : {Kind::Device, Kind::ScalarType, Kind::Layout, Kind::MemoryFormat,
                          Kind::Generator, Kind::Storage}) {
    if (fits_item(o, kind)) return {kind};
  }
  if (is_script_object(o)) {
    at::SchemaType out{Kind::Class};
    out.class_name = at::ivalue::type_name(script_object_value(o));
    return out;
  }
  using Parts = std::vector<at::SchemaType>;
  const at::SchemaType any{Kind::Any};
  if (PyTuple_Check(o))
    return at::SchemaType::container(Kind::Tuple,
                                     Parts(static_cast<size_t>(PyTuple_GET_SIZE(o)), any));
  if (PyDict_Check(o)) return at::SchemaType::container(Kind::Dict, {any, any});
  if (!PyList_Check(o))
    raise_type_error(c10::str("a value of type ", type_name(o),
                              " cannot be passed to a C++ operator or method"));
  if (PyList_GET_SIZE(o) > 0) {
    at::SchemaType first = inferred_type(PyList_GET_ITEM(o, 0));
    const at::SchemaType list = at::SchemaType::list_of(first);
    if (!is_compound(first) && fits_type(o, list)) return list;
  }
  return at::SchemaType::container(Kind::List, {any});
}

at::IValue any_to_ivalue(PyObject* o) {
  if (o == Py_None) return {};
  return to_ivalue(o, inferred_type(o), "IValue", "value");
}

at::IValue compound_to_ivalue(PyObject* o, const at::SchemaType& type, const Where& where);

at::IValue list_to_ivalue(PyObject* o, const at::SchemaType& type, const Where& where) {
  if (is_compound(type)) {
    at::SchemaType element = type;
    element.is_list = false;
    element.optional = type.element_optional;
    return compound_to_ivalue(o, at::SchemaType::container(Kind::List, {element}), where);
  }
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

at::IValue compound_to_ivalue(PyObject* o, const at::SchemaType& type, const Where& where) {
  if (!fits_compound(o, type)) mismatch(o, type, where);
  const auto part = [&](PyObject* x, size_t i) {
    return to_ivalue(x, type.contained[i], where.function, where.argument);
  };
  switch (type.kind) {
  case Kind::Class:
    return script_object_value(o);
  case Kind::Tuple: {
    std::vector<at::IValue> items;
    for (size_t i = 0; i < type.contained.size(); ++i)
      items.push_back(part(PyTuple_GET_ITEM(o, static_cast<Py_ssize_t>(i)), i));
    return at::ivalue::make_tuple(std::move(items));
  }
  case Kind::Dict: {
    auto out = c10::make_intrusive<at::DictValue>();
    const PyRef entries = checked(PyDict_Items(o));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries.get()); ++i) {
      PyObject* entry = PyList_GET_ITEM(entries.get(), i);
      out->insert(part(PyTuple_GET_ITEM(entry, 0), 0), part(PyTuple_GET_ITEM(entry, 1), 1), true);
    }
    return at::IValue::opaque(std::move(out));
  }
  case Kind::List:
    return at::IValue(read_items<at::IValue>(o, [&](PyObject* x) { return part(x, 0); }));
  default:
    return any_to_ivalue(o);
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
  if (o == Py_None) return type.optional || type.kind == Kind::Any;
  if (is_compound(type)) return type.is_list ? PySequence_Check(o) : fits_compound(o, type);
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
    if (!type.optional && type.kind != Kind::Any) mismatch(o, type, where);
    return at::IValue();
  }
  if (!type.is_list && is_compound(type)) return compound_to_ivalue(o, type, where);
  return type.is_list ? list_to_ivalue(o, type, where) : item_to_ivalue(o, type.kind, type, where);
}

namespace {
PyRef from_opaque(const at::IValue& value) {
  if (at::ivalue::opaque<torch::CustomClassHolder>(value)) return wrap_script_object(value);
  if (const auto* tuple = at::ivalue::opaque<at::TupleValue>(value)) {
    const PyRef list = list_from(
        tuple->items, [](const at::IValue& v) { return from_ivalue(v, nullptr).release(); });
    return checked(PyList_AsTuple(list.get()));
  }
  if (const auto* dict = at::ivalue::opaque<at::DictValue>(value)) {
    PyRef out = checked(PyDict_New());
    for (const at::DictValue::Entry& entry : dict->entries) {
      const PyRef key = from_ivalue(entry.first, nullptr);
      const PyRef item = from_ivalue(entry.second, nullptr);
      check_status(PyDict_SetItem(out.get(), key.get(), item.get()));
    }
    return out;
  }
  raise(PyExc_RuntimeError, c10::str("a value of kind ", value.kind(), " has no Python form"));
}
} // namespace

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
    return checked(wrap(value.toInt()));
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
    return from_opaque(value);
  }
  raise(PyExc_RuntimeError, c10::str("a value of kind ", value.kind(), " has no Python form"));
}

} // namespace torch::python
