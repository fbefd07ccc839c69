// Direct convolutions of float and double on raw memory: the loops of DirectKernels.h over the
// tiles of a plan. Tasks share no output, and each sums in a fixed order.
#pragma once
#include <ATen/native/conv/ConvKernels.h>
#include <ATen/native/conv/DirectPlan.h>

namespace at::native::direct {

// `source` is contiguous; `bias` may be null; the weight is that of the convolution, contiguous,
// for the gradient too.
template <class T> struct Operands {
  const T* source;
  const T* weight;
  const T* bias;
  T* out;
  PlaneStrides out_strides;
  bool gradient; // of the input
};

template <class T> void run(const Plan& plan, const Operands<T>& operands);

// The gradient of the weight; `input` is contiguous.
template <class T> void run_weight_gradient(const WeightPlan& plan, const T* grad_out,
                                            const PlaneStrides& strides, const T* input,
                                            T* grad_weight);

} // namespace at::native::direct
