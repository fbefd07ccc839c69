// The node of a symbolic number: what is known of its value, and the operations by name, as the
// code of tracers and compilers calls them. `expr` is a sympy object, made on request in Python.
#include <torch/csrc/python/sym/sym.h>

#include <structmember.h>

#include <c10/sym/Print.h>

namespace torch::python {

using c10::SymOp;
using c10::shapes::Expr;
using c10::shapes::ShapeEnv;
using c10::shapes::ShapeNode;
using c10::sym::Kind;
using c10::sym::Sort;

PyTypeObject SymNodeType = type_object("torch._C._SymNode");

namespace {

PySymNode* self_of(PyObject* o) { return reinterpret_cast<PySymNode*>(o); }
ShapeNode& node_of(PyObject* o) { return *c10::shapes::shape_node(self_of(o)->raw); }
Expr shown_of(PyObject* o) {
  ShapeNode& node = node_of(o);
  return node.env()->shown(node.expr());
}

PyObject* value_object(Sort sort, c10::shapes::Value value) {
  switch (sort) {
  case Sort::Float:
    return PyFloat_FromDouble(value.real);
  case Sort::Bool:
    return new_bool(value.integer != 0);
  default:
    return PyLong_FromLongLong(value.integer);
  }
}

PyRef number_of(PyObject* node) { return checked(wrap_handle(self_of(node)->raw)); }
// The node of a result that is a number; plain results stay.
PyObject* unwrap(PyObject* result) {
  if (!result || !is_sym_number(result)) return result;
  const PyRef number(result);
  return PyRef::borrow(node_object(number.get())).release();
}
PyRef operand(PyObject* o) { return is_sym_node(o) ? number_of(o) : PyRef::borrow(o); }

template <SymOp op> PyObject* binary(PyObject* self, PyObject* other) {
  return guarded(
      [&] { return unwrap(sym_binary(op, number_of(self).get(), operand(other).get())); });
}
template <SymOp op> PyObject* unary(PyObject* self, PyObject*) {
  return guarded([&] { return unwrap(sym_unary(op, number_of(self).get())); });
}
PyObject* function(PyObject* self, PyObject* name) {
  return guarded(
      [&] { return unwrap(sym_function(std::string(utf8(name)).c_str(), number_of(self).get())); });
}
PyObject* node_ite(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *a = nullptr, *b = nullptr;
    if (!PyArg_ParseTuple(args, "OO", &a, &b)) return nullptr;
    return unwrap(sym_where(number_of(self).get(), operand(a).get(), operand(b).get()));
  });
}

// ---- the value
PyObject* node_hint(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    ShapeNode& node = node_of(self);
    const auto hint = node.env()->hint_of(node.expr());
    return hint ? value_object(node.expr()->sort, *hint) : new_none();
  });
}
PyObject* node_has_hint(PyObject* self, PyObject*) {
  return guarded([&] {
    ShapeNode& node = node_of(self);
    return new_bool(node.env()->hint_of(node.expr()).has_value());
  });
}
template <Sort sort> PyObject* maybe_as(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    ShapeNode& node = node_of(self);
    const Expr e = node.env()->simplify(node.expr());
    if (!c10::sym::is_constant(e) || e->sort != sort) return new_none();
    return value_object(sort, {e->integer});
  });
}
template <Sort sort> PyObject* is_sort(PyObject* self, PyObject*) {
  return guarded([&] { return new_bool(node_of(self).expr()->sort == sort); });
}
PyObject* node_is_constant(PyObject* self, PyObject*) {
  return guarded([&] { return new_bool(c10::sym::is_constant(shown_of(self))); });
}
PyObject* always_true(PyObject*, PyObject*) { return new_bool(true); }
PyObject* always_false(PyObject*, PyObject*) { return new_bool(false); }
PyObject* always_none(PyObject*, PyObject*) { return new_none(); }

struct Where {
  const char* file = "";
  int line = 0;
};
bool read_where(PyObject* args, Where& out) {
  return PyArg_ParseTuple(args, "|si", &out.file, &out.line) != 0;
}

PyObject* node_guard(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Where at;
    if (!read_where(args, at)) return nullptr;
    ShapeNode& node = node_of(self);
    switch (node.expr()->sort) {
    case Sort::Float:
      return PyFloat_FromDouble(node.guard_float(at.file, at.line));
    case Sort::Bool:
      return new_bool(node.guard_bool(at.file, at.line));
    default:
      return PyLong_FromLongLong(node.guard_int(at.file, at.line));
    }
  });
}
PyObject* node_guard_oblivious(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Where at;
    if (!read_where(args, at)) return nullptr;
    ShapeNode& node = node_of(self);
    return new_bool(node.env()->evaluate(node.expr(), at.file, true));
  });
}
template <bool otherwise> PyObject* node_guard_or(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Where at;
    if (!read_where(args, at)) return nullptr;
    return new_bool(node_of(self).guard_or(otherwise, at.file, at.line));
  });
}
PyObject* node_expect_true(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Where at;
    if (!read_where(args, at)) return nullptr;
    return new_bool(node_of(self).expect_true(at.file, at.line));
  });
}
PyObject* node_expect_size(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Where at;
    if (!read_where(args, at)) return nullptr;
    ShapeNode& node = node_of(self);
    ShapeEnv& env = *node.env();
    const Expr zero = env.arena().integer(0);
    const bool holds = env.expect_true(env.arena().ge(node.expr(), zero), at.file);
    const Expr e = shown_of(self);
    if (holds && e->kind == Kind::Symbol && !env.state(e).backed) env.mark_size_like(e);
    return new_bool(holds);
  });
}
PyObject* node_known(PyObject* self, PyObject*) {
  return guarded([&] { return new_bool(node_of(self).known() == true); });
}
PyObject* node_maybe_known(PyObject* self, PyObject* oblivious) {
  return guarded([&]() -> PyObject* {
    ShapeNode& node = node_of(self);
    const auto answer = node.env()->known(node.expr(), oblivious == Py_True);
    return answer ? new_bool(*answer) : new_none();
  });
}

PyObject* wrap_plain(PyObject* self, PyObject* value) {
  return guarded([&] {
    ShapeEnv& env = *node_of(self).env();
    c10::sym::Arena& arena = env.arena();
    Expr e = nullptr;
    if (PyBool_Check(value)) {
      e = arena.truth(value == Py_True);
    } else if (PyFloat_Check(value)) {
      e = arena.real(PyFloat_AS_DOUBLE(value));
    } else {
      const long long number = PyLong_AsLongLong(value);
      if (number == -1 && PyErr_Occurred()) throw python_error();
      e = arena.integer(number);
    }
    return wrap_node(env.handle_of(e));
  });
}

// ---- the expression
PyObject* node_text(PyObject* self) {
  return guarded([&] {
    const std::string text = node_of(self).str();
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}
PyObject* node_text_method(PyObject* self, PyObject*) { return node_text(self); }

// (kind, payload, operands): the expression as a tree, each part a node.
PyObject* node_tree(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    ShapeNode& node = node_of(self);
    ShapeEnv& env = *node.env();
    const Expr e = node.expr();
    static constexpr const char* kNames[] = {
        "integer",   "real",      "truth",   "symbol",    "sum",       "product",   "floordiv",
        "mod",       "min",       "max",     "pow",       "lshift",    "rshift",    "bitand",
        "bitor",     "bitxor",    "trunc",   "floor",     "ceil",      "round",     "to_float",
        "float_add", "float_mul", "truediv", "float_pow", "float_mod", "float_min", "float_max",
        "function",  "where",     "eq",      "ne",        "lt",        "le",        "and",
        "or",        "not"};
    PyRef payload = PyRef::borrow(Py_None);
    if (e->kind == Kind::Integer) payload = checked(PyLong_FromLongLong(e->integer));
    if (e->kind == Kind::Real) payload = checked(PyFloat_FromDouble(e->real));
    if (e->kind == Kind::Truth) payload = checked(new_bool(e->integer != 0));
    if (e->kind == Kind::Symbol)
      payload = checked(PyUnicode_FromString(env.arena().info(e).name.c_str()));
    if (e->kind == Kind::Function)
      payload = checked(PyUnicode_FromString(env.arena().function_name(e).c_str()));
    if (e->kind == Kind::Sum) {
      payload = checked(PyTuple_New(e->count + 1));
      PyTuple_SET_ITEM(payload.get(), 0, checked(PyLong_FromLongLong(e->integer)).release());
      for (uint32_t i = 0; i < e->count; ++i)
        PyTuple_SET_ITEM(payload.get(), i + 1, checked(PyLong_FromLongLong(e->coefs[i])).release());
    }
    PyRef parts = checked(PyTuple_New(e->count));
    for (uint32_t i = 0; i < e->count; ++i)
      PyTuple_SET_ITEM(parts.get(), i, checked(wrap_node(env.handle_of(e->args[i]))).release());
    return Py_BuildValue("sOO", kNames[static_cast<size_t>(e->kind)], payload.get(), parts.get());
  });
}

PyObject* node_shown(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_node(node_of(self).env()->handle_of(shown_of(self))); });
}
PyObject* node_simplified(PyObject* self, PyObject*) {
  return guarded([&] {
    ShapeNode& node = node_of(self);
    return wrap_node(node.env()->handle_of(node.env()->simplify(node.expr())));
  });
}
PyObject* node_symbols(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    ShapeNode& node = node_of(self);
    const std::vector<Expr> found = c10::sym::symbols_in(shown_of(self));
    PyRef out = checked(PyList_New(static_cast<Py_ssize_t>(found.size())));
    for (size_t i = 0; i < found.size(); ++i)
      PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                      checked(wrap_node(node.env()->handle_of(found[i]))).release());
    return out.release();
  });
}

PyObject* node_env(PyObject* self, void*) {
  return PyRef::borrow(reinterpret_cast<PyObject*>(self_of(self)->env)).release();
}
PyObject* node_pytype(PyObject* self, void*) {
  return guarded([&] {
    const Sort sort = node_of(self).expr()->sort;
    PyTypeObject* type = sort == Sort::Float  ? &PyFloat_Type
                         : sort == Sort::Bool ? &PyBool_Type
                                              : &PyLong_Type;
    return PyRef::borrow(reinterpret_cast<PyObject*>(type)).release();
  });
}
PyObject* python_helper(const char* name, PyObject* self) {
  const PyRef module = checked(PyImport_ImportModule("torch.fx.experimental._sympy_bridge"));
  return PyObject_CallMethod(module.get(), name, "O", self);
}
PyObject* node_expr(PyObject* self, void*) {
  return guarded(
      [&] { return python_helper("expr_of_node", PyRef(node_shown(self, nullptr)).get()); });
}
PyObject* node_raw_expr(PyObject* self, void*) {
  return guarded([&] { return python_helper("expr_of_node", self); });
}
PyObject* node_none(PyObject*, void*) { return new_none(); }

void node_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  PySymNode* self = self_of(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  if (self->env) c10::shapes::shape_node(self->raw)->pyobj = nullptr;
  Py_CLEAR(self->fx_node);
  Py_CLEAR(self->env);
  Py_TYPE(o)->tp_free(o);
}
int node_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(self_of(o)->fx_node);
  Py_VISIT(reinterpret_cast<PyObject*>(self_of(o)->env));
  return 0;
}
int node_clear(PyObject* o) {
  Py_CLEAR(self_of(o)->fx_node);
  return 0;
}

PyObject* node_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    const PyRef module = checked(PyImport_ImportModule("torch.fx.experimental._sympy_bridge"));
    const PyRef make = checked(PyObject_GetAttrString(module.get(), "make_node"));
    return PyObject_Call(make.get(), args, kwargs);
  });
}

PyMethodDef methods[] = {
    {"add", binary<SymOp::Add>, METH_O, nullptr},
    {"sub", binary<SymOp::Sub>, METH_O, nullptr},
    {"mul", binary<SymOp::Mul>, METH_O, nullptr},
    {"truediv", binary<SymOp::TrueDiv>, METH_O, nullptr},
    {"int_truediv", binary<SymOp::TrueDiv>, METH_O, nullptr},
    {"float_truediv", binary<SymOp::TrueDiv>, METH_O, nullptr},
    {"floordiv", binary<SymOp::FloorDiv>, METH_O, nullptr},
    {"int_floordiv", binary<SymOp::FloorDiv>, METH_O, nullptr},
    {"mod", binary<SymOp::Mod>, METH_O, nullptr},
    {"pow", binary<SymOp::Pow>, METH_O, nullptr},
    {"float_pow", binary<SymOp::Pow>, METH_O, nullptr},
    {"pow_by_natural", binary<SymOp::Pow>, METH_O, nullptr},
    {"lshift", binary<SymOp::LeftShift>, METH_O, nullptr},
    {"rshift", binary<SymOp::RightShift>, METH_O, nullptr},
    {"bitwise_and", binary<SymOp::BitAnd>, METH_O, nullptr},
    {"bitwise_or", binary<SymOp::BitOr>, METH_O, nullptr},
    {"bitwise_xor", binary<SymOp::BitXor>, METH_O, nullptr},
    {"and_", binary<SymOp::And>, METH_O, nullptr},
    {"or_", binary<SymOp::Or>, METH_O, nullptr},
    {"sym_and", binary<SymOp::And>, METH_O, nullptr},
    {"sym_or", binary<SymOp::Or>, METH_O, nullptr},
    {"eq", binary<SymOp::Eq>, METH_O, nullptr},
    {"ne", binary<SymOp::Ne>, METH_O, nullptr},
    {"lt", binary<SymOp::Lt>, METH_O, nullptr},
    {"le", binary<SymOp::Le>, METH_O, nullptr},
    {"gt", binary<SymOp::Gt>, METH_O, nullptr},
    {"ge", binary<SymOp::Ge>, METH_O, nullptr},
    {"sym_min", binary<SymOp::Min>, METH_O, nullptr},
    {"sym_max", binary<SymOp::Max>, METH_O, nullptr},
    {"sym_not", unary<SymOp::Not>, METH_NOARGS, nullptr},
    {"neg", unary<SymOp::Neg>, METH_NOARGS, nullptr},
    {"abs", unary<SymOp::Abs>, METH_NOARGS, nullptr},
    {"sym_float", unary<SymOp::ToFloat>, METH_NOARGS, nullptr},
    {"trunc", unary<SymOp::Trunc>, METH_NOARGS, nullptr},
    {"floor", unary<SymOp::Floor>, METH_NOARGS, nullptr},
    {"ceil", unary<SymOp::Ceil>, METH_NOARGS, nullptr},
    {"round", unary<SymOp::Round>, METH_NOARGS, nullptr},
    {"is_integer", unary<SymOp::IsInteger>, METH_NOARGS, nullptr},
    {"sym_ite", node_ite, METH_VARARGS, nullptr},
    {"_function", function, METH_O, "A function of Python's math module of this number."},
    {"is_int", is_sort<Sort::Int>, METH_NOARGS, nullptr},
    {"is_float", is_sort<Sort::Float>, METH_NOARGS, nullptr},
    {"is_bool", is_sort<Sort::Bool>, METH_NOARGS, nullptr},
    {"is_symbolic", always_true, METH_NOARGS, nullptr},
    {"is_constant", node_is_constant, METH_NOARGS, nullptr},
    {"is_nested_int", always_false, METH_NOARGS, nullptr},
    {"nested_int", always_none, METH_NOARGS, nullptr},
    {"nested_int_coeff", always_none, METH_NOARGS, nullptr},
    {"has_hint", node_has_hint, METH_NOARGS, nullptr},
    {"maybe_as_int", maybe_as<Sort::Int>, METH_NOARGS, nullptr},
    {"maybe_as_float", maybe_as<Sort::Float>, METH_NOARGS, nullptr},
    {"maybe_as_bool", maybe_as<Sort::Bool>, METH_NOARGS, nullptr},
    {"guard_int", node_guard, METH_VARARGS, nullptr},
    {"guard_float", node_guard, METH_VARARGS, nullptr},
    {"guard_bool", node_guard, METH_VARARGS, nullptr},
    {"guard_size_oblivious", node_guard_oblivious, METH_VARARGS, nullptr},
    {"guard_or_false", node_guard_or<false>, METH_VARARGS, nullptr},
    {"guard_or_true", node_guard_or<true>, METH_VARARGS, nullptr},
    {"expect_true", node_expect_true, METH_VARARGS, nullptr},
    {"expect_size", node_expect_size, METH_VARARGS, nullptr},
    {"statically_known_true", node_known, METH_VARARGS, nullptr},
    {"_maybe_known", node_maybe_known, METH_O, nullptr},
    {"wrap_int", wrap_plain, METH_O, nullptr},
    {"wrap_float", wrap_plain, METH_O, nullptr},
    {"wrap_bool", wrap_plain, METH_O, nullptr},
    {"wrap", wrap_plain, METH_O, nullptr},
    {"str", node_text_method, METH_NOARGS, nullptr},
    {"_graph_repr", node_text_method, METH_NOARGS, nullptr},
    {"_tree", node_tree, METH_NOARGS, nullptr},
    {"_shown", node_shown, METH_NOARGS, nullptr},
    {"_simplified", node_simplified, METH_NOARGS, nullptr},
    {"_symbols", node_symbols, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {
    {"expr", node_expr, nullptr, "The expression as a sympy object.", nullptr},
    {"_expr", node_raw_expr, nullptr, "As `expr`, without replacements.", nullptr},
    {"hint", node_hint, nullptr, "The value in the traced run, or None.", nullptr},
    {"_hint", node_hint, nullptr, nullptr, nullptr},
    {"shape_env", node_env, nullptr, "The environment of the symbols.", nullptr},
    {"pytype", node_pytype, nullptr, "int, float or bool.", nullptr},
    {"constant", node_none, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {{"fx_node", T_OBJECT, offsetof(PySymNode, fx_node), 0, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

} // namespace

PyObject* wrap_node(int64_t raw) {
  return guarded([&]() -> PyObject* {
    ShapeNode* node = c10::shapes::shape_node(raw);
    TORCH_CHECK(node != nullptr, "a symbolic number of another kind has no Python form");
    if (node->pyobj) return PyRef::borrow(static_cast<PyObject*>(node->pyobj)).release();
    const PyRef env = env_object(*node->env());
    auto* self = reinterpret_cast<PySymNode*>(SymNodeType.tp_alloc(&SymNodeType, 0));
    if (!self) throw python_error();
    self->raw = raw;
    self->env = reinterpret_cast<PyShapeEnv*>(PyRef(env).release());
    node->pyobj = self;
    return reinterpret_cast<PyObject*>(self);
  });
}

bool init_sym_node(PyObject* module) {
  SymNodeType.tp_basicsize = sizeof(PySymNode);
  SymNodeType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  SymNodeType.tp_new = node_new;
  SymNodeType.tp_dealloc = node_dealloc;
  SymNodeType.tp_traverse = node_traverse;
  SymNodeType.tp_clear = node_clear;
  SymNodeType.tp_weaklistoffset = offsetof(PySymNode, weakrefs);
  SymNodeType.tp_repr = node_text;
  SymNodeType.tp_str = node_text;
  SymNodeType.tp_methods = methods;
  SymNodeType.tp_getset = properties;
  SymNodeType.tp_members = members;
  return add_type(module, &SymNodeType);
}

} // namespace torch::python
