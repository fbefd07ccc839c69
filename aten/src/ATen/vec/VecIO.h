// How element types come from and go to memory: VecIO<T> loads one register's worth of T into the
// Vec it computes in and stores a result or a mask. Half and BFloat16 compute as float, which is
// why a step of theirs moves half a register.
#pragma once

#include <ATen/vec/Vec.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

namespace at::vec {
inline namespace CRESSET_ISA {

// The type in which values of T are computed.
template <class T> struct OpMath { using type = T; };
template <> struct OpMath<c10::Half> { using type = float; };
template <> struct OpMath<c10::BFloat16> { using type = float; };
template <> struct OpMath<c10::complex<c10::Half>> { using type = c10::complex<float>; };
template <class T> using opmath_t = typename OpMath<T>::type;

template <class T> struct VecIO {
  C10_ALWAYS_INLINE static Vec<T> load(const char* p) { return Vec<T>::load(p); }
  C10_ALWAYS_INLINE static void store(char* p, Vec<T> a) { a.store(p); }
};

namespace detail {
typedef short HalfLanes __attribute__((vector_size(kVecBytes / 2)));
typedef unsigned short HalfULanes __attribute__((vector_size(kVecBytes / 2)));
} // namespace detail

template <> struct VecIO<c10::Half> {
  C10_ALWAYS_INLINE static Vec<float> load(const char* p) {
#if defined(__AVX2__) && !defined(__clang__)
    detail::HalfLanes h;
    __builtin_memcpy(&h, p, sizeof(h));
#if defined(__AVX512F__)
    return __builtin_ia32_vcvtph2ps512_mask(h, Vec<float>::Raw{}, -1, 4);
#else
    return __builtin_ia32_vcvtph2ps256(h);
#endif
#else
    Vec<float> r;
    c10::Half h[Vec<float>::kLanes];
    __builtin_memcpy(h, p, sizeof(h));
    for (int i = 0; i < Vec<float>::kLanes; ++i) {
      r.v[i] = h[i];
    }
    return r;
#endif
  }
  C10_ALWAYS_INLINE static void store(char* p, Vec<float> a) {
#if defined(__AVX2__) && !defined(__clang__)
#if defined(__AVX512F__)
    const auto h = __builtin_ia32_vcvtps2ph512_mask(a.v, 0, detail::HalfLanes{}, -1);
#else
    const auto h = __builtin_ia32_vcvtps2ph256(a.v, 0);
#endif
    __builtin_memcpy(p, &h, sizeof(h));
#else
    c10::Half h[Vec<float>::kLanes];
    for (int i = 0; i < Vec<float>::kLanes; ++i) {
      h[i] = a.v[i];
    }
    __builtin_memcpy(p, h, sizeof(h));
#endif
  }
};

template <> struct VecIO<c10::BFloat16> {
  C10_ALWAYS_INLINE static Vec<float> load(const char* p) {
    detail::HalfULanes h;
    __builtin_memcpy(&h, p, sizeof(h));
#if defined(__AVX512F__) && !defined(__clang__)
    const auto wide = __builtin_ia32_pmovzxwd512_mask((detail::HalfLanes)h, Vec<int>::Raw{}, -1);
#elif defined(__AVX2__) && !defined(__clang__)
    const auto wide = __builtin_ia32_pmovzxwd256((detail::HalfLanes)h);
#else
    const auto wide = __builtin_convertvector(h, Vec<unsigned>::Raw);
#endif
    return (Vec<float>::Raw)(wide << 16);
  }
  C10_ALWAYS_INLINE static void store(char* p, Vec<float> a) {
    const auto bits = (Vec<unsigned>::Raw)a.v;
    const auto rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const Vec<unsigned>::Raw nan = Vec<unsigned>::Raw{} + 0x7fc0u;
    const auto h = __builtin_convertvector(a.v == a.v ? rounded : nan, detail::HalfULanes);
    __builtin_memcpy(p, &h, sizeof(h));
  }
};

// Interleaved complex numbers as a register of real and a register of imaginary parts.
template <class T> struct VecIO<c10::complex<T>> {
  using V = c10::complex<Vec<T>>;
  C10_ALWAYS_INLINE static V load(const char* p) {
    const auto a = Vec<T>::load(p).v;
    const auto b = Vec<T>::load(p + kVecBytes).v;
    if constexpr (Vec<T>::kLanes == 16) {
      return {Vec<T>(__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24,
                                             26, 28, 30)),
              Vec<T>(__builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25,
                                             27, 29, 31))};
    } else if constexpr (Vec<T>::kLanes == 8) {
      return {Vec<T>(__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)),
              Vec<T>(__builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15))};
    } else if constexpr (Vec<T>::kLanes == 4) {
      return {Vec<T>(__builtin_shufflevector(a, b, 0, 2, 4, 6)),
              Vec<T>(__builtin_shufflevector(a, b, 1, 3, 5, 7))};
    } else {
      return {Vec<T>(__builtin_shufflevector(a, b, 0, 2)),
              Vec<T>(__builtin_shufflevector(a, b, 1, 3))};
    }
  }
  C10_ALWAYS_INLINE static void store(char* p, V x) {
    const auto a = x.real_.v;
    const auto b = x.imag_.v;
    if constexpr (Vec<T>::kLanes == 16) {
      put(p,
          Vec<T>(__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                         23)),
          Vec<T>(__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                         15, 31)));
    } else if constexpr (Vec<T>::kLanes == 8) {
      put(p, Vec<T>(__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)),
          Vec<T>(__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)));
    } else if constexpr (Vec<T>::kLanes == 4) {
      put(p, Vec<T>(__builtin_shufflevector(a, b, 0, 4, 1, 5)),
          Vec<T>(__builtin_shufflevector(a, b, 2, 6, 3, 7)));
    } else {
      put(p, Vec<T>(__builtin_shufflevector(a, b, 0, 2)),
          Vec<T>(__builtin_shufflevector(a, b, 1, 3)));
    }
  }

 private:
  C10_ALWAYS_INLINE static void put(char* p, Vec<T> first, Vec<T> second) {
    first.store(p);
    second.store(p + kVecBytes);
  }
};

// Four mask bits to four bytes that are 0 or 1.
C10_ALWAYS_INLINE uint32_t spread_bits(uint32_t bits) { return (bits * 0x00204081u) & 0x01010101u; }

// One byte, 0 or 1, per lane.
template <class T> C10_ALWAYS_INLINE void store_mask(char* p, Mask<T> mask) {
#if defined(__AVX2__) && !defined(__AVX512F__) && !defined(__clang__)
  // The compiler narrows wide lanes to bytes one by one; through the sign bits it takes a few
  // steps.
  if constexpr (sizeof(T) == 8) {
    const uint32_t bits = __builtin_ia32_movmskpd256((Vec<double>::Raw)mask.m);
    const uint32_t bytes = spread_bits(bits);
    __builtin_memcpy(p, &bytes, sizeof(bytes));
    return;
  } else if constexpr (sizeof(T) == 4) {
    const uint32_t bits = __builtin_ia32_movmskps256((Vec<float>::Raw)mask.m);
    const uint32_t bytes[2] = {spread_bits(bits & 15), spread_bits(bits >> 4)};
    __builtin_memcpy(p, bytes, sizeof(bytes));
    return;
  }
#endif
  typedef signed char Bytes __attribute__((vector_size(kVecBytes / sizeof(T))));
  const Bytes bytes = __builtin_convertvector(mask.m, Bytes) & 1;
  __builtin_memcpy(p, &bytes, sizeof(bytes));
}

} // namespace CRESSET_ISA
} // namespace at::vec
