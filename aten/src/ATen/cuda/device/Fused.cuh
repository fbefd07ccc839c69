// What the text of a fused kernel is written with (torch/csrc/inductor/cuda_kernel.cpp): registers
// of a few elements, each of the type that memory would hold, so that every step rounds where the
// operator by itself does.
#pragma once

#include <ATen/cuda/device/Pointwise.cuh>

namespace at::device::fused {

template <class T, int kCount> struct Reg { T v[kCount]; };

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
template <class T, int kCount> CRESSET_DEVICE_FN Reg<T, kCount> load(const char* p) {
  const Pack<memory_t<T>, kCount> pack = load_pack<kCount>(reinterpret_cast<const memory_t<T>*>(p));
  Reg<T, kCount> r;
  CRESSET_UNROLL
  for (int j = 0; j < kCount; ++j) r.v[j] = from_memory<T>(pack.v[j]);
  return r;
}
template <class T, int kCount, int kDims>
CRESSET_DEVICE_FN Reg<T, kCount> load_rows(const char* p, long first, const Rows<kDims>& rows) {
  if (kCount == 1 || rows.form == 2) return lone<T, kCount>(p + rows.offset(first));
  if (rows.form == 1) return load<T, kCount>(p + rows.offset(first));
  Reg<T, kCount> r;
  CRESSET_UNROLL
  for (int j = 0; j < kCount; ++j)
    r.v[j] = from_memory<T>(*reinterpret_cast<const memory_t<T>*>(p + rows.offset(first + j)));
  return r;
}
template <class T, int kCount> CRESSET_DEVICE_FN void store(char* p, const Reg<T, kCount>& value) {
  Pack<memory_t<T>, kCount> pack;
  CRESSET_UNROLL
  for (int j = 0; j < kCount; ++j) pack.v[j] = static_cast<memory_t<T>>(value.v[j]);
  store_pack(reinterpret_cast<memory_t<T>*>(p), pack);
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
