// What a CUDA compiler knows by itself, for g++: qualifiers, built-in variables, vector types, warp
// operations, atomics, intrinsics and the functions of CUDA's maths library that C has not. Put
// before every program by the emulated NVRTC. Blocks run one at a time, so shared memory is static
// and atomics are plain.
#pragma once

// The C header alone: its C++ wrapper would cost each program a second of compile time.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <stddef.h>
#include <string.h>

#include "Abi.h"

#define CRESSET_EMULATOR 1
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1

#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static
#define CRESSET_SHARED static
#define CRESSET_DYNAMIC_SHARED(type, name)                                                         \
  type* const name = reinterpret_cast<type*>(cresset_emulator->shared)

extern "C" __attribute__((visibility("default"))) CressetEmulatorThread* cresset_emulator;
CressetEmulatorThread* cresset_emulator = nullptr;

#define threadIdx (cresset_emulator->thread)
#define blockIdx (cresset_emulator->block)
#define blockDim (cresset_emulator->block_dim)
#define gridDim (cresset_emulator->grid_dim)
static const int warpSize = 32;

// ---- vector types
#define CRESSET_VECTORS(T, name, a2, a4)                                                           \
  struct name##1 {                                                                                 \
    T x;                                                                                           \
  };                                                                                               \
  struct alignas(a2) name##2 {                                                                     \
    T x, y;                                                                                        \
  };                                                                                               \
  struct name##3 {                                                                                 \
    T x, y, z;                                                                                     \
  };                                                                                               \
  struct alignas(a4) name##4 {                                                                     \
    T x, y, z, w;                                                                                  \
  };                                                                                               \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                       \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                               \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CRESSET_VECTORS(signed char, char, 2, 4)
CRESSET_VECTORS(unsigned char, uchar, 2, 4)
CRESSET_VECTORS(short, short, 4, 8)
CRESSET_VECTORS(unsigned short, ushort, 4, 8)
CRESSET_VECTORS(int, int, 8, 16)
CRESSET_VECTORS(unsigned, uint, 8, 16)
CRESSET_VECTORS(long, long, 16, 16)
CRESSET_VECTORS(unsigned long, ulong, 16, 16)
CRESSET_VECTORS(long long, longlong, 16, 16)
CRESSET_VECTORS(unsigned long long, ulonglong, 16, 16)
CRESSET_VECTORS(float, float, 8, 16)
CRESSET_VECTORS(double, double, 16, 16)
#undef CRESSET_VECTORS
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// ---- synchronisation
inline void __syncthreads() { cresset_emulator->barrier(); }
inline void __syncwarp(unsigned mask = ~0u) { cresset_emulator->warp_barrier(mask); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __trap() { cresset_emulator->trap(); }
inline void __nanosleep(unsigned) {}
inline long long clock64() {
  static thread_local long long ticks = 0;
  return ticks += 1000;
}
#define printf(...) cresset_emulator->print(__VA_ARGS__)

namespace cresset_emulator_detail {
inline unsigned lane() { return cresset_emulator->linear & 31; }

// Every lane of the mask leaves a value and may then read the others'.
template <class T> struct Exchange {
  static_assert(sizeof(T) <= 16, "a shuffled value has at most 16 bytes");
  unsigned mask, base;
  Exchange(unsigned mask, const T& value) : mask(mask), base(cresset_emulator->linear & ~31u) {
    memcpy(cresset_emulator->slots[cresset_emulator->linear], &value, sizeof(T));
    cresset_emulator->warp_barrier(mask);
  }
  ~Exchange() { cresset_emulator->warp_barrier(mask); }
  bool has(unsigned lane) const {
    return (mask >> lane & 1) && base + lane < cresset_emulator->threads;
  }
  T at(unsigned lane) const {
    T value;
    memcpy(&value, cresset_emulator->slots[base + lane], sizeof(T));
    return value;
  }
};

inline unsigned votes(unsigned mask, bool predicate) {
  Exchange<bool> all(mask, predicate);
  unsigned result = 0;
  for (unsigned i = 0; i < 32; ++i) {
    result |= all.has(i) && all.at(i) ? 1u << i : 0u;
  }
  return result;
}

template <class T, class F> T folded(unsigned mask, T value, F f) {
  Exchange<T> all(mask, value);
  bool first = true;
  T result = value;
  for (unsigned i = 0; i < 32; ++i) {
    if (all.has(i)) {
      result = first ? all.at(i) : f(result, all.at(i));
      first = false;
    }
  }
  return result;
}

inline int block_count(bool predicate) {
  CressetEmulatorThread& t = *cresset_emulator;
  t.slots[t.linear][0] = predicate;
  t.barrier();
  int count = 0;
  for (unsigned i = 0; i < t.threads; ++i) {
    count += t.slots[i][0];
  }
  t.barrier();
  return count;
}
} // namespace cresset_emulator_detail

template <class T> T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
  cresset_emulator_detail::Exchange<T> all(mask, v);
  const unsigned lane = cresset_emulator_detail::lane();
  return all.at((lane & ~(width - 1u)) | (source & (width - 1u)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  cresset_emulator_detail::Exchange<T> all(mask, v);
  const unsigned lane = cresset_emulator_detail::lane(), source = lane ^ bits;
  return source / width > lane / width ? v : all.at(source);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  cresset_emulator_detail::Exchange<T> all(mask, v);
  const unsigned lane = cresset_emulator_detail::lane();
  return lane % width < delta ? v : all.at(lane - delta);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  cresset_emulator_detail::Exchange<T> all(mask, v);
  const unsigned lane = cresset_emulator_detail::lane();
  return lane % width + delta >= static_cast<unsigned>(width) ? v : all.at(lane + delta);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return cresset_emulator_detail::votes(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) {
  return cresset_emulator_detail::votes(mask, predicate != 0) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return cresset_emulator_detail::votes(mask, predicate == 0) == 0;
}
template <class T> unsigned __match_any_sync(unsigned mask, T v) {
  cresset_emulator_detail::Exchange<T> all(mask, v);
  unsigned result = 0;
  for (unsigned i = 0; i < 32; ++i) {
    result |= all.has(i) && all.at(i) == v ? 1u << i : 0u;
  }
  return result;
}
template <class T> T __reduce_add_sync(unsigned mask, T v) {
  return cresset_emulator_detail::folded(mask, v, [](T a, T b) { return T(a + b); });
}
template <class T> T __reduce_min_sync(unsigned mask, T v) {
  return cresset_emulator_detail::folded(mask, v, [](T a, T b) { return a < b ? a : b; });
}
template <class T> T __reduce_max_sync(unsigned mask, T v) {
  return cresset_emulator_detail::folded(mask, v, [](T a, T b) { return a < b ? b : a; });
}
template <class T> T __reduce_or_sync(unsigned mask, T v) {
  return cresset_emulator_detail::folded(mask, v, [](T a, T b) { return T(a | b); });
}
template <class T> T __reduce_and_sync(unsigned mask, T v) {
  return cresset_emulator_detail::folded(mask, v, [](T a, T b) { return T(a & b); });
}
inline int __syncthreads_count(int p) { return cresset_emulator_detail::block_count(p != 0); }
inline int __syncthreads_or(int p) { return cresset_emulator_detail::block_count(p != 0) != 0; }
inline int __syncthreads_and(int p) { return cresset_emulator_detail::block_count(p == 0) == 0; }

// ---- atomics
#define CRESSET_ATOMICS(T)                                                                         \
  inline T atomicAdd(T* p, T v) {                                                                  \
    T old = *p;                                                                                    \
    *p = old + v;                                                                                  \
    return old;                                                                                    \
  }                                                                                                \
  inline T atomicExch(T* p, T v) {                                                                 \
    T old = *p;                                                                                    \
    *p = v;                                                                                        \
    return old;                                                                                    \
  }                                                                                                \
  inline T atomicMin(T* p, T v) {                                                                  \
    T old = *p;                                                                                    \
    *p = v < old ? v : old;                                                                        \
    return old;                                                                                    \
  }                                                                                                \
  inline T atomicMax(T* p, T v) {                                                                  \
    T old = *p;                                                                                    \
    *p = old < v ? v : old;                                                                        \
    return old;                                                                                    \
  }
#define CRESSET_INT_ATOMICS(T)                                                                     \
  CRESSET_ATOMICS(T)                                                                               \
  inline T atomicSub(T* p, T v) {                                                                  \
    T old = *p;                                                                                    \
    *p = old - v;                                                                                  \
    return old;                                                                                    \
  }                                                                                                \
  inline T atomicAnd(T* p, T v) {                                                                  \
    T old = *p;                                                                                    \
    *p = old & v;                                                                                  \
    return old;                                                                                    \
  }                                                                                                \
  inline T atomicOr(T* p, T v) {                                                                   \
    T old = *p;                                                                                    \
    *p = old | v;                                                                                  \
    return old;                                                                                    \
  }                                                                                                \
  inline T atomicXor(T* p, T v) {                                                                  \
    T old = *p;                                                                                    \
    *p = old ^ v;                                                                                  \
    return old;                                                                                    \
  }                                                                                                \
  inline T atomicCAS(T* p, T c, T v) {                                                             \
    T old = *p;                                                                                    \
    if (old == c) *p = v;                                                                          \
    return old;                                                                                    \
  }                                                                                                \
  inline T atomicCAS_system(T* p, T c, T v) { return atomicCAS(p, c, v); }
CRESSET_INT_ATOMICS(int)
CRESSET_INT_ATOMICS(unsigned)
CRESSET_INT_ATOMICS(unsigned long long)
CRESSET_ATOMICS(float)
CRESSET_ATOMICS(double)
inline unsigned short atomicCAS(unsigned short* p, unsigned short c, unsigned short v) {
  const unsigned short old = *p;
  if (old == c) *p = v;
  return old;
}
inline unsigned atomicInc(unsigned* p, unsigned limit) {
  const unsigned old = *p;
  *p = old >= limit ? 0 : old + 1;
  return old;
}

// ---- loads, bits, intrinsics
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> void __stcs(T* p, const T& v) { *p = v; }
template <class T> void __stcg(T* p, const T& v) { *p = v; }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) {
  return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1) << (31 - i);
  return r;
}
template <class To, class From> To cresset_emulator_bits(From x) {
  To r;
  memcpy(&r, &x, sizeof r);
  return r;
}
inline int __float_as_int(float x) { return cresset_emulator_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return cresset_emulator_bits<unsigned>(x); }
inline float __int_as_float(int x) { return cresset_emulator_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return cresset_emulator_bits<float>(x); }
inline long long __double_as_longlong(double x) { return cresset_emulator_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return cresset_emulator_bits<double>(x); }
#define __expf expf // glibc has the reserved name too
#define __exp2f exp2f
#define __logf logf
#define __log2f log2f
#define __sinf sinf
#define __cosf cosf
#define __powf powf
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frsqrt_rn(float a) { return 1.0f / sqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }

// ---- maths
// Overloads for float of what C names with an f.
// clang-format off
#define CRESSET_UNARY_NAMES(X)                                                                     \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sqrt) X(cbrt) X(sin) X(cos) X(tan)    \
  X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(erf) X(erfc)        \
  X(tgamma) X(lgamma) X(floor) X(ceil) X(trunc) X(rint) X(nearbyint) X(round) X(fabs)
#define CRESSET_BINARY_NAMES(X)                                                                    \
  X(pow) X(atan2) X(hypot) X(fmod) X(remainder) X(copysign) X(nextafter) X(fmin) X(fmax)           \
  X(fdim)
// clang-format on
#define CRESSET_UNARY(name)                                                                        \
  inline float name(float x) { return name##f(x); }
#define CRESSET_BINARY(name)                                                                       \
  inline float name(float x, float y) { return name##f(x, y); }
CRESSET_UNARY_NAMES(CRESSET_UNARY)
CRESSET_BINARY_NAMES(CRESSET_BINARY)
inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
inline float ldexp(float x, int n) { return ldexpf(x, n); }
inline float frexp(float x, int* n) { return frexpf(x, n); }
inline float modf(float x, float* n) { return modff(x, n); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline long abs(long x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
#undef isnan
#undef isinf
#undef isfinite
#undef signbit
template <class T> bool isnan(T x) { return x != x; }
template <class T> bool isinf(T x) { return __builtin_isinf(x) != 0; }
template <class T> bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> bool signbit(T x) { return __builtin_signbit(x) != 0; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline float sinpif(float x) { return static_cast<float>(sin(M_PI * fmod(x, 2.0))); }
inline float cospif(float x) { return static_cast<float>(cos(M_PI * fmod(x, 2.0))); }
inline double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
inline double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
inline void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}
inline void sincospi(double x, double* s, double* c) {
  *s = sinpi(x);
  *c = cospi(x);
}
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
inline float normcdff(float x) { return static_cast<float>(normcdf(x)); }
// Newton's steps from Giles' approximation, to full precision.
inline double erfinv(double y) {
  if (!(y > -1 && y < 1)) return y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN;
  const double w = -log((1 - y) * (1 + y));
  double x = w < 5
                 ? y * (1.50140941 + (w - 2.5) * (0.246640727 + (w - 2.5) * -0.00417768164))
                 : y * (2.83297682 + (sqrt(w) - 3) * (1.00167406 + (sqrt(w) - 3) * 0.00943887047));
  for (int i = 0; i < 4; ++i) {
    const double error = y > 0.5 ? (1 - y) - erfc(x) : y < -0.5 ? erfc(-x) - (1 + y) : erf(x) - y;
    x -= error / (2 / sqrt(M_PI) * exp(-x * x));
  }
  return x;
}
inline float erfinvf(float y) { return static_cast<float>(erfinv(y)); }
inline double normcdfinv(double p) { return M_SQRT2 * erfinv(2 * p - 1); }
inline float normcdfinvf(float p) { return static_cast<float>(normcdfinv(p)); }

#define CRESSET_MINMAX(T)                                                                          \
  inline T min(T a, T b) { return b < a ? b : a; }                                                 \
  inline T max(T a, T b) { return a < b ? b : a; }
CRESSET_MINMAX(int)
CRESSET_MINMAX(unsigned)
CRESSET_MINMAX(long)
CRESSET_MINMAX(unsigned long)
CRESSET_MINMAX(long long)
CRESSET_MINMAX(unsigned long long)
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

// ---- entry: calls a kernel with the values its launch points to
namespace cresset_emulator_detail {
template <class T> struct Plain { using type = T; };
template <class T> struct Plain<const T> { using type = T; };
template <class F> struct Entry;
template <class... A> struct Entry<void (*)(A...)> {
  template <size_t... I> struct Indices {};
  template <size_t N, size_t... I> struct Make : Make<N - 1, N - 1, I...> {};
  template <size_t... I> struct Make<0, I...> { using type = Indices<I...>; };
  template <size_t... I> static void call(void (*f)(A...), void** args, Indices<I...>) {
    (void)args;
    f(*static_cast<typename Plain<A>::type*>(args[I])...);
  }
  static void call(void (*f)(A...), void** args) {
    call(f, args, typename Make<sizeof...(A)>::type());
  }
  static constexpr size_t kCount = sizeof...(A);
  struct Sizes {
    unsigned v[2 * sizeof...(A) + 1];
  };
  static constexpr Sizes sizes() {
    Sizes s{};
    size_t i = 0;
    ((s.v[i++] = sizeof(A), s.v[i++] = alignof(A)), ...);
    s.v[i] = ~0u;
    return s;
  }
};
} // namespace cresset_emulator_detail

// What the run-time compiler does not know.
#pragma GCC poison __builtin_offsetof
