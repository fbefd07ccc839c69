// The vector loops of the random engine. The single-precision normals must have the bits of
// PyTorch's vector kernel, which were matched by experiment: logarithm and sine/cosine are the
// classic single-precision polynomials of the Cephes library (S. L. Moshier), in the order of
// operations of the vector libraries sse_mathfun (J. Pommier) and avx_mathfun (G. Garberoglio) with
// fused multiply-adds. Other coefficients or another order give other bits, so neither can be ours;
// THIRD_PARTY.md has the licences. Do not "simplify" it.

#include <ATen/native/random/engine/Kernels.h>

#include <ATen/vec/VecBasic.h>

#include <c10/util/MathConstants.h>
#include <cstddef>

namespace at::native::random::CRESSET_ISA {
namespace {

using vec::as_float;
using vec::as_int;
using vec::select;
using vec::Vec;
using F = Vec<float>;
using I = Vec<int>;
using U = Vec<unsigned>;

constexpr int kWords = 624;
constexpr int kShift = 397;
constexpr int kLanes = U::kLanes;

constexpr uint32_t twist_word(uint32_t current, uint32_t following, uint32_t far) {
  const uint32_t mixed = (current & 0x80000000u) | (following & 0x7fffffffu);
  return far ^ (mixed >> 1) ^ ((following & 1u) != 0 ? 0x9908b0dfu : 0u);
}

/// Words [begin, end); `far` is the distance, forward or back, of the third word. All loads of a
/// register come before its store, so the update may run in place.
void twist_range(uint32_t* s, int begin, int end, int far) {
  int i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    const U current = U::load(s + i), following = U::load(s + i + 1), other = U::load(s + i + far);
    const U mixed = (current & U(0x80000000u)) | (following & U(0x7fffffffu));
    const U odd = U(U(0u) - (following & U(1u))) & U(0x9908b0dfu);
    (other ^ (mixed >> U(1u)) ^ odd).store(s + i);
  }
  for (; i < end; ++i) s[i] = twist_word(s[i], s[i + 1], s[i + far]);
}

void twist(uint32_t* s) {
  twist_range(s, 0, kWords - kShift, kShift);
  twist_range(s, kWords - kShift, kWords - 1, kShift - kWords);
  s[kWords - 1] = twist_word(s[kWords - 1], s[0], s[kShift - 1]);
}

template <class V> C10_ALWAYS_INLINE V temper_word(V y) {
  y = y ^ (y >> V(11u));
  y = y ^ ((y << V(7u)) & V(0x9d2c5680u));
  y = y ^ ((y << V(15u)) & V(0xefc60000u));
  return y ^ (y >> V(18u));
}

void temper(const uint32_t* state, uint32_t* out, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) temper_word(U::load(state + i)).store(out + i);
  for (; i < n; ++i) out[i] = temper_word(state[i]);
}

/// One rounding on every machine: the streams' bits depend on it.
C10_ALWAYS_INLINE F fused(F a, F b, F c) {
#if defined(__FMA__) || defined(__AVX512F__)
  return vm::fma(a, b, c);
#else
  F r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return r;
#endif
}

C10_ALWAYS_INLINE F to_float(I a) { return __builtin_convertvector(a.v, F::Raw); }
C10_ALWAYS_INLINE I to_int(F a) { return __builtin_convertvector(a.v, I::Raw); }

void uniform_f32(const uint32_t* raw, float* out, int64_t n, float range, float from) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F u = to_float(I::load(raw + i) & I(0xffffff)) * F(0x1p-24f);
    fused(u, F(range), F(from)).store(out + i);
  }
  for (; i < n; ++i) {
    const float u = static_cast<float>(raw[i] & 0xffffff) * 0x1p-24f;
    out[i] = __builtin_fmaf(u, range, from);
  }
}

void uniform_f64(const uint32_t* raw, double* out, int64_t n, double range, double from) {
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t draw = static_cast<uint64_t>(raw[2 * i]) << 32 | raw[2 * i + 1];
    const double u = static_cast<double>(static_cast<int64_t>(draw << 11 >> 11)) * 0x1p-53;
    out[i] = __builtin_fma(u, range, from);
  }
}

template <int kCount> C10_ALWAYS_INLINE F horner(F x, const float (&c)[kCount]) {
  F r(c[0]);
#pragma GCC unroll 16
  for (int i = 1; i < kCount; ++i) r = fused(r, x, F(c[i]));
  return r;
}

/// log x for normal positive x.
C10_ALWAYS_INLINE F log_positive(F x) {
  static constexpr float kPoly[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                    -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                    2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  const I bits = as_int(x);
  F e = to_float((bits >> I(23)) - I(126));
  F m = as_float<float>((bits & I(0x7fffff)) | I(0x3f000000)); // in [0.5, 1)
  const auto low = m < F(0.707106781186547524f);
  e = select(low, e - F(1.0f), e);
  m = select(low, m + m, m) - F(1.0f);
  const F z = m * m;
  F y = horner(m, kPoly) * m;
  y = fused(y, z, e * F(-2.12194440e-4f));
  y = fused(z, F(-0.5f), y);
  return fused(e, F(0.693359375f), m + y);
}

/// Sine and cosine of x in [0, 2 pi].
C10_ALWAYS_INLINE void sincos(F x, F& sine, F& cosine) {
  static constexpr float kCos[] = {2.443315711809948e-5f, -1.388731625493765e-3f,
                                   4.166664568298827e-2f};
  static constexpr float kSin[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
  const I octant = (to_int(x * F(1.27323954473516f)) + I(1)) & I(~1); // rounded up to even
  const F y = to_float(octant);
  x = fused(y, F(-0.78515625f), x);
  x = fused(y, F(-2.4187564849853515625e-4f), x);
  x = fused(y, F(-3.77489497744594108e-8f), x);
  const F z = x * x;
  const F c = fused(horner(z, kCos) * z, z, z * F(-0.5f)) + F(1.0f);
  const F s = fused(horner(z, kSin) * z, x, x);
  const I quadrant = (octant >> I(1)) & I(3);
  const vec::Mask<float> swap{(quadrant & I(1)).v != 0};
  const I sine_sign = (quadrant & I(2)) << I(30);
  const I cosine_sign = ((quadrant + I(1)) & I(2)) << I(30);
  sine = as_float<float>(as_int(select(swap, c, s)) ^ sine_sign);
  cosine = as_float<float>(as_int(select(swap, s, c)) ^ cosine_sign);
}

/// 16 pairs: two blocks at once, so that registers of up to 16 lanes are full.
C10_ALWAYS_INLINE void normal_pairs(float* first, float* second, float mean, float std) {
  constexpr float kTwoPi = 2.0f * c10::pi<float>;
  for (int i = 0; i < 16; i += kLanes) {
    const F u1 = F(1.0f) - F::load(first + i);
    const F theta = F(kTwoPi) * F::load(second + i);
    const F radius = vm::sqrt(F(-2.0f) * log_positive(u1));
    F sine, cosine;
    sincos(theta, sine, cosine);
    fused(radius * cosine, F(std), F(mean)).store(first + i);
    fused(radius * sine, F(std), F(mean)).store(second + i);
  }
}

void normal_f32(float* data, int64_t n, float mean, float std) {
  constexpr size_t kHalf = 8 * sizeof(float);
  for (int64_t i = 0; i < n; i += 32) {
    const bool two = i + 32 <= n;
    float first[16] = {}, second[16] = {};
    __builtin_memcpy(first, data + i, kHalf);
    __builtin_memcpy(second, data + i + 8, kHalf);
    if (two) {
      __builtin_memcpy(first + 8, data + i + 16, kHalf);
      __builtin_memcpy(second + 8, data + i + 24, kHalf);
    }
    normal_pairs(first, second, mean, std);
    __builtin_memcpy(data + i, first, kHalf);
    __builtin_memcpy(data + i + 8, second, kHalf);
    if (two) {
      __builtin_memcpy(data + i + 16, first + 8, kHalf);
      __builtin_memcpy(data + i + 24, second + 8, kHalf);
    }
  }
}

} // namespace

extern const EngineKernels kEngineKernels = {twist, temper, uniform_f32, uniform_f64, normal_f32};

} // namespace at::native::random::CRESSET_ISA
