// The negative log-likelihood of target classes and its gradient. The sum is taken by one block in
// double precision: there is one number per target, and the order of additions is fixed.
#include <ATen/cuda/device/Block.cuh>
#include <ATen/cuda/device/ErrorSlot.cuh>
#include <ATen/native/loss/NllLoss.args.h>

namespace at::device {

// The class of position i, or -1 where it is ignored or outside the classes (which is reported).
CRESSET_DEVICE_FN long class_of(const long* target, long i, long ignore, const NllWalk& walk,
                                const IndexCheck& check) {
  const long c = target[i];
  return c != ignore && check.within(c, walk.classes, -1) ? c : -1;
}

template <class T> CRESSET_DEVICE_FN void nll_each(const T* x, const long* target, const T* weight,
                                                   T* out, const NllWalk& walk, long ignore,
                                                   const IndexCheck& check) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= walk.count) return;
  using A = opmath_t<T>;
  const long c = class_of(target, i, ignore, walk, check);
  A loss = 0;
  if (c >= 0) {
    loss = -convert<A>(x[walk.offset(i) + c * walk.class_stride]);
    if (weight) loss *= convert<A>(weight[c]);
  }
  out[i] = convert<T>(loss);
}

template <class T> CRESSET_DEVICE_FN void nll_sum(const T* x, const long* target, const T* weight,
                                                  T* out, T* total_weight, int mean,
                                                  const NllWalk& walk, long ignore,
                                                  const IndexCheck& check) {
  CRESSET_SHARED double scratch[32];
  double loss = 0, total = 0;
  for (long i = threadIdx.x; i < walk.count; i += blockDim.x) {
    const long c = class_of(target, i, ignore, walk, check);
    if (c < 0) continue;
    const double scale = weight ? convert<double>(weight[c]) : 1.0;
    loss -= convert<double>(x[walk.offset(i) + c * walk.class_stride]) * scale;
    total += scale;
  }
  loss = block_sum(loss, scratch);
  total = block_sum(total, scratch);
  if (threadIdx.x == 0) {
    *out = convert<T>(mean ? loss / total : loss);
    *total_weight = convert<T>(total);
  }
}

// `out` is zero already; `grad` has one value, or one per position when `each`.
template <class T>
CRESSET_DEVICE_FN void nll_backward(const T* grad, const long* target, const T* weight,
                                    const T* total_weight, T* out, int mean, int each,
                                    const NllWalk& walk, long ignore, const IndexCheck& check) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= walk.count) return;
  const long c = class_of(target, i, ignore, walk, check);
  if (c < 0) return;
  double value = -convert<double>(grad[each ? i : 0]);
  if (mean) value /= convert<double>(*total_weight);
  if (weight) value *= convert<double>(weight[c]);
  out[walk.offset(i) + c * walk.class_stride] = convert<T>(value);
}

} // namespace at::device

#define CRESSET_NLL(T)                                                                             \
  CRESSET_KERNEL(256)                                                                              \
  nll_each_##T(const cresset_##T* x, const long* target, const cresset_##T* weight,                \
               cresset_##T* out, at::device::NllWalk walk, long ignore,                            \
               at::device::IndexCheck check) {                                                     \
    at::device::nll_each(x, target, weight, out, walk, ignore, check);                             \
  }                                                                                                \
  CRESSET_KERNEL(1024)                                                                             \
  nll_sum_##T(const cresset_##T* x, const long* target, const cresset_##T* weight,                 \
              cresset_##T* out, cresset_##T* total_weight, int mean, at::device::NllWalk walk,     \
              long ignore, at::device::IndexCheck check) {                                         \
    at::device::nll_sum(x, target, weight, out, total_weight, mean, walk, ignore, check);          \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  nll_backward_##T(const cresset_##T* grad, const long* target, const cresset_##T* weight,         \
                   const cresset_##T* total_weight, cresset_##T* out, int mean, int each,          \
                   at::device::NllWalk walk, long ignore, at::device::IndexCheck check) {          \
    at::device::nll_backward(grad, target, weight, total_weight, out, mean, each, walk, ignore,    \
                             check);                                                               \
  }
CRESSET_NLL(f32)
CRESSET_NLL(f64)
CRESSET_NLL(f16)
CRESSET_NLL(bf16)
