// Gradients of pointwise operators. See functions.h.
#include <complex>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/digamma.h>
#include <ATen/ops/empty_like.h>
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
#include <ATen/ops/reciprocal.h>
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
// What PyTorch makes of a number and a tensor, where handlers look on: a new tensor that is filled
// and then written to.
static Tensor filled_like(const Tensor& t, const Scalar& number) {
  Tensor out = at::empty_like(t);
  return out.fill_(number);
}
Tensor operator-(const Scalar& a, const Tensor& b) {
  if (C10_LIKELY(!at::handlers_active())) return at::rsub(b, a);
  Tensor out = filled_like(b, a);
  return at::_ops::sub__Tensor::call(out, b, 1);
}
Tensor times(const Tensor& t, const Scalar& s) {
  return s.equal(int64_t(1)) && !at::handlers_active() ? t : t * s;
}
Tensor number_like(const Scalar& number, const Tensor& like) {
  if (C10_LIKELY(!at::handlers_active())) return at::detail::wrapped_number(number);
  return at::scalar_tensor(number, like.options());
}
Tensor zeroed(Tensor fresh, const Tensor& mask) {
  return at::_ops::masked_fill__Scalar::call(fresh, mask, 0);
}
Scalar one_minus(const Scalar& s) {
  if (!s.isComplex()) return 1 - s.toDouble();
  const c10::complex<double> z = s.toComplexDouble();
  return c10::complex<double>(1 - z.real_, -z.imag_);
}
Tensor addcdiv_grad(const Tensor& grad, const Scalar& value, const Tensor& divisor) {
  if (C10_LIKELY(!at::handlers_active())) return scaled(grad, value) / cj(divisor);
  Tensor ratio = filled_like(divisor, value);
  return grad * cj(at::_ops::div__Tensor::call(ratio, divisor));
}

Tensor zero_where(const Tensor& grad, const Tensor& mask) {
  // torch.where takes bytes as conditions, masked_fill only truth values.
  return at::masked_fill(grad, mask.scalar_type() == at::kBool ? mask : at::ne(mask, 0), 0);
}
Tensor keep_where(const Tensor& grad, const Tensor& mask) {
  return at::where(mask, grad, number_like(0, grad));
}

// With u = pi x: (cos(u) u - sin(u)) / (u x), and 0 at 0.
Tensor sinc_grad(const Tensor& grad, const Tensor& self) {
  const Tensor u = self * kPi;
  const Tensor slope = (u * at::cos(u) - at::sin(u)) / (self * self * kPi);
  const Tensor values = grad * cj(slope), zero = number_like(0, values);
  return at::where(at::eq(self, 0), zero, values);
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

Tensor larger_share(const Tensor& grad, const Tensor& self, const Tensor& other, bool less) {
  const Tensor half = grad / 2;
  const Tensor shared = at::where(at::eq(self, other), half, grad);
  return zeroed(shared, less ? at::lt(self, other) : at::gt(self, other));
}

// fmax and fmin ignore NaN; at equality the first operand has the gradient.
Tensor first_of_fmax(const Tensor& grad, const Tensor& self, const Tensor& other, bool first,
                     bool max) {
  Tensor chosen = max ? at::ge(self, other) : at::le(self, other);
  at::_ops::logical_or_::call(chosen, at::isnan(other));
  if (first) at::_ops::logical_not_::call(chosen);
  return at::masked_fill(grad, chosen, 0);
}

// ---- powers
Tensor pow_grad(const Tensor& grad, const Tensor& self, const Scalar& exponent) {
  if (exponent.equal(0.0)) return at::zeros_like(grad);
  if (exponent.equal(2.0) && !exponent.isComplex() && !at::handlers_active())
    return grad * cj(self * 2);
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
  const Tensor slope = grad * cj(exponent * at::pow(self, exponent - 1));
  const Tensor zero = number_like(0, slope);
  return at::where(at::eq(exponent, 0), zero, slope);
}

// 0^y is constant for y >= 0, although log 0 is not finite.
Tensor pow_exponent_grad(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                         const Tensor& result) {
  const Tensor grows = at::ge(exponent.is_complex() ? at::real(exponent) : exponent, 0);
  const Tensor constant = at::logical_and(at::eq(self, 0), grows);
  const Tensor slope = cj(result * at::log(self));
  return grad * at::where(constant, number_like(0, slope), slope);
}

Tensor pow_scalar_grad(const Tensor& grad, const Scalar& self, const Tensor& exponent,
                       const Tensor& result) {
  Scalar log = std::log(self.isComplex() ? 1.0 : self.toDouble());
  if (result.is_complex()) {
    const c10::complex<double> z = self.toComplexDouble();
    const std::complex<double> w = std::log(std::complex<double>(z.real_, z.imag_));
    log = c10::complex<double>(w.real(), w.imag());
  }
  if (!self.equal(0.0)) return grad * cj(result * log);
  const Tensor grows = at::ge(exponent.is_complex() ? at::real(exponent) : exponent, 0);
  const Tensor slope = cj(result * log);
  return grad * at::where(grows, number_like(0, slope), slope);
}

// ---- others
std::tuple<Tensor, Tensor> atan2_grads(const Tensor& grad, const Tensor& self, const Tensor& other,
                                       std::array<bool, 2> mask) {
  const Tensor square = self * self + other * other;
  const Tensor inverse = at::reciprocal(square);
  const Tensor finite = at::masked_fill(inverse, at::eq(square, 0), 0);
  Tensor of_self, of_other;
  if (mask[0]) of_self = grad * (other * finite);
  if (mask[1]) of_other = grad * (-self * finite);
  return {of_self, of_other};
}

Tensor xlogy_self_grad(const Tensor& product, const Tensor& self, const Tensor& other,
                       double limit) {
  const Tensor low = at::le(other, limit);
  return at::masked_fill(product, at::bitwise_and(at::eq(self, 0), low), 0);
}
Tensor xlogy_number_grad(const Tensor& product, const Tensor& self, const Scalar& other,
                         double limit) {
  return other.toDouble() > limit ? product : at::masked_fill(product, at::eq(self, 0), 0);
}

Tensor igamma_other_grad(const Tensor& grad, const Tensor& self, const Tensor& other) {
  return grad * at::exp((self - 1) * at::log(other) - other - at::lgamma(self));
}

namespace {
// The gradient where self lies between the bounds, of either kind, that are given.
template <class Bound> Tensor inside(const Tensor& grad, const Tensor& self,
                                     const std::optional<Bound>& min,
                                     const std::optional<Bound>& max, bool in_place) {
  if (!min && !max) return grad;
  const Tensor zero = number_like(0, grad);
  Tensor mask = min ? at::ge(self, *min) : at::le(self, *max);
  if (min && max) {
    const Tensor below = at::le(self, *max);
    mask = in_place ? at::_ops::logical_and_::call(mask, below) : at::logical_and(mask, below);
  }
  return at::where(mask, grad, zero);
}
} // namespace

Tensor clamp_grad(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                  const std::optional<Scalar>& max) {
  return inside(grad, self, min, max, true);
}
Tensor clamp_tensor_grad(const Tensor& grad, const Tensor& self, const OptionalTensor& min,
                         const OptionalTensor& max) {
  return inside(grad, self, min, max, false);
}
// The upper bound wins where the two cross.
std::tuple<Tensor, Tensor> clamp_bound_grads(const Tensor& grad, const Tensor& self,
                                             const OptionalTensor& min, const OptionalTensor& max,
                                             std::array<bool, 2> mask) {
  const Tensor zero = number_like(0, grad);
  Tensor of_min, of_max;
  if (mask[0]) {
    Tensor taken = at::lt(self, *min);
    if (max) taken = at::logical_and(at::lt(*min, *max), taken);
    of_min = at::where(taken, grad, zero);
  }
  if (mask[1]) {
    Tensor taken = at::gt(self, *max);
    if (min) taken = at::logical_or(taken, at::lt(*max, *min));
    of_max = at::where(taken, grad, zero);
  }
  return {of_min, of_max};
}

Tensor copysign_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor ratio = result / self;
  return grad * zeroed(ratio, at::eq(self, 0));
}

} // namespace torch::autograd::generated
