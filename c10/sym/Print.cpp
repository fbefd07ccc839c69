// See Print.h. Terms of a sum are shown by falling powers of the symbols in the order of their
// names, constants last, as readers of PyTorch's logs know them; the order inside the arena is that
// of age.
#include <c10/sym/Print.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <c10/sym/Polynomial.h>
#include <c10/util/Exception.h>

namespace c10::sym {

namespace {

// How tightly an operator binds: operands that bind less are put in parentheses.
enum Level : int { kChoice, kOr, kAnd, kNot, kCompare, kSum, kProduct, kPower, kCall };

struct Text {
  std::string text;
  int level;
};

struct TermText {
  std::map<std::string, int> powers; // of the atoms by their text
  int64_t coef;
};

// Whether a comes before b: a higher power of the first name in which they differ.
bool comes_first(const TermText& a, const TermText& b) {
  auto x = a.powers.begin(), y = b.powers.begin();
  for (; x != a.powers.end() && y != b.powers.end(); ++x, ++y) {
    if (x->first != y->first) return x->first < y->first;
    if (x->second != y->second) return x->second > y->second;
  }
  return x != a.powers.end() && y == b.powers.end();
}

class Printer {
 public:
  using Rename = std::function<std::string(const std::string&)>;
  Printer(const Arena& arena, Dialect dialect, const Rename* rename = nullptr)
      : arena_(arena), dialect_(dialect), rename_(rename) {}

  Text print(Expr e) const {
    switch (e->kind) {
    case Kind::Integer:
      return number(e->integer);
    case Kind::Real:
      return {c10::str(e->real), e->real < 0 ? kSum : kCall};
    case Kind::Truth:
      return {truth(e->integer != 0), kCall};
    case Kind::Symbol:
      return {rename_ ? (*rename_)(arena_.info(e).name) : arena_.info(e).name, kCall};
    case Kind::Sum:
      return sum(e);
    case Kind::Product:
      return product(powers(e), 1);
    case Kind::FloorDiv:
      return division(e);
    case Kind::Mod:
      return remainder(e);
    case Kind::Where:
      return choice(e);
    case Kind::Eq:
      return relation(e, "Eq", " == ");
    case Kind::Ne:
      return relation(e, "Ne", " != ");
    case Kind::Lt:
      return order(e, " < ", " > ");
    case Kind::Le:
      return order(e, " <= ", " >= ");
    case Kind::And:
      return junction(e, kAnd, " & ", " and ", " && ");
    case Kind::Or:
      return junction(e, kOr, " | ", " or ", " || ");
    case Kind::Not:
      return negation(e);
    case Kind::FloatAdd:
      return infix(e, " + ", kSum);
    case Kind::FloatMul:
      return infix(e, dialect_ == Dialect::Torch ? "*" : " * ", kProduct);
    case Kind::FloatDiv:
      return is(Dialect::Torch) ? quotient(e) : call(e);
    default:
      return call(e);
    }
  }

 private:
  bool is(Dialect d) const { return dialect_ == d; }

  Text number(int64_t value) const {
    std::string text = std::to_string(value);
    if (is(Dialect::Cpp)) text += "LL";
    return {std::move(text), value < 0 ? kSum : kCall};
  }

  const char* truth(bool value) const {
    if (is(Dialect::Cpp)) return value ? "true" : "false";
    return value ? "True" : "False";
  }

  std::string inside(Expr e, int level) const {
    Text t = print(e);
    return t.level < level ? "(" + t.text + ")" : t.text;
  }

  std::string list(Expr e) const {
    std::string out;
    for (Expr a : e->operands()) out += (out.empty() ? "" : ", ") + print(a).text;
    return out;
  }

  std::map<std::string, int> powers(Expr monomial) const {
    std::map<std::string, int> out;
    for (Expr atom : atoms_of(monomial)) ++out[inside(atom, kPower)];
    return out;
  }

  Text product(const std::map<std::string, int>& atoms, int64_t coef) const {
    std::string out;
    if (coef != 1) out = number(coef).text;
    for (const auto& [text, power] : atoms) {
      // C++ has no power: the factor is repeated.
      const int times = is(Dialect::Cpp) ? power : 1;
      for (int i = 0; i < times; ++i) out += (out.empty() ? "" : "*") + text;
      if (times == 1 && power > 1) out += "**" + std::to_string(power);
    }
    const bool single = coef == 1 && atoms.size() == 1;
    const bool plain = single && atoms.begin()->second == 1;
    return {std::move(out), plain ? kCall : single && !is(Dialect::Cpp) ? kPower : kProduct};
  }

  Text sum(Expr e) const {
    std::vector<TermText> terms;
    for (uint32_t i = 0; i < e->count; ++i) terms.push_back({powers(e->args[i]), e->coefs[i]});
    std::sort(terms.begin(), terms.end(), comes_first);
    if (terms.size() == 1 && e->integer == 0) {
      const int64_t coef = terms[0].coef;
      if (coef == -1) return {"-" + product(terms[0].powers, 1).text, kSum};
      return product(terms[0].powers, coef);
    }
    // 4 - s0 rather than -s0 + 4.
    const bool constant_first = terms.size() == 1 && e->integer > 0 && terms[0].coef < 0 &&
                                terms[0].powers.size() == 1 && terms[0].powers.begin()->second == 1;
    std::string out = constant_first ? number(e->integer).text : "";
    for (const TermText& t : terms) {
      const bool negative = t.coef < 0;
      // The smallest integer has no positive counterpart; it keeps its sign.
      const bool flip = negative && t.coef != INT64_MIN;
      const std::string text = product(t.powers, flip ? -t.coef : t.coef).text;
      if (out.empty())
        out = flip ? "-" + text : text;
      else
        out += (flip ? " - " : " + ") + text;
    }
    if (!constant_first && e->integer != 0) {
      const bool flip = e->integer < 0 && e->integer != INT64_MIN;
      out += (flip ? " - " : " + ") + number(flip ? -e->integer : e->integer).text;
    }
    return {std::move(out), kSum};
  }

  Text division(Expr e) const {
    if (is(Dialect::Cpp)) return {"floor_div(" + list(e) + ")", kCall};
    const char* between = is(Dialect::Torch) ? "//" : " // ";
    return {"(" + inside(e->args[0], kPower) + between + inside(e->args[1], kPower) + ")", kCall};
  }

  // The division of two integers has a name of its own.
  Text quotient(Expr e) const {
    std::string out;
    for (Expr a : e->operands()) {
      const bool whole = a->kind == Kind::Real && a->real == std::floor(a->real);
      if (a->kind != Kind::ToFloat && !whole) return call(e);
      const std::string text = whole ? std::to_string(int64_t(a->real)) : print(a->args[0]).text;
      out += (out.empty() ? "" : ", ") + text;
    }
    return {"IntTrueDiv(" + out + ")", kCall};
  }

  Text remainder(Expr e) const {
    if (is(Dialect::Cpp)) return {"floor_mod(" + list(e) + ")", kCall};
    if (is(Dialect::Torch)) return {"Mod(" + list(e) + ")", kCall};
    return {inside(e->args[0], kPower) + " % " + inside(e->args[1], kPower), kProduct};
  }

  Text choice(Expr e) const {
    const std::string c = inside(e->args[0], kOr), a = inside(e->args[1], kOr),
                      b = inside(e->args[2], kOr);
    if (is(Dialect::Torch)) return {"Where(" + list(e) + ")", kCall};
    if (is(Dialect::Cpp)) return {c + " ? " + a + " : " + b, kChoice};
    return {a + " if " + c + " else " + b, kChoice};
  }

  // 's0 > 3', not '3 < s0'.
  Text order(Expr e, const char* symbol, const char* mirrored) const {
    const bool flip = is_constant(e->args[0]);
    const Expr a = e->args[flip ? 1 : 0], b = e->args[flip ? 0 : 1];
    return {inside(a, kSum) + (flip ? mirrored : symbol) + inside(b, kSum), kCompare};
  }

  Text relation(Expr e, const char* name, const char* symbol) const {
    if (is(Dialect::Torch)) return {std::string(name) + "(" + list(e) + ")", kCall};
    return {inside(e->args[0], kSum) + symbol + inside(e->args[1], kSum), kCompare};
  }

  Text junction(Expr e, int level, const char* torch, const char* python, const char* cpp) const {
    const char* between = is(Dialect::Torch) ? torch : is(Dialect::Python) ? python : cpp;
    std::string out;
    for (Expr a : e->operands()) {
      // & binds more tightly than a comparison in Python, so PyTorch's form needs parentheses.
      const std::string text = inside(a, is(Dialect::Torch) ? kSum : level + 1);
      out += (out.empty() ? "" : between) + text;
    }
    return {std::move(out), level};
  }

  Text negation(Expr e) const {
    const char* sign = is(Dialect::Torch) ? "~" : is(Dialect::Python) ? "not " : "!";
    return {sign + inside(e->args[0], kCall), kNot};
  }

  Text infix(Expr e, const char* between, int level) const {
    return {inside(e->args[0], level) + between + inside(e->args[1], level + 1), level};
  }

  Text call(Expr e) const { return {function_name(e) + "(" + list(e) + ")", kCall}; }

  std::string function_name(Expr e) const {
    struct Names {
      Kind kind;
      const char* names[3]; // by dialect
    };
    static constexpr Names kNames[] = {
        {Kind::Min, {"Min", "min", "std::min"}},
        {Kind::Max, {"Max", "max", "std::max"}},
        {Kind::FloatMin, {"Min", "min", "std::min"}},
        {Kind::FloatMax, {"Max", "max", "std::max"}},
        {Kind::Power, {"PowByNatural", "pow", "integer_pow"}},
        {Kind::FloatPower, {"FloatPow", "pow", "std::pow"}},
        {Kind::LeftShift, {"LShift", "operator.lshift", "shift_left"}},
        {Kind::RightShift, {"RShift", "operator.rshift", "shift_right"}},
        {Kind::BitAnd, {"BitwiseFn_bitwise_and", "operator.and_", "bit_and"}},
        {Kind::BitOr, {"BitwiseFn_bitwise_or", "operator.or_", "bit_or"}},
        {Kind::BitXor, {"BitwiseFn_bitwise_xor", "operator.xor", "bit_xor"}},
        {Kind::Trunc, {"TruncToInt", "math.trunc", "trunc_to_int"}},
        {Kind::Floor, {"FloorToInt", "math.floor", "floor_to_int"}},
        {Kind::Ceil, {"CeilToInt", "math.ceil", "ceil_to_int"}},
        {Kind::Round, {"RoundToInt", "round", "round_to_int"}},
        {Kind::ToFloat, {"ToFloat", "float", "static_cast<double>"}},
        {Kind::FloatDiv, {"FloatTrueDiv", "operator.truediv", "float_div"}},
        {Kind::FloatMod, {"Mod", "operator.mod", "float_mod"}},
    };
    if (e->kind == Kind::Function) {
      const std::string& name = arena_.function_name(e);
      const char* prefix = is(Dialect::Torch)    ? "OpaqueUnaryFn_"
                           : is(Dialect::Python) ? "math."
                                                 : "std::";
      return prefix + name;
    }
    for (const Names& n : kNames)
      if (n.kind == e->kind) return n.names[size_t(dialect_)];
    throw InternalError("symbolic expression: no name for a kind");
  }

  const Arena& arena_;
  Dialect dialect_;
  const Rename* rename_;
};

} // namespace

std::string print(const Arena& arena, Expr e, Dialect dialect) {
  return Printer(arena, dialect).print(e).text;
}

std::string print(const Arena& arena, Expr e, Dialect dialect,
                  const std::function<std::string(const std::string&)>& rename) {
  return Printer(arena, dialect, &rename).print(e).text;
}

} // namespace c10::sym
