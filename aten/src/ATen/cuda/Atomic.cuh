// Atomic updates of one element in device memory for all dtypes: gpuAtomicAdd, Mul, Max and Min
// return what the element was before.
//
// The hardware adds 32- and 64-bit numbers. Everything else is one loop: read the 32- or 64-bit
// word that holds the element, compute, and exchange it if nobody else did meanwhile.
#pragma once
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

namespace at::detail {

template <class To, class From> __device__ inline To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

// The unsigned number of as many bytes as T has.
template <size_t kBytes> struct WordOf;
template <> struct WordOf<1> { using type = uint8_t; };
template <> struct WordOf<2> { using type = uint16_t; };
template <> struct WordOf<4> { using type = unsigned int; };
template <> struct WordOf<8> { using type = unsigned long long; };

// *address = f(*address), for elements of up to 8 bytes at their natural alignment.
template <class T, class F> __device__ inline T atomic_update(T* address, F f) {
  using Bits = typename WordOf<sizeof(T)>::type;
  // Elements of one and two bytes are part of an aligned word of four.
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned int>;
  const auto place = reinterpret_cast<uintptr_t>(address);
  const unsigned shift = sizeof(T) < 4 ? static_cast<unsigned>(place & 3) * 8 : 0;
  Word* const word = reinterpret_cast<Word*>(sizeof(T) < 4 ? place & ~uintptr_t(3) : place);
  const Word mask = static_cast<Word>(static_cast<Bits>(~Bits(0))) << shift;
  Word seen = *word;
  while (true) {
    const T before = same_bits<T>(static_cast<Bits>((seen & mask) >> shift));
    const Word after = static_cast<Word>(same_bits<Bits>(static_cast<T>(f(before)))) << shift;
    const Word found = atomicCAS(word, seen, (seen & ~mask) | after);
    if (found == seen) return before;
    seen = found;
  }
}

template <class T> inline constexpr bool kIsNumber =
    std::is_arithmetic_v<T> || std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;

// NaN wins over every number, as in torch.max and torch.min.
template <class T> __device__ inline T larger(T a, T b) { return a != a || a > b ? a : b; }
template <class T> __device__ inline T smaller(T a, T b) { return a != a || a < b ? a : b; }

} // namespace at::detail

template <class T> __device__ inline T gpuAtomicAdd(T* address, T value) {
  static_assert(at::detail::kIsNumber<T>, "gpuAtomicAdd: the element is no number");
  if constexpr (std::is_same_v<T, bool>) {
    return at::detail::atomic_update(address, [=](T old) { return old || value; });
  } else if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) {
    // Sums of signed and unsigned numbers have the same bits.
    using Word = typename at::detail::WordOf<sizeof(T)>::type;
    return static_cast<T>(atomicAdd(reinterpret_cast<Word*>(address), static_cast<Word>(value)));
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return atomicAdd(address, value);
  } else {
    return at::detail::atomic_update(address, [=](T old) { return static_cast<T>(old + value); });
  }
}
// Each part is added atomically; nobody can see one without the other but another atomic add.
template <class T>
__device__ inline void gpuAtomicAdd(c10::complex<T>* address, c10::complex<T> value) {
  gpuAtomicAdd(&address->real_, value.real_);
  gpuAtomicAdd(&address->imag_, value.imag_);
}
template <class T> __device__ inline void gpuAtomicAddNoReturn(T* address, T value) {
  gpuAtomicAdd(address, value);
}
template <class T> __device__ inline T gpuAtomicMul(T* address, T value) {
  return at::detail::atomic_update(address, [=](T old) { return static_cast<T>(old * value); });
}
template <class T> __device__ inline T gpuAtomicMax(T* address, T value) {
  return at::detail::atomic_update(address, [=](T old) { return at::detail::larger(old, value); });
}
template <class T> __device__ inline T gpuAtomicMin(T* address, T value) {
  return at::detail::atomic_update(address, [=](T old) { return at::detail::smaller(old, value); });
}

// The names of the toolkit for the types it has none for.
#define CRESSET_ATOMIC_ADD(T)                                                                      \
  __device__ inline T atomicAdd(T* address, T value) { return gpuAtomicAdd(address, value); }
CRESSET_ATOMIC_ADD(c10::Half)
CRESSET_ATOMIC_ADD(c10::BFloat16)
CRESSET_ATOMIC_ADD(uint8_t)
CRESSET_ATOMIC_ADD(int8_t)
CRESSET_ATOMIC_ADD(int16_t)
CRESSET_ATOMIC_ADD(int64_t)
CRESSET_ATOMIC_ADD(bool)
#undef CRESSET_ATOMIC_ADD
template <class T>
__device__ inline void atomicAdd(c10::complex<T>* address, c10::complex<T> value) {
  gpuAtomicAdd(address, value);
}
