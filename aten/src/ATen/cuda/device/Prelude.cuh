// What every device program starts from: integer types, the element types of tensors and their
// short names, memory access of up to 16 bytes, shared memory, arguments of kernels. Device
// sources include only headers of this library, so that the build's compiler, the run-time compiler
// and the tests' emulator read the same text.
//
// A kernel is `CRESSET_KERNEL(threads) name(parameters) { ... }`, an extern "C" function for blocks
// of at most `threads` threads.
#pragma once

#define CRESSET_DEVICE 1

#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Float8.h>
#include <c10/util/Half.h>
#include <c10/util/MathConstants.h>
#include <c10/util/NumericLimits.h>
#include <c10/util/complex.h>

#if defined(CRESSET_EMULATOR)
#define CRESSET_LAUNCH_BOUNDS(threads)
#define CRESSET_UNROLL
#define CRESSET_NO_UNROLL
#define CRESSET_OUT_OF_LINE __attribute__((noinline)) inline
#else
#define CRESSET_LAUNCH_BOUNDS(threads) __launch_bounds__(threads)
#define CRESSET_UNROLL _Pragma("unroll")
#define CRESSET_NO_UNROLL _Pragma("unroll 1")
#define CRESSET_OUT_OF_LINE __device__ __noinline__ inline
#endif
#define CRESSET_KERNEL(threads) extern "C" __global__ void CRESSET_LAUNCH_BOUNDS(threads)

#define CRESSET_DEVICE_FN __device__ __forceinline__

#include <ATen/cuda/device/Arguments.h>

// Shared memory of fixed size, and of the size given at the launch. The emulator, whose blocks run
// one after the other, defines both for itself.
#if !defined(CRESSET_SHARED)
#define CRESSET_SHARED __shared__
#endif
#if !defined(CRESSET_DYNAMIC_SHARED)
#define CRESSET_DYNAMIC_SHARED(type, name)                                                         \
  extern __shared__ __align__(16) unsigned char cresset_dynamic_shared[];                          \
  type* const name = reinterpret_cast<type*>(cresset_dynamic_shared)
#endif

namespace at::device {

using c10::BFloat16;
using c10::complex;
using c10::Half;

// The type in which values of T are computed.
template <class T> struct OpMath { using type = T; };
template <> struct OpMath<Half> { using type = float; };
template <> struct OpMath<BFloat16> { using type = float; };
template <> struct OpMath<c10::Float8_e4m3fn> { using type = float; };
template <> struct OpMath<c10::Float8_e5m2> { using type = float; };
template <> struct OpMath<c10::Float8_e4m3fnuz> { using type = float; };
template <> struct OpMath<c10::Float8_e5m2fnuz> { using type = float; };
template <> struct OpMath<complex<Half>> { using type = complex<float>; };
template <class T> using opmath_t = typename OpMath<T>::type;

// ---- memory -------------------------------------------------------------------------------------
template <int kBytes> struct Bytes;
template <> struct Bytes<1> { using type = unsigned char; };
template <> struct Bytes<2> { using type = unsigned short; };
template <> struct Bytes<4> { using type = unsigned; };
template <> struct Bytes<8> { using type = uint2; };
template <> struct Bytes<16> { using type = uint4; };

// kCount consecutive elements, moved by one access of at most 16 bytes each.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount <= 16 ? sizeof(T) * kCount : 16) Pack {
  T v[kCount];
};

// p is aligned to the pack's size (or 16 bytes where it is larger).
template <int kCount, class T> CRESSET_DEVICE_FN Pack<T, kCount> load_pack(const T* p) {
  Pack<T, kCount> r;
  constexpr int kBytes = sizeof(T) * kCount;
  constexpr int kStep = kBytes < 16 ? kBytes : 16;
  using Word = typename Bytes<kStep>::type;
  CRESSET_UNROLL
  for (int i = 0; i < kBytes / kStep; ++i)
    reinterpret_cast<Word*>(&r)[i] = reinterpret_cast<const Word*>(p)[i];
  return r;
}
// The same for what is read once: it does not push other data out of the caches.
template <int kCount, class T> CRESSET_DEVICE_FN Pack<T, kCount> stream_pack(const T* p) {
  Pack<T, kCount> r;
  constexpr int kBytes = sizeof(T) * kCount;
  constexpr int kStep = kBytes < 16 ? kBytes : 16;
  using Word = typename Bytes<kStep>::type;
  CRESSET_UNROLL
  for (int i = 0; i < kBytes / kStep; ++i)
    reinterpret_cast<Word*>(&r)[i] = __ldcs(reinterpret_cast<const Word*>(p) + i);
  return r;
}
template <int kCount, class T>
CRESSET_DEVICE_FN void store_pack(T* p, const Pack<T, kCount>& value) {
  constexpr int kBytes = sizeof(T) * kCount;
  constexpr int kStep = kBytes < 16 ? kBytes : 16;
  using Word = typename Bytes<kStep>::type;
  CRESSET_UNROLL
  for (int i = 0; i < kBytes / kStep; ++i)
    reinterpret_cast<Word*>(p)[i] = reinterpret_cast<const Word*>(&value)[i];
}

// One element. bool is read as a byte because foreign memory may hold any.
template <class T> CRESSET_DEVICE_FN T load(const void* p) { return *static_cast<const T*>(p); }
template <> CRESSET_DEVICE_FN bool load<bool>(const void* p) {
  return *static_cast<const unsigned char*>(p) != 0;
}

// ---- conversions --------------------------------------------------------------------------------
CRESSET_DEVICE_FN BFloat16 round_to_bfloat16(float x) {
#if defined(__CUDA_ARCH__)
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return BFloat16(bits, BFloat16::from_bits());
#else
  return BFloat16(x);
#endif
}

// Between any two element types, as Tensor.to does: complex to real drops the imaginary part, a
// floating number goes to an integer through the widest signed one, and to bool by being non-zero.
template <class To, class From> CRESSET_DEVICE_FN To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (c10::is_complex_v<To>) {
    using R = typename To::value_type;
    if constexpr (c10::is_complex_v<From>)
      return To(convert<R>(x.real_), convert<R>(x.imag_));
    else
      return To(convert<R>(x), R(0.0f));
  } else if constexpr (c10::is_complex_v<From>) {
    if constexpr (std::is_same_v<To, bool>)
      return convert<bool>(x.real_) || convert<bool>(x.imag_);
    else
      return convert<To>(x.real_);
  } else if constexpr (c10::is_reduced_floating_v<From>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return round_to_bfloat16(static_cast<float>(x));
  } else if constexpr (c10::is_reduced_floating_v<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if constexpr (sizeof(To) == 8 && !std::is_signed_v<To>)
      return x < From(0) ? static_cast<To>(static_cast<long long>(x)) : static_cast<To>(x);
    else
      return static_cast<To>(static_cast<long long>(x));
  } else {
    return static_cast<To>(x);
  }
}

} // namespace at::device

// ---- short names of the element types, as used in the names of kernels
// ---------------------------
using cresset_u8 = unsigned char;
using cresset_i8 = signed char;
using cresset_i16 = short;
using cresset_i32 = int;
using cresset_i64 = long;
using cresset_u16 = unsigned short;
using cresset_u32 = unsigned;
using cresset_u64 = unsigned long;
using cresset_bool = bool;
using cresset_f16 = c10::Half;
using cresset_bf16 = c10::BFloat16;
using cresset_f32 = float;
using cresset_f64 = double;
using cresset_c32 = c10::complex<c10::Half>;
using cresset_c64 = c10::complex<float>;
using cresset_c128 = c10::complex<double>;
using cresset_f8e4m3fn = c10::Float8_e4m3fn;
using cresset_f8e5m2 = c10::Float8_e5m2;
using cresset_f8e4m3fnuz = c10::Float8_e4m3fnuz;
using cresset_f8e5m2fnuz = c10::Float8_e5m2fnuz;
