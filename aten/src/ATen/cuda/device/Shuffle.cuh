// Values of any size from another lane of the warp, word by word.
#pragma once

#include <ATen/cuda/device/Prelude.cuh>

namespace at::device {

template <class A> struct Words {
  static constexpr int kCount = (sizeof(A) + 3) / 4;
  unsigned word[kCount] = {};
  CRESSET_DEVICE_FN explicit Words(const A& v) { __builtin_memcpy(word, &v, sizeof(A)); }
  CRESSET_DEVICE_FN A value() const {
    A r;
    __builtin_memcpy(&r, word, sizeof(A));
    return r;
  }
};

// From the lane `delta` above, within groups of `width` lanes. All lanes of the warp take part;
// where there is no such lane the value stays.
template <class A> CRESSET_DEVICE_FN A shuffle_down(const A& v, int delta, int width = 32) {
  Words<A> w(v);
  CRESSET_UNROLL
  for (int i = 0; i < Words<A>::kCount; ++i)
    w.word[i] = __shfl_down_sync(0xffffffffu, w.word[i], delta, width);
  return w.value();
}
// From the lane `delta` below.
template <class A> CRESSET_DEVICE_FN A shuffle_up(const A& v, int delta) {
  Words<A> w(v);
  CRESSET_UNROLL
  for (int i = 0; i < Words<A>::kCount; ++i)
    w.word[i] = __shfl_up_sync(0xffffffffu, w.word[i], delta);
  return w.value();
}

} // namespace at::device
