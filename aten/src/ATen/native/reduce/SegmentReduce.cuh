// Reductions of segments of a dimension and their gradients: a thread has one line of one segment
// and goes through it in order, so that results repeat to the last bit.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/reduce/SegmentReduce.args.h>

namespace at::device {

enum SegmentKind : int { kSegmentSum, kSegmentMean, kSegmentMax, kSegmentMin, kSegmentProduct };

// The line of this thread; false past the end.
struct SegmentLine {
  long segment, column, first; // first: where the line's data begins
};
CRESSET_DEVICE_FN bool segment_line(SegmentLine& l, const SegmentArgs& a) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.segments * a.inner) return false;
  l.segment = i / a.inner;
  l.column = i - l.segment * a.inner;
  l.first = l.segment / a.count * a.size * a.inner + l.column;
  return true;
}

template <class T>
CRESSET_DEVICE_FN void segment_reduce(const T* data, T* out, const SegmentArgs& a) {
  using A = opmath_t<T>;
  SegmentLine l;
  if (!segment_line(l, a)) return;
  const A infinity = c10::numeric_limits<A>::infinity();
  A sum = a.op == kSegmentMax       ? -infinity
          : a.op == kSegmentMin     ? infinity
          : a.op == kSegmentProduct ? A(1)
                                    : A(0);
  if (a.has_initial) sum = static_cast<A>(a.initial);
  const long begin = a.begin[l.segment], end = a.end[l.segment];
  for (long r = begin; r < end; ++r) {
    const A x = convert<A>(data[l.first + r * a.inner]);
    if (a.op == kSegmentMax)
      sum = x > sum || x != x ? x : sum;
    else if (a.op == kSegmentMin)
      sum = x < sum || x != x ? x : sum;
    else if (a.op == kSegmentProduct)
      sum *= x;
    else
      sum += x;
  }
  if (a.op == kSegmentMean) {
    if (end > begin)
      sum /= static_cast<A>(end - begin);
    else if (!a.has_initial)
      sum = c10::numeric_limits<A>::quiet_NaN();
  }
  out[l.segment * a.inner + l.column] = convert<T>(sum);
}

template <class T> CRESSET_DEVICE_FN void segment_reduce_backward(const T* grad, const T* output,
                                                                  const T* data, T* out,
                                                                  const SegmentArgs& a) {
  using A = opmath_t<T>;
  SegmentLine l;
  if (!segment_line(l, a)) return;
  const long begin = a.begin[l.segment], end = a.end[l.segment];
  const A g = convert<A>(grad[l.segment * a.inner + l.column]),
          y = convert<A>(output[l.segment * a.inner + l.column]);
  const auto value = [&](long r) { return convert<A>(data[l.first + r * a.inner]); };
  const auto chosen = [&](long r) { return value(r) == y || value(r) != value(r); };
  long ties = 0;
  if (a.op == kSegmentMax || a.op == kSegmentMin)
    for (long r = begin; r < end; ++r) ties += chosen(r);
  for (long r = begin; r < end; ++r) {
    A share = g;
    if (a.op == kSegmentMean) {
      share = g / static_cast<A>(end - begin);
    } else if (a.op == kSegmentProduct) {
      // The product of all the others, so that a zero needs no division.
      share = a.has_initial ? g * static_cast<A>(a.initial) : g;
      for (long q = begin; q < end; ++q)
        if (q != r) share *= value(q);
    } else if (a.op != kSegmentSum) {
      share = chosen(r) ? g / static_cast<A>(ties) : A(0);
    }
    out[l.first + r * a.inner] = convert<T>(share);
  }
}

} // namespace at::device

#define CRESSET_SEGMENTS(T)                                                                        \
  CRESSET_KERNEL(256)                                                                              \
  segment_reduce_##T(const cresset_##T* data, cresset_##T* out, at::device::SegmentArgs a) {       \
    at::device::segment_reduce(data, out, a);                                                      \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  segment_reduce_backward_##T(const cresset_##T* grad, const cresset_##T* output,                  \
                              const cresset_##T* data, cresset_##T* out,                           \
                              at::device::SegmentArgs a) {                                         \
    at::device::segment_reduce_backward(grad, output, data, out, a);                               \
  }
CRESSET_SEGMENTS(f32)
CRESSET_SEGMENTS(f64)
CRESSET_SEGMENTS(f16)
CRESSET_SEGMENTS(bf16)
