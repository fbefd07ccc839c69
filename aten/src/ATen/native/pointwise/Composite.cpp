// Pointwise operators made of others, and the two that join real tensors into complex ones.
#include <cmath>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/pointwise/Native.h>
#include <ATen/native/pointwise/Parts.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/frexp.h>
#include <ATen/ops/heaviside.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/isneginf.h>
#include <ATen/ops/isposinf.h>
#include <ATen/ops/le.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/real.h>
#include <ATen/ops/signbit.h>
#include <ATen/ops/sub.h>

namespace at::native {

Tensor square(const Tensor& self) { return at::pow(self, Scalar(2)); }
Tensor& square_(Tensor& self) { return at::_ops::pow__Scalar::call(self, Scalar(2)); }

Tensor positive(const Tensor& self) {
  TORCH_CHECK(self.scalar_type() != kBool, "The `+` operator, on a bool tensor is not supported.");
  return self;
}

// An integer exponent does not widen the mantissa it scales.
Tensor ldexp(const Tensor& self, const Tensor& other) {
  // The powers in double precision where the mantissas are: 2 ** 128 is no float.
  const bool wide = self.scalar_type() == kDouble || self.scalar_type() == kComplexDouble;
  const bool counts = c10::isIntegralType(other.scalar_type(), true);
  const Tensor exponent = wide && counts ? other.to(kDouble) : other;
  const Tensor result = at::mul(self, at::pow(Scalar(2.0), exponent));
  return c10::isReducedFloatingType(self.scalar_type()) &&
                 c10::isIntegralType(other.scalar_type(), true)
             ? result.to(self.scalar_type())
             : result;
}

namespace {
ScalarType float_power_type(bool complex) { return complex ? kComplexDouble : kDouble; }
} // namespace
Tensor float_power_tensor(const Tensor& base, const Tensor& exponent) {
  const ScalarType type = float_power_type(base.is_complex() || exponent.is_complex());
  return at::pow(base.to(type), exponent.to(type));
}
Tensor float_power_tensor_scalar(const Tensor& base, const Scalar& exponent) {
  const ScalarType type = float_power_type(base.is_complex() || exponent.isComplex());
  const Scalar e =
      type == kComplexDouble ? Scalar(exponent.toComplexDouble()) : Scalar(exponent.toDouble());
  return at::pow(base.to(type), e);
}
Tensor float_power_scalar(const Scalar& base, const Tensor& exponent) {
  const ScalarType type = float_power_type(base.isComplex() || exponent.is_complex());
  const Scalar b =
      type == kComplexDouble ? Scalar(base.toComplexDouble()) : Scalar(base.toDouble());
  return at::pow(b, exponent.to(type));
}
namespace {
Tensor& store_float_power(Tensor& self, const Tensor& result) {
  TORCH_CHECK(self.scalar_type() == result.scalar_type(),
              "the base given to float_power_ has dtype ", self.scalar_type(),
              " but the operation's result requires dtype ", result.scalar_type());
  return self.copy_(result);
}
} // namespace
Tensor& float_power_tensor_(Tensor& self, const Tensor& exponent) {
  return store_float_power(self, float_power_tensor(self, exponent));
}
Tensor& float_power_scalar_(Tensor& self, const Scalar& exponent) {
  return store_float_power(self, float_power_tensor_scalar(self, exponent));
}

Tensor isreal(const Tensor& self) {
  if (!self.is_complex())
    return at::ones_like(self, kBool, std::nullopt, std::nullopt, std::nullopt,
                         MemoryFormat::Preserve);
  return at::eq(at::imag(self), Scalar(0));
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), self.scalar_type(), " did not match ",
              other.scalar_type());
  TORCH_CHECK(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  TORCH_CHECK(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  Tensor close = at::eq(self, other);
  const bool floating = self.is_floating_point() || self.is_complex();
  if (equal_nan && floating)
    close = at::bitwise_or(close, at::bitwise_and(at::isnan(self), at::isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  // Integers are compared as numbers, so that their differences cannot wrap.
  const Tensor a = floating ? self : self.to(c10::get_default_dtype());
  const Tensor b = floating ? other : other.to(c10::get_default_dtype());
  const Tensor allowed = at::add(at::abs(at::mul(b, Scalar(rtol))), Scalar(atol));
  const Tensor actual = at::abs(at::sub(a, b));
  Tensor near = at::isfinite(actual);
  at::_ops::bitwise_and__Tensor::call(near, at::le(actual, allowed));
  return at::_ops::bitwise_or__Tensor::call(close, near);
}

// What isfinite stands for. See Note [Definitions shown to handlers].
Tensor isfinite_in_parts(const Tensor& self) {
  if (!self.is_floating_point() && !self.is_complex())
    return at::ones_like(self, kBool, std::nullopt, std::nullopt, std::nullopt,
                         MemoryFormat::Preserve);
  if (self.is_complex())
    return at::bitwise_and(at::isfinite(at::real(self)), at::isfinite(at::imag(self)));
  const Tensor bounded = at::ne(at::abs(self), Scalar(__builtin_inf()));
  return at::mul(at::eq(self, self), bounded);
}

// ---- complex and polar ------------------------------------------------------------------------
namespace {
template <class F>
Tensor join(const Tensor& a, const Tensor& b, const char* name, Part part, const F& make) {
  TORCH_CHECK(c10::isFloatingType(a.scalar_type()) && a.scalar_type() != kBFloat16 &&
                  c10::isFloatingType(b.scalar_type()) && b.scalar_type() != kBFloat16,
              "Expected both inputs to be Half, Float or Double tensors but got ", a.scalar_type(),
              " and ", b.scalar_type());
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "Expected object of scalar type ",
              a.scalar_type(), " but got scalar type ", b.scalar_type(), " for second argument");
  const DimVector shape = broadcast_shapes(a.sizes(), b.sizes());
  const Tensor* operands[2] = {&a, &b};
  Tensor out = detail::empty_strided(shape, pointwise_output_strides(shape, operands),
                                     c10::toComplexType(a.scalar_type()), a.device());
  if (out.is_meta()) return out;
#ifndef CRESSET_NO_CUDA
  if (out.is_cuda()) {
    part_cuda(part, out, {a, b});
    return out;
  }
#else
  static_cast<void>(part);
#endif
  TensorIterator iter(shape);
  iter.add_output(out);
  iter.add_input(a);
  iter.add_input(b);
  iter.build();
  dtype_switch<Types<c10::Half, float, double>>(a.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    iter.for_each([&](char* const* data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const T x = *reinterpret_cast<const T*>(data[1] + i * strides[1]);
        const T y = *reinterpret_cast<const T*>(data[2] + i * strides[2]);
        *reinterpret_cast<c10::complex<T>*>(data[0] + i * strides[0]) = make(x, y);
      }
    });
  });
  return out;
}
} // namespace

Tensor complex(const Tensor& real, const Tensor& imag) {
  return join(real, imag, "complex_cpu", Part::Complex,
              [](auto x, auto y) { return c10::complex<decltype(x)>(x, y); });
}
Tensor polar(const Tensor& abs, const Tensor& angle) {
  return join(abs, angle, "polar_cpu", Part::Polar, [](auto r, auto angle) {
    using T = decltype(r);
    using M = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const M size = static_cast<M>(r), turn = static_cast<M>(angle);
    return c10::complex<T>(static_cast<T>(size * std::cos(turn)),
                           static_cast<T>(size * std::sin(turn)));
  });
}

// ---- out variants whose dtype is not open: nothing is cast on the way
namespace {
void store_exactly(Tensor& out, const Tensor& result) {
  TORCH_CHECK(out.scalar_type() == result.scalar_type(), "Expected object of scalar type ",
              result.scalar_type(), " but got scalar type ", out.scalar_type(),
              " for argument 'out'");
  generated::store_out(out, result);
}
void store_predicate(const char* name, Tensor& out, const Tensor& result) {
  TORCH_CHECK(out.scalar_type() == kBool, name, " does not support non-boolean outputs.");
  generated::store_out(out, result);
}
} // namespace
Tensor& complex_out(const Tensor& real, const Tensor& imag, Tensor& out) {
  store_exactly(out, at::complex(real, imag));
  return out;
}
Tensor& polar_out(const Tensor& abs, const Tensor& angle, Tensor& out) {
  store_exactly(out, at::polar(abs, angle));
  return out;
}
Tensor& isposinf_out(const Tensor& self, Tensor& out) {
  store_predicate("isposinf", out, at::isposinf(self));
  return out;
}
Tensor& isneginf_out(const Tensor& self, Tensor& out) {
  store_predicate("isneginf", out, at::isneginf(self));
  return out;
}
Tensor& signbit_out(const Tensor& self, Tensor& out) {
  store_predicate("signbit", out, at::signbit(self));
  return out;
}
Tensor& heaviside_out(const Tensor& self, const Tensor& values, Tensor& out) {
  TORCH_CHECK(!out.is_complex(), "heaviside is not yet implemented for complex tensors.");
  TORCH_CHECK(out.scalar_type() == self.scalar_type(),
              "heaviside is not yet implemented for tensors with different dtypes.");
  generated::store_out(out, at::heaviside(self, values));
  return out;
}
std::tuple<Tensor&, Tensor&> frexp_out(const Tensor& self, Tensor& mantissa, Tensor& exponent) {
  const auto [fraction, power] = at::frexp(self);
  TORCH_CHECK(mantissa.scalar_type() == fraction.scalar_type(),
              "torch.frexp() expects mantissa to have dtype ", fraction.scalar_type(), " but got ",
              mantissa.scalar_type());
  TORCH_CHECK(exponent.scalar_type() == kInt,
              "torch.frexp() expects exponent to have int dtype but got ", exponent.scalar_type());
  generated::store_out(mantissa, fraction);
  generated::store_out(exponent, power);
  return {mantissa, exponent};
}

} // namespace at::native
