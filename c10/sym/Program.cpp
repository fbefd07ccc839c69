// See Program.h. Every distinct node is one step that writes one register, in the order of age, so
// operands come before what uses them and a shared part is computed once.
#include <c10/sym/Program.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

namespace c10::sym {

namespace {

struct NamedFunction {
  const char* name;
  double (*call)(double);
};
constexpr NamedFunction kFunctions[] = {
    {"sqrt", std::sqrt}, {"exp", std::exp},   {"log", std::log},     {"log2", std::log2},
    {"sin", std::sin},   {"cos", std::cos},   {"tan", std::tan},     {"sinh", std::sinh},
    {"cosh", std::cosh}, {"tanh", std::tanh}, {"asin", std::asin},   {"acos", std::acos},
    {"atan", std::atan}, {"abs", std::fabs},  {"floor", std::floor}, {"ceil", std::ceil},
};

double (*function_named(const std::string& name))(double) {
  for (const NamedFunction& f : kFunctions)
    if (name == f.name) return f.call;
  throw NotImplementedError("symbolic expression: no function " + name);
}

std::vector<Expr> in_order(ArrayRef<Expr> results) {
  std::vector<Expr> found, open(results.begin(), results.end());
  std::unordered_map<Expr, bool> seen;
  while (!open.empty()) {
    const Expr e = open.back();
    open.pop_back();
    if (!seen.emplace(e, true).second) continue;
    found.push_back(e);
    for (Expr a : e->operands()) open.push_back(a);
  }
  std::sort(found.begin(), found.end(), [](Expr a, Expr b) { return a->id < b->id; });
  return found;
}

bool power(int64_t base, int64_t exponent, int64_t* out) {
  if (exponent < 0) return false;
  *out = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(*out, base, out)) return false;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return false;
  }
  return true;
}

// `real` rounded to an integer in one of four ways.
bool to_integer(Kind kind, double x, int64_t* out) {
  const double whole = kind == Kind::Trunc   ? std::trunc(x)
                       : kind == Kind::Floor ? std::floor(x)
                       : kind == Kind::Ceil  ? std::ceil(x)
                                             : std::nearbyint(x);
  if (!(std::fabs(whole) < 9.2e18)) return false;
  *out = int64_t(whole);
  return true;
}

double real_remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

} // namespace

Program::Program(const Arena& arena, ArrayRef<Expr> inputs, ArrayRef<Expr> results) {
  std::unordered_map<Expr, uint32_t> places;
  for (Expr e : in_order(results)) {
    Step step{e->kind,  e->count == 0 ? e->sort : e->args[e->kind == Kind::Where ? 1 : 0]->sort,
              e->count, uint32_t(registers_.size()),
              0,        {e->integer}};
    if (e->kind == Kind::Symbol) {
      const auto* place = std::find(inputs.begin(), inputs.end(), e);
      TORCH_CHECK(place != inputs.end(), "symbolic program: no value for ", arena.info(e).name);
      step.value.integer = place - inputs.begin();
    } else if (e->kind == Kind::Function) {
      step.function = uint32_t(functions_.size());
      functions_.push_back(function_named(arena.function_name(e)));
    } else if (e->kind == Kind::Sum) {
      step.function = uint32_t(coefs_.size());
      coefs_.insert(coefs_.end(), e->coefs, e->coefs + e->count);
    }
    for (Expr a : e->operands()) registers_.push_back(places.at(a));
    places[e] = uint32_t(code_.size());
    code_.push_back(step);
  }
  for (Expr e : results) results_.push_back(places.at(e));
}

bool Program::step_integer(const Step& step, const Value* const* x, Value* out) {
  const int64_t a = x[0]->integer, b = step.count > 1 ? x[1]->integer : 0;
  switch (step.kind) {
  case Kind::Product: {
    out->integer = a;
    for (uint32_t i = 1; i < step.count; ++i)
      if (__builtin_mul_overflow(out->integer, x[i]->integer, &out->integer)) return false;
    return true;
  }
  case Kind::FloorDiv:
  case Kind::Mod:
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    out->integer = step.kind == Kind::Mod ? floor_remainder(a, b) : floor_divide(a, b);
    return true;
  case Kind::Min:
  case Kind::Max:
    out->integer = a;
    for (uint32_t i = 1; i < step.count; ++i)
      out->integer = step.kind == Kind::Min ? std::min(out->integer, x[i]->integer)
                                            : std::max(out->integer, x[i]->integer);
    return true;
  case Kind::Power:
    return power(a, b, &out->integer);
  case Kind::BitAnd:
    out->integer = a & b;
    return true;
  case Kind::BitOr:
    out->integer = a | b;
    return true;
  case Kind::BitXor:
    out->integer = a ^ b;
    return true;
  case Kind::LeftShift:
    if (b < 0 || b > 62) return false;
    return !__builtin_mul_overflow(a, int64_t(1) << b, &out->integer);
  case Kind::RightShift:
    if (b < 0) return false;
    out->integer = a >> std::min<int64_t>(b, 63);
    return true;
  case Kind::ToFloat:
    out->real = double(a);
    return true;
  default:
    return false;
  }
}

void Program::step_real(const Step& step, const Value* const* x, Value* out) {
  const double a = x[0]->real, b = step.count > 1 ? x[1]->real : 0;
  switch (step.kind) {
  case Kind::FloatAdd:
    out->real = a + b;
    break;
  case Kind::FloatMul:
    out->real = a * b;
    break;
  case Kind::FloatDiv:
    out->real = a / b;
    break;
  case Kind::FloatPower:
    out->real = std::pow(a, b);
    break;
  case Kind::FloatMod:
    out->real = real_remainder(a, b);
    break;
  case Kind::FloatMin:
    out->real = b < a ? b : a;
    break;
  default:
    out->real = a < b ? b : a;
    break;
  }
}

bool Program::step_compare(const Step& step, const Value* const* x) {
  const auto compare = [&](auto a, auto b) {
    switch (step.kind) {
    case Kind::Eq:
      return a == b;
    case Kind::Ne:
      return a != b;
    case Kind::Lt:
      return a < b;
    default:
      return a <= b;
    }
  };
  return step.sort == Sort::Float ? compare(x[0]->real, x[1]->real)
                                  : compare(x[0]->integer, x[1]->integer);
}

bool Program::compute(const Value* inputs, Value* registers, size_t last) const {
  SmallVector<const Value*, 8> x;
  for (size_t i = 0; i <= last; ++i) {
    const Step& step = code_[i];
    Value* out = &registers[i];
    x.clear();
    for (uint32_t k = 0; k < step.count; ++k) x.push_back(&registers[registers_[step.first + k]]);
    switch (step.kind) {
    case Kind::Integer:
    case Kind::Real:
    case Kind::Truth:
      *out = step.value;
      break;
    case Kind::Symbol:
      *out = inputs[step.value.integer];
      break;
    case Kind::Sum: {
      out->integer = step.value.integer;
      for (uint32_t k = 0; k < step.count; ++k) {
        int64_t term;
        if (__builtin_mul_overflow(coefs_[step.function + k], x[k]->integer, &term) ||
            __builtin_add_overflow(out->integer, term, &out->integer))
          return false;
      }
      break;
    }
    case Kind::Trunc:
    case Kind::Floor:
    case Kind::Ceil:
    case Kind::Round:
      if (!to_integer(step.kind, x[0]->real, &out->integer)) return false;
      break;
    case Kind::Function:
      out->real = functions_[step.function](x[0]->real);
      break;
    case Kind::Where:
      *out = x[0]->integer != 0 ? *x[1] : *x[2];
      break;
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
      out->integer = step_compare(step, x.data());
      break;
    case Kind::And:
    case Kind::Or: {
      const bool deciding = step.kind == Kind::Or;
      const bool met = std::any_of(x.begin(), x.end(),
                                   [&](const Value* v) { return (v->integer != 0) == deciding; });
      out->integer = met == deciding;
      break;
    }
    case Kind::Not:
      out->integer = x[0]->integer == 0;
      break;
    default:
      if (step.sort == Sort::Float)
        step_real(step, x.data(), out);
      else if (!step_integer(step, x.data(), out))
        return false;
    }
  }
  return true;
}

bool Program::run(const Value* inputs, Value* results) const {
  if (code_.empty()) return true;
  SmallVector<Value, 64> registers(code_.size(), Value{0});
  if (!compute(inputs, registers.data(), code_.size() - 1)) return false;
  for (size_t i = 0; i < results_.size(); ++i) results[i] = registers[results_[i]];
  return true;
}

bool Program::holds(const Value* inputs) const { return first_failure(inputs) < 0; }

int64_t Program::first_failure(const Value* inputs) const {
  if (code_.empty()) return -1;
  SmallVector<Value, 64> registers(code_.size(), Value{0});
  if (compute(inputs, registers.data(), code_.size() - 1)) {
    for (size_t i = 0; i < results_.size(); ++i)
      if (registers[results_[i]].integer == 0) return int64_t(i);
    return -1;
  }
  // Some part cannot be computed: find the first result that needs it or does not hold.
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!compute(inputs, registers.data(), results_[i]) || registers[results_[i]].integer == 0)
      return int64_t(i);
  }
  return 0;
}

std::optional<Value> evaluate(const Arena& arena, Expr e, ArrayRef<Expr> inputs,
                              const Value* values) {
  Value out;
  const Program program(arena, inputs, {&e, 1});
  return program.run(values, &out) ? std::optional<Value>(out) : std::nullopt;
}

} // namespace c10::sym
