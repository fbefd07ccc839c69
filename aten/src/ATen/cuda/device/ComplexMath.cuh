// Complex functions on the device, in double: both complex types use them, complex<float> by
// widening, which keeps its last digits right and its intermediates in range. The inverse functions
// follow Kahan's "Branch cuts for complex elementary functions", infinities C's Annex G. They are
// called, not inlined: unrolled loops would hold a dozen copies. Included by ValueMath.h.
#pragma once

namespace at::vm::zmath {

using Z = c10::complex<double>;

CRESSET_VM bool infinite(double x) { return ::fabs(x) == __builtin_huge_val(); }
CRESSET_VM bool finite(double x) { return ::fabs(x) < __builtin_huge_val(); }
CRESSET_VM Z times_i(Z z) { return Z(-z.imag_, z.real_); }
CRESSET_VM Z over_i(Z z) { return Z(z.imag_, -z.real_); }
CRESSET_VM Z conj(Z z) { return Z(z.real_, -z.imag_); }

CRESSET_OUT_OF_LINE Z exp(Z z) {
  const double x = z.real_, y = z.imag_;
  if (y == 0) return Z(::exp(x), y);
  if (!finite(y)) {
    if (x == -__builtin_huge_val()) return Z(0.0, 0.0);
    if (infinite(x)) return Z(x, __builtin_nan(""));
  }
  // In two halves, since e^x alone may overflow where the product does not.
  const double half = ::exp(x / 2);
  double s, c;
  ::sincos(y, &s, &c);
  return Z(half * c * half, half * s * half);
}

CRESSET_OUT_OF_LINE double log_abs(double x, double y) {
  double a = ::fabs(x), b = ::fabs(y);
  if (a < b) {
    const double t = a;
    a = b;
    b = t;
  }
  // Near the unit circle the logarithm of the modulus would lose its digits.
  if (a > 0.5 && a < 2 && b < 2) return ::log1p((a - 1) * (a + 1) + b * b) / 2;
  return ::log(::hypot(a, b));
}
CRESSET_OUT_OF_LINE Z log(Z z) { return Z(log_abs(z.real_, z.imag_), ::atan2(z.imag_, z.real_)); }

CRESSET_OUT_OF_LINE Z sqrt(Z z) {
  const double x = z.real_, y = z.imag_;
  if (x == 0 && y == 0) return Z(0.0, y);
  if (infinite(y)) return Z(__builtin_huge_val(), y);
  if (infinite(x)) {
    const double other = y != y ? y : 0.0;
    return x > 0 ? Z(x, ::copysign(other, y)) : Z(other, ::copysign(__builtin_huge_val(), y));
  }
  const double scale = ::fabs(x) > 1e300 || ::fabs(y) > 1e300 ? 0.25 : 1.0;
  const double a = ::fabs(x) * scale, b = y * scale;
  const double t = ::sqrt((a + ::hypot(a, b)) / 2);
  const double up = scale == 1.0 ? 1.0 : 2.0;
  return x >= 0 ? Z(t * up, b / (2 * t) * up) : Z(::fabs(b) / (2 * t) * up, ::copysign(t, y) * up);
}

CRESSET_OUT_OF_LINE Z sinh(Z z) {
  const double x = z.real_, y = z.imag_;
  if (y == 0) return Z(::sinh(x), y);
  if (x == 0) return Z(x, ::sin(y));
  if (infinite(x) && !finite(y)) return Z(x, __builtin_nan(""));
  double s, c;
  ::sincos(y, &s, &c);
  if (::fabs(x) > 700) {
    const double half = ::exp(::fabs(x) / 2);
    return Z(::copysign(half * 0.5, x) * c * half, half * 0.5 * s * half);
  }
  return Z(::sinh(x) * c, ::cosh(x) * s);
}
CRESSET_OUT_OF_LINE Z cosh(Z z) {
  const double x = z.real_, y = z.imag_;
  if (y == 0) return Z(::cosh(x), x * y);
  if (x == 0) return Z(::cos(y), x * ::sin(y));
  if (infinite(x) && !finite(y)) return Z(::fabs(x), __builtin_nan(""));
  double s, c;
  ::sincos(y, &s, &c);
  if (::fabs(x) > 700) {
    const double half = ::exp(::fabs(x) / 2);
    return Z(half * 0.5 * c * half, ::copysign(half * 0.5, x) * s * half);
  }
  return Z(::cosh(x) * c, ::sinh(x) * s);
}
CRESSET_OUT_OF_LINE Z tanh(Z z) {
  const double x = z.real_, y = z.imag_;
  if (y == 0) return Z(::tanh(x), y);
  if (::fabs(x) > 22) {
    const double side = finite(y) ? ::sin(2 * y) : 0.0;
    return Z(::copysign(1.0, x),
             ::copysign(2.0, x) * side * ::exp(-2 * ::fabs(x)) * ::copysign(1.0, x));
  }
  const double t = ::tan(y), beta = 1 + t * t, s = ::sinh(x), rho = ::sqrt(1 + s * s);
  if (infinite(t)) return Z(rho / s, 1 / t);
  return Z(beta * rho * s / (1 + beta * s * s), t / (1 + beta * s * s));
}
CRESSET_VM Z sin(Z z) { return over_i(sinh(times_i(z))); }
CRESSET_VM Z cos(Z z) { return cosh(times_i(z)); }
CRESSET_VM Z tan(Z z) { return over_i(tanh(times_i(z))); }

CRESSET_OUT_OF_LINE Z asin(Z z) {
  const double x = z.real_, y = z.imag_;
  if (infinite(x) || infinite(y)) {
    const double re = x != x        ? x
                      : infinite(y) ? (infinite(x) ? c10::pi<double> / 4 : 0.0)
                                    : (y != y ? y : c10::pi<double> / 2);
    return Z(::copysign(re, x), ::copysign(__builtin_huge_val(), y));
  }
  const Z below = sqrt(Z(1 - x, -y)), above = sqrt(Z(1 + x, y));
  return Z(::atan2(x, (below * above).real_), ::asinh((conj(below) * above).imag_));
}
CRESSET_OUT_OF_LINE Z acos(Z z) {
  const double x = z.real_, y = z.imag_;
  if (infinite(x) || infinite(y)) {
    const Z w = asin(z);
    return Z(c10::pi<double> / 2 - w.real_, -w.imag_);
  }
  const Z below = sqrt(Z(1 - x, -y)), above = sqrt(Z(1 + x, y));
  return Z(2 * ::atan2(below.real_, above.real_), ::asinh((conj(above) * below).imag_));
}
CRESSET_OUT_OF_LINE Z acosh(Z z) {
  const double x = z.real_, y = z.imag_;
  if (infinite(x) || infinite(y))
    return Z(__builtin_huge_val(), x != x || y != y ? __builtin_nan("") : ::atan2(y, x));
  const Z below = sqrt(Z(x - 1, y)), above = sqrt(Z(x + 1, y));
  return Z(::asinh((conj(below) * above).real_), 2 * ::atan2(below.imag_, above.real_));
}
CRESSET_OUT_OF_LINE Z atanh(Z z) {
  const double sign = ::copysign(1.0, z.real_);
  const double x = ::fabs(z.real_), y = z.imag_ * sign;
  if (infinite(x) || infinite(y))
    return Z(::copysign(0.0, sign), ::copysign(c10::pi<double> / 2, z.imag_));
  if (x > 1e150 || ::fabs(y) > 1e150) {
    const double r = ::hypot(x, y);
    return Z(sign * (x / r / r), ::copysign(c10::pi<double> / 2, z.imag_));
  }
  const double re = ::log1p(4 * x / ((1 - x) * (1 - x) + y * y)) / 4;
  const double im = ::atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2;
  return Z(sign * re, sign * im);
}
CRESSET_VM Z asinh(Z z) { return over_i(asin(times_i(z))); }
CRESSET_VM Z atan(Z z) { return over_i(atanh(times_i(z))); }

CRESSET_OUT_OF_LINE Z pow(Z x, Z y) {
  if (y.imag_ == 0 && y.real_ == 0) return Z(1.0, 0.0);
  if (y.imag_ == 0 && y.real_ == 1) return x;
  if (x.real_ == 0 && x.imag_ == 0 && y.real_ > 0) return Z(0.0, 0.0);
  return exp(y * log(x));
}
CRESSET_OUT_OF_LINE Z expm1(Z z) {
  const double half_sin = ::sin(z.imag_ / 2);
  return Z(::expm1(z.real_) * ::cos(z.imag_) - 2 * half_sin * half_sin,
           ::exp(z.real_) * ::sin(z.imag_));
}
CRESSET_OUT_OF_LINE Z log1p(Z z) {
  const double re = z.real_, im = z.imag_;
  const double angle = ::atan2(im, 1 + re);
  if (::fabs(re) < 0.5 && ::fabs(im) < 0.5) return Z(::log1p(re * (2 + re) + im * im) / 2, angle);
  return Z(::log(::hypot(1 + re, im)), angle);
}
CRESSET_VM Z exp2(Z z) { return exp(Z(z.real_ * c10::ln_2<double>, z.imag_ * c10::ln_2<double>)); }
CRESSET_VM Z log2(Z z) {
  const Z w = log(z);
  return Z(w.real_ * c10::log2_e<double>, w.imag_ * c10::log2_e<double>);
}
CRESSET_VM Z log10(Z z) {
  const Z w = log(z);
  return Z(w.real_ * c10::log10_e<double>, w.imag_ * c10::log10_e<double>);
}

} // namespace at::vm::zmath

namespace at::vm {
inline namespace CRESSET_ISA {

#define CRESSET_VM_COMPLEX(name)                                                                   \
  template <class T> CRESSET_VM complex<T> name(complex<T> x) {                                    \
    return complex<T>(zmath::name(zmath::Z(x)));                                                   \
  }
CRESSET_VM_COMPLEX(exp)
CRESSET_VM_COMPLEX(log)
CRESSET_VM_COMPLEX(sqrt)
CRESSET_VM_COMPLEX(sin)
CRESSET_VM_COMPLEX(cos)
CRESSET_VM_COMPLEX(tan)
CRESSET_VM_COMPLEX(asin)
CRESSET_VM_COMPLEX(acos)
CRESSET_VM_COMPLEX(atan)
CRESSET_VM_COMPLEX(sinh)
CRESSET_VM_COMPLEX(cosh)
CRESSET_VM_COMPLEX(tanh)
CRESSET_VM_COMPLEX(asinh)
CRESSET_VM_COMPLEX(acosh)
CRESSET_VM_COMPLEX(atanh)
CRESSET_VM_COMPLEX(exp2)
CRESSET_VM_COMPLEX(log2)
CRESSET_VM_COMPLEX(log10)
CRESSET_VM_COMPLEX(expm1)
CRESSET_VM_COMPLEX(log1p)
#undef CRESSET_VM_COMPLEX

template <class T> CRESSET_VM complex<T> reciprocal(complex<T> x) { return complex<T>(T(1)) / x; }
template <class T> CRESSET_VM complex<T> pow(complex<T> x, complex<T> y) {
  return complex<T>(zmath::pow(zmath::Z(x), zmath::Z(y)));
}
// The magnitude, as a real number.
template <class T> CRESSET_VM T magnitude(complex<T> x) { return vm::hypot(x.real_, x.imag_); }

} // namespace CRESSET_ISA
} // namespace at::vm
