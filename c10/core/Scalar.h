// A Python or C++ number on its way into an operator: it keeps its kind, so that promotion can tell
// a bool from an integer from a float.
#pragma once
#include <limits>
#include <type_traits>

#include <c10/core/ScalarType.h>
#include <c10/core/SymInt.h>

namespace c10 {

class C10_API Scalar {
 public:
  enum class Tag : uint8_t { Int, UInt, Double, Complex, Bool };

  Scalar() : Scalar(int64_t(0)) {}
  Scalar(double v) : tag_(Tag::Double) { v_.d[0] = v; }
  Scalar(float v) : Scalar(double(v)) {}
  Scalar(Half v) : Scalar(double(float(v))) {}
  Scalar(BFloat16 v) : Scalar(double(float(v))) {}
  Scalar(complex<double> v) : tag_(Tag::Complex) { v_.d[0] = v.real_, v_.d[1] = v.imag_; }
  Scalar(complex<float> v) : Scalar(complex<double>(v.real_, v.imag_)) {}
  Scalar(complex<Half> v) : Scalar(complex<double>(float(v.real_), float(v.imag_))) {}
  Scalar(bool v) : tag_(Tag::Bool) { v_.i = v; }
  Scalar(SymInt v) : tag_(Tag::Int) { v_.i = v.raw(); }
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Scalar(T v) : tag_(Tag::Int) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      if (v > uint64_t(INT64_MAX)) {
        tag_ = Tag::UInt;
        v_.u = v;
        return;
      }
    }
    v_.i = static_cast<int64_t>(v);
  }

  bool isFloatingPoint() const { return tag_ == Tag::Double; }
  bool isComplex() const { return tag_ == Tag::Complex; }
  bool isBoolean() const { return tag_ == Tag::Bool; }
  // Integers; with include_bool also bools.
  bool isIntegral(bool include_bool) const {
    return tag_ == Tag::Int || tag_ == Tag::UInt || (include_bool && tag_ == Tag::Bool);
  }
  Tag tag() const { return tag_; }
  // The dtype the number would have as a tensor: Double, ComplexDouble, Bool, Long or UInt64.
  ScalarType type() const {
    switch (tag_) {
    case Tag::Double:
      return kDouble;
    case Tag::Complex:
      return kComplexDouble;
    case Tag::Bool:
      return kBool;
    case Tag::UInt:
      return kUInt64;
    default:
      return kLong;
    }
  }

  // The value as T. Checked: a value outside T's range raises "value cannot be converted to type T
  // without overflow"; a complex number with an imaginary part does not become real.
  template <class T> T to() const;
  double toDouble() const { return to<double>(); }
  int64_t toLong() const { return to<int64_t>(); }
  bool toBool() const { return to<bool>(); }
  float toFloat() const { return to<float>(); }
  complex<double> toComplexDouble() const {
    if (tag_ == Tag::Complex) return {v_.d[0], v_.d[1]};
    return {as_double(), 0.0};
  }
  Scalar operator-() const;
  bool equal(double v) const {
    return tag_ == Tag::Complex ? v_.d[0] == v && v_.d[1] == 0 : as_double() == v;
  }
  bool equal(int64_t v) const {
    return tag_ == Tag::Int || tag_ == Tag::Bool ? v_.i == v : equal(double(v));
  }

 private:
  double as_double() const {
    switch (tag_) {
    case Tag::Double:
    case Tag::Complex:
      return v_.d[0];
    case Tag::UInt:
      return double(v_.u);
    default:
      return double(v_.i);
    }
  }
  [[noreturn]] static void throw_overflow(ScalarType to);
  Tag tag_;
  union {
    int64_t i;
    uint64_t u;
    double d[2];
  } v_{};
};

template <class T> T Scalar::to() const {
  if constexpr (std::is_same_v<T, bool>) {
    return tag_ == Tag::Complex ? v_.d[0] != 0 || v_.d[1] != 0
                                : (tag_ == Tag::Double ? v_.d[0] != 0 : v_.i != 0);
  } else if constexpr (std::is_integral_v<T>) {
    if (C10_LIKELY(tag_ == Tag::Int || tag_ == Tag::Bool)) {
      // Negative numbers wrap into unsigned types, as they do in PyTorch.
      const bool fits = std::is_unsigned_v<T>
                            ? (sizeof(T) == 8 || (v_.i <= int64_t(std::numeric_limits<T>::max()) &&
                                                  v_.i >= -int64_t(std::numeric_limits<T>::max())))
                            : v_.i == int64_t(T(v_.i));
      if (!fits) throw_overflow(scalar_type_of<T>);
      return static_cast<T>(v_.i);
    }
    if (tag_ == Tag::UInt) {
      if (v_.u > uint64_t(std::numeric_limits<T>::max())) throw_overflow(scalar_type_of<T>);
      return static_cast<T>(v_.u);
    }
    const double d = v_.d[0];
    if (tag_ == Tag::Complex && v_.d[1] != 0) throw_overflow(scalar_type_of<T>);
    const double low = std::is_unsigned_v<T> ? -double(std::numeric_limits<T>::max())
                                             : double(std::numeric_limits<T>::min());
    // 2^63 itself is a double, so the upper bound of 64-bit types is exclusive.
    if (!(d >= low && d < double(std::numeric_limits<T>::max()) + (sizeof(T) == 8 ? 0.0 : 1.0)))
      throw_overflow(scalar_type_of<T>);
    return d < 0 ? static_cast<T>(static_cast<int64_t>(d)) : static_cast<T>(d);
  } else if constexpr (is_complex_v<T>) {
    const complex<double> z = toComplexDouble();
    using R = typename T::value_type;
    return T(static_cast<R>(z.real_), static_cast<R>(z.imag_));
  } else {
    if (C10_UNLIKELY(tag_ == Tag::Complex && v_.d[1] != 0)) throw_overflow(scalar_type_of<T>);
    const double d = as_double();
    if constexpr (!std::is_same_v<T, double>) {
      const double limit = scalar_type_of<T> == kHalf ? 65519.99 : 3.4028235677973366e38;
      if (C10_UNLIKELY((d > limit || d < -limit) && d - d == 0)) throw_overflow(scalar_type_of<T>);
      return static_cast<T>(static_cast<float>(d));
    } else {
      return d;
    }
  }
}

C10_API void append(std::string& out, const Scalar& value);

} // namespace c10
