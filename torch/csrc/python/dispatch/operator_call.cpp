// The types of operator_call.h. A call checks its arguments against the schema, boxes them on a
// stack that is kept between calls, and runs the kernel through the adapters of the signature;
// torch.add and its like have typed bindings and do not come here.
#include <torch/csrc/python/dispatch/operator_call.h>

#include <torch/csrc/python/dispatch/dispatch_keys.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/dispatch/operators.h>
#include <torch/csrc/python/dispatch/schema_type.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <ATen/core/BoxedCall.h>

#include <algorithm>
#include <string>
#include <vector>

namespace torch::python {
namespace {

PyTypeObject OperatorType = type_object("torch._C._Operator");
PyTypeObject PacketType = type_object("torch._C._OperatorPacket");

// An entry and its schema live as long as the process.
struct Overload {
  const at::OperatorEntry* op;
  const at::FunctionSchema* schema;
};

struct PyOperator {
  PyObject_HEAD Overload overload;
  vectorcallfunc vectorcall;
};

const at::OperatorEntry& entry_of(PyObject* o) {
  return *reinterpret_cast<PyOperator*>(o)->overload.op;
}

// The arguments of a vectorcall.
struct Arguments {
  PyObject* const* values;
  Py_ssize_t count;
  PyObject* names;
  Py_ssize_t all() const { return count + (names ? PyTuple_GET_SIZE(names) : 0); }
};

// ---- calls --------------------------------------------------------------------------------------
// Stacks keep their memory between calls. A kernel may call operators, so there can be several in
// use; the GIL guards the list of those that are not.
class KeptStack {
 public:
  KeptStack() : stack_(spare_count ? spare[--spare_count] : new at::Stack) {}
  ~KeptStack() {
    stack_->clear();
    if (spare_count < kMost) {
      spare[spare_count++] = stack_;
    } else {
      delete stack_;
    }
  }
  KeptStack(const KeptStack&) = delete;
  KeptStack& operator=(const KeptStack&) = delete;
  at::Stack& get() { return *stack_; }

 private:
  static constexpr int kMost = 8;
  static inline at::Stack* spare[kMost];
  static inline int spare_count = 0;
  at::Stack* stack_;
};

void collect_overloads(const Arguments& args, Overloads& overloads) {
  for (Py_ssize_t i = 0, n = args.all(); i < n; ++i) {
    overloads.add(args.values[i]);
    if (PyTuple_Check(args.values[i]) || PyList_Check(args.values[i])) {
      overloads.add_sequence(args.values[i]);
    }
  }
}

// Tensors of the plain classes and numbers override nothing.
bool may_override(const Arguments& args) {
  for (Py_ssize_t i = 0, n = args.all(); i < n; ++i) {
    PyObject* o = args.values[i];
    if (!is_plain_tensor(o) && !PyFloat_CheckExact(o) && !PyLong_CheckExact(o)) return true;
  }
  return false;
}

// Runs __torch_function__ of `func` where something asks for it.
bool run_overrides(PyObject* func, const at::OperatorEntry& op, const Arguments& args,
                   PyObject** result) {
  const bool mode = function_mode_active();
  if (C10_LIKELY(!mode && !may_override(args))) return false;
  Overloads overloads;
  if (overrides_enabled()) collect_overloads(args, overloads);
  if (overloads.empty() && !mode) return false;
  // A bare _Operator shows itself as torch.ops does.
  PyRef shown = Py_TYPE(func) == &OperatorType ? overload_object(op) : PyRef::borrow(func);
  PyRef tuple = checked(PyTuple_New(args.count));
  for (Py_ssize_t i = 0; i < args.count; ++i) {
    Py_INCREF(args.values[i]);
    PyTuple_SET_ITEM(tuple.get(), i, args.values[i]);
  }
  PyRef kwargs = checked(PyDict_New());
  for (Py_ssize_t i = args.count; i < args.all(); ++i) {
    PyObject* name = PyTuple_GET_ITEM(args.names, i - args.count);
    check_status(PyDict_SetItem(kwargs.get(), name, args.values[i]));
  }
  *result =
      run_torch_function(shown.get(), overloads, tuple.get(), kwargs.get(), op.full_name().c_str());
  return true;
}

// "in aten::add.Tensor(self: float32[2] cpu, ...)" for a call that failed. The arguments are read
// again, since the stack belongs to the kernel.
std::string call_context(const Overload& target, const Arguments& args) noexcept {
  if (PyErr_Occurred()) return {};
  try {
    at::Stack stack;
    stack_from_call(*target.schema, args.values, args.count, args.names, stack);
    std::string out = c10::str("\n  in ", target.op->full_name(), "(");
    bool comma = false;
    for (size_t i = 0; i < stack.size(); ++i) {
      if (!stack[i].isTensor()) continue;
      if (comma) out += ", ";
      comma = true;
      out += target.schema->arguments[i].name + ": ";
      append(out, stack[i].toTensor());
    }
    return out + ")";
  } catch (...) {
    PyErr_Clear();
    return {};
  }
}

// Calls the operator with the arguments on the stack, which `args` were read to.
PyObject* run_stack(const Overload& target, const Arguments& args, at::Stack& stack,
                    const c10::DispatchKeySet* keys) {
  try {
    if (keys) {
      target.op->redispatch_boxed(*keys, stack);
    } else {
      at::call_boxed(*target.op, target.schema->arguments.size(), stack);
    }
    if (stack.size() == 1 && stack[0].isTensor()) return wrap(stack[0].toTensor());
    return result_from_stack(*target.schema, stack).release();
  } catch (const python_error&) {
    set_error_from_exception();
  } catch (...) {
    set_error_from_exception(call_context(target, args));
  }
  return nullptr;
}

PyObject* operator_call(PyObject* self, PyObject* const* values, size_t nargsf, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Overload& target = reinterpret_cast<PyOperator*>(self)->overload;
    const Arguments args{values, PyVectorcall_NARGS(nargsf), names};
    PyObject* result = nullptr;
    if (run_overrides(self, *target.op, args, &result)) return result;
    KeptStack stack;
    stack_from_call(*target.schema, values, args.count, names, stack.get());
    return run_stack(target, args, stack.get(), nullptr);
  });
}

// redispatch_boxed(keyset, *args, **kwargs): the kernels of `keyset` only.
PyObject* operator_redispatch(PyObject* self, PyObject* const* values, Py_ssize_t nargs,
                              PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (nargs < 1) raise_type_error("redispatch_boxed() needs a DispatchKeySet");
    const Overload& target = reinterpret_cast<PyOperator*>(self)->overload;
    const c10::DispatchKeySet keys = key_set_from(values[0]);
    const Arguments args{values + 1, nargs - 1, names};
    KeptStack stack;
    stack_from_call(*target.schema, args.values, args.count, names, stack.get());
    return run_stack(target, args, stack.get(), &keys);
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
PyObject* operator_decompose(PyObject* self, PyObject* const* values, Py_ssize_t nargs,
                             PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Overload& target = reinterpret_cast<PyOperator*>(self)->overload;
    void* kernel = composite_kernel(*target.op);
    if (!kernel) Py_RETURN_NOTIMPLEMENTED;
    KeptStack stack;
    stack_from_call(*target.schema, values, nargs, names, stack.get());
    const c10::DispatchKeySet keys = c10::DispatchKeySet(c10::DispatchKey::CPU);
    target.op->boxing->boxed_from_unboxed(kernel, at::KernelContext{target.op, keys}, stack.get());
    return result_from_stack(*target.schema, stack.get()).release();
  });
}

// ---- one overload -------------------------------------------------------------------------------
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

// _Operator(operator, ...): the same operator as an object of a derived class. Further arguments
// are for the class's own __init__.
PyObject* operator_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* given = PyTuple_GET_ITEM(args, i);
      if (!PyObject_TypeCheck(given, &OperatorType)) continue;
      auto* self = reinterpret_cast<PyOperator*>(checked(type->tp_alloc(type, 0)).release());
      self->overload = reinterpret_cast<PyOperator*>(given)->overload;
      self->vectorcall = operator_call;
      return reinterpret_cast<PyObject*>(self);
    }
    raise_type_error(c10::str(type->tp_name, "() needs the operator it stands for"));
  });
}

// Note [Derived callables]
// Up to CPython 3.11 a class written in Python does not take over the vectorcall of its base, since
// __call__ may be assigned to the class later. torch._ops derives two such classes and assigns
// nothing, so that the flag is set for every class that did not define __call__.
PyObject* keep_vectorcall(PyObject* type, PyObject* args, PyObject* kwargs) {
  auto* derived = reinterpret_cast<PyTypeObject*>(type);
  if (PyTuple_GET_SIZE(args) > 0 || (kwargs && PyDict_GET_SIZE(kwargs) > 0)) {
    PyErr_SetString(PyExc_TypeError, "operator classes take no keyword arguments");
    return nullptr;
  }
  if (derived->tp_call == PyVectorcall_Call) derived->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  return new_none();
}
constexpr int kClassMethod = METH_VARARGS | METH_KEYWORDS | METH_CLASS;

PyMethodDef operator_methods[] = {
    {"__init_subclass__", as_method(keep_vectorcall), kClassMethod, nullptr},
    {"redispatch_boxed", as_method(operator_redispatch), METH_FASTCALL | METH_KEYWORDS,
     "redispatch_boxed(keyset, *args, **kwargs)"},
    {"decompose", as_method(operator_decompose), METH_FASTCALL | METH_KEYWORDS,
     "decompose(*args, **kwargs)"},
    {"has_kernel_for_dispatch_key", operator_has_kernel, METH_O,
     "Whether a kernel is registered for exactly this key."},
    {"has_computed_kernel_for_dispatch_key", operator_has_kernel_for, METH_O,
     "Whether a call with this key would find a kernel."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef operator_properties[] = {
    {"name", operator_name, nullptr, "\"aten::add\"", nullptr},
    {"overload_name", operator_overload, nullptr, "\"Tensor\", or an empty string", nullptr},
    {"schema", operator_schema, nullptr, nullptr, nullptr},
    {"tags", operator_tags, nullptr, nullptr, nullptr},
    {"is_view", operator_is_view, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- all overloads of a name --------------------------------------------------------------------
struct PyPacket {
  PyObject_HEAD std::string* name;
  std::vector<Overload>* overloads; // in the order in which they are tried
  vectorcallfunc vectorcall;
};

// Overloads on tensors are tried before those on numbers, out= forms last.
int overload_rank(const at::OperatorEntry& op) {
  const std::string_view overload(op.overload);
  if (overload.find("out") != overload.npos) return 3;
  if (overload.find("Scalar") != overload.npos) return 2;
  return overload.empty() ? 0 : 1;
}

std::vector<Overload> ranked_overloads(const std::string& name) {
  std::vector<Overload> out;
  for (const at::OperatorEntry* op : at::Dispatcher::singleton().overloads(name)) {
    out.push_back({op, &op->schema()});
  }
  std::stable_sort(out.begin(), out.end(), [](const Overload& a, const Overload& b) {
    return overload_rank(*a.op) < overload_rank(*b.op);
  });
  return out;
}

std::string take_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyRef t(type), v(value), b(trace);
  return v ? text_of(v.get()) : std::string();
}

// The first overload whose schema takes the call runs; false when there is none.
bool try_overloads(const std::vector<Overload>& overloads, const Arguments& args,
                   PyObject** result) {
  for (const Overload& target : overloads) {
    if (!call_fits(*target.schema, args.values, args.count, args.names)) continue;
    KeptStack stack;
    try {
      stack_from_call(*target.schema, args.values, args.count, args.names, stack.get());
    } catch (const python_error&) {
      take_error(); // raised again by refuse(), unless another overload takes the call
      continue;
    }
    *result = run_stack(target, args, stack.get(), nullptr);
    return true;
  }
  return false;
}

// Raises why each overload refuses the call.
[[noreturn]] void refuse(const std::vector<Overload>& overloads, const Arguments& args) {
  std::string why;
  for (const Overload& target : overloads) {
    at::Stack stack;
    try {
      stack_from_call(*target.schema, args.values, args.count, args.names, stack);
    } catch (const python_error&) {
      if (overloads.size() == 1) throw;
      why += "\n" + take_error() + "\n";
    }
  }
  raise(PyExc_RuntimeError,
        "Overloaded torch operator invoked from Python failed to match any schema:" + why);
}

PyObject* packet_call(PyObject* self, PyObject* const* values, size_t nargsf, PyObject* names) {
  return guarded([&]() -> PyObject* {
    auto* packet = reinterpret_cast<PyPacket*>(self);
    const Arguments args{values, PyVectorcall_NARGS(nargsf), names};
    if (packet->overloads->empty()) {
      raise(PyExc_RuntimeError, "No such operator " + *packet->name);
    }
    PyObject* result = nullptr;
    if (run_overrides(self, *packet->overloads->front().op, args, &result)) return result;
    if (try_overloads(*packet->overloads, args, &result)) return result;
    // Overloads may have been defined since the packet was made.
    std::vector<Overload> now = ranked_overloads(*packet->name);
    if (now.size() != packet->overloads->size()) {
      packet->overloads->swap(now);
      if (try_overloads(*packet->overloads, args, &result)) return result;
    }
    refuse(*packet->overloads, args);
  });
}

// _OperatorPacket(name, ...): all overloads of "aten::add". Further arguments are for the class's
// own __init__.
PyObject* packet_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (PyTuple_GET_SIZE(args) == 0 || !PyUnicode_Check(PyTuple_GET_ITEM(args, 0))) {
      raise_type_error(c10::str(type->tp_name, "() needs the qualified name of an operator"));
    }
    auto name = std::make_unique<std::string>(utf8(PyTuple_GET_ITEM(args, 0)));
    auto overloads = std::make_unique<std::vector<Overload>>(ranked_overloads(*name));
    auto* self = reinterpret_cast<PyPacket*>(checked(type->tp_alloc(type, 0)).release());
    self->name = name.release();
    self->overloads = overloads.release();
    self->vectorcall = packet_call;
    return reinterpret_cast<PyObject*>(self);
  });
}

void packet_dealloc(PyObject* o) {
  auto* self = reinterpret_cast<PyPacket*>(o);
  delete self->name;
  delete self->overloads;
  Py_TYPE(o)->tp_free(o);
}

PyMethodDef packet_methods[] = {
    {"__init_subclass__", as_method(keep_vectorcall), kClassMethod, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

PyObject* new_operator(const at::OperatorEntry& op) {
  auto* self =
      reinterpret_cast<PyOperator*>(checked(OperatorType.tp_alloc(&OperatorType, 0)).release());
  self->overload = {&op, &op.schema()};
  self->vectorcall = operator_call;
  return reinterpret_cast<PyObject*>(self);
}

bool init_operator_types(PyObject* module) {
  constexpr auto flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE;
  OperatorType.tp_basicsize = sizeof(PyOperator);
  OperatorType.tp_flags = flags;
  OperatorType.tp_vectorcall_offset = offsetof(PyOperator, vectorcall);
  OperatorType.tp_call = PyVectorcall_Call;
  OperatorType.tp_new = operator_new;
  OperatorType.tp_repr = operator_repr;
  OperatorType.tp_methods = operator_methods;
  OperatorType.tp_getset = operator_properties;
  PacketType.tp_basicsize = sizeof(PyPacket);
  PacketType.tp_flags = flags;
  PacketType.tp_vectorcall_offset = offsetof(PyPacket, vectorcall);
  PacketType.tp_call = PyVectorcall_Call;
  PacketType.tp_new = packet_new;
  PacketType.tp_dealloc = packet_dealloc;
  PacketType.tp_methods = packet_methods;
  return add_type(module, &OperatorType) && add_type(module, &PacketType);
}

} // namespace torch::python
