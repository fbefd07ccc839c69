// Operations on symbolic numbers: operands of any kind become expressions of one environment, and
// the result a number again. Rules of Python that expressions do not know (division by zero, powers
// with negative exponents) are kept here.
#include <torch/csrc/python/sym/sym.h>

#include <cmath>

#include <torch/csrc/python/dispatch/python_dispatch.h>
#include <torch/csrc/python/tensor/tensor.h>

namespace torch::python {

using c10::SymOp;
using c10::shapes::Expr;
using c10::shapes::ShapeEnv;
using c10::shapes::ShapeNode;
using c10::sym::Sort;

namespace {

constexpr SymOperation kOperations[] = {
    {SymOp::Add, "add", "operator", "add"},
    {SymOp::Sub, "sub", "operator", "sub"},
    {SymOp::Mul, "mul", "operator", "mul"},
    {SymOp::TrueDiv, "truediv", "operator", "truediv"},
    {SymOp::FloorDiv, "floordiv", "operator", "floordiv"},
    {SymOp::Mod, "mod", "operator", "mod"},
    {SymOp::Pow, "pow", "operator", "pow"},
    {SymOp::Min, "sym_min", "torch", "sym_min"},
    {SymOp::Max, "sym_max", "torch", "sym_max"},
    {SymOp::LeftShift, "lshift", "operator", "lshift"},
    {SymOp::RightShift, "rshift", "operator", "rshift"},
    {SymOp::BitAnd, "bitwise_and", "operator", "and_"},
    {SymOp::BitOr, "bitwise_or", "operator", "or_"},
    {SymOp::BitXor, "bitwise_xor", "operator", "xor"},
    {SymOp::Eq, "eq", "operator", "eq"},
    {SymOp::Ne, "ne", "operator", "ne"},
    {SymOp::Lt, "lt", "operator", "lt"},
    {SymOp::Le, "le", "operator", "le"},
    {SymOp::Gt, "gt", "operator", "gt"},
    {SymOp::Ge, "ge", "operator", "ge"},
    {SymOp::And, "and_", "operator", "and_"},
    {SymOp::Or, "or_", "operator", "or_"},
    {SymOp::Not, "sym_not", "torch", "sym_not"},
    {SymOp::Neg, "neg", "operator", "neg"},
    {SymOp::Abs, "abs", "operator", "abs"},
    {SymOp::ToFloat, "sym_float", "torch", "sym_float"},
    {SymOp::Trunc, "trunc", "math", "trunc"},
    {SymOp::Floor, "floor", "math", "floor"},
    {SymOp::Ceil, "ceil", "math", "ceil"},
    {SymOp::Round, "round", "builtins", "round"},
    {SymOp::IsInteger, "is_integer", "torch", "_sym_is_integer"},
};

// An operand as far as it is known without an environment.
struct Operand {
  PyObject* object = nullptr;
  PyObject* python_node = nullptr; // of a number whose node is a Python object
  ShapeNode* node = nullptr;
  bool number = false;
};

Operand read(PyObject* o) {
  Operand out;
  out.object = o;
  out.number = true;
  if (is_sym_number(o)) {
    const int64_t raw = handle_of_number(o);
    if (raw == 0)
      out.python_node = node_object(o);
    else
      out.node = c10::shapes::shape_node(raw);
  } else {
    out.number = PyLong_Check(o) || PyFloat_Check(o) || (PyIndex_Check(o) && !is_tensor(o));
  }
  return out;
}

// A node that stands for one value (`maybe_as_bool`, `maybe_as_int`) is that value.
PyRef constant_of(PyObject* node) {
  for (const char* name : {"maybe_as_bool", "maybe_as_int"}) {
    PyRef method(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(node)), name));
    if (!method) {
      PyErr_Clear();
      continue;
    }
    PyRef value = checked(PyObject_CallMethod(node, name, nullptr));
    if (value.get() != Py_None) return value;
  }
  return {};
}

Expr plain_expr(ShapeEnv& env, PyObject* o) {
  if (PyBool_Check(o)) return env.arena().truth(o == Py_True);
  if (PyFloat_Check(o)) return env.arena().real(PyFloat_AS_DOUBLE(o));
  const PyRef index = checked(PyNumber_Index(o));
  const long long value = PyLong_AsLongLong(index.get());
  if (value == -1 && PyErr_Occurred()) throw python_error();
  return env.arena().integer(value);
}

Expr expr_of(ShapeEnv& env, const Operand& x) {
  if (x.node == nullptr) return plain_expr(env, x.object);
  TORCH_CHECK(x.node->env() == &env,
              "symbolic numbers of different shape environments cannot be used together");
  return env.shown(x.node->expr());
}

bool is_zero(ShapeEnv& env, Expr e) {
  const auto hint = env.hint_of(e);
  if (!hint) return false;
  return e->sort == Sort::Float ? hint->real == 0 : hint->integer == 0;
}

void check_divisor(ShapeEnv& env, SymOp op, Expr b) {
  if ((op == SymOp::TrueDiv || op == SymOp::FloorDiv || op == SymOp::Mod) && is_zero(env, b))
    raise(PyExc_ZeroDivisionError, "division by zero");
}

// An integer to a negative power is a float.
Expr power(ShapeEnv& env, Expr a, Expr b) {
  auto& arena = env.arena();
  const Expr zero = b->sort == Sort::Float ? arena.real(0) : arena.integer(0);
  const bool negative = b->sort != Sort::Bool && env.evaluate(arena.lt(b, zero), "pow");
  if (negative && is_zero(env, a))
    raise(PyExc_ZeroDivisionError, "0.0 cannot be raised to a negative power");
  if (negative && b->sort == Sort::Int) a = arena.to_float(a);
  return env.apply(SymOp::Pow, a, b);
}

void check_shift(ShapeEnv& env, Expr b) {
  const auto hint = env.hint_of(b);
  if (hint && hint->integer < 0) raise(PyExc_ValueError, "negative shift count");
}

// a & b of truth values is the logical operation, as Python's.
SymOp for_sorts(SymOp op, Expr a, Expr b) {
  const bool truths = a->sort == Sort::Bool && b->sort == Sort::Bool;
  if (truths && op == SymOp::BitAnd) return SymOp::And;
  if (truths && op == SymOp::BitOr) return SymOp::Or;
  return op;
}

bool is_bits(SymOp op) { return op >= SymOp::LeftShift && op <= SymOp::BitXor; }

Expr compute(ShapeEnv& env, SymOp op, Expr a, Expr b) {
  const std::lock_guard<std::recursive_mutex> lock(env.mutex());
  check_divisor(env, op, b);
  if (op == SymOp::LeftShift || op == SymOp::RightShift) check_shift(env, b);
  return op == SymOp::Pow ? power(env, a, b) : env.apply(for_sorts(op, a, b), a, b);
}

PyObject* not_implemented() {
  Py_INCREF(Py_NotImplemented);
  return Py_NotImplemented;
}

// One of the nodes is a Python object: it has a method for the operation.
PyObject* ask_python_node(SymOp op, const Operand& a, const Operand& b) {
  const auto constant = [](const Operand& x) {
    return x.python_node ? constant_of(x.python_node) : PyRef();
  };
  const PyRef ca = constant(a), cb = constant(b);
  if (ca || cb) {
    PyObject* left = ca ? ca.get() : a.object;
    PyObject* right = cb ? cb.get() : b.object;
    const SymOperation& known = operation(op);
    const PyRef module = checked(PyImport_ImportModule(known.module));
    return PyObject_CallMethod(module.get(), known.function, "OO", left, right);
  }
  PyObject* asked = a.python_node ? a.python_node : b.python_node;
  const auto node = [&](const Operand& x) {
    if (x.python_node) return PyRef::borrow(x.python_node);
    if (x.node) return PyRef::borrow(node_object(x.object));
    return checked(PyObject_CallMethod(asked, "wrap", "O", x.object));
  };
  const PyRef left = node(a), right = node(b);
  return PyObject_CallMethod(left.get(), operation(op).node_name, "O", right.get());
}

} // namespace

const SymOperation& operation(SymOp op) { return kOperations[static_cast<size_t>(op)]; }

PyObject* sym_dispatch(const char* module, const char* function, PyObject* const* args,
                       Py_ssize_t count) {
  const ProxyModeScope scope;
  PyObject* mode = scope.mode();
  if (C10_LIKELY(mode == nullptr)) return nullptr;
  PyRef method(PyObject_GetAttrString(mode, "__sym_dispatch__"));
  if (!method) {
    PyErr_Clear();
    return nullptr;
  }
  const PyRef home = checked(PyImport_ImportModule(module));
  const PyRef called = checked(PyObject_GetAttrString(home.get(), function));
  PyRef tuple = checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(tuple.get(), i, args[i]);
  }
  const PyRef none = checked(PyTuple_New(0)), kwargs = checked(PyDict_New());
  return checked(PyObject_CallFunctionObjArgs(method.get(), called.get(), none.get(), tuple.get(),
                                              kwargs.get(), nullptr))
      .release();
}

PyObject* sym_binary(SymOp op, PyObject* left, PyObject* right) noexcept {
  return guarded([&]() -> PyObject* {
    const Operand a = read(left), b = read(right);
    if (!a.number || !b.number) return not_implemented();
    if (a.python_node || b.python_node) return ask_python_node(op, a, b);
    PyObject* const args[] = {left, right};
    const SymOperation& known = operation(op);
    if (PyObject* traced = sym_dispatch(known.module, known.function, args, 2)) return traced;
    ShapeEnv& env = *(a.node ? a.node : b.node)->env();
    const Expr x = expr_of(env, a), y = expr_of(env, b);
    if (is_bits(op) && (x->sort == Sort::Float || y->sort == Sort::Float)) return not_implemented();
    return wrap_handle(env.handle_of(compute(env, op, x, y)));
  });
}

PyObject* sym_unary(SymOp op, PyObject* object) noexcept {
  return guarded([&]() -> PyObject* {
    const Operand a = read(object);
    const SymOperation& known = operation(op);
    if (a.python_node) {
      const PyRef constant = constant_of(a.python_node);
      if (constant && op == SymOp::Not) {
        const int truth = PyObject_IsTrue(constant.get());
        return new_bool(truth == 0);
      }
      return PyObject_CallMethod(a.python_node, known.node_name, nullptr);
    }
    if (PyObject* traced = sym_dispatch(known.module, known.function, &object, 1)) return traced;
    ShapeEnv& env = *a.node->env();
    return wrap_handle(env.handle_of(env.apply(op, expr_of(env, a), nullptr)));
  });
}

PyObject* sym_function(const char* name, PyObject* object) noexcept {
  return guarded([&]() -> PyObject* {
    const Operand a = read(object);
    if (a.python_node) return PyObject_CallMethod(a.python_node, name, nullptr);
    const std::string traced_name = std::string("_sym_") + name;
    if (PyObject* traced = sym_dispatch("torch", traced_name.c_str(), &object, 1)) return traced;
    ShapeEnv& env = *a.node->env();
    const std::lock_guard<std::recursive_mutex> lock(env.mutex());
    const Expr call = env.arena().function(name, expr_of(env, a));
    const auto argument = env.hint_of(call->args[0]), value = env.hint_of(call);
    if (argument && value && std::isnan(value->real) && !std::isnan(argument->real))
      raise(PyExc_ValueError, "math domain error");
    return wrap_handle(env.handle_of(call));
  });
}

PyObject* sym_where(PyObject* condition, PyObject* left, PyObject* right) noexcept {
  return guarded([&]() -> PyObject* {
    const Operand c = read(condition), a = read(left), b = read(right);
    if (c.python_node) {
      const PyRef constant = constant_of(c.python_node);
      if (!constant) raise_type_error("sym_ite: the condition's node has no truth value");
      return PyRef::borrow(constant.get() == Py_True ? left : right).release();
    }
    PyObject* const args[] = {condition, left, right};
    if (PyObject* traced = sym_dispatch("torch", "sym_ite", args, 3)) return traced;
    ShapeEnv& env = *c.node->env();
    const std::lock_guard<std::recursive_mutex> lock(env.mutex());
    return wrap_handle(
        env.handle_of(env.arena().where(expr_of(env, c), expr_of(env, a), expr_of(env, b))));
  });
}

} // namespace torch::python
