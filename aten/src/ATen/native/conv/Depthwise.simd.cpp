// See DepthwiseKernels.h. Rows end in a partial register: its lanes behind the end are neither
// stored nor, in sums, read, so that an infinity there does no harm.
#include <ATen/native/conv/DepthwiseKernels.h>
#include <ATen/vec/VecBasic.h>

namespace at::native::depthwise {
namespace CRESSET_ISA {
namespace {

using vec::Vec;

// kTaps 0: as many as the shape says.
template <class T, int kTaps>
C10_ALWAYS_INLINE Vec<T> window_sum(const PlaneShape& s, const T* from, const T* weight, T bias) {
  Vec<T> sum(bias);
  if constexpr (kTaps > 0) {
#pragma GCC unroll 16
    for (int k = 0; k < kTaps; ++k)
      sum = sum + Vec<T>(weight[k]) * Vec<T>::load(from + s.offsets[k]);
  } else {
    for (int64_t k = 0; k < s.taps; ++k)
      sum = sum + Vec<T>(weight[k]) * Vec<T>::load(from + s.offsets[k]);
  }
  return sum;
}

template <class T, int kTaps>
void forward_plane(const PlaneShape& s, const T* padded, const T* weight, T bias, T* out) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  for (int64_t y = 0; y < s.rows; ++y) {
    const T* from = padded + y * s.row_step;
    T* to = out + y * s.cols;
    int64_t x = 0;
    for (; x + kLanes <= s.cols; x += kLanes)
      window_sum<T, kTaps>(s, from + x, weight, bias).store(to + x);
    if (x < s.cols) {
      T tail[kLanes];
      window_sum<T, kTaps>(s, from + x, weight, bias).store(tail);
      for (int64_t i = 0; x + i < s.cols; ++i) to[x + i] = tail[i];
    }
  }
}

template <class T> void forward(const PlaneShape& s, const void* padded, const void* weight_,
                                const void* bias_, void* out) {
  const T* weight = static_cast<const T*>(weight_);
  const T bias = bias_ != nullptr ? *static_cast<const T*>(bias_) : T(0);
  if (s.taps == 9)
    forward_plane<T, 9>(s, static_cast<const T*>(padded), weight, bias, static_cast<T*>(out));
  else
    forward_plane<T, 0>(s, static_cast<const T*>(padded), weight, bias, static_cast<T*>(out));
}

template <class T> T lane_sum(Vec<T> v) {
  T part[Vec<T>::kLanes];
  v.store(part);
  for (int width = Vec<T>::kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) part[i] += part[i + width];
  return part[0];
}

// The sums of kTaps taps, one register each.
template <class T, int kTaps> void weight_taps(const PlaneShape& s, const T* padded, const T* grad,
                                               const int64_t* offsets, T* sums) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  const int64_t rest = s.cols % kLanes, whole = s.cols - rest;
  T lane[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lane[i] = T(i);
  const auto inside = Vec<T>::load(lane) < Vec<T>(T(rest));
  Vec<T> sum[kTaps];
#pragma GCC unroll 16
  for (int k = 0; k < kTaps; ++k) sum[k] = Vec<T>(T(0));
  for (int64_t y = 0; y < s.rows; ++y) {
    const T* from = padded + y * s.row_step;
    const T* g = grad + y * s.cols;
    for (int64_t x = 0; x < whole; x += kLanes) {
      const Vec<T> v = Vec<T>::load(g + x);
#pragma GCC unroll 16
      for (int k = 0; k < kTaps; ++k) sum[k] = sum[k] + v * Vec<T>::load(from + x + offsets[k]);
    }
    if (rest > 0) {
      T tail[kLanes] = {};
      for (int64_t i = 0; i < rest; ++i) tail[i] = g[whole + i];
      const Vec<T> v = Vec<T>::load(tail);
#pragma GCC unroll 16
      for (int k = 0; k < kTaps; ++k)
        sum[k] =
            sum[k] + v * vec::select(inside, Vec<T>::load(from + whole + offsets[k]), Vec<T>(T(0)));
    }
  }
#pragma GCC unroll 16
  for (int k = 0; k < kTaps; ++k) sums[k] += lane_sum(sum[k]);
}

template <class T>
void weight(const PlaneShape& s, const void* padded_, const void* grad_, void* sums_) {
  const T* padded = static_cast<const T*>(padded_);
  const T* grad = static_cast<const T*>(grad_);
  T* sums = static_cast<T*>(sums_);
  int64_t k = 0;
  for (; s.taps - k >= 9; k += 9) weight_taps<T, 9>(s, padded, grad, s.offsets + k, sums + k);
  for (; s.taps - k >= 3; k += 3) weight_taps<T, 3>(s, padded, grad, s.offsets + k, sums + k);
  for (; k < s.taps; ++k) weight_taps<T, 1>(s, padded, grad, s.offsets + k, sums + k);
}

template <class T> void add(Table& table) {
  const int index = static_cast<int>(c10::scalar_type_of<T>);
  table.forward[index] = &forward<T>;
  table.weight[index] = &weight<T>;
}
} // namespace

void fill(Table& table) {
  add<float>(table);
  add<double>(table);
}
} // namespace CRESSET_ISA
} // namespace at::native::depthwise
