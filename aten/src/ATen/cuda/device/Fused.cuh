// What the text of a fused kernel is written with (torch/csrc/inductor/cuda_kernel.cpp): registers
// of a few elements, each of the type that memory would hold, so that every step rounds where the
// operator by itself does. The elements of a thread are packs that lie kStride elements apart, so
// that several loads are on their way at once.
#pragma once

#include <ATen/cuda/device/Pointwise.cuh>

namespace at::device::fused {

template <class T, int kCount> struct Reg { T v[kCount]; };

// The elements that a thread computes together.
template <int kPackElements, int kPackCount, int kThreads> struct Span {
  static constexpr int kPack = kPackElements, kRuns = kPackCount, kCount = kPack * kRuns;
  static constexpr long kStride = static_cast<long>(kThreads) * kPack;
};

// Strides of an input over the numbering of the elements, innermost first.
template <int kDims> struct Rows {
  Divider size[kDims];
  long stride[kDims]; // bytes
  // How a pack of elements lies: 0 apart, 1 together and aligned, 2 one for all.
  unsigned form;
  unsigned padding;
  CRESSET_DEVICE_FN long offset(long index) const {
    unsigned rest = static_cast<unsigned>(index);
    long found = 0;
    CRESSET_UNROLL
    for (int d = 0; d < kDims; ++d) {
      const unsigned q = size[d].quotient(rest);
      found += static_cast<long>(rest - q * size[d].divisor) * stride[d];
      rest = q;
    }
    return found;
  }
};

template <class T> CRESSET_DEVICE_FN T from_memory(memory_t<T> x) {
  if constexpr (std::is_same_v<T, bool>)
    return x != 0;
  else
    return x;
}

template <class T, int kCount> CRESSET_DEVICE_FN Reg<T, kCount> all_of(T value) {
  Reg<T, kCount> r;
  CRESSET_UNROLL
  for (int j = 0; j < kCount; ++j) r.v[j] = value;
  return r;
}
template <class T, int kCount> CRESSET_DEVICE_FN Reg<T, kCount> lone(const char* p) {
  return all_of<T, kCount>(from_memory<T>(*reinterpret_cast<const memory_t<T>*>(p)));
}
// Note [Loads that stay first]
// A pack that begins at `end` or later is not there. Asking for each pack keeps the loads where
// they stand: the assembler puts loads off until their first use, to save registers, and then waits
// for one after the other.
template <class T, class S>
CRESSET_DEVICE_FN Reg<T, S::kCount> load(const char* p, long first, long end) {
  Reg<T, S::kCount> r;
  CRESSET_UNROLL
  for (int run = 0; run < S::kRuns; ++run) {
    const long here = first + run * S::kStride;
    Pack<memory_t<T>, S::kPack> pack = {};
    if (here < end) pack = load_pack<S::kPack>(reinterpret_cast<const memory_t<T>*>(p) + here);
    CRESSET_UNROLL
    for (int j = 0; j < S::kPack; ++j) r.v[run * S::kPack + j] = from_memory<T>(pack.v[j]);
  }
  return r;
}
template <class T> CRESSET_DEVICE_FN T element(const char* p) {
  return from_memory<T>(*reinterpret_cast<const memory_t<T>*>(p));
}
template <class T, class S, int kDims> CRESSET_DEVICE_FN Reg<T, S::kCount>
load_rows(const char* p, long first, long end, const Rows<kDims>& rows) {
  Reg<T, S::kCount> r = {};
  CRESSET_UNROLL
  for (int run = 0; run < S::kRuns; ++run) {
    const long here = first + run * S::kStride;
    T* const v = r.v + run * S::kPack;
    if (here >= end) continue;
    if (S::kPack == 1 || rows.form == 2) {
      const T value = element<T>(p + rows.offset(here));
      CRESSET_UNROLL
      for (int j = 0; j < S::kPack; ++j) v[j] = value;
    } else if (rows.form == 1) {
      const Pack<memory_t<T>, S::kPack> pack =
          load_pack<S::kPack>(reinterpret_cast<const memory_t<T>*>(p + rows.offset(here)));
      CRESSET_UNROLL
      for (int j = 0; j < S::kPack; ++j) v[j] = from_memory<T>(pack.v[j]);
    } else {
      CRESSET_UNROLL
      for (int j = 0; j < S::kPack; ++j) v[j] = element<T>(p + rows.offset(here + j));
    }
  }
  return r;
}
template <class S, class T>
CRESSET_DEVICE_FN void store(char* p, long first, long end, const Reg<T, S::kCount>& value) {
  CRESSET_UNROLL
  for (int run = 0; run < S::kRuns; ++run) {
    if (first + run * S::kStride >= end) continue;
    Pack<memory_t<T>, S::kPack> pack;
    CRESSET_UNROLL
    for (int j = 0; j < S::kPack; ++j)
      pack.v[j] = static_cast<memory_t<T>>(value.v[run * S::kPack + j]);
    store_pack(reinterpret_cast<memory_t<T>*>(p) + first + run * S::kStride, pack);
  }
}

// F over elements of T; `params` lie behind each other as opmath_t<T>.
template <class F, OutKind kOut, class T, int kParams, int kCount, class... In>
CRESSET_DEVICE_FN auto apply(const unsigned char* params, const Reg<In, kCount>&... in) {
  using Out = typename OutType<kOut, T>::type;
  using Compute = compute_t<F, T>;
  const auto* param = reinterpret_cast<const opmath_t<T>*>(params);
  Reg<Out, kCount> r;
  CRESSET_UNROLL
  for (int j = 0; j < kCount; ++j) {
    if constexpr (kParams == 0)
      r.v[j] = convert<Out>(F::apply(convert<Compute>(in.v[j])...));
    else if constexpr (kParams == 1)
      r.v[j] = convert<Out>(F::apply(convert<Compute>(in.v[j])..., static_cast<Compute>(param[0])));
    else if constexpr (kParams == 2)
      r.v[j] = convert<Out>(F::apply(convert<Compute>(in.v[j])..., static_cast<Compute>(param[0]),
                                     static_cast<Compute>(param[1])));
    else if constexpr (kParams == 3)
      r.v[j] =
          convert<Out>(F::apply(convert<Compute>(in.v[j])..., static_cast<Compute>(param[0]),
                                static_cast<Compute>(param[1]), static_cast<Compute>(param[2])));
    else
      r.v[j] = convert<Out>(F::apply(convert<Compute>(in.v[j])..., static_cast<Compute>(param[0]),
                                     static_cast<Compute>(param[1]), static_cast<Compute>(param[2]),
                                     static_cast<Compute>(param[3])));
  }
  return r;
}
template <class To, class From, int kCount>
CRESSET_DEVICE_FN Reg<To, kCount> cast(const Reg<From, kCount>& x) {
  Reg<To, kCount> r;
  CRESSET_UNROLL
  for (int j = 0; j < kCount; ++j) r.v[j] = convert<To>(x.v[j]);
  return r;
}
template <class T, int kCount> CRESSET_DEVICE_FN Reg<T, kCount>
where(const Reg<bool, kCount>& mask, const Reg<T, kCount>& a, const Reg<T, kCount>& b) {
  Reg<T, kCount> r;
  CRESSET_UNROLL
  for (int j = 0; j < kCount; ++j) r.v[j] = mask.v[j] ? a.v[j] : b.v[j];
  return r;
}

} // namespace at::device::fused
