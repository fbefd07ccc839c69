// Vectors and conversions for the matrix-product kernels, on GCC vector extensions so that one
// source serves every instruction set. Included by *.simd.cpp only: everything lives in the
// namespace of the instruction set, and nothing from the standard library is used that the
// compiler might emit out of line and the linker then share between instruction sets.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#define GEMM_INLINE inline __attribute__((always_inline))

namespace at::native::gemm::CRESSET_ISA {

// Register block: MR rows by NV vectors leaves room for NV vectors of B and one broadcast.
#if defined(__AVX512F__)
constexpr int kVecBytes = 64;
constexpr int kBlockVecs = 4;
#elif defined(__AVX2__)
constexpr int kVecBytes = 32;
constexpr int kBlockVecs = 2;
#elif defined(__aarch64__)
constexpr int kVecBytes = 16;
constexpr int kBlockVecs = 4;
#else
constexpr int kVecBytes = 16;
constexpr int kBlockVecs = 2;
#endif
constexpr int kBlockRows = 6;

struct HalfBits {
  uint16_t x;
};
struct BFloat16Bits {
  uint16_t x;
};

template <class T> struct VecOf {
  static constexpr int size = kVecBytes / static_cast<int>(sizeof(T));
  typedef T type __attribute__((vector_size(kVecBytes)));
  typedef T loose __attribute__((vector_size(kVecBytes), aligned(1), may_alias));
};
template <class T> using Vec = typename VecOf<T>::type;
template <class T> constexpr int lanes = VecOf<T>::size;

template <class T> GEMM_INLINE Vec<T> load(const void* p) {
  return *static_cast<const typename VecOf<T>::loose*>(p);
}
template <class T> GEMM_INLINE void store(void* p, Vec<T> v) {
  *static_cast<typename VecOf<T>::loose*>(p) = v;
}
template <class T> GEMM_INLINE Vec<T> splat(T x) {
  return x - Vec<T>{}; // x - 0, not x + 0: keeps the sign of -0 and compiles to one broadcast
}

GEMM_INLINE int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- scalar conversions --------------------------------------------------------------------

GEMM_INLINE float bits_to_float(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}
GEMM_INLINE uint32_t float_to_bits(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  return bits;
}

template <class T> GEMM_INLINE T widen(T x) { return x; }
GEMM_INLINE float widen(BFloat16Bits x) { return bits_to_float(uint32_t(x.x) << 16); }
GEMM_INLINE float widen(HalfBits x) {
#if defined(__F16C__)
  return _cvtsh_ss(x.x);
#else
  const uint32_t sign = uint32_t(x.x & 0x8000) << 16;
  const uint32_t magnitude = x.x & 0x7fff;
  if (magnitude >= 0x7c00) { // infinity, NaN
    return bits_to_float(sign | 0x7f800000u | ((magnitude & 0x3ff) << 13));
  }
  // Rebias by a multiplication, which also normalises subnormals; 2^112 is exact.
  const float value = bits_to_float(magnitude << 13) * bits_to_float(0x77800000u);
  return bits_to_float(float_to_bits(value) | sign);
#endif
}

GEMM_INLINE void narrow(float x, BFloat16Bits* out) {
  const uint32_t bits = float_to_bits(x);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  out->x = nan ? 0x7fc0 : static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
GEMM_INLINE void narrow(float x, HalfBits* out) {
#if defined(__F16C__)
  out->x = _cvtss_sh(x, 0);
#else
  const uint32_t bits = float_to_bits(x);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint16_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00;
  } else if (magnitude >= 0x477ff000u) { // rounds to 2^16 or beyond
    half = 0x7c00;
  } else if (magnitude < 0x38800000u) { // subnormal: the addition rounds to a multiple of 2^-24
    const float shifted = bits_to_float(magnitude) + bits_to_float(0x3f000000u);
    half = static_cast<uint16_t>(float_to_bits(shifted) - 0x3f000000u);
  } else {
    const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    half = static_cast<uint16_t>((rounded - 0x38000000u) >> 13);
  }
  out->x = static_cast<uint16_t>(sign | half);
#endif
}
template <class T> GEMM_INLINE void narrow(T x, T* out) { *out = x; }

// ---- vectors of the compute type CT from and to storage type T -----------------------------

typedef uint16_t Narrow __attribute__((vector_size(kVecBytes / 2)));

template <class CT, class T> GEMM_INLINE Vec<CT> load_wide(const T* p) {
  if constexpr (sizeof(CT) == sizeof(T)) {
    return load<CT>(p);
  } else {
    Narrow raw{};
    std::memcpy(&raw, p, sizeof(raw));
    if constexpr (__is_same(T, BFloat16Bits)) {
      const Vec<uint32_t> bits = __builtin_convertvector(raw, Vec<uint32_t>) << 16;
      return reinterpret_cast<Vec<float>>(bits);
    } else {
#if defined(__AVX512F__)
      return reinterpret_cast<Vec<float>>(
          _mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(raw)));
#elif defined(__F16C__)
      return reinterpret_cast<Vec<float>>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(raw)));
#else
      Vec<float> out{};
      for (int i = 0; i < lanes<float>; ++i) {
        out[i] = widen(HalfBits{raw[i]});
      }
      return out;
#endif
    }
  }
}

template <class CT, class T> GEMM_INLINE void store_narrow(T* p, Vec<CT> v) {
  if constexpr (sizeof(CT) == sizeof(T)) {
    store<CT>(p, v);
  } else {
    Narrow raw{};
    if constexpr (__is_same(T, BFloat16Bits)) {
      const Vec<uint32_t> bits = reinterpret_cast<Vec<uint32_t>>(v);
      const Vec<uint32_t> rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
      const auto nan = v != v;
      raw = __builtin_convertvector(nan ? splat<uint32_t>(0x7fc0) : rounded, Narrow);
    } else {
#if defined(__AVX512F__)
      raw = reinterpret_cast<Narrow>(_mm512_maskz_cvtps_ph(0xffff, reinterpret_cast<__m512>(v), 0));
#elif defined(__F16C__)
      raw = reinterpret_cast<Narrow>(_mm256_cvtps_ph(reinterpret_cast<__m256>(v), 0));
#else
      for (int i = 0; i < lanes<float>; ++i) {
        HalfBits h;
        narrow(v[i], &h);
        raw[i] = h.x;
      }
#endif
    }
    std::memcpy(p, &raw, sizeof(raw));
  }
}

// Sum of the lanes by halving: a fixed tree.
template <class CT> GEMM_INLINE CT sum_lanes(Vec<CT> v) {
  constexpr int n = lanes<CT>;
  CT x[n];
  std::memcpy(x, &v, sizeof(v));
#pragma GCC unroll 8
  for (int half = n / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < half; ++i) {
      x[i] += x[i + half];
    }
  }
  return x[0];
}

// ---- transpose of a square of lanes x lanes -------------------------------------------------

template <class CT, int S, int... I>
GEMM_INLINE void exchange(Vec<CT>& lo, Vec<CT>& hi, std::integer_sequence<int, I...>) {
  constexpr int n = lanes<CT>;
  const Vec<CT> a = lo;
  const Vec<CT> b = hi;
  lo = __builtin_shufflevector(a, b, ((I & S) ? n + I - S : I)...);
  hi = __builtin_shufflevector(a, b, ((I & S) ? n + I : I + S)...);
}

template <class CT, int S> GEMM_INLINE void transpose_stage(Vec<CT>* r) {
  if constexpr (S > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes<CT>; ++i) {
      if ((i & S) == 0) {
        exchange<CT, S>(r[i], r[i + S], std::make_integer_sequence<int, lanes<CT>>());
      }
    }
    transpose_stage<CT, S / 2>(r);
  }
}

template <class CT> GEMM_INLINE void transpose_square(Vec<CT>* r) {
  transpose_stage<CT, lanes<CT> / 2>(r);
}

} // namespace at::native::gemm::CRESSET_ISA
