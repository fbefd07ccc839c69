// The arithmetic of two and three tensors: sums, products, the four divisions, remainders, powers.
// Integers wrap on overflow; integer division by zero raises; floor division and remainder follow
// Python (quotient rounded down, remainder with the divisor's sign), fmod follows C.
#pragma once

#include <type_traits>

#include <ATen/native/pointwise/DoublePower.h>
#include <ATen/native/pointwise/ZeroDivision.h>
#include <ATen/vec/RegisterMath.h>

namespace at::native::fn {
inline namespace CRESSET_ISA {

// a + alpha * b
struct Add {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V a, V b, V alpha) { return vm::muladd(b, alpha, a); }
};
// a - alpha * b
struct Sub {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V a, V b, V alpha) {
    if constexpr (vm::is_floating_v<vm::element_t<V>>) {
      return vm::fma(-b, alpha, a);
    } else {
      return a - b * alpha;
    }
  }
};
// The common case alpha = 1, without the multiplication (which integers and complex numbers feel).
struct AddPlain {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V a, V b) { return a + b; }
};
struct SubPlain {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V a, V b) { return a - b; }
};
struct Mul {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V a, V b) { return a * b; }
};
// True division; floating and complex types only.
struct Div {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V a, V b) { return vm::reg::divide(a, b); }
};

namespace detail {
template <class T> inline constexpr bool is_integer_v = std::is_integral_v<T>;

// `b`, unless it is zero: raises, or on a device reports and goes on with one.
template <class T> CRESSET_FN T checked_divisor(T b) {
  if (C10_UNLIKELY(b == T(0))) {
    throw_zero_division();
    return T(1);
  }
  return b;
}
// The quotient and remainder of C; dividing by -1 is negation, since the processor traps on the
// most negative number.
template <class T> CRESSET_FN T int_quotient(T a, T divisor) {
  const T b = checked_divisor(divisor);
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) {
      return static_cast<T>(T(0) - a);
    }
  }
  return static_cast<T>(a / b);
}
template <class T> CRESSET_FN T int_remainder(T a, T divisor) {
  const T b = checked_divisor(divisor);
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) {
      return T(0);
    }
  }
  return static_cast<T>(a % b);
}
} // namespace detail

struct DivTrunc {
  static constexpr bool kVectorizeIntegers = false;
  template <class V> CRESSET_FN V apply(V a, V b) {
    if constexpr (detail::is_integer_v<V>) {
      return detail::int_quotient(a, b);
    } else {
      return vm::trunc(a / b);
    }
  }
};

// Python's floor division: through the exact remainder, so that 1 // 0.1 is 9 and not 10.
struct DivFloor {
  static constexpr bool kVectorizeIntegers = false;
  template <class V> CRESSET_FN V apply(V a, V b) {
    if constexpr (detail::is_integer_v<V>) {
      const V q = detail::int_quotient(a, b);
      if constexpr (std::is_signed_v<V>) {
        const bool rounds = detail::int_remainder(a, b) != 0 && (a < 0) != (b < 0);
        return static_cast<V>(rounds ? q - 1 : q);
      } else {
        return q;
      }
    } else {
      const V zero(0.0), one(1.0);
      const V mod = vm::fmod(a, b);
      V q = (a - mod) / b;
      q = vm::select((mod != zero) & ((b < zero) ^ (mod < zero)), q - one, q);
      V r = vm::floor(q);
      r = vm::select(q - r > V(0.5), r + one, r); // q is an integer up to rounding: take that one
      r = vm::select(q == zero, vm::copysign(zero, a / b), r);
      return vm::select(b == zero, a / b, r);
    }
  }
};

struct Fmod {
  static constexpr bool kVectorizeIntegers = false;
  template <class V> CRESSET_FN V apply(V a, V b) {
    if constexpr (detail::is_integer_v<V>) {
      return detail::int_remainder(a, b);
    } else {
      return vm::fmod(a, b);
    }
  }
};
struct Remainder {
  static constexpr bool kVectorizeIntegers = false;
  template <class V> CRESSET_FN V apply(V a, V b) {
    if constexpr (detail::is_integer_v<V>) {
      const V r = detail::int_remainder(a, b);
      return static_cast<V>((r != 0 && (r < 0) != (b < 0)) ? r + b : r);
    } else {
      const V zero(0.0);
      const V r = vm::fmod(a, b);
      return vm::select((r != zero) & ((b < zero) ^ (r < zero)), r + b, r);
    }
  }
};

// Integers to a negative power are 0 but for the bases 1 and -1.
struct Pow {
  static constexpr bool kVectorizeIntegers = false;
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V base, V exponent) {
    if constexpr (detail::is_integer_v<V>) {
      if constexpr (std::is_signed_v<V>) {
        if (exponent < 0) {
          return base == V(1) ? V(1) : base == V(-1) ? (exponent % 2 != 0 ? V(-1) : V(1)) : V(0);
        }
      }
      V result = 1;
      for (; exponent != 0; exponent = static_cast<V>(exponent >> 1)) {
        result = static_cast<V>((exponent & 1) != 0 ? result * base : result);
        base = static_cast<V>(base * base);
      }
      return result;
    } else {
      return vm::reg::pow(base, exponent);
    }
  }
};
// A complex number to the power of an integer, by repeated squaring: exact where the products are,
// and x to the power of 1 is x whatever it holds.
struct PowWhole {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V x, V exponent) {
    const int n = whole(exponent.real_);
    V result = x;
    bool begun = false;
    for (int left = n < 0 ? -n : n; left != 0; left >>= 1) {
      if ((left & 1) != 0) {
        result = begun ? result * x : x;
        begun = true;
      }
      if (left > 1) {
        x = x * x;
      }
    }
    if (!begun) {
      return V(vm::element_of_complex_t<V>(vm::element_t<vm::element_of_complex_t<V>>(1)));
    }
    return n < 0 ? vm::reg::reciprocal(result) : result;
  }

 private:
  template <class R> CRESSET_FN int whole(R exponent) {
    if constexpr (vm::is_vec_v<R>) {
      return static_cast<int>(exponent.v[0]);
    } else {
      return static_cast<int>(exponent);
    }
  }
};
// The exponents that pow by a number meets most, without a logarithm.
struct Square {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V x) { return x * x; }
};
struct Cube {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V x) { return x * x * x; }
};
struct ReciprocalSquare {
  template <class V> CRESSET_FN V apply(V x) { return V(1.0f) / (x * x); }
};

// a + value * b * c
struct Addcmul {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V a, V b, V c, V value) { return a + value * b * c; }
};
// a + value * b / c
struct Addcdiv {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V a, V b, V c, V value) {
    return a + vm::reg::divide(value * b, c);
  }
};

// a + weight * (b - a), from the nearer end so that weight 1 gives b exactly.
struct Lerp {
  static constexpr bool kVectorizeComplex = true;
  template <class V> CRESSET_FN V apply(V a, V b, V weight) {
    if constexpr (vm::is_complex_v<V>) {
      using P = vm::element_of_complex_t<V>;
      const V near = a + weight * (b - a), far = b - (b - a) * (V(1.0f) - weight);
      const auto low = vm::reg::magnitude(weight) < P(0.5f);
      return V(vm::select(low, near.real_, far.real_), vm::select(low, near.imag_, far.imag_));
    } else {
      const V span = b - a;
      return vm::select(vm::abs(weight) < V(0.5), vm::fma(weight, span, a),
                        b - span * (V(1.0) - weight));
    }
  }
};

struct Hypot {
  template <class V> CRESSET_FN V apply(V a, V b) { return vm::hypot(a, b); }
};
struct Copysign {
  template <class V> CRESSET_FN V apply(V a, V b) { return vm::copysign(a, b); }
};

// Works on the stored format itself: the neighbour of a half is not that of the float it widens to.
struct Nextafter {
  static constexpr bool kStoredType = true;
  template <class T> CRESSET_FN T apply(T a, T b) {
    if constexpr (vm::is_floating_v<vm::element_t<T>>) {
      return vm::reg::nextafter(a, b);
    } else {
      const float from = a, to = b;
      if (vm::isnan(from) || vm::isnan(to)) {
        return T(from + to);
      }
      if (from == to) {
        return b;
      }
      if (from == 0.0f) {
        return T(static_cast<unsigned short>(to > 0 ? 0x0001 : 0x8001), typename T::from_bits_t{});
      }
      const bool away = (from < to) == (from > 0);
      return T(static_cast<unsigned short>(a.x + (away ? 1 : -1)), typename T::from_bits_t{});
    }
  }
};

// Results are non-negative, except that the most negative number is its own absolute value.
struct Gcd {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T a, T b) {
    a = vm::abs(a);
    b = vm::abs(b);
    while (b != 0) {
      const T r = detail::int_remainder(a, b);
      a = b;
      b = r;
    }
    return a;
  }
};
struct Lcm {
  static constexpr bool kVectorize = false;
  template <class T> CRESSET_FN T apply(T a, T b) {
    const T g = Gcd::apply(a, b);
    if (g == 0) {
      return T(0);
    }
    // For the types narrower than int the sign is dropped before the product is cut to size.
    const auto product = detail::int_quotient(a, g) * b;
    return static_cast<T>(vm::abs(product));
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::fn
