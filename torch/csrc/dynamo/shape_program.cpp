// See shape_program.h.
#include <torch/csrc/dynamo/shape_program.h>

#include <memory>
#include <string_view>

namespace torch::dynamo {
namespace {

using python::PyRef;
using Op = ShapeProgram::Op;

constexpr std::string_view kNames[] = {"slot", "const", "add", "sub", "mul", "floordiv", "mod",
                                       "neg",  "min",   "max", "eq",  "ne",  "lt",       "le",
                                       "gt",   "ge",    "and", "or",  "not", "assert"};

// Python's rules: the quotient is rounded down, the remainder has the sign of the divisor.
bool divide(int64_t a, int64_t b, int64_t& quotient, int64_t& rest) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  quotient = a / b;
  rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    --quotient;
    rest += b;
  }
  return true;
}

bool binary(Op op, int64_t a, int64_t b, int64_t& out) {
  int64_t quotient = 0, rest = 0;
  switch (op) {
  case Op::Add:
    return !__builtin_add_overflow(a, b, &out);
  case Op::Sub:
    return !__builtin_sub_overflow(a, b, &out);
  case Op::Mul:
    return !__builtin_mul_overflow(a, b, &out);
  case Op::FloorDiv:
  case Op::Mod:
    if (!divide(a, b, quotient, rest)) return false;
    out = op == Op::FloorDiv ? quotient : rest;
    return true;
  case Op::Min:
    out = a < b ? a : b;
    return true;
  case Op::Max:
    out = a < b ? b : a;
    return true;
  case Op::Eq:
    out = a == b;
    return true;
  case Op::Ne:
    out = a != b;
    return true;
  case Op::Lt:
    out = a < b;
    return true;
  case Op::Le:
    out = a <= b;
    return true;
  case Op::Gt:
    out = a > b;
    return true;
  case Op::Ge:
    out = a >= b;
    return true;
  case Op::And:
    out = a && b;
    return true;
  case Op::Or:
    out = a || b;
    return true;
  default:
    return false;
  }
}

int pops(Op op) {
  switch (op) {
  case Op::Slot:
  case Op::Const:
    return 0;
  case Op::Neg:
  case Op::Not:
  case Op::Assert:
    return 1;
  default:
    return 2;
  }
}

} // namespace

int ShapeProgram::first_failure() {
  int64_t* top = stack.data(); // the next free place
  int condition = 0;
  bool valid = true; // of the condition being computed
  for (const Step& step : steps) {
    switch (step.op) {
    case Op::Slot:
      *top++ = slots[static_cast<size_t>(step.value)];
      break;
    case Op::Const:
      *top++ = step.value;
      break;
    case Op::Neg:
      valid = valid && !__builtin_sub_overflow(int64_t{0}, top[-1], &top[-1]);
      break;
    case Op::Not:
      top[-1] = !top[-1];
      break;
    case Op::Assert:
      if (!valid || !*--top) return condition;
      ++condition;
      break;
    default:
      valid = valid && binary(step.op, top[-2], top[-1], top[-2]);
      --top;
    }
  }
  return -1;
}

ShapeProgram* new_shape_program(PyObject* steps, int64_t slots) {
  auto out = std::make_unique<ShapeProgram>();
  out->slots.resize(static_cast<size_t>(slots));
  PyRef list = python::checked(PySequence_List(steps));
  int64_t depth = 0, deepest = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    const char* name = nullptr;
    long long value = 0;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list.get(), i), "sL", &name, &value))
      throw python::python_error();
    size_t found = 0;
    while (found < std::size(kNames) && kNames[found] != name) ++found;
    if (found == std::size(kNames))
      python::raise(PyExc_ValueError, "unknown step of a shape program: " + std::string(name));
    const Op op = static_cast<Op>(found);
    const bool bad_slot = op == Op::Slot && (value < 0 || value >= slots);
    depth -= pops(op);
    if (depth < 0 || bad_slot)
      python::raise(PyExc_ValueError, "a shape program takes more than it has");
    if (op != Op::Assert) ++depth;
    deepest = deepest < depth ? depth : deepest;
    out->steps.push_back({op, value});
  }
  out->stack.resize(static_cast<size_t>(deepest) + 1);
  return out.release();
}

} // namespace torch::dynamo
