// Arithmetic of scripted numbers. One function serves all combinations of number types of an
// operator: it looks at the tags, as the schema has already fixed what comes out.
#include <torch/csrc/jit/builtins.h>

#include <cmath>
#include <complex>

namespace torch::jit {
namespace {

using Tag = IValue::Tag;
using Complex = std::complex<double>;

bool integral(const IValue& v) { return v.tag == Tag::Int || v.tag == Tag::Bool; }
bool complex(const IValue& v) { return v.tag == Tag::Complex; }
Complex as_complex(const IValue& v) {
  return complex(v) ? Complex(v.bits.d[0], v.bits.d[1]) : Complex(v.toScalar().toDouble(), 0.0);
}
IValue from_complex(Complex z) { return IValue(c10::complex<double>(z.real(), z.imag())); }
double real(const IValue& v) {
  if (integral(v)) return static_cast<double>(v.bits.i);
  return v.toDouble();
}

// Wrapping arithmetic: overflow of scripted integers is defined.
int64_t wrap_add(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
int64_t wrap_sub(int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); }
int64_t wrap_mul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

// Integers have no value for it; of floats the result is an infinity or no number, as it is of
// tensors, since models in archives are compiled for that.
void need_divisor(int64_t b) {
  if (b == 0) throw c10::Error("ZeroDivisionError: division by zero");
}
int64_t floor_div(int64_t a, int64_t b) {
  need_divisor(b);
  if (b == -1) return wrap_sub(0, a);
  const int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
int64_t floor_mod(int64_t a, int64_t b) {
  need_divisor(b);
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r + ((r != 0 && ((r < 0) != (b < 0))) ? b : 0);
}
double float_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

#define ARITHMETIC(name, on_int, on_real, on_complex)                                              \
  IValue name(const IValue* a, size_t) {                                                           \
    if (integral(a[0]) && integral(a[1])) {                                                        \
      const int64_t x = a[0].bits.i, y = a[1].bits.i;                                              \
      return IValue(on_int);                                                                       \
    }                                                                                              \
    if (complex(a[0]) || complex(a[1])) {                                                          \
      const Complex x = as_complex(a[0]), y = as_complex(a[1]);                                    \
      return from_complex(on_complex);                                                             \
    }                                                                                              \
    const double x = real(a[0]), y = real(a[1]);                                                   \
    return IValue(on_real);                                                                        \
  }
ARITHMETIC(add, wrap_add(x, y), x + y, x + y)
ARITHMETIC(sub, wrap_sub(x, y), x - y, x - y)
ARITHMETIC(mul, wrap_mul(x, y), x* y, x* y)
ARITHMETIC(floordiv, floor_div(x, y), std::floor(x / y), x / y)
ARITHMETIC(remainder, floor_mod(x, y), float_mod(x, y), x - std::floor((x / y).real()) * y)
#undef ARITHMETIC

IValue div(const IValue* a, size_t) {
  if (complex(a[0]) || complex(a[1])) return from_complex(as_complex(a[0]) / as_complex(a[1]));
  return IValue(real(a[0]) / real(a[1]));
}
IValue power(const IValue* a, size_t) {
  if (complex(a[0]) || complex(a[1]))
    return from_complex(std::pow(as_complex(a[0]), as_complex(a[1])));
  const double base = real(a[0]), exponent = real(a[1]);
  if (base == 0 && exponent < 0)
    throw c10::Error("ZeroDivisionError: 0.0 cannot be raised to a negative power");
  return IValue(std::pow(base, exponent));
}
IValue power_int(const IValue* a, size_t) {
  int64_t base = a[0].toInt(), exponent = a[1].toInt(), out = 1;
  TORCH_CHECK(exponent >= 0, "Integers to negative integer powers are not allowed");
  for (; exponent; exponent >>= 1, base = wrap_mul(base, base))
    if (exponent & 1) out = wrap_mul(out, base);
  return IValue(out);
}
IValue negate(const IValue* a, size_t) {
  if (integral(a[0])) return IValue(wrap_sub(0, a[0].bits.i));
  if (complex(a[0])) return from_complex(-as_complex(a[0]));
  return IValue(-real(a[0]));
}
IValue absolute(const IValue* a, size_t) {
  if (integral(a[0])) return IValue(a[0].bits.i < 0 ? wrap_sub(0, a[0].bits.i) : a[0].bits.i);
  if (complex(a[0])) return IValue(std::abs(as_complex(a[0])));
  return IValue(std::fabs(real(a[0])));
}
IValue eq(const IValue* a, size_t) { return IValue(values_equal(a[0], a[1])); }
IValue ne(const IValue* a, size_t) { return IValue(!values_equal(a[0], a[1])); }
bool unordered(const IValue& v) { return v.tag == Tag::Double && std::isnan(v.bits.d[0]); }
IValue lt(const IValue* a, size_t) { return IValue(less(a[0], a[1])); }
IValue gt(const IValue* a, size_t) { return IValue(less(a[1], a[0])); }
IValue le(const IValue* a, size_t) {
  return IValue(!unordered(a[0]) && !unordered(a[1]) && !less(a[1], a[0]));
}
IValue ge(const IValue* a, size_t) {
  return IValue(!unordered(a[0]) && !unordered(a[1]) && !less(a[0], a[1]));
}
IValue widen(const IValue& chosen, const IValue& other) {
  return integral(chosen) && other.tag == Tag::Double ? IValue(real(chosen)) : chosen;
}
IValue smaller(const IValue* a, size_t) {
  return less(a[1], a[0]) ? widen(a[1], a[0]) : widen(a[0], a[1]);
}
IValue larger(const IValue* a, size_t) {
  return less(a[0], a[1]) ? widen(a[1], a[0]) : widen(a[0], a[1]);
}

struct Combination {
  const char *suffix, *left, *right, *result;
};
const Combination kCombinations[] = {
    {"int", "int", "int", "int"},
    {"complex", "complex", "complex", "complex"},
    {"float", "float", "float", "float"},
    {"int_complex", "int", "complex", "complex"},
    {"complex_int", "complex", "int", "complex"},
    {"float_complex", "float", "complex", "complex"},
    {"complex_float", "complex", "float", "complex"},
    {"int_float", "int", "float", "float"},
    {"float_int", "float", "int", "float"},
    {"", "Scalar", "Scalar", "Scalar"},
};
std::string binary(const char* name, const Combination& c, const char* result) {
  return c10::str(name, *c.suffix ? "." : "", c.suffix, "(", c.left, " a, ", c.right, " b) -> ",
                  result);
}
bool has_complex(const Combination& c) {
  return std::string(c.suffix).find("complex") != std::string::npos;
}

} // namespace

IValue not_of(const IValue* a, size_t) { return IValue(!a[0].toBool()); }

Fast fast_op_of(BuiltinFn builtin) {
  constexpr std::pair<BuiltinFn, Fast> kOps[] = {
      {add, Fast::Add},
      {sub, Fast::Sub},
      {mul, Fast::Mul},
      {floordiv, Fast::FloorDiv},
      {remainder, Fast::Mod},
      {div, Fast::Div},
      {eq, Fast::Eq},
      {ne, Fast::Ne},
      {lt, Fast::Lt},
      {gt, Fast::Gt},
      {le, Fast::Le},
      {ge, Fast::Ge},
      {not_of, Fast::Not},
      {list_item, Fast::Item},
      {list_set_item, Fast::SetItem},
      {list_append, Fast::Append},
      {list_length, Fast::Length},
      {dict_item, Fast::DictItem},
      {dict_set_item, Fast::SetDictItem},
      {dict_contains, Fast::DictContains},
  };
  for (const auto& [fn, op] : kOps)
    if (fn == builtin) return op;
  return Fast::None;
}

namespace {

struct Family {
  const char* name;
  BuiltinFn fn;
  const char* result; // null: as the combination says
  bool complex;
};
const Family kFamilies[] = {
    {"aten::add", add, nullptr, true},
    {"aten::sub", sub, nullptr, true},
    {"aten::mul", mul, nullptr, true},
    {"aten::floordiv", floordiv, nullptr, false},
    {"aten::remainder", remainder, nullptr, false},
    {"aten::eq", eq, "bool", true},
    {"aten::ne", ne, "bool", true},
    {"aten::lt", lt, "bool", false},
    {"aten::gt", gt, "bool", false},
    {"aten::le", le, "bool", false},
    {"aten::ge", ge, "bool", false},
    {"prim::min", smaller, nullptr, false},
    {"prim::max", larger, nullptr, false},
};

using RealFn = double (*)(double);
template <RealFn f> IValue real_function(const IValue* a, size_t) { return IValue(f(real(a[0]))); }
double degrees(double x) { return x * 180.0 / M_PI; }
double radians(double x) { return x * M_PI / 180.0; }

struct Unary {
  const char* name;
  BuiltinFn fn;
};
const Unary kUnary[] = {
    {"sqrt", real_function<std::sqrt>},    {"exp", real_function<std::exp>},
    {"log", real_function<std::log>},      {"log1p", real_function<std::log1p>},
    {"log10", real_function<std::log10>},  {"expm1", real_function<std::expm1>},
    {"sin", real_function<std::sin>},      {"cos", real_function<std::cos>},
    {"tan", real_function<std::tan>},      {"asin", real_function<std::asin>},
    {"acos", real_function<std::acos>},    {"atan", real_function<std::atan>},
    {"sinh", real_function<std::sinh>},    {"cosh", real_function<std::cosh>},
    {"tanh", real_function<std::tanh>},    {"asinh", real_function<std::asinh>},
    {"acosh", real_function<std::acosh>},  {"atanh", real_function<std::atanh>},
    {"erf", real_function<std::erf>},      {"erfc", real_function<std::erfc>},
    {"gamma", real_function<std::tgamma>}, {"lgamma", real_function<std::lgamma>},
    {"fabs", real_function<std::fabs>},    {"degrees", real_function<degrees>},
    {"radians", real_function<radians>},
};

void add_rounding(Builtins& out) {
  auto floor = [](const IValue* a, size_t) { return IValue(int64_t(std::floor(real(a[0])))); };
  auto ceil = [](const IValue* a, size_t) { return IValue(int64_t(std::ceil(real(a[0])))); };
  auto round = [](const IValue* a, size_t) { return IValue(std::nearbyint(real(a[0]))); };
  for (const char* type : {"int", "float", "Scalar"}) {
    const std::string dot = type[0] == 'S' ? ".Scalar" : c10::str(".", type);
    out.push_back({c10::str("aten::floor", dot, "(", type, " a) -> int"), floor});
    out.push_back({c10::str("aten::ceil", dot, "(", type, " a) -> int"), ceil});
    out.push_back({c10::str("aten::round", dot, "(", type, " a) -> float"), round});
    out.push_back({c10::str("aten::neg", dot, "(", type, " a) -> ", type), negate});
    out.push_back({c10::str("prim::abs", dot, "(", type, " a) -> ", type), absolute});
  }
  out.push_back({"aten::neg.complex(complex a) -> complex", negate});
  out.push_back({"prim::abs.complex(complex a) -> float", absolute});
}

void add_bits(Builtins& out) {
  struct Bit {
    const char* name;
    BuiltinFn fn;
    bool on_bool;
  };
  auto typed = [](const IValue& a, int64_t v) {
    return a.tag == Tag::Bool ? IValue(v != 0) : IValue(v);
  };
  static auto keep = typed;
  const Bit bits[] = {
      {"__and__", [](const IValue* a, size_t) { return keep(a[0], a[0].bits.i & a[1].bits.i); },
       true},
      {"__or__", [](const IValue* a, size_t) { return keep(a[0], a[0].bits.i | a[1].bits.i); },
       true},
      {"__xor__", [](const IValue* a, size_t) { return keep(a[0], a[0].bits.i ^ a[1].bits.i); },
       true},
      {"__lshift__",
       [](const IValue* a, size_t) {
         const int64_t n = a[1].toInt();
         TORCH_CHECK_VALUE(n >= 0, "negative shift count");
         return IValue(n > 63 ? int64_t(0) : int64_t(uint64_t(a[0].toInt()) << n));
       },
       false},
      {"__rshift__",
       [](const IValue* a, size_t) {
         const int64_t n = a[1].toInt();
         TORCH_CHECK_VALUE(n >= 0, "negative shift count");
         return IValue(a[0].toInt() >> (n > 63 ? 63 : n));
       },
       false},
  };
  for (const Bit& bit : bits) {
    out.push_back({c10::str("aten::", bit.name, ".int(int a, int b) -> int"), bit.fn});
    if (bit.on_bool)
      out.push_back({c10::str("aten::", bit.name, ".bool(bool a, bool b) -> bool"), bit.fn});
  }
  out.push_back({"aten::real.complex(complex a) -> float",
                 [](const IValue* a, size_t) { return IValue(a[0].toComplexDouble().real_); }});
  out.push_back({"aten::imag.complex(complex a) -> float",
                 [](const IValue* a, size_t) { return IValue(a[0].toComplexDouble().imag_); }});
  out.push_back({"aten::__not__(bool self) -> bool", not_of});
  out.push_back({"aten::bitwise_not.int(int self) -> int",
                 [](const IValue* a, size_t) { return IValue(~a[0].toInt()); }});
}

template <class F> void add_complex(Builtins& out, const char* name, const char* result, F fn) {
  out.push_back({c10::str("aten::", name, ".complex(complex a) -> ", result), fn});
}
#define COMPLEX_FUNCTION(name)                                                                     \
  add_complex(out, #name, "complex",                                                               \
              [](const IValue* a, size_t) { return from_complex(std::name(as_complex(a[0]))); })
void add_complex_math(Builtins& out) {
  COMPLEX_FUNCTION(log);
  COMPLEX_FUNCTION(log10);
  COMPLEX_FUNCTION(sqrt);
  COMPLEX_FUNCTION(exp);
  COMPLEX_FUNCTION(sin);
  COMPLEX_FUNCTION(cos);
  COMPLEX_FUNCTION(tan);
  COMPLEX_FUNCTION(asin);
  COMPLEX_FUNCTION(acos);
  COMPLEX_FUNCTION(atan);
  COMPLEX_FUNCTION(sinh);
  COMPLEX_FUNCTION(cosh);
  COMPLEX_FUNCTION(tanh);
  COMPLEX_FUNCTION(asinh);
  COMPLEX_FUNCTION(acosh);
  COMPLEX_FUNCTION(atanh);
  add_complex(out, "angle", "float",
              [](const IValue* a, size_t) { return IValue(std::arg(as_complex(a[0]))); });
  add_complex(out, "isnan", "bool", [](const IValue* a, size_t) {
    const Complex v = as_complex(a[0]);
    return IValue(std::isnan(v.real()) || std::isnan(v.imag()));
  });
  add_complex(out, "isinf", "bool", [](const IValue* a, size_t) {
    const Complex v = as_complex(a[0]);
    return IValue(std::isinf(v.real()) || std::isinf(v.imag()));
  });
  add_complex(out, "isfinite", "bool", [](const IValue* a, size_t) {
    const Complex v = as_complex(a[0]);
    return IValue(std::isfinite(v.real()) && std::isfinite(v.imag()));
  });
  out.push_back(
      {"aten::polar.float(float abs, float angle) -> complex", [](const IValue* a, size_t) {
         const double r = real(a[0]), phi = real(a[1]);
         return from_complex(Complex(r * std::cos(phi), r * std::sin(phi)));
       }});
}
#undef COMPLEX_FUNCTION

void add_math(Builtins& out) {
  auto pair = [](IValue a, IValue b) { return make_tuple({std::move(a), std::move(b)}); };
  static auto both = pair;
  for (const char* t : {"int", "float"}) {
    out.push_back(
        {c10::str("aten::divmod.", t, "(", t, " x, ", t, " y) -> (", t, ", ", t, ")"),
         [](const IValue* a, size_t n) { return both(floordiv(a, n), remainder(a, n)); }});
    const std::string two = c10::str(".", t, "(", t, " a, ", t, " b) -> float");
    out.push_back({"aten::fmod" + two, [](const IValue* a, size_t) {
                     return IValue(std::fmod(real(a[0]), real(a[1])));
                   }});
    out.push_back({"aten::atan2" + two, [](const IValue* a, size_t) {
                     return IValue(std::atan2(real(a[0]), real(a[1])));
                   }});
    out.push_back({"aten::copysign" + two, [](const IValue* a, size_t) {
                     return IValue(std::copysign(real(a[0]), real(a[1])));
                   }});
    out.push_back({"aten::mathremainder" + two, [](const IValue* a, size_t) {
                     return IValue(std::remainder(real(a[0]), real(a[1])));
                   }});
    const std::string one = c10::str(".", t, "(", t, " a) -> ");
    out.push_back({"aten::isnan" + one + "bool",
                   [](const IValue* a, size_t) { return IValue(std::isnan(real(a[0]))); }});
    out.push_back({"aten::isinf" + one + "bool",
                   [](const IValue* a, size_t) { return IValue(std::isinf(real(a[0]))); }});
    out.push_back({"aten::isfinite" + one + "bool",
                   [](const IValue* a, size_t) { return IValue(std::isfinite(real(a[0]))); }});
  }
  out.push_back({"aten::factorial.int(int a) -> int", [](const IValue* a, size_t) {
                   TORCH_CHECK_VALUE(a[0].toInt() >= 0, "factorial() not defined for negative");
                   int64_t v = 1;
                   for (int64_t i = 2; i <= a[0].toInt() && i < 100; ++i) v = wrap_mul(v, i);
                   return IValue(v);
                 }});
  out.push_back({"aten::gcd.int(int a, int b) -> int", [](const IValue* a, size_t) {
                   int64_t x = std::llabs(a[0].toInt()), y = std::llabs(a[1].toInt());
                   while (y) std::swap(x %= y, y);
                   return IValue(x);
                 }});
  out.push_back({"aten::modf(float a) -> (float, float)", [](const IValue* a, size_t) {
                   double whole = 0;
                   const double part = std::modf(real(a[0]), &whole);
                   return both(IValue(part), IValue(whole));
                 }});
  out.push_back({"aten::frexp(float a) -> (float, int)", [](const IValue* a, size_t) {
                   int exponent = 0;
                   const double part = std::frexp(real(a[0]), &exponent);
                   return both(IValue(part), IValue(int64_t(exponent)));
                 }});
  out.push_back({"aten::ldexp(float x, int i) -> float", [](const IValue* a, size_t) {
                   return IValue(std::ldexp(real(a[0]), int(a[1].toInt())));
                 }});
  out.push_back({"aten::log.base(float a, float b) -> float", [](const IValue* a, size_t) {
                   return IValue(std::log(real(a[0])) / std::log(real(a[1])));
                 }});
}

} // namespace

void add_number_builtins(Builtins& out) {
  for (const Family& family : kFamilies) {
    for (const Combination& c : kCombinations) {
      if (has_complex(c) && !family.complex) continue;
      out.push_back({binary(family.name, c, family.result ? family.result : c.result), family.fn});
    }
  }
  for (const Combination& c : kCombinations) {
    const bool is_complex = has_complex(c);
    const char* result = is_complex ? "complex" : *c.suffix ? "float" : "Scalar";
    out.push_back({binary("aten::div", c, result), div});
    out.push_back({binary("aten::pow", c, result), power});
  }
  out.push_back({"aten::pow.int_to_int(int a, int b) -> int", power_int});
  for (const char* t : {"bool", "str", "Device", "AnyEnumType", "Layout"}) {
    out.push_back({c10::str("aten::eq.", t, "(", t, " a, ", t, " b) -> bool"), eq});
    out.push_back({c10::str("aten::ne.", t, "(", t, " a, ", t, " b) -> bool"), ne});
  }
  for (const auto& [name, fn] :
       {std::pair<const char*, BuiltinFn>{"lt", lt}, {"gt", gt}, {"le", le}, {"ge", ge}})
    out.push_back({c10::str("aten::", name, ".str(str a, str b) -> bool"), fn});
  add_complex_math(out); // before the overloads for any number
  for (const Unary& unary : kUnary) {
    for (const char* type : {"int", "float", "Scalar"}) {
      out.push_back({c10::str("aten::", unary.name, ".", type, "(", type, " a) -> ",
                              type[0] == 'S' ? "Scalar" : "float"),
                     unary.fn});
    }
  }
  add_rounding(out);
  add_bits(out);
  add_math(out);
}

} // namespace torch::jit
