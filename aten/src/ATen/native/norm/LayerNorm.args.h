// The arguments of LayerNorm.cuh. T is the type of the input, W that of weight and bias, A that of
// the sums; the host, which only passes addresses on, says void for the first two.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

template <class T, class W, class A> struct NormForwardArgs {
  const T* x;
  const W *weight, *bias; // null: one and zero; RMS norm has no bias
  T* y;
  A *mean, *rstd; // RMS norm has no mean
  int64_t rows;
  int32_t n;
  A eps;
};
using NormForwardSingle = NormForwardArgs<void, void, float>;
using NormForwardDouble = NormForwardArgs<void, void, double>;
CRESSET_LAYOUT(NormForwardSingle, 64, eps, 60);
CRESSET_LAYOUT(NormForwardDouble, 72, eps, 64);

template <class T, class W, class A> struct NormBackwardArgs {
  const T *g, *x;
  const W* weight;
  const A *mean, *rstd;
  T* dx;                    // null: not wanted
  const T* sum;             // what is added to dx, which may lie in its place; null: nothing
  A *partial_w, *partial_b; // a row of n for each block; null: not wanted
  int64_t rows;
  int32_t n;
};
using NormBackwardPointers = NormBackwardArgs<void, void, void>;
CRESSET_LAYOUT(NormBackwardPointers, 88, n, 80);

} // namespace at::device
