// Schemas as Python objects: FunctionSchema, Argument and a small type object. They own copies,
// since operators defined at run time can go away.
#include <torch/csrc/python/dispatch/schema_type.h>

#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <ATen/core/SchemaCompatibility.h>
#include <memory>

namespace torch::python {
namespace {

PyTypeObject SchemaObject = type_object("torch._C.FunctionSchema");
PyTypeObject ArgumentObject = type_object("torch._C.Argument");
PyTypeObject TypeObject = type_object("torch._C.Type");
PyTypeObject AliasObject = type_object("torch._C._AliasInfo");

// A Python object around a C++ value.
template <class T> struct Box { PyObject_HEAD T* value; };
template <class T> const T& unbox(PyObject* o) { return *reinterpret_cast<Box<T>*>(o)->value; }
template <class T> PyObject* make_box(PyTypeObject* type, const T& value) {
  auto copy = std::make_unique<T>(value);
  auto* self = PyObject_New(Box<T>, type);
  if (!self) throw python_error();
  self->value = copy.release();
  return reinterpret_cast<PyObject*>(self);
}
template <class T> void box_dealloc(PyObject* o) {
  delete reinterpret_cast<Box<T>*>(o)->value;
  PyObject_Free(o);
}

using at::AliasInfo;
using at::FunctionSchema;
using at::SchemaArgument;
using at::SchemaType;

// A type as an argument shows it: `type` hides what `real_type` tells.
struct ArgumentType : SchemaType {
  bool real = false;
};

// ---- Type ---------------------------------------------------------------------------------------
PyObject* type_str(PyObject* self) {
  return guarded([&] { return wrap(unbox<ArgumentType>(self).str()); });
}
PyObject* type_annotation(PyObject* self, void*) { return type_str(self); }
PyObject* type_kind(PyObject* self, PyObject*) {
  const SchemaType& type = unbox<ArgumentType>(self);
  if (type.optional) return PyUnicode_FromString("OptionalType");
  if (type.is_list) return PyUnicode_FromString("ListType");
  switch (type.kind) {
  case SchemaType::Kind::Tensor:
    return PyUnicode_FromString("TensorType");
  case SchemaType::Kind::Int:
    return PyUnicode_FromString("IntType");
  case SchemaType::Kind::SymInt:
    return PyUnicode_FromString("SymIntType");
  case SchemaType::Kind::Float:
    return PyUnicode_FromString("FloatType");
  case SchemaType::Kind::Bool:
    return PyUnicode_FromString("BoolType");
  case SchemaType::Kind::Str:
    return PyUnicode_FromString("StringType");
  case SchemaType::Kind::Scalar:
    return PyUnicode_FromString("NumberType");
  case SchemaType::Kind::Device:
    return PyUnicode_FromString("DeviceObjType");
  case SchemaType::Kind::Generator:
    return PyUnicode_FromString("GeneratorType");
  case SchemaType::Kind::Complex:
    return PyUnicode_FromString("ComplexType");
  case SchemaType::Kind::Class:
    return PyUnicode_FromString("ClassType");
  case SchemaType::Kind::Tuple:
    return PyUnicode_FromString("TupleType");
  case SchemaType::Kind::Dict:
    return PyUnicode_FromString("DictType");
  case SchemaType::Kind::List:
    return PyUnicode_FromString("ListType");
  case SchemaType::Kind::None:
    return PyUnicode_FromString("NoneType");
  case SchemaType::Kind::Any:
    return PyUnicode_FromString("AnyType");
  default:
    return PyUnicode_FromString("IntType");
  }
}
PyObject* type_element(PyObject* self, PyObject*) {
  return guarded([&] {
    ArgumentType inner = unbox<ArgumentType>(self);
    if (inner.optional) {
      inner.optional = false;
    } else if (inner.kind == SchemaType::Kind::List) {
      const SchemaType element = inner.contained.at(0);
      static_cast<SchemaType&>(inner) = element;
    } else if (inner.is_list) {
      inner.is_list = false;
      inner.list_size = -1;
      inner.optional = inner.element_optional;
      inner.element_optional = false;
    } else {
      raise(PyExc_RuntimeError, inner.str() + " has no element type");
    }
    return make_box(&TypeObject, inner);
  });
}
PyObject* type_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != &TypeObject || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] {
    const bool same = unbox<ArgumentType>(a).str() == unbox<ArgumentType>(b).str();
    return new_bool(same == (op == Py_EQ));
  });
}
Py_hash_t type_hash(PyObject* self) {
  PyRef text(type_str(self));
  return text ? PyObject_Hash(text.get()) : -1;
}
// The type as scripts know it: dtypes, layouts and symbolic integers are integers to them.
PyObject* type_plain_str(PyObject* self, PyObject*) {
  return guarded([&] {
    SchemaType type = unbox<ArgumentType>(self);
    if (!unbox<ArgumentType>(self).real) {
      switch (type.kind) {
      case SchemaType::Kind::SymInt:
      case SchemaType::Kind::ScalarType:
      case SchemaType::Kind::Layout:
      case SchemaType::Kind::MemoryFormat:
        type.kind = SchemaType::Kind::Int;
        break;
      default:
        break;
      }
    }
    return wrap(type.str());
  });
}
PyMethodDef type_methods[] = {{"str", type_plain_str, METH_NOARGS, nullptr},
                              {"kind", type_kind, METH_NOARGS, nullptr},
                              {"getElementType", type_element, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};
PyGetSetDef type_properties[] = {{"annotation_str", type_annotation, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- alias info ---------------------------------------------------------------------------------
PyRef split_set(const std::string& text) {
  PyRef out = checked(PySet_New(nullptr));
  size_t start = 0;
  while (start <= text.size() && !text.empty()) {
    const size_t bar = text.find('|', start);
    PyRef item = checked(wrap(text.substr(start, bar == text.npos ? bar : bar - start)));
    check_status(PySet_Add(out.get(), item.get()));
    if (bar == text.npos) break;
    start = bar + 1;
  }
  return out;
}
PyObject* alias_is_write(PyObject* self, void*) {
  return new_bool(unbox<AliasInfo>(self).is_write);
}
PyObject* alias_before(PyObject* self, void*) {
  return guarded([&] { return split_set(unbox<AliasInfo>(self).before).release(); });
}
PyObject* alias_after(PyObject* self, void*) {
  return guarded([&] {
    const AliasInfo& alias = unbox<AliasInfo>(self);
    return split_set(alias.after.empty() ? alias.before : alias.after).release();
  });
}
PyGetSetDef alias_properties[] = {{"is_write", alias_is_write, nullptr, nullptr, nullptr},
                                  {"before_set", alias_before, nullptr, nullptr, nullptr},
                                  {"after_set", alias_after, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- Argument -----------------------------------------------------------------------------------
PyObject* argument_name(PyObject* self, void*) {
  return guarded([&] { return wrap(unbox<SchemaArgument>(self).name); });
}
PyObject* argument_type(PyObject* self, void*) {
  return guarded([&] {
    return make_box(&TypeObject, ArgumentType{unbox<SchemaArgument>(self).type, false});
  });
}
PyObject* argument_real_type(PyObject* self, void*) {
  return guarded([&] {
    return make_box(&TypeObject, ArgumentType{unbox<SchemaArgument>(self).type, true});
  });
}
PyObject* argument_size(PyObject* self, void*) {
  const SchemaType& type = unbox<SchemaArgument>(self).type;
  return type.is_list && type.list_size > 0 ? PyLong_FromLongLong(type.list_size) : new_none();
}
PyObject* argument_default(PyObject* self, void*) {
  return guarded([&] {
    const SchemaArgument& argument = unbox<SchemaArgument>(self);
    if (!argument.has_default) return new_none();
    PyRef value = from_ivalue(argument.default_value, &argument.type);
    // One number stands for a list of equal ones where the length is known: int[2] padding=0.
    const bool one = argument.type.is_list && argument.type.list_size > 0 &&
                     PyLong_Check(value.get()) && !PyBool_Check(value.get());
    if (!one) return value.release();
    PyRef list = checked(PyList_New(argument.type.list_size));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
      PyList_SET_ITEM(list.get(), i, Py_NewRef(value.get()));
    return list.release();
  });
}
PyObject* argument_has_default(PyObject* self, PyObject*) {
  return new_bool(unbox<SchemaArgument>(self).has_default);
}
PyObject* argument_kwarg_only(PyObject* self, void*) {
  return new_bool(unbox<SchemaArgument>(self).kwarg_only);
}
PyObject* argument_is_out(PyObject* self, void*) {
  return new_bool(unbox<SchemaArgument>(self).is_out);
}
PyObject* argument_is_write(PyObject* self, void*) {
  const SchemaArgument& argument = unbox<SchemaArgument>(self);
  return new_bool(argument.alias && argument.alias->is_write);
}
PyObject* argument_alias(PyObject* self, void*) {
  return guarded([&] {
    const SchemaArgument& argument = unbox<SchemaArgument>(self);
    return argument.alias ? make_box(&AliasObject, *argument.alias) : new_none();
  });
}
PyObject* argument_repr(PyObject* self) {
  return guarded([&] { return wrap(unbox<SchemaArgument>(self).str()); });
}
PyMethodDef argument_methods[] = {{"has_default_value", argument_has_default, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
PyGetSetDef argument_properties[] = {{"name", argument_name, nullptr, nullptr, nullptr},
                                     {"type", argument_type, nullptr, nullptr, nullptr},
                                     {"real_type", argument_real_type, nullptr, nullptr, nullptr},
                                     {"N", argument_size, nullptr, nullptr, nullptr},
                                     {"default_value", argument_default, nullptr, nullptr, nullptr},
                                     {"kwarg_only", argument_kwarg_only, nullptr, nullptr, nullptr},
                                     {"is_out", argument_is_out, nullptr, nullptr, nullptr},
                                     {"is_write", argument_is_write, nullptr, nullptr, nullptr},
                                     {"alias_info", argument_alias, nullptr, nullptr, nullptr},
                                     {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- FunctionSchema -----------------------------------------------------------------------------
PyRef argument_list(const std::vector<SchemaArgument>& arguments) {
  PyRef out = checked(PyList_New(static_cast<Py_ssize_t>(arguments.size())));
  for (size_t i = 0; i < arguments.size(); ++i) {
    PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), make_box(&ArgumentObject, arguments[i]));
  }
  return out;
}
PyObject* schema_name(PyObject* self, void*) {
  return guarded([&] { return wrap(unbox<FunctionSchema>(self).name); });
}
PyObject* schema_overload(PyObject* self, void*) {
  return guarded([&] { return wrap(unbox<FunctionSchema>(self).overload); });
}
PyObject* schema_arguments(PyObject* self, void*) {
  return guarded([&] { return argument_list(unbox<FunctionSchema>(self).arguments).release(); });
}
PyObject* schema_returns(PyObject* self, void*) {
  return guarded([&] { return argument_list(unbox<FunctionSchema>(self).returns).release(); });
}
PyObject* schema_is_mutable(PyObject* self, void*) {
  return guarded([&] { return new_bool(unbox<FunctionSchema>(self).is_mutable()); });
}
PyObject* schema_str(PyObject* self) {
  return guarded([&] { return wrap(unbox<FunctionSchema>(self).str()); });
}
PyObject* schema_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != &SchemaObject || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] {
    const bool same = unbox<FunctionSchema>(a).str() == unbox<FunctionSchema>(b).str();
    return new_bool(same == (op == Py_EQ));
  });
}
Py_hash_t schema_hash(PyObject* self) {
  PyRef text(schema_str(self));
  return text ? PyObject_Hash(text.get()) : -1;
}
const FunctionSchema& schema_argument(PyObject* o, const char* method) {
  if (Py_TYPE(o) != &SchemaObject) {
    raise_type_error(c10::str(method, "() takes a FunctionSchema, not ", type_name(o)));
  }
  return unbox<FunctionSchema>(o);
}
PyObject* schema_is_backward_compatible(PyObject* self, PyObject* old) {
  return guarded([&] {
    const FunctionSchema& before = schema_argument(old, "is_backward_compatible_with");
    return new_bool(at::is_backward_compatible(unbox<FunctionSchema>(self), before));
  });
}
PyObject* schema_check_forward_compatible(PyObject* self, PyObject* old) {
  return guarded([&] {
    const FunctionSchema& before = schema_argument(old, "check_forward_compatible_with");
    std::string why;
    const bool ok = at::is_forward_compatible(unbox<FunctionSchema>(self), before, &why);
    PyRef reason = checked(wrap(why));
    return checked(PyTuple_Pack(2, ok ? Py_True : Py_False, reason.get())).release();
  });
}
PyMethodDef schema_methods[] = {
    {"is_backward_compatible_with", schema_is_backward_compatible, METH_O,
     "Whether calls written for an older schema still mean the same."},
    {"check_forward_compatible_with", schema_check_forward_compatible, METH_O,
     "(whether programs of this schema run with the older one, why not)."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef schema_properties[] = {{"name", schema_name, nullptr, nullptr, nullptr},
                                   {"overload_name", schema_overload, nullptr, nullptr, nullptr},
                                   {"arguments", schema_arguments, nullptr, nullptr, nullptr},
                                   {"returns", schema_returns, nullptr, nullptr, nullptr},
                                   {"is_mutable", schema_is_mutable, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* py_parse_schema(PyObject*, PyObject* text) {
  return guarded([&] {
    if (!PyUnicode_Check(text)) raise_type_error("expected a schema as a string");
    return new_schema(FunctionSchema::parse(std::string(utf8(text))));
  });
}
PyMethodDef functions[] = {{"parse_schema", py_parse_schema, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

template <class T>
bool ready(PyObject* module, PyTypeObject& type, PyGetSetDef* properties, reprfunc repr) {
  type.tp_basicsize = sizeof(Box<T>);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  type.tp_dealloc = box_dealloc<T>;
  type.tp_getset = properties;
  type.tp_repr = repr;
  return add_type(module, &type);
}

} // namespace

PyObject* new_schema(const FunctionSchema& schema) { return make_box(&SchemaObject, schema); }

bool init_schema_types(PyObject* module) {
  TypeObject.tp_methods = type_methods;
  TypeObject.tp_richcompare = type_compare;
  TypeObject.tp_hash = type_hash;
  ArgumentObject.tp_methods = argument_methods;
  SchemaObject.tp_methods = schema_methods;
  SchemaObject.tp_richcompare = schema_compare;
  SchemaObject.tp_hash = schema_hash;
  return ready<ArgumentType>(module, TypeObject, type_properties, type_str) &&
         ready<AliasInfo>(module, AliasObject, alias_properties, nullptr) &&
         ready<SchemaArgument>(module, ArgumentObject, argument_properties, argument_repr) &&
         ready<FunctionSchema>(module, SchemaObject, schema_properties, schema_str) &&
         PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
