// Scripted functions as Python callables: torch._C._ScriptFunctionBase, the base of
// torch.jit.ScriptFunction, and the bound form that methods of modules use. A call matches its
// arguments with the declaration, converts them by type, and runs the interpreter.
#include <torch/csrc/python/jit/jit.h>

#include <ATen/core/FunctionSchema.h>
#include <c10/util/SmallVector.h>
#include <structmember.h>
#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {

using at::IValue;
using at::Stack;

namespace {

PyTypeObject FunctionType = type_object("torch._C._ScriptFunctionBase");
PyTypeObject MethodType = type_object("torch._C._ScriptMethodBase");

struct Argument {
  PyRef name; // interned
  jit::TypePtr type;
  bool has_default = false, inferred = false;
  int broadcast = 0; // how often a number is repeated where a list is wanted
  IValue value;
};
struct Callable {
  std::shared_ptr<jit::Function> function;
  std::vector<Argument> arguments;
  std::string name, declaration;
  size_t positional = 0; // how many arguments can be given by position
};
struct PyScriptFunction {
  PyObject_HEAD Callable* callable;
  PyObject* dict;
  PyObject* weak;
};
struct PyScriptMethod {
  PyObject_HEAD PyObject* function;
  PyObject* self;
  PyObject* dict;
};

Callable& callable_of(PyObject* o) {
  if (!PyObject_TypeCheck(o, &FunctionType)) raise_type_error("expected a scripted function");
  return *reinterpret_cast<PyScriptFunction*>(o)->callable;
}

// A Python function that scripted code calls.
struct PythonFunction final : jit::External {
  PythonFunction(PyRef f, jit::TypePtr r) : function(std::move(f)), result(std::move(r)) {}
  ~PythonFunction() override {
    if (!python_exists()) {
      function.release();
      return;
    }
    WithGil gil;
    function = PyRef();
  }
  void call(Stack& stack, size_t count) override {
    WithGil gil;
    PyRef args = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
    const size_t base = stack.size() - count;
    for (size_t i = 0; i < count; ++i)
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i),
                       to_python(stack[base + i]).release());
    const PyRef value = checked(PyObject_CallObject(function.get(), args.get()));
    stack.resize(base);
    // A function that declares nothing is taken to return a tensor, and may return none.
    if (value.get() == Py_None && result->kind == jit::Type::Kind::Tensor) {
      stack.emplace_back();
      return;
    }
    try {
      stack.push_back(to_script(value.get(), *result));
    } catch (const CastError& e) {
      raise(PyExc_RuntimeError, c10::str("expected a value of type '", result->name,
                                         "' from a Python function called in scripted code, but "
                                         "instead got value of type ",
                                         type_name(value.get()), ": ", e.why));
    }
  }
  PyRef function;
  jit::TypePtr result;
};

// ---- definition -------------------------------------------------------------------------------
int32_t small(PyObject* o) {
  const long v = PyLong_AsLong(o);
  if (v == -1 && PyErr_Occurred()) throw python_error();
  if (v < INT32_MIN || v > INT32_MAX) raise(PyExc_OverflowError, "number too large");
  return static_cast<int32_t>(v);
}

void add_operands(jit::Function& f, PyObject* numbers) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); ++i)
    f.operands.push_back(small(PyTuple_GET_ITEM(numbers, i)));
}

// (opcode, inputs, outputs, target, count, place, what)
void add_instruction(jit::Function& f, PyObject* spec) {
  int op = 0, target = 0, count = 0, place = 0;
  PyObject *inputs, *outputs, *what;
  if (!PyArg_ParseTuple(spec, "iO!O!iiiO", &op, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs,
                        &target, &count, &place, &what))
    throw python_error();
  if (op < 0 || op > static_cast<int>(jit::Opcode::Last)) raise(PyExc_ValueError, "unknown opcode");
  if (PyTuple_GET_SIZE(inputs) > UINT16_MAX || PyTuple_GET_SIZE(outputs) > UINT16_MAX)
    raise(PyExc_ValueError, "a scripted call has too many arguments");
  jit::Instruction in;
  in.op = static_cast<jit::Opcode>(op);
  in.inputs = static_cast<uint16_t>(PyTuple_GET_SIZE(inputs));
  in.outputs = static_cast<uint16_t>(PyTuple_GET_SIZE(outputs));
  in.first = static_cast<int32_t>(f.operands.size());
  in.target = target;
  in.count = count;
  in.place = place;
  add_operands(f, inputs);
  add_operands(f, outputs);
  if (in.op == jit::Opcode::Operator) {
    PyObject *name, *overload;
    if (!PyArg_ParseTuple(what, "UU", &name, &overload)) throw python_error();
    in.entry = at::Dispatcher::singleton().find(utf8(name), utf8(overload));
    if (!in.entry) raise(PyExc_RuntimeError, c10::str("Unknown builtin op: ", utf8(name)));
    const auto& arguments = in.entry->schema().arguments;
    if (arguments.size() != in.inputs) raise(PyExc_ValueError, "a call has too few arguments");
    for (size_t i = 0; i < arguments.size() && i < 64; ++i) {
      const at::SchemaType& type = arguments[i].type;
      if (type.kind == at::SchemaType::Kind::Tensor && !type.is_list && !type.optional)
        in.tensors |= uint64_t(1) << i;
    }
  } else if (in.op == jit::Opcode::Builtin) {
    const auto index = static_cast<size_t>(small(what));
    if (index >= jit::builtins().size()) raise(PyExc_ValueError, "unknown builtin");
    in.builtin = jit::builtins()[index].fn;
  }
  f.code.push_back(in);
}

template <class F> void each(PyObject* sequence, F&& f) {
  const PyRef items = checked(PySequence_Tuple(sequence));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    f(PyTuple_GET_ITEM(items.get(), i));
}

// A pair (value, type) as a value of scripted code.
IValue typed_value(PyObject* pair) {
  PyObject *value, *type;
  if (!PyArg_ParseTuple(pair, "OO", &value, &type)) throw python_error();
  try {
    return to_script(value, *type_of_handle(type));
  } catch (const CastError& e) {
    raise(PyExc_RuntimeError, e.why);
  }
}

// define(inputs, registers, code, constants, types, functions, externals, names, places)
PyObject* function_define(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int inputs = 0, registers = 0;
    PyObject *code, *constants, *types, *functions, *externals, *names, *places;
    if (!PyArg_ParseTuple(args, "iiOOOOOOO", &inputs, &registers, &code, &constants, &types,
                          &functions, &externals, &names, &places))
      return nullptr;
    jit::Function made;
    made.name = callable_of(self).name;
    made.inputs = static_cast<size_t>(inputs);
    made.registers = static_cast<size_t>(registers);
    each(code, [&](PyObject* o) { add_instruction(made, o); });
    each(constants, [&](PyObject* o) { made.constants.push_back(typed_value(o)); });
    each(types, [&](PyObject* o) { made.types.push_back(type_of_handle(o)); });
    each(functions, [&](PyObject* o) { made.functions.push_back(function_of_handle(o)); });
    each(externals, [&](PyObject* o) {
      PyObject *function, *result;
      if (!PyArg_ParseTuple(o, "OO", &function, &result)) throw python_error();
      made.externals.push_back(
          c10::make_intrusive<PythonFunction>(PyRef::borrow(function), type_of_handle(result)));
    });
    each(names, [&](PyObject* o) { made.names.emplace_back(utf8(o)); });
    each(places, [&](PyObject* o) { made.places.emplace_back(utf8(o)); });
    made.check();
    made.defined = true;
    *callable_of(self).function = std::move(made);
    return new_none();
  });
}

// set_signature(name, arguments, declaration, positional); an argument is (name, type, inferred,
// broadcast[, default])
PyObject* function_set_signature(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *name, *arguments, *declaration;
    int positional = 0;
    if (!PyArg_ParseTuple(args, "UOUi", &name, &arguments, &declaration, &positional))
      return nullptr;
    Callable& callable = callable_of(self);
    callable.positional = static_cast<size_t>(positional);
    callable.name = std::string(utf8(name));
    callable.declaration = std::string(utf8(declaration));
    callable.arguments.clear();
    each(arguments, [&](PyObject* o) {
      PyObject *label, *type, *value = nullptr;
      int inferred = 0, broadcast = 0;
      if (!PyArg_ParseTuple(o, "UOpi|O", &label, &type, &inferred, &broadcast, &value))
        throw python_error();
      Argument argument;
      argument.broadcast = broadcast;
      Py_INCREF(label);
      PyUnicode_InternInPlace(&label);
      argument.name = PyRef(label);
      argument.type = type_of_handle(type);
      argument.inferred = inferred != 0;
      if (value) {
        argument.has_default = true;
        try {
          argument.value = to_script(value, *argument.type);
        } catch (const CastError& e) {
          raise(PyExc_RuntimeError, c10::str("the default of '", utf8(label), "': ", e.why));
        }
      }
      callable.arguments.push_back(std::move(argument));
    });
    return new_none();
  });
}

// ---- calls ------------------------------------------------------------------------------------
[[noreturn]] void fail_call(const Callable& callable, const std::string& why) {
  raise(PyExc_RuntimeError,
        c10::str(callable.name, "() ", why, "\nDeclaration: ", callable.declaration));
}

void push_argument(const Callable& callable, size_t i, PyObject* o, Stack& stack) {
  const Argument& argument = callable.arguments[i];
  if (argument.type->kind == jit::Type::Kind::Tensor && is_plain_tensor(o)) {
    stack.emplace_back(tensor_of(o));
    return;
  }
  try {
    if (argument.broadcast > 0 && is_number_like(o) && !is_tensor(o)) {
      PyRef items = checked(PyTuple_New(argument.broadcast));
      for (int n = 0; n < argument.broadcast; ++n) PyTuple_SET_ITEM(items.get(), n, Py_NewRef(o));
      stack.push_back(to_script(items.get(), *argument.type));
      return;
    }
    stack.push_back(to_script(o, *argument.type));
  } catch (const CastError& e) {
    const std::string name(utf8(argument.name.get()));
    std::string why = c10::str("Expected a value of type '", argument.type->name,
                               argument.inferred ? " (inferred)" : "", "' for argument '", name,
                               "' but instead found type '", type_name(o), "'.");
    if (argument.inferred)
      why += c10::str("\nInferred '", name,
                      "' to be of type 'Tensor' because it was not annotated "
                      "with an explicit type.");
    fail_call(callable, c10::str(why, "\nPosition: ", i, "\nValue: ", repr_of(o).substr(0, 200),
                                 "\nCast error details: ", e.why));
  }
}

void push_keywords(const Callable& callable, PyObject* kwargs, PyObject** given) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(kwargs, &at, &key, &value)) {
    size_t i = 0;
    for (; i < callable.arguments.size(); ++i)
      if (PyObject_RichCompareBool(callable.arguments[i].name.get(), key, Py_EQ) == 1) break;
    if (i == callable.arguments.size())
      fail_call(callable, c10::str("Unknown keyword argument '", text_of(key), "'."));
    if (given[i])
      fail_call(callable, c10::str("got multiple values for argument '", text_of(key), "'"));
    given[i] = value;
  }
}

// The function that was called last, for tools that show its graph.
PyObject* last_called = nullptr;

PyObject* run_callable(const Callable& callable, const IValue* self, PyObject* args,
                       PyObject* kwargs) {
  const size_t count = callable.arguments.size(), first = self ? 1 : 0;
  const auto positional = static_cast<size_t>(PyTuple_GET_SIZE(args));
  if (positional + first > count) {
    fail_call(callable, c10::str("Expected at most ", count, " argument(s) but received ",
                                 positional + first, " argument(s)."));
  }
  if (positional + first > callable.positional) {
    fail_call(callable, c10::str("takes ", callable.positional - first,
                                 " positional argument(s) but ", positional, " were given."));
  }
  c10::SmallVector<PyObject*, 8> given(count, nullptr);
  for (size_t i = 0; i < positional; ++i)
    given[i + first] = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0) push_keywords(callable, kwargs, given.data());
  Stack stack;
  stack.reserve(count + 8);
  if (self) stack.push_back(*self);
  for (size_t i = first; i < count; ++i) {
    if (given[i]) {
      push_argument(callable, i, given[i], stack);
    } else if (callable.arguments[i].has_default) {
      stack.push_back(callable.arguments[i].value);
    } else {
      fail_call(callable, c10::str("is missing value for argument '",
                                   utf8(callable.arguments[i].name.get()), "'."));
    }
  }
  try {
    callable.function->run(stack);
  } catch (const jit::ScriptError& e) {
    static PyObject* error = nullptr;
    PyObject* type = cached_attribute(error, "torch.jit", "Error");
    raise(type ? type : PyExc_RuntimeError, e.what());
  }
  if (stack.empty()) return new_none();
  return to_python(stack.back()).release();
}

// What records calls of scripted functions while a trace runs: it is called with the function or
// method, its positional and its named arguments, instead of running it.
PyObject* tracer = nullptr;
PyObject* traced_call(PyObject* what, PyObject* args, PyObject* kwargs) {
  return PyObject_CallFunctionObjArgs(tracer, what, args, kwargs ? kwargs : Py_None, nullptr);
}
PyObject* py_set_tracer(PyObject*, PyObject* function) {
  PyObject* before = tracer;
  tracer = function == Py_None ? nullptr : Py_NewRef(function);
  Py_XDECREF(before);
  return new_none();
}

PyObject* function_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (C10_UNLIKELY(tracer != nullptr)) return traced_call(self, args, kwargs);
  Py_XSETREF(last_called, Py_NewRef(self));
  return guarded([&] { return run_callable(callable_of(self), nullptr, args, kwargs); });
}

PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto callable = std::make_unique<Callable>();
    callable->function = std::make_shared<jit::Function>();
    PyRef out = checked(type->tp_alloc(type, 0));
    reinterpret_cast<PyScriptFunction*>(out.get())->callable = callable.release();
    return out.release();
  });
}
int function_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<PyScriptFunction*>(self)->dict);
  return 0;
}
int function_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<PyScriptFunction*>(self)->dict);
  return 0;
}
void function_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  auto* self = reinterpret_cast<PyScriptFunction*>(o);
  if (self->weak) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  delete self->callable;
  Py_TYPE(o)->tp_free(o);
}

PyMethodDef function_methods[] = {{"_define", function_define, METH_VARARGS, nullptr},
                                  {"_set_signature", function_set_signature, METH_VARARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

// ---- methods ----------------------------------------------------------------------------------
PyObject* method_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject *function, *self;
    if (!PyArg_ParseTuple(args, "OO", &function, &self)) return nullptr;
    callable_of(function);
    IValue object;
    if (!object_of(self, &object)) raise_type_error("expected a scripted object");
    PyRef out = checked(type->tp_alloc(type, 0));
    auto* method = reinterpret_cast<PyScriptMethod*>(out.get());
    method->function = Py_NewRef(function);
    method->self = Py_NewRef(self);
    return out.release();
  });
}
PyObject* method_call(PyObject* o, PyObject* args, PyObject* kwargs) {
  if (C10_UNLIKELY(tracer != nullptr)) return traced_call(o, args, kwargs);
  return guarded([&] {
    auto* method = reinterpret_cast<PyScriptMethod*>(o);
    IValue self;
    if (!object_of(method->self, &self)) raise_type_error("expected a scripted object");
    Py_XSETREF(last_called, Py_NewRef(method->function));
    return run_callable(callable_of(method->function), &self, args, kwargs);
  });
}
int method_traverse(PyObject* o, visitproc visit, void* arg) {
  auto* method = reinterpret_cast<PyScriptMethod*>(o);
  Py_VISIT(method->function);
  Py_VISIT(method->self);
  Py_VISIT(method->dict);
  return 0;
}
int method_clear(PyObject* o) {
  auto* method = reinterpret_cast<PyScriptMethod*>(o);
  Py_CLEAR(method->function);
  Py_CLEAR(method->self);
  Py_CLEAR(method->dict);
  return 0;
}
void method_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  method_clear(o);
  Py_TYPE(o)->tp_free(o);
}
PyMemberDef method_members[] = {
    {"_function", T_OBJECT, offsetof(PyScriptMethod, function), READONLY, nullptr},
    {"_self", T_OBJECT, offsetof(PyScriptMethod, self), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyObject* py_builtins(PyObject*, PyObject*) {
  return guarded([&] {
    PyRef out = checked(PyList_New(0));
    for (const jit::Builtin& builtin : jit::builtins()) {
      const PyRef text = checked(wrap(builtin.schema));
      check_status(PyList_Append(out.get(), text.get()));
    }
    return out.release();
  });
}
// Schemas of the dispatcher's operators of one name, as text, in order of definition.
PyObject* py_schemas(PyObject*, PyObject* name) {
  return guarded([&] {
    PyRef out = checked(PyList_New(0));
    for (const at::OperatorEntry* op : at::Dispatcher::singleton().overloads(utf8(name))) {
      const PyRef text = checked(wrap(op->schema().str()));
      check_status(PyList_Append(out.get(), text.get()));
    }
    return out.release();
  });
}
// The number of a dtype, layout or memory format in programs.
PyObject* py_number(PyObject*, PyObject* o) {
  if (is_dtype(o)) return PyLong_FromLong(static_cast<long>(dtype_value(o)));
  if (is_layout(o)) return PyLong_FromLong(static_cast<long>(layout_value(o)));
  if (is_memory_format(o)) return PyLong_FromLong(static_cast<long>(memory_format_value(o)));
  return guarded([&]() -> PyObject* { raise_type_error("expected a dtype, layout or format"); });
}
// _script_check(value, type): RuntimeError unless the value is of the type.
PyObject* py_check(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    typed_value(args);
    return new_none();
  });
}
PyObject* py_last_called(PyObject*, PyObject*) {
  return Py_NewRef(last_called ? last_called : Py_None);
}
PyMethodDef functions[] = {{"_script_check", py_check, METH_VARARGS, nullptr},
                           {"_script_last_called", py_last_called, METH_NOARGS, nullptr},
                           {"_script_number", py_number, METH_O, nullptr},
                           {"_script_set_tracer", py_set_tracer, METH_O, nullptr},
                           {"_script_builtins", py_builtins, METH_NOARGS, nullptr},
                           {"_script_schemas", py_schemas, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

// print() of scripted code goes where Python's does.
static void print_to_python(const std::string& text) {
  WithGil gil;
  const PyRef out = PyRef::borrow(PySys_GetObject("stdout"));
  if (!out || out.get() == Py_None) return;
  const PyRef line = checked(wrap(text));
  if (PyFile_WriteObject(line.get(), out.get(), Py_PRINT_RAW) < 0) throw python_error();
}

std::shared_ptr<jit::Function> function_of_handle(PyObject* o) { return callable_of(o).function; }

bool init_jit_functions(PyObject* module) {
  jit::print_line = print_to_python;
  FunctionType.tp_basicsize = sizeof(PyScriptFunction);
  FunctionType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  FunctionType.tp_new = function_new;
  FunctionType.tp_dealloc = function_dealloc;
  FunctionType.tp_traverse = function_traverse;
  FunctionType.tp_clear = function_clear;
  FunctionType.tp_call = function_call;
  FunctionType.tp_methods = function_methods;
  FunctionType.tp_dictoffset = offsetof(PyScriptFunction, dict);
  FunctionType.tp_weaklistoffset = offsetof(PyScriptFunction, weak);
  MethodType.tp_basicsize = sizeof(PyScriptMethod);
  MethodType.tp_flags = FunctionType.tp_flags;
  MethodType.tp_new = method_new;
  MethodType.tp_dealloc = method_dealloc;
  MethodType.tp_traverse = method_traverse;
  MethodType.tp_clear = method_clear;
  MethodType.tp_call = method_call;
  MethodType.tp_members = method_members;
  MethodType.tp_dictoffset = offsetof(PyScriptMethod, dict);
  return add_type(module, &FunctionType) && add_type(module, &MethodType) &&
         PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
