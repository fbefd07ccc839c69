// The complex exponential on registers of real and of imaginary parts. A device has no registers of
// several numbers and takes vm's.
#pragma once

#include <ATen/vec/RegisterMath.h>

#if !defined(CRESSET_DEVICE)
namespace at::vm {
inline namespace CRESSET_ISA {
namespace reg {

template <class V> C10_ALWAYS_INLINE V exp(V x) { return vm::exp(x); }
// e^re (cos im + i sin im). Infinities, NaN and what overflows have corners that the C library
// knows: a register with one of them goes there lane by lane.
template <class T> C10_ALWAYS_INLINE complex<Vec<T>> exp(complex<Vec<T>> x) {
  const Vec<T> limit(sizeof(T) == sizeof(float) ? T(80) : T(700));
  const Vec<T> inf(c10::numeric_limits<T>::infinity());
  const Mask<T> plain = (abs(x.real_) < limit) & (abs(x.imag_) < inf);
  if (C10_UNLIKELY(any(!plain))) {
    T re[Vec<T>::kLanes], im[Vec<T>::kLanes];
    x.real_.store(re);
    x.imag_.store(im);
    for (int i = 0; i < Vec<T>::kLanes; ++i) {
      const complex<T> one = vm::exp(complex<T>(re[i], im[i]));
      re[i] = one.real_;
      im[i] = one.imag_;
    }
    return {Vec<T>::load(re), Vec<T>::load(im)};
  }
  const Vec<T> size = vm::exp(x.real_);
  return {size * vm::cos(x.imag_), size * vm::sin(x.imag_)};
}

} // namespace reg
} // namespace CRESSET_ISA
} // namespace at::vm
#endif
