// Folds over a warp and over a block, for kernels that give a warp or a block to one row. The order
// of every fold is fixed by lane and warp number alone, so results repeat to the last bit.
#pragma once

#include <ATen/cuda/device/Prelude.cuh>

namespace at::device {

constexpr unsigned kAllLanes = 0xffffffffu;

CRESSET_DEVICE_FN int lane_id() { return threadIdx.x & 31; }
CRESSET_DEVICE_FN int warp_id() { return threadIdx.x >> 5; }

struct Plus {
  template <class T> CRESSET_DEVICE_FN T operator()(T a, T b) const { return a + b; }
};
// Ignores NaN, as fmax does.
struct Larger {
  CRESSET_DEVICE_FN float operator()(float a, float b) const { return fmaxf(a, b); }
  CRESSET_DEVICE_FN double operator()(double a, double b) const { return fmax(a, b); }
};

// Every lane of the warp gets f over all lanes.
template <class T, class F> CRESSET_DEVICE_FN T warp_fold(T v, F f) {
  CRESSET_UNROLL
  for (int step = 16; step > 0; step >>= 1) v = f(v, __shfl_xor_sync(kAllLanes, v, step));
  return v;
}
template <class T> CRESSET_DEVICE_FN T warp_sum(T v) { return warp_fold(v, Plus()); }

// Every thread of the block gets f over all threads. `scratch` holds 32 values in shared memory and
// may be used again at once; all threads take part.
template <class T, class F> CRESSET_DEVICE_FN T block_fold(T v, F f, T identity, T* scratch) {
  v = warp_fold(v, f);
  if (lane_id() == 0) scratch[warp_id()] = v;
  __syncthreads();
  const int warps = (blockDim.x + 31) >> 5;
  v = lane_id() < warps ? scratch[lane_id()] : identity;
  v = warp_fold(v, f);
  __syncthreads();
  return v;
}
template <class T> CRESSET_DEVICE_FN T block_sum(T v, T* scratch) {
  return block_fold(v, Plus(), T(0), scratch);
}

// The natural exponential and logarithm in the accumulator's type.
CRESSET_DEVICE_FN float fast_exp(float x) { return __expf(x); }
CRESSET_DEVICE_FN double fast_exp(double x) { return exp(x); }
CRESSET_DEVICE_FN float accurate_log(float x) { return logf(x); }
CRESSET_DEVICE_FN double accurate_log(double x) { return log(x); }

// Walks a contiguous row of any alignment with `threads` threads: f.one(i) for the elements before
// the first aligned pack and after the last, f.pack(i) for packs of kPack elements from i on.
template <int kPack, class T, class F>
CRESSET_DEVICE_FN void walk_row(const T* row, long n, int thread, int threads, F& f) {
  constexpr int kBytes = sizeof(T) * kPack;
  const long misaligned = (reinterpret_cast<unsigned long>(row) & (kBytes - 1)) / sizeof(T);
  const long head = misaligned == 0 ? 0 : (kPack - misaligned < n ? kPack - misaligned : n);
  const long packs = (n - head) / kPack;
  for (long i = thread; i < head; i += threads) f.one(i);
  for (long p = thread; p < packs; p += threads) f.pack(head + p * kPack);
  for (long i = head + packs * kPack + thread; i < n; i += threads) f.one(i);
}

} // namespace at::device
