// What the text of a compiled kernel is written with (tier.cpp): registers of elements, loaded,
// rounded and stored as the loops of eager operators do it, so that the bits are theirs. Included
// by generated text only, compiled for one instruction set.
#pragma once
#include <cstdint>
#include <cstring>

#include <ATen/iter/Loops.h>
#include <ATen/vec/VecIO.h>

namespace torch::inductor::fused {
inline namespace CRESSET_ISA {

using at::vec::Mask;
using at::vec::Vec;
using at::vec::VecIO;
template <class T> using Compute = at::vec::opmath_t<T>;
// Bytes that hold one register of any element type.
constexpr int kBytes = 2 * at::vec::kVecBytes;

// ---- values. bool is a mask of the type C that the kernel computes in; the rest are registers.
template <class T, class C> C10_ALWAYS_INLINE auto load(const char* p) {
  if constexpr (std::is_same_v<T, bool>) {
    Mask<C> mask{};
    for (int i = 0; i < Vec<C>::kLanes; ++i) mask.m[i] = p[i] != 0 ? -1 : 0;
    return mask;
  } else {
    return VecIO<T>::load(p);
  }
}
template <class T, class C> C10_ALWAYS_INLINE void store(char* p, Vec<C> v) {
  VecIO<T>::store(p, v);
}
template <class T, class C> C10_ALWAYS_INLINE void store(char* p, Mask<C> mask) {
  at::vec::store_mask(p, mask);
}
// A register of T as memory would hold it.
template <class T, class C> C10_ALWAYS_INLINE Vec<C> rounded(Vec<C> v) {
  if constexpr (std::is_same_v<T, C>) {
    return v;
  } else {
    char bytes[kBytes];
    VecIO<T>::store(bytes, v);
    return VecIO<T>::load(bytes);
  }
}

template <class T> C10_ALWAYS_INLINE T element(const char* p) {
  T value;
  __builtin_memcpy(&value, p, sizeof(T));
  return value;
}
// One number in all lanes; of type From, converted to To.
template <class From, class To, class C> C10_ALWAYS_INLINE auto number(const char* p) {
  if constexpr (std::is_same_v<To, bool>) {
    Mask<C> mask{};
    for (int i = 0; i < Vec<C>::kLanes; ++i) mask.m[i] = *p != 0 ? -1 : 0;
    return mask;
  } else {
    return Vec<C>(static_cast<C>(static_cast<To>(element<From>(p))));
  }
}

// ---- operators
template <class F, class T, at::native::OutKind kOut, class C, class... V>
C10_ALWAYS_INLINE auto apply(V... in) {
  static_assert(std::is_same_v<C, Compute<T>>);
  if constexpr (at::native::detail::vectorized<F, T>()) {
    if constexpr (kOut == at::native::OutKind::Bool) {
      return F::apply(in...);
    } else {
      return rounded<T, C>(F::apply(in...));
    }
  } else {
    using E = std::conditional_t<at::native::detail::wants_stored_type_v<F>, T, C>;
    if constexpr (kOut == at::native::OutKind::Bool) {
      Mask<C> r{};
      for (int i = 0; i < Vec<C>::kLanes; ++i)
        r.m[i] = static_cast<bool>(F::apply(static_cast<E>(in.v[i])...)) ? -1 : 0;
      return r;
    } else {
      Vec<C> r;
      for (int i = 0; i < Vec<C>::kLanes; ++i)
        r.v[i] = static_cast<C>(static_cast<T>(F::apply(static_cast<E>(in.v[i])...)));
      return r;
    }
  }
}
template <class From, class To, class C> C10_ALWAYS_INLINE auto cast(Vec<C> v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != Vec<C>(C(0));
  } else {
    return rounded<To, C>(v);
  }
}
template <class From, class To, class C> C10_ALWAYS_INLINE auto cast(Mask<C> mask) {
  if constexpr (std::is_same_v<To, bool>) {
    return mask;
  } else {
    return at::vec::select(mask, Vec<C>(C(1)), Vec<C>(C(0)));
  }
}

// ---- operands in memory
template <class T, class C> struct In {
  const char* p;
  int64_t step;
  alignas(64) char splat[kBytes];
  In(const char* data, int64_t stride) : p(data), step(Vec<C>::kLanes * int64_t(sizeof(T))) {
    if (stride != 0) return;
    for (int i = 0; i < Vec<C>::kLanes; ++i) std::memcpy(splat + i * sizeof(T), data, sizeof(T));
    p = splat;
    step = 0;
  }
};
// The last elements, with the first of them behind: any other filling could raise an error.
template <class T, class C> struct Tail {
  const char* p;
  alignas(64) char bytes[kBytes];
  Tail(const In<T, C>& in, int64_t n) : p(in.p) {
    if (in.step == 0) return;
    for (int i = 0; i < Vec<C>::kLanes; ++i)
      std::memcpy(bytes + i * sizeof(T), in.p + (i < n ? i : 0) * sizeof(T), sizeof(T));
    p = bytes;
  }
};

} // namespace CRESSET_ISA
} // namespace torch::inductor::fused
