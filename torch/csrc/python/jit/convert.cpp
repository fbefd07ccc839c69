// Between Python objects and values of scripted programs, guided by the program's types.
#include <torch/csrc/python/jit/jit.h>

#include <torch/csrc/jit/tasks.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/dispatch/custom_class.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/tensor/storage.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {

using at::IValue;
using jit::Type;
using Kind = Type::Kind;

PythonValue::~PythonValue() {
  if (!value) return;
  if (!python_exists()) {
    value.release();
    return;
  }
  WithGil gil;
  value = PyRef();
}

namespace {

[[noreturn]] void misfit(PyObject* o, const Type& type) {
  throw CastError(
      c10::str("Unable to cast Python instance of type ", type_name(o), " to ", type.name));
}

template <class T, class F> IValue vector_of_items(PyObject* tuple, F&& convert) {
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  std::vector<T> out;
  out.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) out.push_back(convert(PyTuple_GET_ITEM(tuple, i)));
  return IValue(std::move(out));
}

IValue list_to_script(PyObject* o, const Type& type) {
  if (!PyList_Check(o) && !PyTuple_Check(o) && !PyRange_Check(o)) misfit(o, type);
  if (PyTuple_Check(o) && type.inner[0]->kind != Kind::Int && type.inner[0]->kind != Kind::Float &&
      type.inner[0]->kind != Kind::Tensor && type.inner[0]->kind != Kind::Any) {
    misfit(o, type);
  }
  const Type& element = *type.inner[0];
  const PyRef items = checked(PySequence_Tuple(o));
  switch (element.kind) {
  case Kind::Int:
    return vector_of_items<int64_t>(items.get(), [&](PyObject* item) {
      return PyLong_CheckExact(item) ? to_int64(item) : to_script(item, element).toInt();
    });
  case Kind::Float:
    return vector_of_items<double>(items.get(), [&](PyObject* item) {
      return PyFloat_CheckExact(item) ? PyFloat_AS_DOUBLE(item)
                                      : to_script(item, element).toDouble();
    });
  case Kind::Tensor:
    return vector_of_items<at::Tensor>(
        items.get(), [&](PyObject* item) { return to_script(item, element).toTensor(); });
  case Kind::Str:
    return vector_of_items<IValue>(items.get(),
                                   [&](PyObject* item) { return to_script(item, element); });
  default:
    break;
  }
  IValue out = jit::new_list(element);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    jit::list_push(out, to_script(PyTuple_GET_ITEM(items.get(), i), element));
  return out;
}

IValue dict_to_script(PyObject* o, const Type& type) {
  if (!PyDict_Check(o)) misfit(o, type);
  auto out = c10::make_intrusive<jit::Dict>();
  const PyRef items = checked(PyDict_Items(o));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(items.get(), i);
    out->set(to_script(PyTuple_GET_ITEM(pair, 0), *type.inner[0]),
             to_script(PyTuple_GET_ITEM(pair, 1), *type.inner[1]));
  }
  return IValue::opaque(std::move(out));
}

IValue tuple_to_script(PyObject* o, const Type& type, const jit::TypePtr& owner) {
  if (!PyTuple_Check(o) || static_cast<size_t>(PyTuple_GET_SIZE(o)) != type.inner.size()) {
    if (PyTuple_Check(o))
      throw CastError(c10::str("Object ", repr_of(o),
                               " had a different number of elements than "
                               "type ",
                               type.name));
    misfit(o, type);
  }
  std::vector<IValue> items;
  for (size_t i = 0; i < type.inner.size(); ++i)
    items.push_back(to_script(PyTuple_GET_ITEM(o, static_cast<Py_ssize_t>(i)), *type.inner[i]));
  return jit::make_tuple(std::move(items), owner);
}

IValue int_to_script(PyObject* o, const Type& type) {
  if (PyLong_Check(o)) return IValue(to_int64(o));
  if (is_dtype(o)) return IValue(int64_t(dtype_value(o)));
  if (is_layout(o)) return IValue(int64_t(layout_value(o)));
  if (is_memory_format(o)) return IValue(int64_t(memory_format_value(o)));
  if (!is_integer_like(o) || is_tensor(o)) misfit(o, type);
  return IValue(to_int64(o));
}

IValue enum_to_script(PyObject* o, const Type& type) {
  const auto& known = static_cast<const ScriptType&>(type);
  if (!known.python || !PyObject_IsInstance(o, known.python.get())) misfit(o, type);
  const PyRef name = checked(PyObject_GetAttrString(o, "name"));
  const PyRef value = checked(PyObject_GetAttrString(o, "value"));
  // The type lives as long as the class it was made for.
  return jit::make<jit::EnumValue>(
      std::const_pointer_cast<Type>(const_cast<Type&>(type).shared_from_this()),
      std::string(utf8(name.get())), to_script(value.get(), *type.inner[0]));
}

// A value of which only Python knows what it is.
IValue any_to_script(PyObject* o);

IValue any_sequence(PyObject* o) {
  const PyRef items = checked(PySequence_Tuple(o));
  std::vector<IValue> out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    out.push_back(any_to_script(PyTuple_GET_ITEM(items.get(), i)));
  if (PyTuple_Check(o)) return jit::make_tuple(std::move(out));
  Type element;
  element.kind = Kind::Any;
  if (!out.empty()) {
    using Tag = IValue::Tag;
    bool same = true;
    for (const IValue& v : out) same = same && v.tag == out[0].tag;
    const Tag tag = out[0].tag;
    if (same) {
      element.kind = tag == Tag::Int      ? Kind::Int
                     : tag == Tag::Double ? Kind::Float
                     : tag == Tag::Bool   ? Kind::Bool
                     : tag == Tag::Tensor ? Kind::Tensor
                                          : Kind::Any;
    }
  }
  IValue list = jit::new_list(element);
  for (const IValue& v : out) jit::list_push(list, v);
  return list;
}

IValue any_to_script(PyObject* o) {
  if (o == Py_None) return IValue();
  if (is_tensor(o)) return IValue(tensor_of(o));
  if (PyBool_Check(o)) return IValue(o == Py_True);
  if (PyLong_Check(o)) return IValue(to_int64(o));
  if (PyFloat_Check(o)) return IValue(PyFloat_AS_DOUBLE(o));
  if (PyComplex_Check(o)) return IValue(to_scalar(o));
  if (PyUnicode_Check(o)) return IValue(std::string(utf8(o)));
  if (is_dtype(o)) return IValue(int64_t(dtype_value(o)));
  if (is_layout(o)) return IValue(int64_t(layout_value(o)));
  if (is_memory_format(o)) return IValue(int64_t(memory_format_value(o)));
  if (is_device(o)) return IValue(device_value(o));
  if (PyList_Check(o) || PyTuple_Check(o)) return any_sequence(o);
  if (PyDict_Check(o)) {
    Type anything;
    anything.kind = Kind::Any;
    Type dict;
    dict.inner = {std::make_shared<Type>(anything), std::make_shared<Type>(anything)};
    return dict_to_script(o, dict);
  }
  if (is_script_object(o)) return script_object_value(o);
  IValue object;
  if (object_of(o, &object)) return object;
  return jit::make<PythonValue>(PyRef::borrow(o));
}

IValue class_to_script(PyObject* o, const Type& type) {
  IValue object;
  if (!object_of(o, &object)) {
    if (type.kind == Kind::Class && type.cls && !type.cls->is_module) {
      // An instance of the Python class: its attributes become slots.
      const auto& known = static_cast<const ScriptType&>(type);
      if (known.python && PyObject_IsInstance(o, known.python.get()) == 1) {
        IValue made = jit::make<jit::Object>(type.cls);
        jit::Object& target = *jit::as<jit::Object>(made);
        for (size_t i = 0; i < type.cls->slots.size(); ++i) {
          const PyRef value = checked(PyObject_GetAttrString(o, type.cls->slots[i].c_str()));
          target.slots[i] = i < type.inner.size() ? to_script(value.get(), *type.inner[i])
                                                  : any_to_script(value.get());
        }
        return made;
      }
    }
    // An instance of a scripted class where any class with the methods will do.
    if (type.kind != Kind::Interface || !PyObject_HasAttrString(o, "__script_class__"))
      misfit(o, type);
    static PyObject* maker = nullptr;
    PyObject* script_instance = cached_attribute(maker, "torch.jit._script", "_script_instance");
    if (!script_instance) throw python_error();
    const PyRef made = checked(PyObject_CallOneArg(script_instance, o));
    if (!object_of(made.get(), &object)) misfit(o, type);
  }
  if (!jit::is_instance(object, type)) misfit(o, type);
  return object;
}

PyRef sequence_to_python(const std::vector<IValue>& items, bool tuple) {
  PyRef out = checked(tuple ? PyTuple_New(static_cast<Py_ssize_t>(items.size()))
                            : PyList_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i) {
    PyObject* item = to_python(items[i]).release();
    if (tuple) {
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
    } else {
      PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
    }
  }
  return out;
}

PyRef named_tuple_to_python(const jit::Tuple& tuple) {
  const auto* known = static_cast<const ScriptType*>(tuple.type.get());
  PyRef items = sequence_to_python(tuple.items, true);
  if (known->python) return checked(PyObject_CallObject(known->python.get(), items.get()));
  const PyRef collections = checked(PyImport_ImportModule("collections"));
  PyRef fields = checked(PyList_New(0));
  for (const std::string& field : tuple.type->fields) {
    const PyRef text = checked(wrap(field));
    check_status(PyList_Append(fields.get(), text.get()));
  }
  const std::string& name = tuple.type->name;
  const PyRef made =
      checked(PyObject_CallMethod(collections.get(), "namedtuple", "sO",
                                  name.substr(name.rfind('.') + 1).c_str(), fields.get()));
  auto* type = const_cast<ScriptType*>(known);
  type->python = made;
  return checked(PyObject_CallObject(made.get(), items.get()));
}

PyRef dict_to_python(const jit::Dict& dict) {
  PyRef out = checked(PyDict_New());
  for (const auto& [key, value] : dict) {
    check_status(PyDict_SetItem(out.get(), to_python(key).get(), to_python(value).get()));
  }
  return out;
}

PyRef boxed_to_python(const IValue& value) {
  if (const auto* tuple = jit::as<jit::Tuple>(value)) {
    if (tuple->type && !tuple->type->fields.empty()) return named_tuple_to_python(*tuple);
    return sequence_to_python(tuple->items, true);
  }
  if (const auto* dict = jit::as<jit::Dict>(value)) return dict_to_python(*dict);
  if (jit::as<jit::Object>(value)) return new_object_handle(value);
  if (const auto* member = jit::as<jit::EnumValue>(value)) {
    const auto& known = static_cast<const ScriptType&>(*member->type);
    if (!known.python) return to_python(member->value);
    return checked(PyObject_GetAttrString(known.python.get(), member->name.c_str()));
  }
  if (const auto* python = jit::as<PythonValue>(value)) return python->value;
  if (at::ivalue::opaque<torch::CustomClassHolder>(value)) return wrap_script_object(value);
  if (auto* future = jit::as<jit::Future>(value)) {
    static PyObject* maker = nullptr;
    PyObject* done = cached_attribute(maker, "torch.jit._async", "done_future");
    if (!done) throw python_error();
    return checked(PyObject_CallOneArg(done, to_python(future->wait()).get()));
  }
  raise(PyExc_RuntimeError, "a value of scripted code has no Python form");
}

} // namespace

IValue to_script(PyObject* o, const Type& type) {
  switch (type.kind) {
  case Kind::Tensor:
    if (!is_tensor(o)) misfit(o, type);
    return IValue(tensor_of(o));
  case Kind::Int:
    return int_to_script(o, type);
  case Kind::Float:
    if (PyFloat_Check(o)) return IValue(PyFloat_AS_DOUBLE(o));
    if (is_tensor(o) || !is_number_like(o) || PyComplex_Check(o)) misfit(o, type);
    return IValue(to_double(o));
  case Kind::Bool:
    if (!PyBool_Check(o)) misfit(o, type);
    return IValue(o == Py_True);
  case Kind::Complex:
    if (is_tensor(o) || !is_number_like(o)) misfit(o, type);
    return IValue(to_scalar(o).toComplexDouble());
  case Kind::Number:
    if (is_tensor(o) || !is_number_like(o)) misfit(o, type);
    return IValue(to_scalar(o));
  case Kind::Str:
    if (!PyUnicode_Check(o)) misfit(o, type);
    return IValue(std::string(utf8(o)));
  case Kind::None:
    if (o != Py_None) misfit(o, type);
    return IValue();
  case Kind::Device: {
    c10::Device device;
    if (!device_from_object(o, &device)) misfit(o, type);
    return IValue(device);
  }
  case Kind::Generator:
    if (!is_generator(o)) misfit(o, type);
    return IValue(generator_value(o));
  case Kind::Storage:
    if (!is_storage(o)) misfit(o, type);
    return IValue(storage_of(o));
  case Kind::Optional:
    return o == Py_None ? IValue() : to_script(o, *type.inner[0]);
  case Kind::Union:
    for (const auto& member : type.inner) {
      // An int would pass for a float, a bool for an int.
      if (member->kind == Kind::Float && !PyFloat_Check(o)) continue;
      if (member->kind == Kind::Int && PyBool_Check(o)) continue;
      try {
        return to_script(o, *member);
      } catch (const CastError&) {
      }
    }
    misfit(o, type);
  case Kind::List:
    return list_to_script(o, type);
  case Kind::Dict:
    return dict_to_script(o, type);
  case Kind::Tuple:
    return tuple_to_script(
        o, type, type.fields.empty() ? nullptr : const_cast<Type&>(type).shared_from_this());
  case Kind::Class:
  case Kind::Interface:
    return class_to_script(o, type);
  case Kind::Enum:
    return enum_to_script(o, type);
  case Kind::Python:
    return jit::make<PythonValue>(PyRef::borrow(o));
  case Kind::Future: {
    const PyRef value = checked(PyObject_CallMethod(o, "wait", nullptr));
    return jit::make<jit::Future>(any_to_script(value.get()));
  }
  default:
    return any_to_script(o);
  }
}

PyRef to_python(const IValue& value) {
  using Tag = IValue::Tag;
  switch (value.tag) {
  case Tag::Opaque:
    return boxed_to_python(value);
  case Tag::List:
    return sequence_to_python(value.toList(), false);
  case Tag::ScalarType:
  case Tag::Layout:
  case Tag::MemoryFormat:
    return checked(PyLong_FromLongLong(value.bits.i));
  default:
    return from_ivalue(value, nullptr);
  }
}

} // namespace torch::python
