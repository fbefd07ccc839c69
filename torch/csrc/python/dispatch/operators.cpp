// torch._C._Operator: one overload of an operator, callable. torch._ops wraps these; nothing here
// is on the path of torch.add and its like, which have typed bindings.
#include <torch/csrc/python/dispatch/operators.h>

#include <ATen/functorch/Interpret.h>
#include <torch/csrc/python/dispatch/dispatch_keys.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/dispatch/schema_type.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch::python {
namespace {

PyTypeObject OperatorType = type_object("torch._C._Operator");

struct PyOperator {
  PyObject_HEAD const at::OperatorEntry* op;
  vectorcallfunc vectorcall;
};

const at::OperatorEntry& entry_of(PyObject* o) { return *reinterpret_cast<PyOperator*>(o)->op; }

// ---- calls --------------------------------------------------------------------------------------
void collect_overloads(PyObject* const* args, Py_ssize_t n, Overloads& overloads) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    overloads.add(args[i]);
    if (PyTuple_Check(args[i]) || PyList_Check(args[i])) overloads.add_sequence(args[i]);
  }
}

// Runs __torch_function__ where something asks for it. The function is `packet`, or the OpOverload.
bool run_overrides(const at::OperatorEntry& op, PyObject* packet, PyObject* const* args,
                   Py_ssize_t nargs, PyObject* kwnames, PyObject** result) {
  Overloads overloads;
  const Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (overrides_enabled()) collect_overloads(args, all, overloads);
  if (overloads.empty() && !function_mode_active()) return false;
  PyRef func = packet ? PyRef::borrow(packet) : overload_object(op);
  PyRef tuple = checked(PyTuple_New(nargs));
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(tuple.get(), i, args[i]);
  }
  PyRef kwargs = checked(PyDict_New());
  for (Py_ssize_t i = nargs; i < all; ++i) {
    check_status(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i - nargs), args[i]));
  }
  *result =
      run_torch_function(func.get(), overloads, tuple.get(), kwargs.get(), op.full_name().c_str());
  return true;
}

std::string stack_context(const at::OperatorEntry& op, const at::Stack& stack) {
  std::string out = c10::str("\n  in ", op.full_name(), "(");
  const at::FunctionSchema& schema = op.schema();
  bool comma = false;
  for (size_t i = 0; i < schema.arguments.size() && i < stack.size(); ++i) {
    if (!stack[i].isTensor()) continue;
    if (comma) out += ", ";
    comma = true;
    out += schema.arguments[i].name + ": ";
    append(out, stack[i].toTensor());
  }
  return out + ")";
}

PyObject* run_boxed(const at::OperatorEntry& op, at::Stack& stack,
                    const c10::DispatchKeySet* keys) {
  at::Stack given = stack;
  try {
    if (keys) {
      op.redispatch_boxed(*keys, stack);
    } else {
      op.call_boxed(stack);
    }
    return result_from_stack(op.schema(), stack).release();
  } catch (const python_error&) {
    set_error_from_exception();
  } catch (...) {
    set_error_from_exception(stack_context(op, given));
  }
  return nullptr;
}

PyObject* operator_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    const at::OperatorEntry& op = entry_of(self);
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject* result = nullptr;
    if (run_overrides(op, nullptr, args, nargs, kwnames, &result)) return result;
    at::Stack stack = stack_from_call(op.schema(), args, nargs, kwnames);
    return run_boxed(op, stack, nullptr);
  });
}

// redispatch_boxed(keyset, *args, **kwargs): the kernels of `keyset` only.
PyObject* operator_redispatch(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    if (nargs < 1) raise_type_error("redispatch_boxed() needs a DispatchKeySet");
    const at::OperatorEntry& op = entry_of(self);
    const c10::DispatchKeySet keys = key_set_from(args[0]);
    at::Stack stack = stack_from_call(op.schema(), args + 1, nargs - 1, kwnames);
    return run_boxed(op, stack, &keys);
  });
}

// The operator's definition in terms of others, or null.
void* composite_kernel(const at::OperatorEntry& op) {
  for (const at::KernelInit* k = op.kernels; k && k->key != c10::DispatchKey::Undefined; ++k) {
    if (k->key == c10::DispatchKey::CompositeImplicitAutograd) return k->fn;
  }
  return nullptr;
}

// decompose(*args, **kwargs): runs that definition, or returns NotImplemented.
PyObject* operator_decompose(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                             PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    const at::OperatorEntry& op = entry_of(self);
    void* kernel = composite_kernel(op);
    if (!kernel) Py_RETURN_NOTIMPLEMENTED;
    at::Stack stack = stack_from_call(op.schema(), args, nargs, kwnames);
    const c10::DispatchKeySet keys = c10::DispatchKeySet(c10::DispatchKey::CPU);
    op.boxing->boxed_from_unboxed(kernel, at::KernelContext{&op, keys}, stack);
    return result_from_stack(op.schema(), stack).release();
  });
}

// ---- properties ---------------------------------------------------------------------------------
PyObject* operator_name(PyObject* self, void*) { return PyUnicode_FromString(entry_of(self).name); }
PyObject* operator_overload(PyObject* self, void*) {
  return PyUnicode_FromString(entry_of(self).overload);
}
PyObject* operator_schema(PyObject* self, void*) {
  return guarded([&] { return new_schema(entry_of(self).schema()); });
}
PyObject* operator_tags(PyObject* self, void*) {
  return guarded([&] {
    PyRef out = checked(PyList_New(0));
    auto add = [&](std::string_view tag) {
      while (!tag.empty() && tag.front() == ' ') tag.remove_prefix(1);
      if (tag.empty()) return;
      PyRef text = checked(wrap(std::string(tag)));
      check_status(PyList_Append(out.get(), text.get()));
    };
    std::string_view rest(entry_of(self).tags_text ? entry_of(self).tags_text : "");
    for (size_t comma; (comma = rest.find(',')) != rest.npos; rest.remove_prefix(comma + 1)) {
      add(rest.substr(0, comma));
    }
    add(rest);
    if (const at::OperatorState* state = entry_of(self).state.load()) {
      for (const std::string& tag : state->tags) add(tag);
    }
    return out.release();
  });
}
PyObject* operator_is_view(PyObject* self, void*) {
  return guarded([&] { return new_bool(entry_of(self).schema().is_view()); });
}
PyObject* operator_repr(PyObject* self) {
  return guarded([&] { return wrap("<operator " + entry_of(self).full_name() + ">"); });
}
PyObject* operator_has_kernel(PyObject* self, PyObject* key) {
  return guarded([&] { return new_bool(entry_of(self).has_kernel(key_from(key))); });
}
PyObject* operator_has_kernel_for(PyObject* self, PyObject* key) {
  return guarded([&] { return new_bool(entry_of(self).has_kernel_for(key_from(key))); });
}

PyMethodDef operator_methods[] = {{"redispatch_boxed", as_method(operator_redispatch),
                                   METH_FASTCALL | METH_KEYWORDS,
                                   "redispatch_boxed(keyset, *args, **kwargs)"},
                                  {"decompose", as_method(operator_decompose),
                                   METH_FASTCALL | METH_KEYWORDS, "decompose(*args, **kwargs)"},
                                  {"has_kernel_for_dispatch_key", operator_has_kernel, METH_O,
                                   "Whether a kernel is registered for exactly this key."},
                                  {"has_computed_kernel_for_dispatch_key", operator_has_kernel_for,
                                   METH_O, "Whether a call with this key would find a kernel."},
                                  {nullptr, nullptr, 0, nullptr}};
PyGetSetDef operator_properties[] = {
    {"name", operator_name, nullptr, "\"aten::add\"", nullptr},
    {"overload_name", operator_overload, nullptr, "\"Tensor\", or an empty string", nullptr},
    {"schema", operator_schema, nullptr, nullptr, nullptr},
    {"tags", operator_tags, nullptr, nullptr, nullptr},
    {"is_view", operator_is_view, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* new_operator(const at::OperatorEntry* op) {
  auto* self = PyObject_New(PyOperator, &OperatorType);
  if (!self) throw python_error();
  self->op = op;
  self->vectorcall = operator_call;
  return reinterpret_cast<PyObject*>(self);
}

// ---- packets ------------------------------------------------------------------------------------
// In which order overloads are tried: those on tensors before those on numbers, out= forms last.
int overload_rank(const at::OperatorEntry& op) {
  const std::string_view overload(op.overload);
  if (overload.find("out") != overload.npos) return 3;
  if (overload.find("Scalar") != overload.npos) return 2;
  return overload.empty() ? 0 : 1;
}

// _call_overloads(packet, operators, *args, **kwargs): the first operator whose schema takes the
// call.
PyObject* py_call_overloads(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    if (nargs < 2 || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[1]) == 0) {
      raise_type_error("_call_overloads() needs a packet and a tuple of operators");
    }
    std::vector<const at::OperatorEntry*> ops;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); ++i) {
      PyObject* item = PyTuple_GET_ITEM(args[1], i);
      if (Py_TYPE(item) != &OperatorType) raise_type_error("expected operators");
      ops.push_back(&entry_of(item));
    }
    std::stable_sort(ops.begin(), ops.end(), [](const auto* a, const auto* b) {
      return overload_rank(*a) < overload_rank(*b);
    });
    PyObject* result = nullptr;
    if (run_overrides(*ops[0], args[0], args + 2, nargs - 2, kwnames, &result)) return result;
    std::string refusals;
    for (const at::OperatorEntry* op : ops) {
      at::Stack stack;
      try {
        stack = stack_from_call(op->schema(), args + 2, nargs - 2, kwnames);
      } catch (const python_error&) {
        PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
        PyErr_Fetch(&type, &value, &trace);
        PyRef t(type), v(value), b(trace);
        refusals += "\n" + (v ? text_of(v.get()) : std::string()) + "\n";
        continue;
      }
      return run_boxed(*op, stack, nullptr);
    }
    raise(PyExc_RuntimeError,
          "Overloaded torch operator invoked from Python failed to match any schema:" + refusals);
  });
}

// ---- functions of the module --------------------------------------------------------------------
const at::OperatorEntry* find_operator(const char* name, const char* overload) {
  const at::OperatorEntry* op = at::Dispatcher::singleton().find(name, overload);
  TORCH_CHECK(op != nullptr, "No such operator ", name, overload[0] ? "." : "", overload);
  return op;
}

PyObject* py_get_operation(PyObject*, PyObject* args) {
  const char *name = nullptr, *overload = "";
  if (!PyArg_ParseTuple(args, "s|s", &name, &overload)) return nullptr;
  return guarded([&] { return new_operator(find_operator(name, overload)); });
}
PyObject* py_get_schema(PyObject*, PyObject* args) {
  const char *name = nullptr, *overload = "";
  if (!PyArg_ParseTuple(args, "s|s", &name, &overload)) return nullptr;
  return guarded([&] { return new_schema(find_operator(name, overload)->schema()); });
}
// The overload names of an operator; an empty list when there is no such operator.
PyObject* py_overload_names(PyObject*, PyObject* name) {
  return guarded([&] {
    if (!PyUnicode_Check(name)) raise_type_error("expected the name of an operator");
    PyRef out = checked(PyList_New(0));
    for (const at::OperatorEntry* op : at::Dispatcher::singleton().overloads(utf8(name))) {
      PyRef text = checked(PyUnicode_FromString(op->overload));
      check_status(PyList_Append(out.get(), text.get()));
    }
    return out.release();
  });
}
PyObject* py_all_names(PyObject*, PyObject*) {
  return guarded([] {
    PyRef out = checked(PyList_New(0));
    for (const at::OperatorEntry* op : at::Dispatcher::singleton().all()) {
      PyRef text = checked(wrap(op->full_name()));
      check_status(PyList_Append(out.get(), text.get()));
    }
    return out.release();
  });
}

// Whether an operator has a kernel of its own for a key; of the two kinds of batching, the one that
// vmap uses.
bool registered_for(const at::OperatorEntry& op, const std::string& key) {
  using at::functorch::BatchedBy;
  if (key == "FuncTorchBatched") return at::functorch::batched_by(op) == BatchedBy::Rule;
  if (key == "FuncTorchBatchedDecomposition")
    return at::functorch::batched_by(op) == BatchedBy::Definition;
  return op.has_kernel(c10::parseDispatchKey(key));
}
// _dispatch_get_registrations_for_dispatch_key(key=""): the names of the operators that have a
// kernel for it; all names without a key.
PyObject* py_registrations(PyObject*, PyObject* args) {
  const char* key = "";
  if (!PyArg_ParseTuple(args, "|s", &key)) return nullptr;
  return guarded([&] {
    PyRef out = checked(PyList_New(0));
    for (const at::OperatorEntry* op : at::Dispatcher::singleton().all()) {
      if (*key != 0 && !registered_for(*op, key)) continue;
      PyRef text = checked(wrap(op->full_name()));
      check_status(PyList_Append(out.get(), text.get()));
    }
    return out.release();
  });
}

const at::OperatorEntry* find_full(const std::string& full) {
  const size_t dot = full.find('.', full.find("::") == full.npos ? 0 : full.find("::"));
  const std::string name = full.substr(0, dot);
  const std::string overload = dot == full.npos ? "" : full.substr(dot + 1);
  return at::Dispatcher::singleton().find(name, overload);
}

// _dispatch_has_kernel("aten::add.Tensor")
PyObject* py_has_kernel(PyObject*, PyObject* name) {
  return guarded([&] {
    if (!PyUnicode_Check(name)) raise_type_error("expected the name of an operator");
    return new_bool(find_full(std::string(utf8(name))) != nullptr);
  });
}
template <bool kComputed> PyObject* py_has_kernel_for_key(PyObject*, PyObject* args) {
  const char* name = nullptr;
  PyObject* key = nullptr;
  if (!PyArg_ParseTuple(args, "sO", &name, &key)) return nullptr;
  return guarded([&] {
    const at::OperatorEntry* op = find_full(name);
    TORCH_CHECK(op != nullptr, "operator ", name, " does not exist");
    const c10::DispatchKey parsed = key_from(key);
    return new_bool(kComputed ? op->has_kernel_for(parsed) : op->has_kernel(parsed));
  });
}

PyMethodDef functions[] = {
    {"_get_operation", py_get_operation, METH_VARARGS, "_get_operation(name, overload='')"},
    {"_get_schema", py_get_schema, METH_VARARGS, "_get_schema(name, overload='')"},
    {"_get_overload_names", py_overload_names, METH_O, "_get_overload_names(name)"},
    {"_call_overloads", as_method(py_call_overloads), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_dispatch_get_all_op_names", py_all_names, METH_NOARGS, nullptr},
    {"_dispatch_get_registrations_for_dispatch_key", py_registrations, METH_VARARGS, nullptr},
    {"_dispatch_has_kernel", py_has_kernel, METH_O, nullptr},
    {"_dispatch_has_kernel_for_dispatch_key", py_has_kernel_for_key<false>, METH_VARARGS, nullptr},
    {"_dispatch_has_computed_kernel_for_dispatch_key", py_has_kernel_for_key<true>, METH_VARARGS,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

PyRef overload_object(const at::OperatorEntry& op) {
  static auto* cache = new std::unordered_map<const at::OperatorEntry*, PyObject*>;
  const auto known = cache->find(&op);
  if (known != cache->end()) return PyRef::borrow(known->second);
  static PyObject* ops = nullptr;
  if (!cached_attribute(ops, "torch", "ops")) throw python_error();
  const std::string name = op.name;
  const size_t colons = name.find("::");
  PyRef space = checked(PyObject_GetAttrString(ops, name.substr(0, colons).c_str()));
  PyRef packet = checked(PyObject_GetAttrString(space.get(), name.substr(colons + 2).c_str()));
  PyRef overload =
      checked(PyObject_GetAttrString(packet.get(), op.overload[0] ? op.overload : "default"));
  Py_INCREF(overload.get());
  cache->emplace(&op, overload.get());
  return overload;
}

bool init_operators(PyObject* module) {
  OperatorType.tp_basicsize = sizeof(PyOperator);
  OperatorType.tp_flags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  OperatorType.tp_vectorcall_offset = offsetof(PyOperator, vectorcall);
  OperatorType.tp_call = PyVectorcall_Call;
  OperatorType.tp_repr = operator_repr;
  OperatorType.tp_methods = operator_methods;
  OperatorType.tp_getset = operator_properties;
  return add_type(module, &OperatorType) && init_schema_types(module) &&
         PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
