// Pointwise operators that pick their functor at run time: by a rounding mode, by which bounds are
// given, by the exponent. Each has one body for its functional, in-place and out variants: `Target`
// carries where the result goes.
#include <cmath>
#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/PointwisePrograms.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/Pointwise.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/pointwise/FunctorChoiceTables.h>
#include <ATen/native/pointwise/HostFunctor.h>
#include <ATen/native/pointwise/Native.h>
#include <ATen/native/pointwise/Parts.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/trunc.h>

namespace at::native {
namespace {
using iter::NumberRule;
using iter::Operand;
using iter::Operands;
using iter::Params;
using iter::PointwiseSpec;
using iter::Promote;

#ifdef CRESSET_HAVE_X86_ISA
#define CRESSET_CHOICE_TABLE(Name)                                                                 \
  constexpr const LoopTable* tables_##Name[3] = {&base::choice_##Name, &avx2::choice_##Name,       \
                                                 &avx512::choice_##Name};
#else
#define CRESSET_CHOICE_TABLE(Name)                                                                 \
  constexpr const LoopTable* tables_##Name[3] = {&base::choice_##Name, &base::choice_##Name,       \
                                                 &base::choice_##Name};
#endif
CRESSET_FORALL_CHOICE_TABLES(CRESSET_CHOICE_TABLE)
#undef CRESSET_CHOICE_TABLE

// The operator's name, its loops, and the functor that its CUDA program is made of.
#define CRESSET_CHOICE_SPEC(constant, name, table, functor, inputs, params, promote, rule)         \
  constexpr PointwiseSpec constant{name,                                                           \
                                   tables_##table,                                                 \
                                   inputs,                                                         \
                                   params,                                                         \
                                   OutKind::Same,                                                  \
                                   Promote::promote,                                               \
                                   &cuda::loops_##functor##_##inputs##_##params,                   \
                                   NumberRule::rule};
CRESSET_CHOICE_SPEC(kDivTrunc, "div_trunc", DivTrunc, DivTrunc, 2, 0, Default, Wrap)
CRESSET_CHOICE_SPEC(kDivFloor, "div_floor", DivFloor, DivFloor, 2, 0, Default, Wrap)
CRESSET_CHOICE_SPEC(kClamp, "clamp", Clamp, Clamp, 3, 0, Default, Checked)
CRESSET_CHOICE_SPEC(kClampMin, "clamp_min", ClampMin, ClampMin, 2, 0, Default, Checked)
CRESSET_CHOICE_SPEC(kClampMax, "clamp_max", ClampMax, ClampMax, 2, 0, Default, Checked)
CRESSET_CHOICE_SPEC(kClampNumbers, "clamp", ClampNumbers, Clamp, 3, 0, Default, Checked)
CRESSET_CHOICE_SPEC(kClampMinNumber, "clamp_min", ClampMinNumber, ClampMin, 2, 0, Default, Checked)
CRESSET_CHOICE_SPEC(kClampMaxNumber, "clamp_max", ClampMaxNumber, ClampMax, 2, 0, Default, Checked)
CRESSET_CHOICE_SPEC(kPow, "pow", Pow, Pow, 2, 0, Default, Checked)
CRESSET_CHOICE_SPEC(kPowOfNumber, "pow", Pow, Pow, 2, 0, Default, Wrap)
CRESSET_CHOICE_SPEC(kPowWhole, "pow", PowWhole, PowWhole, 1, 1, Default, Wrap)
CRESSET_CHOICE_SPEC(kSquare, "pow", Square, Square, 1, 0, Default, Wrap)
CRESSET_CHOICE_SPEC(kCube, "pow", Cube, Cube, 1, 0, Default, Wrap)
CRESSET_CHOICE_SPEC(kSqrt, "pow", Sqrt, Sqrt, 1, 0, Default, Wrap)
CRESSET_CHOICE_SPEC(kReciprocal, "pow", Reciprocal, Reciprocal, 1, 0, Default, Wrap)
CRESSET_CHOICE_SPEC(kRound, "round_vml", Round, Round, 1, 0, Default, Wrap)
CRESSET_CHOICE_SPEC(kRoundUp, "round_vml", RoundUp, RoundDecimalsUp, 1, 1, Default, Wrap)
CRESSET_CHOICE_SPEC(kRoundDown, "round_vml", RoundDown, RoundDecimalsDown, 1, 1, Default, Wrap)
CRESSET_CHOICE_SPEC(kLogit, "logit", Logit, Logit, 1, 1, Float, Wrap)
CRESSET_CHOICE_SPEC(kNanToNum, "nan_to_num", NanToNum, NanToNum, 1, 3, Default, Wrap)
#undef CRESSET_CHOICE_SPEC

} // namespace

const char* host_functor(const PointwiseSpec& spec) {
  if (&spec == &kClampNumbers) return "ClampNumbers";
  if (&spec == &kClampMinNumber) return "ClampMinNumber";
  if (&spec == &kClampMaxNumber) return "ClampMaxNumber";
  return spec.cuda->functor;
}

namespace {

// Where a result goes: a new tensor, `inplace`, or `out`.
struct Target {
  Tensor* inplace = nullptr;
  Tensor* out = nullptr;
  Tensor run(const PointwiseSpec& spec, Operands operands, Params params = {}) const {
    if (inplace) return iter::pointwise_(spec, *inplace, operands, params);
    if (out) return iter::pointwise_out(spec, *out, operands, params);
    return iter::pointwise(spec, operands, params);
  }
};
Target in(Tensor& self) { return {&self, nullptr}; }
Target into(Tensor& out) { return {nullptr, &out}; }

// ---- div with a rounding mode -----------------------------------------------------------------
template <class Other> Tensor divide(const Target& to, const Tensor& self, const Other& other,
                                     std::optional<std::string_view> mode) {
  if (!mode) {
    if (to.inplace) {
      if constexpr (std::is_same_v<Other, Tensor>)
        return at::_ops::div__Tensor::call(*to.inplace, other);
      else
        return at::_ops::div__Scalar::call(*to.inplace, other);
    }
    const Tensor result = at::div(self, other);
    if (to.out) {
      generated::store_out(*to.out, result);
      return *to.out;
    }
    return result;
  }
  if (*mode == "trunc") {
    // Defined as the truncated true quotient, which half types round before.
    if (c10::isReducedFloatingType(self.scalar_type())) {
      const Tensor quotient = at::div(self, other);
      const bool fits = !to.inplace || quotient.sizes() == self.sizes();
      if (fits && quotient.scalar_type() == self.scalar_type()) {
        const Tensor result = at::trunc(quotient);
        if (to.inplace) return to.inplace->copy_(result);
        if (!to.out) return result;
        generated::store_out(*to.out, result);
        return *to.out;
      }
    }
    return to.run(kDivTrunc, {self, other});
  }
  TORCH_CHECK(*mode == "floor",
              "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
              *mode, "'");
  return to.run(kDivFloor, {self, other});
}

// ---- clamp ------------------------------------------------------------------------------------
// A bound that compares: not a NaN, and a number, so that looking at it costs nothing.
bool is_plain(const Scalar& bound) {
  return !bound.isFloatingPoint() || !std::isnan(bound.toDouble());
}
bool is_plain(const Tensor&) { return false; }

template <class Bound> Tensor clamp_between(const Target& to, const Tensor& self,
                                            const std::optional<Bound>& low,
                                            const std::optional<Bound>& high) {
  TORCH_CHECK(low || high, "torch.clamp: At least one of 'min' or 'max' must not be None");
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "clamp is not supported for complex types");
  const bool plain = (!low || is_plain(*low)) && (!high || is_plain(*high));
  if (low && high) return to.run(plain ? kClampNumbers : kClamp, {self, *low, *high});
  if (low) return to.run(plain ? kClampMinNumber : kClampMin, {self, *low});
  return to.run(plain ? kClampMaxNumber : kClampMax, {self, *high});
}

// ---- pow --------------------------------------------------------------------------------------
// Up to here repeated squaring is at least as accurate as the exponential of a logarithm.
constexpr double kLargestWholePower = 100;

Tensor power(const Target& to, const Tensor& base, const Scalar& exponent) {
  const ScalarType type = result_type_of(base, exponent);
  TORCH_CHECK(
      !(c10::isIntegralType(type, true) && exponent.isIntegral(true) && exponent.toLong() < 0),
      "Integers to negative integer powers are not allowed.");
  // Logic has no power of its own: counted in bytes and read as bool again.
  if (type == kBool && !to.inplace && !to.out)
    return to.run(kPow, {base.to(kByte), Scalar(int64_t(exponent.toBool()))}).to(kBool);
  // The shortcuts keep the dtype of the base; where the exponent raises it, the general loop runs.
  const bool real = !exponent.isComplex() || exponent.toComplexDouble().imag_ == 0;
  if (type == base.scalar_type() && real) {
    const double e = exponent.isComplex() ? exponent.toComplexDouble().real_ : exponent.toDouble();
    if (e == 2) return to.run(kSquare, {base});
    if (e == 3) return to.run(kCube, {base});
    const bool floating = c10::isFloatingType(type) || c10::isComplexType(type);
    if (e == 0.5 && floating) return to.run(kSqrt, {base});
    if (e == -1 && floating) return to.run(kReciprocal, {base});
    const bool whole = e == std::trunc(e) && std::abs(e) <= kLargestWholePower;
    const bool has_loop = type == kComplexFloat || type == kComplexDouble;
    if (whole && has_loop) {
      const Scalar n = e;
      return to.run(kPowWhole, {base}, {&n});
    }
  }
  return to.run(kPow, {base, exponent});
}

// ---- round ------------------------------------------------------------------------------------
Tensor round_to(const Target& to, const Tensor& self, int64_t decimals) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "round is not supported for complex inputs");
  if (decimals == 0 || !self.is_floating_point()) return to.run(kRound, {self});
  const Scalar scale = std::pow(10.0, static_cast<double>(decimals < 0 ? -decimals : decimals));
  return to.run(decimals > 0 ? kRoundUp : kRoundDown, {self}, {&scale});
}

Tensor logit_of(const Target& to, const Tensor& self, std::optional<double> eps) {
  const Scalar value = eps ? *eps : -1.0;
  return to.run(kLogit, {self}, {&value});
}

// ---- nan_to_num -------------------------------------------------------------------------------
Tensor replace_nan(const Target& to, const Tensor& self, std::optional<double> nan,
                   std::optional<double> posinf, std::optional<double> neginf) {
  double largest = std::numeric_limits<float>::max();
  const ScalarType real = c10::toRealValueType(self.scalar_type());
  if (real == kDouble) largest = std::numeric_limits<double>::max();
  if (real == kHalf) largest = 65504;
  if (real == kBFloat16) largest = 3.3895313892515355e38;
  const bool floating = c10::isFloatingType(real);
  auto bounded = [&](double v) {
    if (!floating) return Scalar(int64_t(0));
    return Scalar(v > largest && std::isfinite(v) ? std::numeric_limits<double>::infinity() : v);
  };
  const Scalar a = bounded(nan.value_or(0.0)), b = bounded(posinf.value_or(largest)),
               c = bounded(neginf.value_or(-largest));
  return to.run(kNanToNum, {self}, {&a, &b, &c});
}
} // namespace

// Each operator in its three variants.
Tensor div_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> mode) {
  return divide({}, self, other, mode);
}
Tensor& div_mode_(Tensor& self, const Tensor& other, std::optional<std::string_view> mode) {
  divide(in(self), self, other, mode);
  return self;
}
Tensor& div_mode_out(const Tensor& self, const Tensor& other, std::optional<std::string_view> mode,
                     Tensor& out) {
  divide(into(out), self, other, mode);
  return out;
}
Tensor div_scalar_mode(const Tensor& self, const Scalar& other,
                       std::optional<std::string_view> mode) {
  return divide({}, self, other, mode);
}
Tensor& div_scalar_mode_(Tensor& self, const Scalar& other, std::optional<std::string_view> mode) {
  divide(in(self), self, other, mode);
  return self;
}

Tensor clamp(const Tensor& self, const std::optional<Scalar>& min,
             const std::optional<Scalar>& max) {
  return clamp_between({}, self, min, max);
}
Tensor& clamp_(Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  clamp_between(in(self), self, min, max);
  return self;
}
Tensor& clamp_out(const Tensor& self, const std::optional<Scalar>& min,
                  const std::optional<Scalar>& max, Tensor& out) {
  clamp_between(into(out), self, min, max);
  return out;
}
Tensor clamp_tensor(const Tensor& self, const std::optional<Tensor>& min,
                    const std::optional<Tensor>& max) {
  return clamp_between({}, self, min, max);
}
Tensor& clamp_tensor_(Tensor& self, const std::optional<Tensor>& min,
                      const std::optional<Tensor>& max) {
  clamp_between(in(self), self, min, max);
  return self;
}
Tensor& clamp_tensor_out(const Tensor& self, const std::optional<Tensor>& min,
                         const std::optional<Tensor>& max, Tensor& out) {
  clamp_between(into(out), self, min, max);
  return out;
}

Tensor pow_tensor(const Tensor& self, const Tensor& exponent) {
  return Target().run(kPow, {self, exponent});
}
Tensor& pow_tensor_(Tensor& self, const Tensor& exponent) {
  in(self).run(kPow, {self, exponent});
  return self;
}
Tensor& pow_tensor_out(const Tensor& self, const Tensor& exponent, Tensor& out) {
  into(out).run(kPow, {self, exponent});
  return out;
}
Tensor pow_scalar(const Tensor& self, const Scalar& exponent) { return power({}, self, exponent); }
Tensor& pow_scalar_(Tensor& self, const Scalar& exponent) {
  power(in(self), self, exponent);
  return self;
}
Tensor& pow_scalar_out(const Tensor& self, const Scalar& exponent, Tensor& out) {
  power(into(out), self, exponent);
  return out;
}
Tensor pow_of_scalar(const Scalar& self, const Tensor& exponent) {
  return Target().run(kPowOfNumber, {self, exponent});
}
Tensor& pow_of_scalar_out(const Scalar& self, const Tensor& exponent, Tensor& out) {
  into(out).run(kPowOfNumber, {self, exponent});
  return out;
}

Tensor round(const Tensor& self) { return round_to({}, self, 0); }
Tensor& round_(Tensor& self) {
  round_to(in(self), self, 0);
  return self;
}
Tensor& round_out(const Tensor& self, Tensor& out) {
  round_to(into(out), self, 0);
  return out;
}
Tensor round_decimals(const Tensor& self, int64_t decimals) { return round_to({}, self, decimals); }
Tensor& round_decimals_(Tensor& self, int64_t decimals) {
  round_to(in(self), self, decimals);
  return self;
}
Tensor& round_decimals_out(const Tensor& self, int64_t decimals, Tensor& out) {
  round_to(into(out), self, decimals);
  return out;
}

Tensor logit(const Tensor& self, std::optional<double> eps) { return logit_of({}, self, eps); }
Tensor& logit_(Tensor& self, std::optional<double> eps) {
  logit_of(in(self), self, eps);
  return self;
}
Tensor& logit_out(const Tensor& self, std::optional<double> eps, Tensor& out) {
  logit_of(into(out), self, eps);
  return out;
}

Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  return replace_nan({}, self, nan, posinf, neginf);
}
Tensor& nan_to_num_(Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                    std::optional<double> neginf) {
  replace_nan(in(self), self, nan, posinf, neginf);
  return self;
}
Tensor& nan_to_num_out(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                       std::optional<double> neginf, Tensor& out) {
  replace_nan(into(out), self, nan, posinf, neginf);
  return out;
}

// ---- frexp: two outputs -----------------------------------------------------------------------
std::tuple<Tensor, Tensor> frexp(const Tensor& self) {
  TORCH_CHECK(self.is_floating_point(), "torch.frexp() only supports floating-point dtypes");
  Tensor mantissa = at::empty_like(self);
  Tensor exponent = at::empty_like(self, kInt);
  if (self.is_meta()) return {mantissa, exponent};
#ifndef CRESSET_NO_CUDA
  if (self.is_cuda()) {
    part_cuda(Part::Mantissa, mantissa, self);
    part_cuda(Part::Exponent, exponent, self);
    return {mantissa, exponent};
  }
#endif
  const Loop1d loop =
      tables_Frexp[static_cast<int>(cpu_isa())]->loop[static_cast<int>(self.scalar_type())];
  TORCH_CHECK_NOT_IMPLEMENTED(loop != nullptr, "\"frexp_cpu\" not implemented for '",
                              self.scalar_type(), "'");
  TensorIterator it(self.sizes());
  it.add_output(mantissa);
  it.add_output(exponent);
  it.add_input(self);
  it.build();
  it.run(loop, nullptr);
  return {mantissa, exponent};
}

} // namespace at::native
