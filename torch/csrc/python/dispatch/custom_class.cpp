// See custom_class.h. A ScriptObject finds its attributes in the record of its class: properties
// first, then methods. Operators of Python (len, +, ==, ...) call the method of that name where the
// class has one. Methods run without the GIL, as they may wait for other threads.
#include <torch/csrc/python/dispatch/custom_class.h>

#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/dispatch/schema_type.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <c10/util/SmallVector.h>

#include <new>

namespace torch::python {
namespace {

PyTypeObject ObjectType = type_object("torch._C.ScriptObject");
PyTypeObject MethodType = type_object("torch._C._CustomMethod");
PyTypeObject ClassType = type_object("torch._C.ScriptClass");
PyObject* from_state_function = nullptr;

struct ScriptObject {
  PyObject_HEAD at::IValue value;
  const at::CustomClass* its_class;
  PyObject* weak_references;
};
struct BoundMethod {
  PyObject_HEAD const at::CustomMethod* method;
  const at::CustomClass* its_class;
  at::IValue self; // None for static methods and constructors
};
struct ScriptClass {
  PyObject_HEAD const at::CustomClass* its_class;
};

ScriptObject& object(PyObject* o) { return *reinterpret_cast<ScriptObject*>(o); }
BoundMethod& bound(PyObject* o) { return *reinterpret_cast<BoundMethod*>(o); }
const at::CustomClass& class_of(PyObject* o) {
  return *reinterpret_cast<ScriptClass*>(o)->its_class;
}

// ---- calls --------------------------------------------------------------------------------------
at::IValue run(const at::CustomMethod& method, at::Stack& stack) {
  const NoGil released;
  method.call(stack);
  at::IValue result = std::move(stack.back());
  stack.clear(); // instances may end here
  return result;
}

// Calls with arguments of Python; `self` is None where the method takes no instance.
PyRef call_method(const at::CustomMethod& method, const at::IValue& self, PyObject* const* args,
                  Py_ssize_t nargs, PyObject* kwnames) {
  PyRef instance;
  c10::SmallVector<PyObject*, 8> all;
  if (!self.isNone()) {
    instance = wrap_script_object(self);
    all.push_back(instance.get());
  }
  const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  all.append(args, args + nargs + keywords);
  at::Stack stack;
  stack_from_call(method.schema, all.data(), nargs + (instance ? 1 : 0), kwnames, stack);
  return from_ivalue(run(method, stack), &method.schema.returns[0].type);
}

PyObject* new_bound(const at::CustomMethod& method, const at::CustomClass& its_class,
                    const at::IValue& self) {
  auto* out = PyObject_New(BoundMethod, &MethodType);
  if (!out) throw python_error();
  out->method = &method;
  out->its_class = &its_class;
  new (&out->self) at::IValue(self);
  return reinterpret_cast<PyObject*>(out);
}

// The method an operator of Python stands for; Error when the class has none.
const at::CustomMethod& magic(PyObject* self, const char* name) {
  const at::CustomClass& its_class = *object(self).its_class;
  const at::CustomMethod* method = its_class.method(name);
  if (!method) {
    raise_type_error(
        c10::str("'", its_class.qualified_name(), "' object has no method '", name, "'"));
  }
  return *method;
}
PyObject* call_magic(PyObject* self, const char* name, std::initializer_list<PyObject*> args) {
  return guarded([&] {
    return call_method(magic(self, name), object(self).value, args.begin(),
                       static_cast<Py_ssize_t>(args.size()), nullptr)
        .release();
  });
}

// ---- bound methods ------------------------------------------------------------------------------
void method_dealloc(PyObject* self) {
  bound(self).self.~IValue();
  PyObject_Free(self);
}
PyObject* method_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    c10::SmallVector<PyObject*, 8> all(PySequence_Fast_ITEMS(args),
                                       PySequence_Fast_ITEMS(args) + PyTuple_GET_SIZE(args));
    PyRef names;
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
      PyRef keys = checked(PyDict_Keys(kwargs));
      names = checked(PyList_AsTuple(keys.get()));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i)
        all.push_back(PyDict_GetItem(kwargs, PyTuple_GET_ITEM(names.get(), i)));
    }
    const BoundMethod& m = bound(self);
    return call_method(*m.method, m.self, all.data(), PyTuple_GET_SIZE(args), names.get())
        .release();
  });
}
PyObject* method_name(PyObject* self, void*) {
  return guarded([&] { return wrap(bound(self).method->name); });
}
PyObject* method_schema(PyObject* self, void*) {
  return guarded([&] { return new_schema(bound(self).method->schema); });
}
PyObject* method_doc(PyObject* self, void*) {
  return guarded([&] { return wrap(bound(self).method->doc); });
}
PyObject* method_owner(PyObject* self, void*) {
  return guarded([&] {
    const at::IValue& owner = bound(self).self;
    return owner.isNone() ? new_none() : wrap_script_object(owner).release();
  });
}
PyObject* method_repr(PyObject* self) {
  return guarded([&] {
    const BoundMethod& m = bound(self);
    return wrap(c10::str("<method ", m.its_class->qualified_name(), ".", m.method->name, ">"));
  });
}
PyGetSetDef method_properties[] = {{"name", method_name, nullptr, nullptr, nullptr},
                                   {"__name__", method_name, nullptr, nullptr, nullptr},
                                   {"schema", method_schema, nullptr, nullptr, nullptr},
                                   {"owner", method_owner, nullptr, nullptr, nullptr},
                                   {"__self__", method_owner, nullptr, nullptr, nullptr},
                                   {"__doc__", method_doc, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- objects ------------------------------------------------------------------------------------
void object_dealloc(PyObject* self) {
  if (object(self).weak_references) PyObject_ClearWeakRefs(self);
  object(self).value.~IValue();
  PyObject_Free(self);
}

PyObject* object_getattro(PyObject* self, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const ScriptObject& me = object(self);
    const std::string text(utf8(name));
    if (const at::CustomProperty* property = me.its_class->property(text))
      return call_method(*property->getter, me.value, nullptr, 0, nullptr).release();
    if (const at::CustomMethod* method = me.its_class->method(text)) {
      if (text != "__setstate__" && text != "__init__")
        return new_bound(*method, *me.its_class, me.value);
    }
    PyObject* found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    raise(PyExc_AttributeError,
          c10::str("'", me.its_class->qualified_name(),
                   "' object does not have a field or method with name '", text, "'"));
  });
}

int object_setattro(PyObject* self, PyObject* name, PyObject* value) {
  return guarded([&] {
    const ScriptObject& me = object(self);
    const std::string text(utf8(name));
    const at::CustomProperty* property = me.its_class->property(text);
    if (!property) {
      raise(PyExc_AttributeError, c10::str("'", me.its_class->qualified_name(),
                                           "' object has no property '", text, "' to set"));
    }
    if (!property->setter || !value) {
      raise(PyExc_RuntimeError, c10::str("can't set attribute: the property '", text, "' of ",
                                         me.its_class->qualified_name(), " is read-only"));
    }
    call_method(*property->setter, me.value, &value, 1, nullptr);
    return 0;
  });
}

bool has(PyObject* self, const char* name) { return object(self).its_class->method(name); }

PyObject* object_repr(PyObject* self) {
  if (has(self, "__repr__")) return call_magic(self, "__repr__", {});
  return guarded([&] {
    return wrap(
        c10::str("<torch.ScriptObject object of ", object(self).its_class->qualified_name(), ">"));
  });
}
PyObject* object_str(PyObject* self) {
  return has(self, "__str__") ? call_magic(self, "__str__", {}) : object_repr(self);
}
Py_hash_t object_hash(PyObject* self) {
  if (has(self, "__hash__")) {
    PyRef number(call_magic(self, "__hash__", {}));
    return number ? PyObject_Hash(number.get()) : -1;
  }
  return _Py_HashPointer(object(self).value.ref.get());
}
PyObject* object_compare(PyObject* a, PyObject* b, int op) {
  static const char* const kNames[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
  if (has(a, kNames[op])) return call_magic(a, kNames[op], {b});
  if (!is_script_object(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return new_bool((object(a).value.ref == object(b).value.ref) == (op == Py_EQ));
}
Py_ssize_t object_length(PyObject* self) {
  PyRef length(call_magic(self, "__len__", {}));
  return length ? PyLong_AsSsize_t(length.get()) : -1;
}
PyObject* object_getitem(PyObject* self, PyObject* key) {
  return call_magic(self, "__getitem__", {key});
}
int object_setitem(PyObject* self, PyObject* key, PyObject* value) {
  const PyRef done(value ? call_magic(self, "__setitem__", {key, value})
                         : call_magic(self, "__delitem__", {key}));
  return done ? 0 : -1;
}
int object_contains(PyObject* self, PyObject* key) {
  const PyRef found(call_magic(self, "__contains__", {key}));
  return found ? PyObject_IsTrue(found.get()) : -1;
}
int object_bool(PyObject* self) {
  const char* const name = has(self, "__bool__") ? "__bool__" : "__len__";
  if (!has(self, name)) return 1;
  const PyRef value(call_magic(self, name, {}));
  return value ? PyObject_IsTrue(value.get()) : -1;
}
PyObject* object_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  const PyRef method(guarded([&] {
    return new_bound(magic(self, "__call__"), *object(self).its_class, object(self).value);
  }));
  return method ? method_call(method.get(), args, kwargs) : nullptr;
}
PyObject* binary(PyObject* a, PyObject* b, const char* name) {
  if (!is_script_object(a) || !has(a, name)) Py_RETURN_NOTIMPLEMENTED;
  return call_magic(a, name, {b});
}
PyObject* object_add(PyObject* a, PyObject* b) { return binary(a, b, "__add__"); }
PyObject* object_subtract(PyObject* a, PyObject* b) { return binary(a, b, "__sub__"); }
PyObject* object_multiply(PyObject* a, PyObject* b) { return binary(a, b, "__mul__"); }
PyObject* object_divide(PyObject* a, PyObject* b) { return binary(a, b, "__truediv__"); }
PyObject* object_matmul(PyObject* a, PyObject* b) { return binary(a, b, "__matmul__"); }
PyObject* object_negative(PyObject* self) { return call_magic(self, "__neg__", {}); }
PyNumberMethods object_number = {};
PyMappingMethods object_mapping = {object_length, object_getitem, object_setitem};
PySequenceMethods object_sequence = {};

PyObject* new_class(const at::CustomClass& its_class) {
  auto* out = PyObject_New(ScriptClass, &ClassType);
  if (!out) throw python_error();
  out->its_class = &its_class;
  return reinterpret_cast<PyObject*>(out);
}
PyObject* object_type(PyObject* self, PyObject*) {
  return guarded([&] { return new_class(*object(self).its_class); });
}
PyObject* object_has_method(PyObject* self, PyObject* name) {
  return guarded([&] {
    if (!PyUnicode_Check(name)) raise_type_error("_has_method() takes the name of a method");
    return new_bool(object(self).its_class->method(std::string(utf8(name))));
  });
}
PyObject* method_names(const at::CustomClass& its_class) {
  PyRef out = checked(PyList_New(0));
  for (const auto& [name, method] : its_class.methods()) {
    const PyRef text = checked(wrap(name));
    check_status(PyList_Append(out.get(), text.get()));
  }
  return out.release();
}
PyObject* object_method_names(PyObject* self, PyObject*) {
  return guarded([&] { return method_names(*object(self).its_class); });
}
// One number for every wrapper of the same instance, as long as it lives.
PyObject* object_identity(PyObject* self, PyObject*) {
  return PyLong_FromVoidPtr(object(self).value.ref.get());
}
PyObject* object_copy(PyObject* self, PyObject*) {
  return guarded(
      [&] { return wrap_script_object(at::ivalue::deepcopy(object(self).value)).release(); });
}
// (torch._C._script_object_from_state, (name, state))
PyObject* object_reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const ScriptObject& me = object(self);
    const PyRef state = from_ivalue(me.its_class->get_state(me.value), nullptr);
    const PyRef name = checked(wrap(me.its_class->qualified_name()));
    const PyRef args = checked(PyTuple_Pack(2, name.get(), state.get()));
    return checked(PyTuple_Pack(2, from_state_function, args.get())).release();
  });
}
PyMethodDef object_methods[] = {
    {"_type", object_type, METH_NOARGS, "The class, with qualified_name()."},
    {"_has_method", object_has_method, METH_O, nullptr},
    {"_method_names", object_method_names, METH_NOARGS, nullptr},
    {"_identity", object_identity, METH_NOARGS, nullptr},
    {"__copy__", object_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", object_copy, METH_O, nullptr},
    {"__reduce__", object_reduce, METH_NOARGS, nullptr},
    {"__reduce_ex__", object_reduce, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// ---- classes ------------------------------------------------------------------------------------
PyObject* class_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  const PyRef init(guarded([&] {
    const at::CustomClass& its_class = class_of(self);
    const at::CustomMethod* method = its_class.method("__init__");
    if (!method) its_class.construct({}); // says what is missing
    return new_bound(*method, its_class, at::IValue());
  }));
  return init ? method_call(init.get(), args, kwargs) : nullptr;
}
PyObject* class_getattro(PyObject* self, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const at::CustomClass& its_class = class_of(self);
    if (const at::CustomMethod* method = its_class.static_method(std::string(utf8(name))))
      return new_bound(*method, its_class, at::IValue());
    return PyObject_GenericGetAttr(self, name);
  });
}
PyObject* class_qualified_name(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(class_of(self).qualified_name()); });
}
PyObject* class_name(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(class_of(self).name()); });
}
PyObject* class_method_names(PyObject* self, PyObject*) {
  return guarded([&] { return method_names(class_of(self)); });
}
PyObject* class_doc(PyObject* self, void*) {
  return guarded([&] { return wrap(class_of(self).doc()); });
}
PyObject* class_repr(PyObject* self) { return class_qualified_name(self, nullptr); }
PyObject* class_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != &ClassType || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return new_bool((&class_of(a) == &class_of(b)) == (op == Py_EQ));
}
Py_hash_t class_hash(PyObject* self) { return _Py_HashPointer(&class_of(self)); }
PyMethodDef class_methods[] = {{"qualified_name", class_qualified_name, METH_NOARGS, nullptr},
                               {"str", class_qualified_name, METH_NOARGS, nullptr},
                               {"name", class_name, METH_NOARGS, nullptr},
                               {"method_names", class_method_names, METH_NOARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyGetSetDef class_properties[] = {{"__doc__", class_doc, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- functions ----------------------------------------------------------------------------------
const at::CustomClass& named_class(const std::string& name) {
  const at::CustomClass* found = at::CustomClass::find(name);
  TORCH_CHECK(found != nullptr, "Class '", name,
              "' is not registered: load the library that registers it with torch::class_");
  return *found;
}
PyObject* py_get_class(PyObject*, PyObject* args) {
  const char *ns = nullptr, *name = nullptr;
  if (!PyArg_ParseTuple(args, "ss", &ns, &name)) return nullptr;
  return guarded([&] { return new_class(named_class(std::string(ns) + "." + name)); });
}
PyObject* py_from_state(PyObject*, PyObject* args) {
  const char* name = nullptr;
  PyObject* state = nullptr;
  if (!PyArg_ParseTuple(args, "sO", &name, &state)) return nullptr;
  return guarded([&] {
    const at::CustomClass& its_class = named_class(name);
    const at::CustomMethod* set = its_class.method("__setstate__");
    if (!set) its_class.from_state({}); // says what is missing
    return call_method(*set, at::IValue(), &state, 1, nullptr).release();
  });
}
// The schema of a method as text; None when the class or the method does not exist.
PyObject* py_method_schema(PyObject*, PyObject* args) {
  const char *name = nullptr, *method = nullptr;
  if (!PyArg_ParseTuple(args, "ss", &name, &method)) return nullptr;
  return guarded([&]() -> PyObject* {
    const at::CustomClass* its_class = at::CustomClass::find(name);
    const at::CustomMethod* found = its_class ? its_class->method(method) : nullptr;
    if (!found) Py_RETURN_NONE;
    return wrap(found->schema.str());
  });
}
PyObject* py_all_classes(PyObject*, PyObject*) {
  return guarded([] {
    PyRef out = checked(PyList_New(0));
    for (const at::CustomClass* each : at::CustomClass::all()) {
      const PyRef text = checked(wrap(each->qualified_name()));
      check_status(PyList_Append(out.get(), text.get()));
    }
    return out.release();
  });
}
PyMethodDef functions[] = {
    {"_get_custom_class_python_wrapper", py_get_class, METH_VARARGS, nullptr},
    {"_script_object_from_state", py_from_state, METH_VARARGS, nullptr},
    {"_custom_method_schema", py_method_schema, METH_VARARGS, nullptr},
    {"_all_custom_classes", py_all_classes, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

void fill_object_type() {
  ObjectType.tp_basicsize = sizeof(ScriptObject);
  ObjectType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ObjectType.tp_weaklistoffset = offsetof(ScriptObject, weak_references);
  ObjectType.tp_dealloc = object_dealloc;
  ObjectType.tp_methods = object_methods;
  ObjectType.tp_getattro = object_getattro;
  ObjectType.tp_setattro = object_setattro;
  ObjectType.tp_repr = object_repr;
  ObjectType.tp_str = object_str;
  ObjectType.tp_hash = object_hash;
  ObjectType.tp_call = object_call;
  ObjectType.tp_richcompare = object_compare;
  object_number.nb_add = object_add;
  object_number.nb_subtract = object_subtract;
  object_number.nb_multiply = object_multiply;
  object_number.nb_true_divide = object_divide;
  object_number.nb_matrix_multiply = object_matmul;
  object_number.nb_negative = object_negative;
  object_number.nb_bool = object_bool;
  object_sequence.sq_contains = object_contains;
  ObjectType.tp_as_number = &object_number;
  ObjectType.tp_as_mapping = &object_mapping;
  ObjectType.tp_as_sequence = &object_sequence;
}

} // namespace

bool is_script_object(PyObject* o) { return Py_TYPE(o) == &ObjectType; }
const at::IValue& script_object_value(PyObject* o) { return object(o).value; }

PyRef wrap_script_object(const at::IValue& instance) {
  const at::CustomClass& its_class = at::CustomClass::of(instance);
  auto* out = PyObject_New(ScriptObject, &ObjectType);
  if (!out) throw python_error();
  new (&out->value) at::IValue(instance);
  out->its_class = &its_class;
  out->weak_references = nullptr;
  return PyRef(reinterpret_cast<PyObject*>(out));
}

bool init_custom_classes(PyObject* module) {
  fill_object_type();
  MethodType.tp_basicsize = sizeof(BoundMethod);
  MethodType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  MethodType.tp_dealloc = method_dealloc;
  MethodType.tp_call = method_call;
  MethodType.tp_repr = method_repr;
  MethodType.tp_getset = method_properties;
  ClassType.tp_basicsize = sizeof(ScriptClass);
  ClassType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ClassType.tp_call = class_call;
  ClassType.tp_getattro = class_getattro;
  ClassType.tp_methods = class_methods;
  ClassType.tp_getset = class_properties;
  ClassType.tp_repr = class_repr;
  ClassType.tp_hash = class_hash;
  ClassType.tp_richcompare = class_compare;
  if (!add_type(module, &ObjectType) || !add_type(module, &MethodType) ||
      !add_type(module, &ClassType) || PyModule_AddFunctions(module, functions) != 0)
    return false;
  from_state_function = PyObject_GetAttrString(module, "_script_object_from_state");
  return from_state_function != nullptr;
}

} // namespace torch::python
