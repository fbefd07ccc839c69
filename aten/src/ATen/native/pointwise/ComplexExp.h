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
// knows: lanes with one of them go there.
template <class T> C10_ALWAYS_INLINE complex<Vec<T>> exp(complex<Vec<T>> x) {
  const Vec<T> limit(sizeof(T) == sizeof(float) ? T(80) : T(700));
  const Vec<T> inf(c10::numeric_limits<T>::infinity());
  const Mask<T> plain = (abs(x.real_) < limit) & (abs(x.imag_) < inf);
  const Vec<T> size = vm::exp(x.real_);
  const complex<Vec<T>> result{size * vm::cos(x.imag_), size * vm::sin(x.imag_)};
  if (C10_UNLIKELY(any(!plain))) {
    T re[Vec<T>::kLanes], im[Vec<T>::kLanes];
    x.real_.store(re);
    x.imag_.store(im);
    for (int i = 0; i < Vec<T>::kLanes; ++i) {
      const complex<T> one = vm::exp(complex<T>(re[i], im[i]));
      re[i] = one.real_;
      im[i] = one.imag_;
    }
    return {select(plain, result.real_, Vec<T>::load(re)),
            select(plain, result.imag_, Vec<T>::load(im))};
  }
  return result;
}

} // namespace reg
} // namespace CRESSET_ISA
} // namespace at::vm
#endif
