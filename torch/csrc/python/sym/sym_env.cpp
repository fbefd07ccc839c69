// torch._C._ShapeEnv: the shape environment as Python's ShapeEnv builds on it. Expressions cross as
// nodes. Tensors keep the C++ environment alive, not this object, so that no cycle leaves Python's
// sight; where a handle outlives the object, a new one is made for the same environment.
#include <torch/csrc/python/sym/sym.h>

#include <torch/csrc/python/args/arg_parser.h>

#include <ATen/core/SymbolicTensor.h>
#include <c10/core/SymbolicGeometry.h>
#include <c10/sym/Print.h>

#include <frameobject.h>

namespace torch::python {

using c10::shapes::Expr;
using c10::shapes::Interval;
using c10::shapes::ShapeEnv;
using c10::shapes::Value;
using c10::sym::Sort;

PyTypeObject ShapeEnvType = type_object("torch._C._ShapeEnv");

namespace {

// The environment that the next object stands for, where it has one already.
thread_local ShapeEnv* adopted = nullptr;

PyShapeEnv* self_of(PyObject* o) { return reinterpret_cast<PyShapeEnv*>(o); }
ShapeEnv& env_of(PyObject* o) { return *self_of(o)->env; }

// An expression from a node or a plain number.
Expr read_expr(ShapeEnv& env, PyObject* o) {
  if (is_sym_number(o)) o = node_object(o);
  if (is_sym_node(o)) return env.expr_of(reinterpret_cast<PySymNode*>(o)->raw);
  if (PyBool_Check(o)) return env.arena().truth(o == Py_True);
  if (PyFloat_Check(o)) return env.arena().real(PyFloat_AS_DOUBLE(o));
  if (!PyLong_Check(o))
    raise_type_error(c10::str("expected a symbolic number, got ", type_name(o)));
  const long long value = PyLong_AsLongLong(o);
  if (value == -1 && PyErr_Occurred()) throw python_error();
  return env.arena().integer(value);
}
PyRef node_for(ShapeEnv& env, Expr e) { return checked(wrap_node(env.handle_of(e))); }

// None is an open end.
Interval read_interval(PyObject* low, PyObject* high) {
  Interval out;
  if (low != Py_None) out.low = PyLong_AsLongLong(low);
  if (high != Py_None) out.high = PyLong_AsLongLong(high);
  if (PyErr_Occurred()) throw python_error();
  return out;
}
PyRef end_object(int64_t end) {
  if (end == INT64_MIN || end == INT64_MAX) return PyRef::borrow(Py_None);
  return checked(PyLong_FromLongLong(end));
}

std::optional<Value> read_hint(Sort sort, PyObject* o) {
  if (o == Py_None) return std::nullopt;
  Value out{0};
  if (sort == Sort::Float)
    out.real = PyFloat_AsDouble(o);
  else if (sort == Sort::Bool)
    out.integer = PyObject_IsTrue(o);
  else
    out.integer = PyLong_AsLongLong(o);
  if (PyErr_Occurred()) throw python_error();
  return out;
}

// "file.py:12" of the line that runs.
std::string python_line() {
  if (!python_exists() || !holds_gil()) return "";
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return "";
  const PyRef code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const PyRef file(PyObject_GetAttrString(code.get(), "co_filename"));
  if (!file) {
    PyErr_Clear();
    return "";
  }
  return c10::str(text_of(file.get()), ":", PyFrame_GetLineNumber(frame));
}

// ---- life
PyObject* env_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    ShapeEnv* existing = std::exchange(adopted, nullptr);
    PyObject* o = type->tp_alloc(type, 0);
    if (!o) return nullptr;
    PyShapeEnv* self = self_of(o);
    new (&self->env)
        std::shared_ptr<ShapeEnv>(existing ? existing->shared_from_this() : ShapeEnv::create());
    self->env->pyobj = o;
    self->env->origin = [](const char* where) {
      const std::string line = python_line();
      return *where == '\0' ? line : line + " (" + where + ")";
    };
    return o;
  });
}
int env_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(self_of(o)->dict);
  return 0;
}
int env_clear(PyObject* o) {
  Py_CLEAR(self_of(o)->dict);
  return 0;
}
void env_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  PyShapeEnv* self = self_of(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  self->env->pyobj = nullptr;
  self->env->on_guard = nullptr;
  std::destroy_at(&self->env);
  Py_TYPE(o)->tp_free(o);
}

// ---- symbols
PyObject* env_symbol(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* name = nullptr;
    PyObject *type, *hint, *low, *high;
    int ephemeral = 0;
    if (!PyArg_ParseTuple(args, "sOOOOp", &name, &type, &hint, &low, &high, &ephemeral))
      return nullptr;
    const Sort sort = type == reinterpret_cast<PyObject*>(&PyFloat_Type)  ? Sort::Float
                      : type == reinterpret_cast<PyObject*>(&PyBool_Type) ? Sort::Bool
                                                                          : Sort::Int;
    ShapeEnv& env = env_of(self);
    const Expr symbol =
        env.new_symbol(name, sort, read_hint(sort, hint), read_interval(low, high), ephemeral != 0);
    return node_for(env, symbol).release();
  });
}
PyObject* env_set_hint(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *node, *value;
    if (!PyArg_ParseTuple(args, "OO", &node, &value)) return nullptr;
    ShapeEnv& env = env_of(self);
    const Expr symbol = read_expr(env, node);
    TORCH_CHECK(symbol->kind == c10::sym::Kind::Symbol, "only a symbol takes a hint");
    env.state(symbol).hint = read_hint(symbol->sort, value);
    return new_none();
  });
}
PyObject* env_constrain(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *node, *low, *high;
    if (!PyArg_ParseTuple(args, "OOO", &node, &low, &high)) return nullptr;
    ShapeEnv& env = env_of(self);
    return new_bool(env.constrain(read_expr(env, node), read_interval(low, high)));
  });
}
PyObject* env_range(PyObject* self, PyObject* node) {
  return guarded([&]() -> PyObject* {
    ShapeEnv& env = env_of(self);
    const Interval range = env.range(read_expr(env, node));
    return PyTuple_Pack(2, end_object(range.low).get(), end_object(range.high).get());
  });
}
PyObject* env_mark_size_like(PyObject* self, PyObject* node) {
  return guarded([&]() -> PyObject* {
    ShapeEnv& env = env_of(self);
    env.mark_size_like(read_expr(env, node));
    return new_none();
  });
}
// (backed, size-like)
PyObject* env_state(PyObject* self, PyObject* node) {
  return guarded([&]() -> PyObject* {
    ShapeEnv& env = env_of(self);
    const auto& state = env.state(read_expr(env, node));
    return PyTuple_Pack(2, state.backed ? Py_True : Py_False, state.size_like ? Py_True : Py_False);
  });
}
PyObject* env_constant(PyObject* self, PyObject* value) {
  return guarded([&] {
    ShapeEnv& env = env_of(self);
    return node_for(env, read_expr(env, value)).release();
  });
}

// ---- decisions
PyObject* env_add_guard(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* node;
    const char* origin = "";
    if (!PyArg_ParseTuple(args, "O|s", &node, &origin)) return nullptr;
    ShapeEnv& env = env_of(self);
    env.add_guard(env.shown(read_expr(env, node)), origin);
    return new_none();
  });
}
PyObject* env_defer(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* node;
    const char* message = "";
    if (!PyArg_ParseTuple(args, "O|s", &node, &message)) return nullptr;
    ShapeEnv& env = env_of(self);
    return new_bool(env.defer(read_expr(env, node), message));
  });
}
PyObject* env_guards(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    ShapeEnv& env = env_of(self);
    PyRef out = checked(PyList_New(0));
    for (const auto& guard : env.guards()) {
      const PyRef row =
          checked(Py_BuildValue("NsO", node_for(env, guard.condition).release(),
                                guard.origin.c_str(), guard.size_oblivious ? Py_True : Py_False));
      check_status(PyList_Append(out.get(), row.get()));
    }
    return out.release();
  });
}
// [(symbol or None, [(condition, message), ...]), ...]
PyObject* env_asserts(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    ShapeEnv& env = env_of(self);
    PyRef out = checked(PyList_New(0));
    for (const auto& [symbol, list] : env.asserts()) {
      PyRef rows = checked(PyList_New(0));
      for (const auto& a : list) {
        const PyRef row =
            checked(Py_BuildValue("Ns", node_for(env, a.condition).release(), a.message.c_str()));
        check_status(PyList_Append(rows.get(), row.get()));
      }
      const PyRef key = symbol ? node_for(env, symbol) : PyRef::borrow(Py_None);
      const PyRef entry = checked(PyTuple_Pack(2, key.get(), rows.get()));
      check_status(PyList_Append(out.get(), entry.get()));
    }
    return out.release();
  });
}
PyObject* env_replacements(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    ShapeEnv& env = env_of(self);
    PyRef out = checked(PyList_New(0));
    for (const auto& [symbol, by] : env.shown_replacements()) {
      const PyRef row =
          checked(PyTuple_Pack(2, node_for(env, symbol).get(), node_for(env, env.shown(by)).get()));
      check_status(PyList_Append(out.get(), row.get()));
    }
    return out.release();
  });
}
PyObject* env_print(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *node, *names;
    if (!PyArg_ParseTuple(args, "OO!", &node, &PyDict_Type, &names)) return nullptr;
    ShapeEnv& env = env_of(self);
    const auto rename = [&](const std::string& symbol) -> std::string {
      PyObject* found = PyDict_GetItemString(names, symbol.c_str());
      return found ? std::string(utf8(found)) : symbol;
    };
    const std::string text =
        c10::sym::print(env.arena(), read_expr(env, node), c10::sym::Dialect::Python, rename);
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}
// The index of the first guard that does not hold for the values of `symbols`, or -1.
PyObject* env_first_failure(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *symbols, *values;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &symbols, &PyList_Type, &values))
      return nullptr;
    ShapeEnv& env = env_of(self);
    std::vector<Expr> inputs;
    std::vector<Value> numbers;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(symbols); ++i) {
      inputs.push_back(read_expr(env, PyList_GET_ITEM(symbols, i)));
      numbers.push_back(read_hint(inputs.back()->sort, PyList_GET_ITEM(values, i)).value());
    }
    return PyLong_FromLongLong(env.guard_program(inputs).first_failure(numbers.data()));
  });
}

template <bool ShapeEnv::*member> PyObject* get_flag(PyObject* self, void*) {
  return new_bool(env_of(self).*member);
}
template <bool ShapeEnv::*member> int set_flag(PyObject* self, PyObject* value, void*) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) return -1;
  env_of(self).*member = truth != 0;
  return 0;
}
PyObject* env_version(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(env_of(self).version());
}
PyObject* env_guard_count(PyObject* self, void*) {
  return PyLong_FromSize_t(env_of(self).guards().size());
}

PyMethodDef methods[] = {
    {"_symbol", env_symbol, METH_VARARGS, "_symbol(name, type, hint, low, high, ephemeral)"},
    {"_set_hint", env_set_hint, METH_VARARGS, nullptr},
    {"_constrain", env_constrain, METH_VARARGS, nullptr},
    {"_range", env_range, METH_O, nullptr},
    {"_mark_size_like", env_mark_size_like, METH_O, nullptr},
    {"_state", env_state, METH_O, nullptr},
    {"_constant", env_constant, METH_O, nullptr},
    {"_add_guard", env_add_guard, METH_VARARGS, nullptr},
    {"_defer", env_defer, METH_VARARGS, nullptr},
    {"_guards", env_guards, METH_NOARGS, nullptr},
    {"_asserts", env_asserts, METH_NOARGS, nullptr},
    {"_shown_replacements", env_replacements, METH_NOARGS, nullptr},
    {"_print", env_print, METH_VARARGS, nullptr},
    {"_first_failure", env_first_failure, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {
    {"_frozen", get_flag<&ShapeEnv::frozen>, set_flag<&ShapeEnv::frozen>, nullptr, nullptr},
    {"_defer_instead_of_guard", get_flag<&ShapeEnv::defer_instead_of_guard>,
     set_flag<&ShapeEnv::defer_instead_of_guard>, nullptr, nullptr},
    {"_facts_version", env_version, nullptr, nullptr, nullptr},
    {"_guard_count", env_guard_count, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

} // namespace

PyRef env_object(ShapeEnv& env) {
  if (env.pyobj) return PyRef::borrow(static_cast<PyObject*>(env.pyobj));
  const PyRef module = checked(PyImport_ImportModule("torch.fx.experimental.symbolic_shapes"));
  const PyRef type = checked(PyObject_GetAttrString(module.get(), "ShapeEnv"));
  adopted = &env;
  PyRef out(PyObject_CallNoArgs(type.get()));
  adopted = nullptr;
  if (!out) throw python_error();
  return out;
}

void set_data_dependent_error(const c10::DataDependentError& error) noexcept {
  try {
    const PyRef module = checked(PyImport_ImportModule("torch.fx.experimental.symbolic_shapes"));
    const PyRef type = checked(PyObject_GetAttrString(module.get(), "GuardOnDataDependentSymNode"));
    const PyRef condition = checked(wrap_handle(error.condition()));
    const PyRef made =
        checked(PyObject_CallFunction(type.get(), "Os", condition.get(), error.what()));
    PyErr_SetObject(type.get(), made.get());
  } catch (...) {
    set_error_from_exception();
  }
}

namespace {

// An object made in Python as a number of the given type.
PyObject* number_of(PyTypeObject* type, PyObject* node) {
  const PyRef args = checked(PyTuple_Pack(1, node));
  return PyObject_Call(reinterpret_cast<PyObject*>(type), args.get(), nullptr);
}

// _get_nested_int(number, factor): the size of a ragged dimension.
PyObject* py_nested_int(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    long long number = 0, factor = 1;
    if (!PyArg_ParseTuple(args, "LL", &number, &factor)) return nullptr;
    const PyRef module = checked(PyImport_ImportModule("torch.nested._structure"));
    const std::string name = c10::str("j", number);
    const PyRef node =
        checked(PyObject_CallMethod(module.get(), "RaggedSize", "sL", name.c_str(), factor));
    return number_of(&SymIntType, node.get());
  });
}

// _get_constant_bool_symnode(value): the node of a truth value that is known.
PyObject* py_constant_bool(PyObject*, PyObject* value) {
  return guarded([&]() -> PyObject* {
    const PyRef module = checked(PyImport_ImportModule("torch._symbolic"));
    return PyObject_CallMethod(module.get(), "_ConstantNode", "O", value);
  });
}

constexpr Param kMetaParams[] = {{"size", P::SymIntList, 0, 0, nullptr},
                                 {"stride", P::SymIntList, 0, 0, nullptr},
                                 {"storage_offset", P::SymInt, 0, 0, nullptr},
                                 {"dtype", P::ScalarType, 0, 0, nullptr}};
PyObject* invoke_make_meta(ArgValues& a) {
  const c10::SymIntArrayRef sizes = a.symint_list(0), strides = a.symint_list(1);
  TORCH_CHECK(sizes.size() == strides.size(), "size and stride must have the same length, got ",
              sizes.size(), " and ", strides.size());
  at::Tensor out =
      at::detail::empty_strided_symint(sizes, strides, a.scalar_type(3), c10::Device(c10::kMeta));
  const c10::SymInt offset = a.symint(2);
  c10::TensorImpl& impl = *out.unsafeGetTensorImpl();
  impl.storage()->set_sym_nbytes(c10::sym_storage_bytes(sizes, strides, impl.itemsize(), offset));
  impl.set_symbolic_geometry(sizes, strides, offset);
  return wrap(std::move(out));
}
const Signature kMetaSignature[] = {{kMetaParams, 4, 4, kNoOverride, invoke_make_meta,
                                     "_make_symbolic_meta(SymInt[] size, SymInt[] stride, SymInt "
                                     "storage_offset, ScalarType dtype)"}};
const Function kMakeMeta = {"_make_symbolic_meta", "torch._C", kMetaSignature, 1};
PyObject* py_make_meta(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kMakeMeta, nullptr, args, n, names);
}

PyMethodDef functions[] = {{"_get_nested_int", py_nested_int, METH_VARARGS, nullptr},
                           {"_get_constant_bool_symnode", py_constant_bool, METH_O, nullptr},
                           {"_make_symbolic_meta", as_method(py_make_meta),
                            METH_FASTCALL | METH_KEYWORDS,
                            "A meta tensor with a geometry whose numbers may be symbolic."},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_shape_env(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) return false;
  ShapeEnvType.tp_basicsize = sizeof(PyShapeEnv);
  ShapeEnvType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  ShapeEnvType.tp_new = env_new;
  ShapeEnvType.tp_dealloc = env_dealloc;
  ShapeEnvType.tp_traverse = env_traverse;
  ShapeEnvType.tp_clear = env_clear;
  ShapeEnvType.tp_dictoffset = offsetof(PyShapeEnv, dict);
  ShapeEnvType.tp_weaklistoffset = offsetof(PyShapeEnv, weakrefs);
  ShapeEnvType.tp_methods = methods;
  ShapeEnvType.tp_getset = properties;
  return add_type(module, &ShapeEnvType);
}

} // namespace torch::python
