// Programs from the nodes of an FX graph, and the type of compiled functions. torch._inductor says
// which node is what; the arguments of operators are read here, by the schema.
#include <torch/csrc/python/inductor/inductor.h>

#include <dlfcn.h>

#include <memory>
#include <new>

#include <torch/csrc/inductor/aoti_file.h>
#include <torch/csrc/inductor/cuda_compile.h>
#include <torch/csrc/inductor/plan.h>
#include <torch/csrc/inductor/recordings.h>
#include <torch/csrc/inductor/tier.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

using inductor::Arg;
using inductor::Compiled;
using inductor::Node;
using inductor::Program;

// ---- programs -----------------------------------------------------------------------------------
// The nodes seen so far, by the Python object that stands for each.
struct Reader {
  PyTypeObject* node_type;
  PyObject* numbers; // dict: node -> number

  bool is_node(PyObject* o) const { return PyObject_TypeCheck(o, node_type); }
  int32_t number_of(PyObject* o) const {
    PyObject* found = PyDict_GetItemWithError(numbers, o);
    if (!found && PyErr_Occurred()) throw python_error();
    if (!found) raise(PyExc_ValueError, "a node is used before it is defined");
    return static_cast<int32_t>(PyLong_AsLong(found));
  }
  bool holds_node(PyObject* o) const {
    if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
    PyObject** items = PySequence_Fast_ITEMS(o);
    for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(o); i < n; ++i)
      if (is_node(items[i])) return true;
    return false;
  }

  Arg read(PyObject* o, const at::SchemaType& type, const char* function,
           const char* argument) const {
    Arg arg;
    if (is_node(o)) {
      arg.kind = Arg::Kind::Node;
      arg.node = number_of(o);
    } else if (holds_node(o)) {
      arg.kind = Arg::Kind::List;
      at::SchemaType element = type;
      element.is_list = false;
      element.optional = type.element_optional;
      PyObject** items = PySequence_Fast_ITEMS(o);
      for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(o); i < n; ++i)
        arg.items.push_back(read(items[i], element, function, argument));
    } else {
      arg.value = to_ivalue(o, type, function, argument);
    }
    return arg;
  }

  // Numbers and nodes outside of any schema.
  Arg read_free(PyObject* o) const {
    Arg arg;
    if (is_node(o)) {
      arg.kind = Arg::Kind::Node;
      arg.node = number_of(o);
    } else if (PyBool_Check(o)) {
      arg.value = at::IValue(o == Py_True);
    } else if (PyLong_Check(o)) {
      const long long value = PyLong_AsLongLong(o);
      if (value == -1 && PyErr_Occurred()) throw python_error();
      arg.value = at::IValue(static_cast<int64_t>(value));
    } else if (PyFloat_Check(o)) {
      arg.value = at::IValue(PyFloat_AS_DOUBLE(o));
    } else if (o != Py_None) {
      raise(PyExc_NotImplementedError,
            c10::str("an argument of type ", type_name(o), " in a compiled graph"));
    }
    return arg;
  }
};

void read_call(const Reader& reader, Node& node, PyObject* args, PyObject* kwargs) {
  const at::FunctionSchema& schema = node.op->schema();
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(args));
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const at::SchemaArgument& argument = schema.arguments[i];
    PyObject* given = i < count ? PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)) : nullptr;
    if (!given) given = PyDict_GetItemString(kwargs, argument.name.c_str());
    if (given) {
      node.args.push_back(
          reader.read(given, argument.type, schema.name.c_str(), argument.name.c_str()));
    } else if (argument.has_default) {
      Arg arg;
      arg.value = argument.default_value;
      node.args.push_back(std::move(arg));
    } else {
      raise_type_error(
          c10::str(schema.name, "() is missing value for argument '", argument.name, "'"));
    }
  }
}

// A call of other graphs: (values that a loop carries, number of a graph, ...).
void read_graphs(const Reader& reader, Node& node, std::string_view sort, PyObject* what,
                 PyObject* args) {
  node.kind = sort == "graph"    ? Node::Kind::Graph
              : sort == "branch" ? Node::Kind::Branch
                                 : Node::Kind::Loop;
  for (Py_ssize_t i = 0, n = PyTuple_GET_SIZE(what); i < n; ++i) {
    const long number = PyLong_AsLong(PyTuple_GET_ITEM(what, i));
    if (number == -1 && PyErr_Occurred()) throw python_error();
    if (i == 0)
      node.index = number;
    else
      node.graphs.push_back(static_cast<int32_t>(number));
  }
  for (Py_ssize_t i = 0, n = PyTuple_GET_SIZE(args); i < n; ++i)
    node.args.push_back(reader.read_free(PyTuple_GET_ITEM(args, i)));
}

// (kind, name, what, args, kwargs) as torch._inductor.graph writes it.
Node read_node(const Reader& reader, PyObject* entry) {
  const char *kind = nullptr, *name = nullptr;
  PyObject *what = nullptr, *args = nullptr, *kwargs = nullptr;
  if (!PyArg_ParseTuple(entry, "ssOO!O!", &kind, &name, &what, &PyTuple_Type, &args, &PyDict_Type,
                        &kwargs))
    throw python_error();
  Node node;
  node.name = name;
  const std::string_view sort(kind);
  if (sort == "call") {
    const char *op = nullptr, *overload = nullptr;
    if (!PyArg_ParseTuple(what, "ss", &op, &overload)) throw python_error();
    node.op = at::Dispatcher::singleton().find(op, overload);
    if (!node.op) raise(PyExc_ValueError, c10::str("no operator ", op, ".", overload));
    read_call(reader, node, args, kwargs);
    return node;
  }
  if (PyTuple_Check(what)) {
    read_graphs(reader, node, sort, what, args);
    return node;
  }
  const long number = PyLong_AsLong(what);
  if (number == -1 && PyErr_Occurred()) throw python_error();
  node.index = number;
  if (sort == "input") {
    node.kind = Node::Kind::Input;
  } else if (sort == "constant") {
    node.kind = Node::Kind::Constant;
  } else {
    node.kind = sort == "item" ? Node::Kind::Item : Node::Kind::Number;
    node.number = static_cast<inductor::NumberOp>(number);
    for (Py_ssize_t i = 0, n = PyTuple_GET_SIZE(args); i < n; ++i)
      node.args.push_back(reader.read_free(PyTuple_GET_ITEM(args, i)));
  }
  return node;
}

// ---- compiled functions -------------------------------------------------------------------------
struct PyCompiled {
  PyObject_HEAD std::unique_ptr<Compiled> compiled;
  vectorcallfunc vectorcall;
};
PyTypeObject CompiledType = type_object("torch._C._inductor.Compiled");

std::vector<at::IValue> inputs_of(PyObject* list) {
  if (!PyList_Check(list)) raise_type_error("a compiled graph takes a list of its arguments");
  std::vector<at::IValue> inputs;
  const Py_ssize_t n = PyList_GET_SIZE(list);
  inputs.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) inputs.push_back(graph_value(PyList_GET_ITEM(list, i)));
  return inputs;
}

// ---- kernels that wait for a compiler -----------------------------------------------------------
PyObject* compiler_hook = nullptr; // called without arguments when some wait

void tell_compiler() {
  if (!compiler_hook) return;
  PyRef result(PyObject_CallNoArgs(compiler_hook));
  if (!result) PyErr_WriteUnraisable(compiler_hook); // the kernels run as they are
}

using SharedTier = std::shared_ptr<inductor::Tier>;
constexpr const char* kTierName = "torch._C._inductor.Tier";

void free_tier(PyObject* capsule) {
  delete static_cast<SharedTier*>(PyCapsule_GetPointer(capsule, kTierName));
}

// set_compiler(hook, elements, always_tried): who is told that kernels wait, and after how many
// elements they do; None: nobody, and none will.
PyObject* py_set_compiler(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* hook = nullptr;
    long long elements = 0;
    int always_tried = 0;
    if (!PyArg_ParseTuple(args, "OL|p:set_compiler", &hook, &elements, &always_tried))
      throw python_error();
    inductor::set_always_tried(always_tried != 0);
    PyObject* old = compiler_hook;
    compiler_hook = hook == Py_None ? nullptr : Py_NewRef(hook);
    Py_XDECREF(old);
    inductor::set_hot_after(compiler_hook ? elements : 0);
    Py_RETURN_NONE;
  });
}
// take_waiting(): pairs of a kernel and its text.
PyObject* py_take_waiting(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyRef list = checked(PyList_New(0));
    for (const SharedTier& tier : inductor::take_waiting()) {
      PyRef capsule = checked(PyCapsule_New(new SharedTier(tier), kTierName, free_tier));
      PyRef pair = checked(Py_BuildValue("(ON)", capsule.get(), wrap(tier->text())));
      check_status(PyList_Append(list.get(), pair.get()));
    }
    return list.release();
  });
}
// install(kernel, path, name): the function of a shared library for the kernel, on trial.
PyObject* py_install(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* capsule = nullptr;
    const char *path = nullptr, *name = nullptr;
    if (!PyArg_ParseTuple(args, "Oss:install", &capsule, &path, &name)) throw python_error();
    auto* tier = static_cast<SharedTier*>(PyCapsule_GetPointer(capsule, kTierName));
    if (!tier) throw python_error();
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) raise(PyExc_OSError, c10::str("cannot load a compiled kernel: ", dlerror()));
    void* found = dlsym(library, name);
    if (!found) raise(PyExc_OSError, "a compiled kernel without a function");
    (*tier)->install(reinterpret_cast<inductor::CompiledTile>(found));
    Py_RETURN_NONE;
  });
}
PyObject* py_rejected(PyObject*, PyObject*) {
  return PyLong_FromLongLong(inductor::rejected_kernels());
}
PyObject* py_isa(PyObject*, PyObject*) { return PyUnicode_FromString(inductor::isa_namespace()); }

PyObject* call_compiled(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    if (PyVectorcall_NARGS(nargsf) != 1 || kwnames)
      raise_type_error("a compiled graph takes one list of arguments");
    std::vector<at::IValue> inputs = graph_values(args[0]);
    const std::vector<at::IValue> outputs = run_compiled_graph(self, inputs);
    PyRef list = checked(PyList_New(static_cast<Py_ssize_t>(outputs.size())));
    for (size_t i = 0; i < outputs.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                      from_ivalue(outputs[i], nullptr).release());
    return list.release();
  });
}

// The plan for inputs like these, made if need be: its text, kernels, calls and bytes.
PyObject* py_prepare(PyObject* self, PyObject* list) {
  return guarded([&]() -> PyObject* {
    const std::vector<at::IValue> inputs = inputs_of(list);
    const auto plan = reinterpret_cast<PyCompiled*>(self)->compiled->prepare(inputs);
    long kernels = 0, calls = 0;
    for (const inductor::Step& step : plan->steps)
      (step.kind == inductor::Step::Kind::Call ? calls : kernels) += 1;
    return Py_BuildValue("(Nlln)", wrap(plan->text()), kernels, calls,
                         static_cast<Py_ssize_t>(plan->bytes_read + plan->bytes_written));
  });
}

// The steps of that plan: [(kind, name, numbers of the nodes it computes)].
PyObject* py_steps(PyObject* self, PyObject* list) {
  return guarded([&]() -> PyObject* {
    using Kind = inductor::Step::Kind;
    const auto kind_of = [](Kind kind) {
      return kind == Kind::Call ? "call" : kind == Kind::Fused ? "fused" : "reduce";
    };
    const std::vector<at::IValue> inputs = inputs_of(list);
    const auto plan = reinterpret_cast<PyCompiled*>(self)->compiled->prepare(inputs);
    PyRef found = checked(PyList_New(0));
    for (const inductor::Step& step : plan->steps) {
      PyRef nodes = checked(PyList_New(0));
      for (const int32_t node : step.nodes) {
        const PyRef number = checked(PyLong_FromLong(node));
        check_status(PyList_Append(nodes.get(), number.get()));
      }
      const PyRef entry =
          checked(Py_BuildValue("(sNN)", kind_of(step.kind), wrap(step.name), nodes.release()));
      check_status(PyList_Append(found.get(), entry.get()));
    }
    return found.release();
  });
}

// By plan: the graphs that are recorded of it, and why no more are; None for a plan that is not.
PyObject* py_recordings(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyRef found = checked(PyList_New(0));
    for (const auto& plan : reinterpret_cast<PyCompiled*>(self)->compiled->plans()) {
      PyRef entry(Py_NewRef(Py_None));
      if (plan->recordings) {
        const auto [count, refusal] = plan->recordings->state();
        entry = checked(Py_BuildValue("(nN)", static_cast<Py_ssize_t>(count), wrap(refusal)));
      }
      check_status(PyList_Append(found.get(), entry.get()));
    }
    return found.release();
  });
}

// How many kernels of its plans have no machine code yet.
PyObject* py_missing_kernels(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    size_t missing = 0;
    for (const auto& plan : reinterpret_cast<PyCompiled*>(self)->compiled->plans())
      if (plan->compilation) missing += plan->compilation->left();
    return PyLong_FromSize_t(missing);
  });
}

// The program as files of compiled models hold it; its constants stay out.
PyObject* py_encode(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const std::string found =
        inductor::encode_program(reinterpret_cast<PyCompiled*>(self)->compiled->program());
    return PyBytes_FromStringAndSize(found.data(), static_cast<Py_ssize_t>(found.size()));
  });
}

void dealloc_compiled(PyObject* self) {
  auto* object = reinterpret_cast<PyCompiled*>(self);
  object->compiled.~unique_ptr();
  Py_TYPE(self)->tp_free(self);
}
PyObject* get_boxed(PyObject*, void*) { return new_bool(true); }

// How often the graph was planned; sizes that an earlier plan serves are not counted.
PyObject* py_planned(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(reinterpret_cast<PyCompiled*>(self)->compiled->planned());
}

PyGetSetDef compiled_members[] = {{"_boxed_call", get_boxed, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef compiled_methods[] = {{"prepare", py_prepare, METH_O, nullptr},
                                  {"steps", py_steps, METH_O, nullptr},
                                  {"recordings", py_recordings, METH_NOARGS, nullptr},
                                  {"missing_kernels", py_missing_kernels, METH_NOARGS, nullptr},
                                  {"planned", py_planned, METH_NOARGS, nullptr},
                                  {"encode", py_encode, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

// build(nodes, outputs, constants, inputs, Node, numbers, record=0, background=False)
PyObject* py_build(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *nodes = nullptr, *outputs = nullptr, *constants = nullptr, *type = nullptr,
             *numbers = nullptr;
    Py_ssize_t inputs = 0;
    int record = 0, background = 0;
    if (!PyArg_ParseTuple(args, "O!O!O!nO!O!|ip:build", &PyList_Type, &nodes, &PyTuple_Type,
                          &outputs, &PyList_Type, &constants, &inputs, &PyType_Type, &type,
                          &PyDict_Type, &numbers, &record, &background))
      throw python_error();
    const Reader reader{reinterpret_cast<PyTypeObject*>(type), numbers};
    Program program;
    program.inputs = inputs;
    program.record = static_cast<Program::Record>(record);
    program.compile_in_background = background != 0;
    if (background != 0) {
      [[maybe_unused]] static const int registered = Py_AtExit(inductor::stop_compiling);
    }
    for (Py_ssize_t i = 0, n = PyList_GET_SIZE(nodes); i < n; ++i) {
      program.nodes.push_back(read_node(reader, PyList_GET_ITEM(nodes, i)));
      const Node& node = program.nodes.back();
      if (node.op) program.note(*node.op);
    }
    for (Py_ssize_t i = 0, n = PyTuple_GET_SIZE(outputs); i < n; ++i)
      program.outputs.push_back(reader.read_free(PyTuple_GET_ITEM(outputs, i)));
    for (Py_ssize_t i = 0, n = PyList_GET_SIZE(constants); i < n; ++i) {
      PyObject* constant = PyList_GET_ITEM(constants, i);
      if (!is_tensor(constant)) raise_type_error("constants of a compiled graph are tensors");
      program.constants.push_back(tensor_of(constant));
    }
    PyRef self = checked(CompiledType.tp_alloc(&CompiledType, 0));
    auto* object = reinterpret_cast<PyCompiled*>(self.get());
    object->vectorcall = call_compiled;
    new (&object->compiled) std::unique_ptr<Compiled>(new Compiled(std::move(program)));
    return self.release();
  });
}

PyMethodDef functions[] = {
    {"build", py_build, METH_VARARGS,
     "build(nodes, outputs, constants, inputs, Node, numbers, record=0, background=False): a "
     "compiled function of a list"},
    {"set_compiler", py_set_compiler, METH_VARARGS,
     "set_compiler(hook, elements, always_tried=False): who compiles kernels that ran over so many "
     "elements"},
    {"take_waiting", py_take_waiting, METH_NOARGS, "take_waiting(): [(kernel, text), ...]"},
    {"install", py_install, METH_VARARGS,
     "install(kernel, path, name): a compiled form of a kernel"},
    {"rejected_kernels", py_rejected, METH_NOARGS, "compiled kernels whose bits differed"},
    {"isa", py_isa, METH_NOARGS, "the namespace of this machine's loops"},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "torch._C._inductor",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

} // namespace

inductor::Compiled* compiled_of(PyObject* o) {
  if (!PyObject_TypeCheck(o, &CompiledType)) return nullptr;
  return reinterpret_cast<PyCompiled*>(o)->compiled.get();
}

void tell_of_waiting_kernels() {
  if (C10_UNLIKELY(inductor::kernels_wait())) tell_compiler();
}

at::IValue graph_value(PyObject* o) {
  if (is_tensor(o)) return tensor_of(o);
  if (PyBool_Check(o)) return o == Py_True;
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  if (o == Py_None) return at::IValue();
  const long long value = PyLong_AsLongLong(o);
  if (value == -1 && PyErr_Occurred()) throw python_error();
  return static_cast<int64_t>(value);
}

std::vector<at::IValue> graph_values(PyObject* list) {
  std::vector<at::IValue> values = inputs_of(list);
  check_status(PyList_SetSlice(list, 0, PyList_GET_SIZE(list), nullptr));
  return values;
}

std::vector<at::IValue> run_compiled_graph(PyObject* graph, std::vector<at::IValue>& inputs) {
  std::vector<at::IValue> outputs = reinterpret_cast<PyCompiled*>(graph)->compiled->run(inputs);
  tell_of_waiting_kernels();
  return outputs;
}

bool init_inductor(PyObject* module) {
  CompiledType.tp_basicsize = sizeof(PyCompiled);
  CompiledType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  CompiledType.tp_vectorcall_offset = offsetof(PyCompiled, vectorcall);
  CompiledType.tp_call = PyVectorcall_Call;
  CompiledType.tp_dealloc = dealloc_compiled;
  CompiledType.tp_getset = compiled_members;
  CompiledType.tp_methods = compiled_methods;
  PyRef space(PyModule_Create(&definition));
  return space && add_type(space.get(), &CompiledType) && add_flex_functions(space.get()) &&
         PyModule_AddObjectRef(module, "_inductor", space.get()) == 0;
}

} // namespace torch::python
