// What plans and interpreters of programs share. See program.h.
#include <torch/csrc/inductor/program.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include <ATen/core/EmptyTensor.h>

namespace torch::inductor {
namespace {

using at::IValue;
using at::Tensor;

[[noreturn]] void refuse(const std::string& why) { throw NotLowered(why); }

int64_t floor_div(int64_t x, int64_t y) {
  if (y == 0) refuse("division of a size by zero");
  if (y == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

// Sums and products of sizes wrap; what comes of that is no size.
int64_t whole_number(NumberOp op, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
  case NumberOp::Add:
    return static_cast<int64_t>(ua + ub);
  case NumberOp::Sub:
    return static_cast<int64_t>(ua - ub);
  case NumberOp::Mul:
    return static_cast<int64_t>(ua * ub);
  case NumberOp::FloorDiv:
    return floor_div(a, b);
  case NumberOp::Mod:
    return static_cast<int64_t>(ua - static_cast<uint64_t>(floor_div(a, b)) * ub);
  case NumberOp::Max:
    return std::max(a, b);
  default:
    return std::min(a, b);
  }
}

double real_number(NumberOp op, double a, double b) {
  switch (op) {
  case NumberOp::Add:
    return a + b;
  case NumberOp::Sub:
    return a - b;
  case NumberOp::Mul:
    return a * b;
  case NumberOp::FloorDiv:
    return std::floor(a / b);
  case NumberOp::Mod:
    return a - std::floor(a / b) * b;
  case NumberOp::Max:
    return std::max(a, b);
  default:
    return std::min(a, b);
  }
}

template <class T> bool relation(NumberOp op, T a, T b) {
  switch (op) {
  case NumberOp::Eq:
    return a == b;
  case NumberOp::Ne:
    return a != b;
  case NumberOp::Lt:
    return a < b;
  case NumberOp::Le:
    return a <= b;
  case NumberOp::Gt:
    return a > b;
  default:
    return a >= b;
  }
}

int64_t whole(const IValue& v) { return v.isBool() ? v.toBool() : v.toInt(); }
double real(const IValue& v) { return v.isDouble() ? v.toDouble() : static_cast<double>(whole(v)); }
bool truth(const IValue& v) { return v.isDouble() ? v.toDouble() != 0 : whole(v) != 0; }

IValue power(const IValue& a, const IValue& b) {
  if (a.isDouble() || b.isDouble() || whole(b) < 0) return std::pow(real(a), real(b));
  uint64_t result = 1, base = static_cast<uint64_t>(whole(a));
  for (auto n = static_cast<uint64_t>(whole(b)); n != 0; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return static_cast<int64_t>(result);
}

IValue rounded_to_zero(const IValue& v) {
  if (!v.isDouble()) return whole(v);
  const double x = std::trunc(v.toDouble());
  constexpr double kLimit = 9223372036854775808.0;
  if (!(x >= -kLimit && x < kLimit)) refuse("a number too large for an integer");
  return static_cast<int64_t>(x);
}

} // namespace

IValue number_result(NumberOp op, const std::vector<IValue>& in) {
  const IValue& a = in.at(0);
  switch (op) {
  case NumberOp::Neg:
    return a.isDouble() ? IValue(-a.toDouble()) : IValue(whole_number(NumberOp::Sub, 0, whole(a)));
  case NumberOp::Not:
    return !truth(a);
  case NumberOp::ToFloat:
    return real(a);
  case NumberOp::ToInt:
    return rounded_to_zero(a);
  default:
    break;
  }
  const IValue& b = in.at(1);
  switch (op) {
  case NumberOp::And:
    if (!a.isBool() || !b.isBool()) return whole(a) & whole(b);
    return a.toBool() && b.toBool();
  case NumberOp::Or:
    if (!a.isBool() || !b.isBool()) return whole(a) | whole(b);
    return a.toBool() || b.toBool();
  case NumberOp::Pow:
    return power(a, b);
  case NumberOp::TrueDiv:
    if (real(b) == 0) refuse("division by zero");
    return real(a) / real(b);
  default:
    break;
  }
  const bool is_real = a.isDouble() || b.isDouble();
  if (op >= NumberOp::Eq && op <= NumberOp::Ge)
    return is_real ? relation(op, real(a), real(b)) : relation(op, whole(a), whole(b));
  if (!is_real) return whole_number(op, whole(a), whole(b));
  if ((op == NumberOp::FloorDiv || op == NumberOp::Mod) && real(b) == 0) refuse("division by zero");
  return real_number(op, real(a), real(b));
}

IValue list_of(const at::SchemaType& type, const std::vector<IValue>& items) {
  using K = at::SchemaType::Kind;
  if (type.kind == K::Tensor && type.element_optional) {
    std::vector<std::optional<Tensor>> list;
    for (const IValue& v : items)
      list.push_back(v.isNone() ? std::optional<Tensor>() : v.toTensor());
    return list;
  }
  if (type.kind == K::Tensor) {
    std::vector<Tensor> list;
    for (const IValue& v : items) list.push_back(v.toTensor());
    return list;
  }
  if (type.kind == K::Int || type.kind == K::SymInt) {
    std::vector<int64_t> list; // of raw numbers
    for (const IValue& v : items) list.push_back(v.toSymInt().raw());
    return list;
  }
  if (type.kind == K::Scalar) {
    std::vector<at::Scalar> list;
    for (const IValue& v : items) list.push_back(v.toScalar());
    return list;
  }
  refuse("a list of " + type.str() + " with values of the graph");
}

std::vector<IValue> values_of(const std::vector<Arg>& args, const std::vector<IValue>& env) {
  std::vector<IValue> values;
  values.reserve(args.size());
  for (const Arg& arg : args)
    values.push_back(arg.kind == Arg::Kind::Node ? env[static_cast<size_t>(arg.node)] : arg.value);
  return values;
}

at::Stack stack_of(const Node& node, const std::vector<IValue>& env) {
  const at::FunctionSchema& schema = node.op->schema();
  at::Stack stack;
  stack.reserve(node.args.size() + 2);
  for (size_t i = 0; i < node.args.size(); ++i) {
    const Arg& arg = node.args[i];
    const at::SchemaType& type = schema.arguments[i].type;
    if (arg.kind == Arg::Kind::List)
      stack.push_back(list_of(type, values_of(arg.items, env)));
    else
      stack.push_back(arg.kind == Arg::Kind::Node ? env[static_cast<size_t>(arg.node)] : arg.value);
    // A size that passes for a tensor.
    const IValue& value = stack.back();
    if (type.kind == at::SchemaType::Kind::Tensor && !type.is_list &&
        (value.isInt() || value.isSymbol() || value.isDouble() || value.isBool() ||
         value.tag == IValue::Tag::Complex))
      stack.back() = at::detail::wrapped_number(value.toScalar());
  }
  return stack;
}

IValue item_of(const IValue& list, int64_t index) {
  if (list.isTensorList()) return list.toTensorList().at(static_cast<size_t>(index));
  if (list.isList()) return list.toList().at(static_cast<size_t>(index));
  if (list.isIntList()) return list.toIntList().at(static_cast<size_t>(index));
  refuse("an item of something else than results");
}

void Program::note(const at::OperatorEntry& op) {
  mutates = mutates || op.schema().is_mutable();
  uses_offsets = uses_offsets || std::string_view(op.name).find("as_strided") != std::string::npos;
}

} // namespace torch::inductor
