// Vec<T>: one machine register of T, with the operators of T, on the compiler's vector extension.
// It includes no intrinsics header (a second of compile time per file) and picks its width from the
// instruction set the file is compiled for. Each such compilation lives in a namespace named by
// CRESSET_ISA, so that copies of one kernel for different machines never share a symbol.
// Comparisons give a Mask<T>; functors written with operators, vm::select and & | ! therefore work
// on a scalar (where the mask is bool) and on a Vec alike.
#pragma once

#include <cstdint>

#include <c10/macros/Macros.h>

#if !defined(CRESSET_ISA)
#define CRESSET_ISA base
#endif

namespace at::vec {
inline namespace CRESSET_ISA {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
inline constexpr int kVecBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVecBytes = 32;
#else
inline constexpr int kVecBytes = 16;
#endif

namespace detail {
template <int kBytes> struct IntOfSize;
template <> struct IntOfSize<1> { using type = signed char; };
template <> struct IntOfSize<2> { using type = short; };
template <> struct IntOfSize<4> { using type = int; };
template <> struct IntOfSize<8> { using type = long; };
} // namespace detail
template <class T> using int_of = typename detail::IntOfSize<sizeof(T)>::type;

namespace detail {
// The compiler drops a vector attribute with a dependent element type when it compares signatures;
// naming the type through a struct keeps a register distinct from its element.
template <class T> struct RawOf { typedef T type __attribute__((vector_size(kVecBytes))); };
} // namespace detail

// True or false for each lane of a Vec<T>: all bits set or none.
template <class T> struct Mask {
  using Raw = typename detail::RawOf<int_of<T>>::type;
  Raw m;

  C10_ALWAYS_INLINE friend Mask operator&(Mask a, Mask b) { return {a.m & b.m}; }
  C10_ALWAYS_INLINE friend Mask operator|(Mask a, Mask b) { return {a.m | b.m}; }
  C10_ALWAYS_INLINE friend Mask operator^(Mask a, Mask b) { return {a.m ^ b.m}; }
  C10_ALWAYS_INLINE friend Mask operator!(Mask a) { return {~a.m}; }
};

template <class T> struct Vec {
  using value_type = T;
  using Raw = typename detail::RawOf<T>::type;
  static constexpr int kLanes = kVecBytes / static_cast<int>(sizeof(T));
  Raw v;

  Vec() = default;
  C10_ALWAYS_INLINE Vec(Raw raw) : v(raw) {}
  // s - 0 is s for every s, the negative zero included; 0 + s is not.
  C10_ALWAYS_INLINE Vec(T s) : v(s - Raw{}) {}

  C10_ALWAYS_INLINE static Vec load(const void* p) {
    Vec r;
    __builtin_memcpy(&r.v, p, sizeof(Raw));
    return r;
  }
  C10_ALWAYS_INLINE void store(void* p) const { __builtin_memcpy(p, &v, sizeof(Raw)); }

  C10_ALWAYS_INLINE friend Vec operator+(Vec a, Vec b) { return a.v + b.v; }
  C10_ALWAYS_INLINE friend Vec operator-(Vec a, Vec b) { return a.v - b.v; }
  C10_ALWAYS_INLINE friend Vec operator*(Vec a, Vec b) { return a.v * b.v; }
  C10_ALWAYS_INLINE friend Vec operator/(Vec a, Vec b) { return a.v / b.v; }
  C10_ALWAYS_INLINE friend Vec operator-(Vec a) { return -a.v; }
  C10_ALWAYS_INLINE friend Vec operator&(Vec a, Vec b) { return a.v & b.v; }
  C10_ALWAYS_INLINE friend Vec operator|(Vec a, Vec b) { return a.v | b.v; }
  C10_ALWAYS_INLINE friend Vec operator^(Vec a, Vec b) { return a.v ^ b.v; }
  C10_ALWAYS_INLINE friend Vec operator~(Vec a) { return ~a.v; }
  C10_ALWAYS_INLINE friend Vec operator<<(Vec a, Vec b) { return a.v << b.v; }
  C10_ALWAYS_INLINE friend Vec operator>>(Vec a, Vec b) { return a.v >> b.v; }
  C10_ALWAYS_INLINE friend Mask<T> operator==(Vec a, Vec b) { return mask(a.v == b.v); }
  C10_ALWAYS_INLINE friend Mask<T> operator!=(Vec a, Vec b) { return mask(a.v != b.v); }
  C10_ALWAYS_INLINE friend Mask<T> operator<(Vec a, Vec b) { return mask(a.v < b.v); }
  C10_ALWAYS_INLINE friend Mask<T> operator<=(Vec a, Vec b) { return mask(a.v <= b.v); }
  C10_ALWAYS_INLINE friend Mask<T> operator>(Vec a, Vec b) { return mask(a.v > b.v); }
  C10_ALWAYS_INLINE friend Mask<T> operator>=(Vec a, Vec b) { return mask(a.v >= b.v); }

 private:
  template <class R> C10_ALWAYS_INLINE static Mask<T> mask(R raw) {
    return {(typename Mask<T>::Raw)raw};
  }
};

// bool computes on bytes that are 0 or 1; + is "or" and * is "and".
template <> struct Vec<bool> {
  using value_type = bool;
  using Raw = detail::RawOf<unsigned char>::type;
  static constexpr int kLanes = kVecBytes;
  Raw v;

  Vec() = default;
  C10_ALWAYS_INLINE Vec(Raw raw) : v(raw) {}
  C10_ALWAYS_INLINE Vec(bool s) : v(static_cast<unsigned char>(s) - Raw{}) {}

  // Any non-zero byte is true, wherever the memory came from.
  C10_ALWAYS_INLINE static Vec load(const void* p) {
    Raw raw;
    __builtin_memcpy(&raw, p, sizeof(Raw));
    return truth(raw != Raw{});
  }
  C10_ALWAYS_INLINE void store(void* p) const { __builtin_memcpy(p, &v, sizeof(Raw)); }

  C10_ALWAYS_INLINE friend Vec operator+(Vec a, Vec b) { return a.v | b.v; }
  C10_ALWAYS_INLINE friend Vec operator*(Vec a, Vec b) { return a.v & b.v; }
  C10_ALWAYS_INLINE friend Vec operator&(Vec a, Vec b) { return a.v & b.v; }
  C10_ALWAYS_INLINE friend Vec operator|(Vec a, Vec b) { return a.v | b.v; }
  C10_ALWAYS_INLINE friend Vec operator^(Vec a, Vec b) { return a.v ^ b.v; }
  C10_ALWAYS_INLINE friend Vec operator~(Vec a) { return a.v ^ 1; }
  C10_ALWAYS_INLINE friend Mask<bool> operator==(Vec a, Vec b) { return mask(a.v == b.v); }
  C10_ALWAYS_INLINE friend Mask<bool> operator!=(Vec a, Vec b) { return mask(a.v != b.v); }
  C10_ALWAYS_INLINE friend Mask<bool> operator<(Vec a, Vec b) { return mask(a.v < b.v); }
  C10_ALWAYS_INLINE friend Mask<bool> operator<=(Vec a, Vec b) { return mask(a.v <= b.v); }
  C10_ALWAYS_INLINE friend Mask<bool> operator>(Vec a, Vec b) { return mask(a.v > b.v); }
  C10_ALWAYS_INLINE friend Mask<bool> operator>=(Vec a, Vec b) { return mask(a.v >= b.v); }

 private:
  template <class R> C10_ALWAYS_INLINE static Mask<bool> mask(R raw) {
    return {(Mask<bool>::Raw)raw};
  }
  template <class R> C10_ALWAYS_INLINE static Vec truth(R raw) { return (Raw)raw & 1; }
};

template <class V> inline constexpr bool is_vec_v = false;
template <class T> inline constexpr bool is_vec_v<Vec<T>> = true;

// The element type of a Vec; a scalar is its own.
template <class V> struct ElementOf { using type = V; };
template <class T> struct ElementOf<Vec<T>> { using type = T; };
template <class V> using element_t = typename ElementOf<V>::type;

template <class T> C10_ALWAYS_INLINE Vec<T> select(Mask<T> m, Vec<T> a, Vec<T> b) {
  return m.m ? a.v : b.v;
}

// The same bits read as the integer of the same width, and back.
template <class T> C10_ALWAYS_INLINE Vec<int_of<T>> as_int(Vec<T> a) {
  return (typename Vec<int_of<T>>::Raw)a.v;
}
template <class T> C10_ALWAYS_INLINE Vec<T> as_float(Vec<int_of<T>> a) {
  return (typename Vec<T>::Raw)a.v;
}
C10_ALWAYS_INLINE bool any(Mask<float> m) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_cvtd2mask512(m.m) != 0;
#elif defined(__AVX2__) && !defined(__clang__)
  return __builtin_ia32_movmskps256((Vec<float>::Raw)m.m) != 0;
#else
  int found = 0;
  for (int i = 0; i < Vec<float>::kLanes; ++i) {
    found |= m.m[i];
  }
  return found != 0;
#endif
}
C10_ALWAYS_INLINE bool any(Mask<double> m) {
#if defined(__AVX512F__) && !defined(__clang__)
  return __builtin_ia32_cvtq2mask512((Vec<long long>::Raw)m.m) != 0;
#elif defined(__AVX2__) && !defined(__clang__)
  return __builtin_ia32_movmskpd256((Vec<double>::Raw)m.m) != 0;
#else
  long found = 0;
  for (int i = 0; i < Vec<double>::kLanes; ++i) {
    found |= m.m[i];
  }
  return found != 0;
#endif
}

// f applied to each lane by itself: for functions without a vector form.
template <class T, class F> C10_ALWAYS_INLINE Vec<T> map_lanes(Vec<T> a, F f) {
  Vec<T> r;
#pragma GCC unroll 1
  for (int i = 0; i < Vec<T>::kLanes; ++i) {
    r.v[i] = f(static_cast<T>(a.v[i]));
  }
  return r;
}
template <class T, class F> C10_ALWAYS_INLINE Vec<T> map_lanes(Vec<T> a, Vec<T> b, F f) {
  Vec<T> r;
#pragma GCC unroll 1
  for (int i = 0; i < Vec<T>::kLanes; ++i) {
    r.v[i] = f(static_cast<T>(a.v[i]), static_cast<T>(b.v[i]));
  }
  return r;
}

// A float register as two double registers: lower lanes, then upper lanes.
struct DoublePair {
  Vec<double> lo, hi;
};
C10_ALWAYS_INLINE DoublePair widen(Vec<float> a) {
#if defined(__AVX512F__) && !defined(__clang__)
  const auto lo = __builtin_shufflevector(a.v, a.v, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto hi = __builtin_shufflevector(a.v, a.v, 8, 9, 10, 11, 12, 13, 14, 15);
  return {__builtin_ia32_cvtps2pd512_mask(lo, Vec<double>::Raw{}, -1, 4),
          __builtin_ia32_cvtps2pd512_mask(hi, Vec<double>::Raw{}, -1, 4)};
#elif defined(__AVX2__) && !defined(__clang__)
  return {__builtin_ia32_cvtps2pd256(__builtin_shufflevector(a.v, a.v, 0, 1, 2, 3)),
          __builtin_ia32_cvtps2pd256(__builtin_shufflevector(a.v, a.v, 4, 5, 6, 7))};
#else
  DoublePair r;
  for (int i = 0; i < Vec<double>::kLanes; ++i) {
    r.lo.v[i] = a.v[i];
    r.hi.v[i] = a.v[i + Vec<double>::kLanes];
  }
  return r;
#endif
}
C10_ALWAYS_INLINE Vec<float> narrow(DoublePair p) {
#if defined(__AVX512F__) && !defined(__clang__)
  typedef float Half __attribute__((vector_size(kVecBytes / 2)));
  const Half lo = __builtin_ia32_cvtpd2ps512_mask(p.lo.v, Half{}, -1, 4);
  const Half hi = __builtin_ia32_cvtpd2ps512_mask(p.hi.v, Half{}, -1, 4);
  return __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#elif defined(__AVX2__) && !defined(__clang__)
  const auto lo = __builtin_ia32_cvtpd2ps256(p.lo.v);
  const auto hi = __builtin_ia32_cvtpd2ps256(p.hi.v);
  return __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7);
#else
  Vec<float> r;
  for (int i = 0; i < Vec<double>::kLanes; ++i) {
    r.v[i] = static_cast<float>(p.lo.v[i]);
    r.v[i + Vec<double>::kLanes] = static_cast<float>(p.hi.v[i]);
  }
  return r;
#endif
}

// A float function computed by a double kernel f: Vec<double> -> Vec<double>. A kernel good to
// 1e-10 gives a float that is correctly rounded but for a few arguments in a thousand.
template <class F> C10_ALWAYS_INLINE Vec<float> in_double(Vec<float> a, F f) {
  const DoublePair x = widen(a);
  return narrow({f(x.lo), f(x.hi)});
}
template <class F> C10_ALWAYS_INLINE Vec<float> in_double(Vec<float> a, Vec<float> b, F f) {
  const DoublePair x = widen(a), y = widen(b);
  return narrow({f(x.lo, y.lo), f(x.hi, y.hi)});
}

} // namespace CRESSET_ISA
} // namespace at::vec
