// Gradients of pointwise operators. See functions.h.
#include <ATen/ops/abs.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/digamma.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/le.h>
#include <ATen/ops/lgamma.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/real.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sgn.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/special_i0e.h>
#include <ATen/ops/special_zeta.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {

Tensor not_implemented(const char* what) {
  throw c10::NotImplementedError(c10::str("the derivative for '", what, "' is not implemented."));
}

Tensors zeros_like_each(const TensorVec& grads) {
  Tensors out;
  for (const Tensor& g : grads) out.push_back(g.defined() ? at::zeros_like(g) : Tensor());
  return out;
}
Tensor zero_where(const Tensor& grad, const Tensor& mask) {
  // torch.where takes bytes as conditions, masked_fill only truth values.
  return at::masked_fill(grad, mask.scalar_type() == at::kBool ? mask : at::ne(mask, 0), 0);
}
Tensor keep_where(const Tensor& grad, const Tensor& mask) { return at::where(mask, grad, 0); }

// With u = pi x: (cos(u) u - sin(u)) / (u x), and 0 at 0.
Tensor sinc_grad(const Tensor& grad, const Tensor& self) {
  const Tensor u = self * kPi;
  const Tensor slope = (at::cos(u) * u - at::sin(u)) / (u * self);
  return zero_where(grad * cj(slope), at::eq(self, 0));
}

// Along the tangent of the circle: i z / |z|^2.
Tensor angle_grad(const Tensor& grad, const Tensor& self) {
  if (!self.is_complex()) return at::zeros_like(grad);
  const Tensor length = at::abs(self);
  const Tensor direction = self * c10::complex<double>(0, 1) / (length * length);
  return zero_where(direction * grad, at::eq(self, 0));
}

// Only the part of grad across the direction of z turns it.
Tensor sgn_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (!self.is_complex()) return at::zeros_like(grad);
  const Tensor along = at::real(grad * cj(result));
  return zero_where((grad - result * along) / at::abs(self), at::eq(self, 0));
}

// The sum over 1 / (x + k)^2. Left of 1/2 by reflection: pi^2 / sin(pi x)^2 - trigamma(1 - x).
Tensor trigamma(const Tensor& self) {
  if (c10::isReducedFloatingType(self.scalar_type())) // the sine would have few digits left
    return trigamma(self.to(at::kFloat)).to(self.scalar_type());
  const Tensor left = at::lt(self, 0.5);
  const Tensor right = at::where(left, 1 - self, self);
  const Tensor value = at::special_zeta(2, right);
  const Tensor sine = at::sin(self * kPi);
  return at::where(left, Scalar(kPi * kPi) - value * sine * sine, value) /
         at::where(left, sine * sine, 1);
}

// The rule of the Bessel functions of order one: f1' = f0 - f1 / x.
Tensor ratio_rule(const Tensor& grad, const Tensor& self, const Tensor& first, const Tensor& result,
                  double at_zero) {
  const Tensor zero = at::eq(self, 0);
  return grad * at::where(zero, at_zero, first - result / at::masked_fill(self, zero, 1));
}
Tensor i1e_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor zero = at::eq(self, 0);
  const Tensor safe = at::masked_fill(self, zero, 1);
  return grad *
         at::where(zero, 0.5,
                   at::special_i0e(safe) -
                       result * (at::sgn(safe) + at::_ops::pow_Tensor_Scalar::call(safe, -1)));
}

Tensor div_self_grad(const Tensor& grad, const Tensor& other,
                     const std::optional<std::string>& mode) {
  return mode ? at::zeros_like(grad) : grad / cj(other);
}
Tensor div_other_grad(const Tensor& grad, const Tensor& self, const Tensor& other,
                      const std::optional<std::string>& mode) {
  return mode ? at::zeros_like(grad) : -grad * cj(self / other / other);
}
Tensor div_scalar_grad(const Tensor& grad, const Scalar& other,
                       const std::optional<std::string>& mode) {
  return mode ? at::zeros_like(grad) : grad / cj(other);
}

Tensor larger_share(const Tensor& grad, const Tensor& mine, const Tensor& other) {
  return at::where(at::eq(mine, other), grad * 0.5, zero_where(grad, at::lt(mine, other)));
}

// fmax and fmin ignore NaN; at equality the first operand has the gradient.
Tensor first_of_fmax(const Tensor& grad, const Tensor& self, const Tensor& other, bool first,
                     bool max) {
  const Tensor chosen = max ? at::ge(self, other) : at::le(self, other);
  const Tensor mask = at::logical_or(chosen, at::isnan(other));
  return first ? keep_where(grad, mask) : zero_where(grad, mask);
}

// ---- powers
Tensor pow_grad(const Tensor& grad, const Tensor& self, const Scalar& exponent) {
  if (exponent.equal(0.0)) return at::zeros_like(grad);
  if (exponent.equal(2.0) && !exponent.isComplex()) return grad * cj(self * 2);
  Scalar less;
  if (exponent.isComplex()) {
    const c10::complex<double> z = exponent.toComplexDouble();
    less = c10::complex<double>(z.real_ - 1, z.imag_);
  } else if (exponent.isFloatingPoint()) {
    less = exponent.toDouble() - 1;
  } else {
    less = exponent.toLong() - 1;
  }
  return grad * cj(at::pow(self, less) * exponent);
}

Tensor pow_self_grad(const Tensor& grad, const Tensor& self, const Tensor& exponent) {
  return zero_where(grad * cj(exponent * at::pow(self, exponent - 1)), at::eq(exponent, 0));
}

// 0^y is constant for y >= 0, although log 0 is not finite.
Tensor pow_exponent_grad(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                         const Tensor& result) {
  Tensor constant = at::eq(self, 0);
  const Tensor real_part = exponent.is_complex() ? at::real(exponent) : exponent;
  constant = at::logical_and(constant, at::ge(real_part, 0));
  return zero_where(grad * cj(result * at::log(self)), constant);
}

Tensor pow_scalar_grad(const Tensor& grad, const Scalar& self, const Tensor& exponent,
                       const Tensor& result) {
  const at::TensorOptions options = at::TensorOptions(result.scalar_type()).device(result.device());
  const Tensor base = at::scalar_tensor(self, options);
  const Tensor slope = grad * cj(result * at::log(base));
  if (!self.equal(0.0)) return slope;
  return zero_where(slope, at::ge(exponent.is_complex() ? at::real(exponent) : exponent, 0));
}

// ---- others
Tensor atan2_grad(const Tensor& grad, const Tensor& numerator, const Tensor& self,
                  const Tensor& other) {
  const Tensor square = self * self + other * other;
  return zero_where(grad * (numerator / square), at::eq(square, 0));
}

Tensor xlogy_self_grad(const Tensor& grad, const Tensor& self, const Tensor& log,
                       const Tensor& other, double limit) {
  return zero_where(grad * log, at::logical_and(at::eq(self, 0), at::le(other, limit)));
}

Tensor igamma_other_grad(const Tensor& grad, const Tensor& self, const Tensor& other) {
  return grad * at::exp((self - 1) * at::log(other) - other - at::lgamma(self));
}

Tensor clamp_grad(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                  const std::optional<Scalar>& max) {
  if (min && max) return keep_where(grad, at::logical_and(at::ge(self, *min), at::le(self, *max)));
  if (min) return keep_where(grad, at::ge(self, *min));
  return max ? keep_where(grad, at::le(self, *max)) : grad;
}

Tensor clamp_tensor_grad(const Tensor& grad, const Tensor& self, const OptionalTensor& min,
                         const OptionalTensor& max) {
  if (min && max) return keep_where(grad, at::logical_and(at::ge(self, *min), at::le(self, *max)));
  if (min) return keep_where(grad, at::ge(self, *min));
  return max ? keep_where(grad, at::le(self, *max)) : grad;
}
// The upper bound wins where the two cross.
Tensor clamp_min_bound_grad(const Tensor& grad, const Tensor& self, const OptionalTensor& min,
                            const OptionalTensor& max) {
  Tensor mask = at::lt(self, *min);
  if (max) mask = at::logical_and(mask, at::lt(*min, *max));
  return keep_where(grad, mask);
}
Tensor clamp_max_bound_grad(const Tensor& grad, const Tensor& self, const OptionalTensor& min,
                            const OptionalTensor& max) {
  Tensor mask = at::gt(self, *max);
  if (min) mask = at::logical_or(mask, at::lt(*max, *min));
  return keep_where(grad, mask);
}

Tensor copysign_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  return zero_where(grad * (result / self), at::eq(self, 0));
}

Tensor logit_grad(const Tensor& grad, const Tensor& self, std::optional<double> eps) {
  const Tensor slope = grad / (self * (1 - self));
  if (!eps)
    return at::where(at::logical_and(at::ge(self, 0), at::le(self, 1)), slope, __builtin_nan(""));
  return keep_where(slope, at::logical_and(at::ge(self, *eps), at::le(self, 1 - *eps)));
}

} // namespace torch::autograd::generated
