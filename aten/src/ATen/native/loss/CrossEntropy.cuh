// Cross entropy of rows of scores with class targets, and its gradient, without the matrix of
// logarithms in between: the forward pass reads the scores once and keeps one number per row (the
// logarithm of the sum of exponentials), the backward pass reads them once more and writes the
// gradient. One block per row.
#include <ATen/cuda/device/Block.cuh>
#include <ATen/cuda/device/ErrorSlot.cuh>

namespace at::device {

// Maximum and sum of exponentials of what a thread has seen.
template <class T, int kPack> struct SumExpWalk {
  using A = opmath_t<T>;
  const T* x;
  A max, sum;
  CRESSET_DEVICE_FN void take(A largest) {
    if (!(largest > max)) return;
    sum *= fast_exp(max - largest);
    max = largest;
  }
  CRESSET_DEVICE_FN void add(A v) {
    // Only -inf so far: nothing to add, but NaN stays NaN.
    const bool empty = max == -c10::numeric_limits<A>::infinity();
    sum += empty ? (v == v ? A(0) : v) : fast_exp(v - max);
  }
  CRESSET_DEVICE_FN void one(long i) {
    const A v = convert<A>(x[i]);
    take(v);
    add(v);
  }
  CRESSET_DEVICE_FN void pack(long i) {
    const Pack<T, kPack> p = load_pack<kPack>(x + i);
    A largest = convert<A>(p.v[0]);
    CRESSET_UNROLL
    for (int j = 1; j < kPack; ++j) largest = Larger()(largest, convert<A>(p.v[j]));
    take(largest);
    if (max == -c10::numeric_limits<A>::infinity()) {
      CRESSET_UNROLL
      for (int j = 0; j < kPack; ++j) add(convert<A>(p.v[j]));
      return;
    }
    A part = fast_exp(convert<A>(p.v[0]) - max);
    CRESSET_UNROLL
    for (int j = 1; j < kPack; ++j) part += fast_exp(convert<A>(p.v[j]) - max);
    sum += part;
  }
};

// losses[row] and weights[row] (each may be summed), log_sums[row].
template <class T> CRESSET_DEVICE_FN void cross_entropy_rows(const T* scores, const long* target,
                                                             const T* weight, opmath_t<T>* log_sums,
                                                             opmath_t<T>* losses,
                                                             opmath_t<T>* weights, long n,
                                                             long ignore, const IndexCheck& check) {
  using A = opmath_t<T>;
  constexpr int kPack = 16 / sizeof(T);
  CRESSET_SHARED A scratch[32];
  const long row = blockIdx.x;
  const T* x = scores + row * n;
  SumExpWalk<T, kPack> walk{x, -c10::numeric_limits<A>::infinity(), A(0)};
  walk_row<kPack>(x, n, threadIdx.x, blockDim.x, walk);
  const A lowest = -c10::numeric_limits<A>::infinity();
  const A max = block_fold(walk.max, Larger(), lowest, scratch);
  const A sum = block_sum(max == lowest ? walk.sum : walk.sum * fast_exp(walk.max - max), scratch);
  if (threadIdx.x != 0) return;
  const A log_sum = max + accurate_log(sum);
  const long c = target[row];
  const bool counts = c != ignore && check.within(c, n, -1);
  const A w = !counts ? A(0) : weight ? convert<A>(weight[c]) : A(1);
  log_sums[row] = log_sum;
  losses[row] = counts ? (log_sum - convert<A>(x[c])) * w : A(0);
  weights[row] = w;
}

// The sum or mean of the rows, and the total weight. One block, in double precision.
template <class T> CRESSET_DEVICE_FN void cross_entropy_total(const opmath_t<T>* losses,
                                                              const opmath_t<T>* weights,
                                                              opmath_t<T>* out, opmath_t<T>* total,
                                                              long rows, int mean) {
  CRESSET_SHARED double scratch[32];
  double loss = 0, weight = 0;
  for (long i = threadIdx.x; i < rows; i += blockDim.x) {
    loss += static_cast<double>(losses[i]);
    weight += static_cast<double>(weights[i]);
  }
  loss = block_sum(loss, scratch);
  weight = block_sum(weight, scratch);
  if (threadIdx.x != 0) return;
  *out = static_cast<opmath_t<T>>(mean ? loss / weight : loss);
  *total = static_cast<opmath_t<T>>(weight);
}

template <class T, int kPack> struct CrossEntropyGradient {
  using A = opmath_t<T>;
  const T* x;
  T* out;
  A log_sum, scale;
  long target;
  CRESSET_DEVICE_FN A gradient(long i, T v) const {
    return scale * (fast_exp(convert<A>(v) - log_sum) - (i == target ? A(1) : A(0)));
  }
  CRESSET_DEVICE_FN void one(long i) { out[i] = convert<T>(scale == 0 ? A(0) : gradient(i, x[i])); }
  CRESSET_DEVICE_FN void pack(long i) {
    Pack<T, kPack> r;
    if (scale == 0) { // ignored: nothing is read
      CRESSET_UNROLL
      for (int j = 0; j < kPack; ++j) r.v[j] = convert<T>(A(0));
    } else {
      const Pack<T, kPack> p = load_pack<kPack>(x + i);
      CRESSET_UNROLL
      for (int j = 0; j < kPack; ++j) r.v[j] = convert<T>(gradient(i + j, p.v[j]));
    }
    store_pack<kPack>(out + i, r);
  }
};

// `out` lies relative to 16 bytes as `scores` does.
template <class T>
CRESSET_DEVICE_FN void cross_entropy_backward(const T* scores, const long* target, const T* weight,
                                              const opmath_t<T>* log_sums, const opmath_t<T>* grad,
                                              const opmath_t<T>* total, T* out, long n, long ignore,
                                              int mean, int each) {
  using A = opmath_t<T>;
  constexpr int kPack = 16 / sizeof(T);
  const long row = blockIdx.x, c = target[row];
  A scale = 0;
  if (c != ignore && c >= 0 && c < n) {
    scale = grad[each ? row : 0];
    if (mean) scale /= *total;
    if (weight) scale *= convert<A>(weight[c]);
  }
  CrossEntropyGradient<T, kPack> walk{scores + row * n, out + row * n, log_sums[row], scale, c};
  walk_row<kPack>(walk.x, n, threadIdx.x, blockDim.x, walk);
}

} // namespace at::device

#define CRESSET_CROSS_ENTROPY(T, A)                                                                \
  CRESSET_KERNEL(512)                                                                              \
  cross_entropy_rows_##T(const cresset_##T* scores, const long* target, const cresset_##T* weight, \
                         cresset_##A* log_sums, cresset_##A* losses, cresset_##A* weights, long n, \
                         long ignore, at::device::IndexCheck check) {                              \
    at::device::cross_entropy_rows(scores, target, weight, log_sums, losses, weights, n, ignore,   \
                                   check);                                                         \
  }                                                                                                \
  CRESSET_KERNEL(1024)                                                                             \
  cross_entropy_total_##T(const cresset_##A* losses, const cresset_##A* weights, cresset_##A* out, \
                          cresset_##A* total, long rows, int mean) {                               \
    at::device::cross_entropy_total<cresset_##T>(losses, weights, out, total, rows, mean);         \
  }                                                                                                \
  CRESSET_KERNEL(512)                                                                              \
  cross_entropy_backward_##T(const cresset_##T* scores, const long* target,                        \
                             const cresset_##T* weight, const cresset_##A* log_sums,               \
                             const cresset_##A* grad, const cresset_##A* total, cresset_##T* out,  \
                             long n, long ignore, int mean, int each) {                            \
    at::device::cross_entropy_backward(scores, target, weight, log_sums, grad, total, out, n,      \
                                       ignore, mean, each);                                        \
  }
CRESSET_CROSS_ENTROPY(f32, f32)
CRESSET_CROSS_ENTROPY(f64, f64)
CRESSET_CROSS_ENTROPY(f16, f32)
CRESSET_CROSS_ENTROPY(bf16, f32)
