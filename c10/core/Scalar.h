// A Python or C++ number on its way into an operator: it keeps its kind, so that promotion can tell
// a bool from an integer from a float.
#pragma once
#include <limits>
#include <type_traits>

#include <c10/core/ScalarType.h>
#include <c10/core/SymNumbers.h>

namespace c10 {

class C10_API Scalar {
 public:
  // Of the last three the value is a handle of a symbolic number.
  enum class Tag : uint8_t { Int, UInt, Double, Complex, Bool, SymInt, SymFloat, SymBool };

  Scalar() : Scalar(int64_t(0)) {}
  Scalar(double v) : tag_(Tag::Double) { v_.d[0] = v; }
  Scalar(float v) : Scalar(double(v)) {}
  Scalar(Half v) : Scalar(double(float(v))) {}
  Scalar(BFloat16 v) : Scalar(double(float(v))) {}
  Scalar(complex<double> v) : tag_(Tag::Complex) { v_.d[0] = v.real_, v_.d[1] = v.imag_; }
  Scalar(complex<float> v) : Scalar(complex<double>(v.real_, v.imag_)) {}
  Scalar(complex<Half> v) : Scalar(complex<double>(float(v.real_), float(v.imag_))) {}
  Scalar(bool v) : tag_(Tag::Bool) { v_.i = v; }
  Scalar(c10::SymInt v) : tag_(v.is_symbolic() ? Tag::SymInt : Tag::Int) { v_.i = v.raw(); }
  Scalar(c10::SymFloat v) : Scalar(v.is_symbolic() ? 0.0 : v.guard_float()) {
    if (v.is_symbolic()) set_symbolic(Tag::SymFloat, v.raw());
  }
  Scalar(c10::SymBool v) : tag_(v.is_symbolic() ? Tag::SymBool : Tag::Bool) { v_.i = v.raw(); }
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

  bool isFloatingPoint() const { return tag_ == Tag::Double || tag_ == Tag::SymFloat; }
  bool isComplex() const { return tag_ == Tag::Complex; }
  bool isBoolean() const { return tag_ == Tag::Bool || tag_ == Tag::SymBool; }
  // Integers; with include_bool also bools.
  bool isIntegral(bool include_bool) const {
    return tag_ == Tag::Int || tag_ == Tag::UInt || tag_ == Tag::SymInt ||
           (include_bool && isBoolean());
  }
  Tag tag() const { return tag_; }
  bool is_symbolic() const { return tag_ >= Tag::SymInt; }
  // From and to the handle of a symbolic number of any sort.
  static Scalar of_handle(int64_t raw);
  int64_t symbolic_raw() const { return v_.i; }
  // The same number, plain: a symbolic one is guarded to be what it is in the traced run.
  Scalar guarded() const;
  // The dtype the number would have as a tensor: Double, ComplexDouble, Bool, Long or UInt64.
  ScalarType type() const {
    switch (tag_) {
    case Tag::Double:
    case Tag::SymFloat:
      return kDouble;
    case Tag::Complex:
      return kComplexDouble;
    case Tag::Bool:
    case Tag::SymBool:
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
  int toInt() const { return to<int>(); }
  int16_t toShort() const { return to<int16_t>(); }
  int8_t toChar() const { return to<int8_t>(); }
  uint8_t toByte() const { return to<uint8_t>(); }
  complex<double> toComplexDouble() const {
    if (tag_ == Tag::Complex) return {v_.d[0], v_.d[1]};
    return {as_double(), 0.0};
  }
  Scalar operator-() const;
  // Whether a number with a point becomes a T: within T's range, which 2^63 and 2^64 are not.
  template <class T> static constexpr bool in_integer_range(double d) {
    constexpr double high = double(std::numeric_limits<T>::max());
    return d >= double(std::numeric_limits<T>::min()) && (sizeof(T) == 8 ? d < high : d <= high);
  }
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
    case Tag::Int:
    case Tag::Bool:
      return double(v_.i);
    default:
      return guarded().as_double();
    }
  }
  void set_symbolic(Tag tag, int64_t raw) {
    tag_ = tag;
    v_.i = raw;
  }
  // Within the finite range of a floating type, or infinite or NaN.
  template <class T> static bool in_range(double d) {
    if constexpr (std::is_same_v<T, double>) {
      return true;
    } else {
      constexpr double limit = largest_finite<T>();
      return (d <= limit && d >= -limit) || d - d != 0;
    }
  }
  template <class T> static constexpr double largest_finite() {
    switch (scalar_type_of<T>) {
    case kHalf:
      return 65504.0;
    case kBFloat16:
      return 3.3895313892515355e38;
    default:
      return std::numeric_limits<float>::max();
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
    if (C10_UNLIKELY(is_symbolic())) return guarded().to<T>();
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
    if (C10_UNLIKELY(is_symbolic())) return guarded().to<T>();
    const double d = v_.d[0];
    if (tag_ == Tag::Complex && v_.d[1] != 0) throw_overflow(scalar_type_of<T>);
    // The number has to be in range before its fraction goes: neither 127.5 nor -0.5 wrap or round.
    if (!in_integer_range<T>(d)) throw_overflow(scalar_type_of<T>);
    return static_cast<T>(d);
  } else if constexpr (is_complex_v<T>) {
    const complex<double> z = toComplexDouble();
    using R = typename T::value_type;
    if (!in_range<R>(z.real_) || !in_range<R>(z.imag_)) throw_overflow(scalar_type_of<T>);
    return T(static_cast<R>(z.real_), static_cast<R>(z.imag_));
  } else {
    const double d = as_double();
    if (C10_UNLIKELY((tag_ == Tag::Complex && v_.d[1] != 0) || !in_range<T>(d)))
      throw_overflow(scalar_type_of<T>);
    if constexpr (std::is_same_v<T, double>) {
      return d;
    } else {
      return static_cast<T>(static_cast<float>(d));
    }
  }
}

C10_API void append(std::string& out, const Scalar& value);

} // namespace c10
