// Optimizer steps over whole lists of tensors in one launch: the table of pointers travels in the
// kernel's parameters, each block takes one chunk of one tensor, found by its number, and every
// element is read and written once with 16-byte accesses. The arithmetic and its order are the
// CPU's (FusedOptim.simd.cpp).
#include <ATen/cuda/device/Block.cuh>
#include <ATen/native/foreach/FusedOptim.args.h>

namespace at::device {

template <class A> CRESSET_DEVICE_FN A root(A x);
template <> CRESSET_DEVICE_FN float root(float x) { return sqrtf(x); }
template <> CRESSET_DEVICE_FN double root(double x) { return sqrt(x); }

// Numbers that are the same for all elements, in the type of the arithmetic.
template <class A> struct AdamNumbers {
  A beta2, weight1, weight2, eps, decay, l2, sign, step_size, root2, scale;
  bool decays, decoupled, amsgrad, scaled;
  CRESSET_DEVICE_FN explicit AdamNumbers(const AdamSettings& s)
      : beta2(static_cast<A>(s.beta2)), weight1(static_cast<A>(1 - s.beta1)),
        weight2(static_cast<A>(1 - s.beta2)), eps(static_cast<A>(s.eps)),
        decay(static_cast<A>(1 - s.lr * s.weight_decay)), l2(static_cast<A>(s.weight_decay)),
        sign(s.maximize ? A(-1) : A(1)), step_size(static_cast<A>(s.lr / s.correction1)),
        root2(static_cast<A>(sqrt(s.correction2))),
        scale(s.grad_scale ? static_cast<A>(*s.grad_scale) : A(1)), decays(s.weight_decay != 0),
        decoupled(s.decoupled), amsgrad(s.amsgrad), scaled(s.grad_scale != nullptr) {}

  CRESSET_DEVICE_FN void step(A& p, A g, A& m, A& v, A& top) const {
    g *= sign;
    if (decays) {
      if (decoupled)
        p *= decay;
      else
        g += l2 * p;
    }
    m = m + weight1 * (g - m);
    v = v * beta2 + weight2 * g * g;
    A largest = v;
    if (amsgrad) largest = top = top > v ? top : v;
    p -= step_size * (m / (root(largest) / root2 + eps));
  }
};

template <class A> struct SgdNumbers {
  A lr, momentum, l2, fresh, sign, scale;
  bool nesterov, first, buffered, scaled;
  CRESSET_DEVICE_FN explicit SgdNumbers(const SgdSettings& s)
      : lr(static_cast<A>(s.lr)), momentum(static_cast<A>(s.momentum)),
        l2(static_cast<A>(s.weight_decay)), fresh(static_cast<A>(1 - s.dampening)),
        sign(s.maximize ? A(-1) : A(1)), scale(s.grad_scale ? static_cast<A>(*s.grad_scale) : A(1)),
        nesterov(s.nesterov), first(s.first_step), buffered(s.buffered),
        scaled(s.grad_scale != nullptr) {}

  CRESSET_DEVICE_FN void step(A& p, A g, A& buffer) const {
    g = sign * g + l2 * p;
    if (buffered) {
      buffer = first ? g : momentum * buffer + fresh * g;
      g = nesterov ? g + momentum * buffer : buffer;
    }
    p -= lr * g;
  }
};

template <int kOperands, class T> CRESSET_DEVICE_FN bool all_aligned(T* const (&data)[kOperands]) {
  unsigned long bits = 0;
  CRESSET_UNROLL
  for (int k = 0; k < kOperands; ++k) bits |= reinterpret_cast<unsigned long>(data[k]);
  return (bits & 15) == 0;
}

// Loads kPack elements of each buffer in use, lets `f` change them in the type of the arithmetic,
// and stores those that `writes` names (a bit each).
template <int kPack, int kOperands, class T, class F> CRESSET_DEVICE_FN void
update(T* const (&data)[kOperands], long i, unsigned uses, unsigned writes, const F& f) {
  using A = opmath_t<T>;
  Pack<T, kPack> loaded[kOperands];
  CRESSET_UNROLL
  for (int k = 0; k < kOperands; ++k)
    if (uses >> k & 1) loaded[k] = load_pack<kPack>(data[k] + i);
  CRESSET_UNROLL
  for (int j = 0; j < kPack; ++j) {
    A v[kOperands];
    CRESSET_UNROLL
    for (int k = 0; k < kOperands; ++k) v[k] = uses >> k & 1 ? convert<A>(loaded[k].v[j]) : A(0);
    f(v);
    CRESSET_UNROLL
    for (int k = 0; k < kOperands; ++k)
      if (writes >> k & 1) loaded[k].v[j] = convert<T>(v[k]);
  }
  CRESSET_UNROLL
  for (int k = 0; k < kOperands; ++k)
    if (writes >> k & 1) store_pack<kPack>(data[k] + i, loaded[k]);
}

template <class T, int kOperands, int kTensors, class F>
CRESSET_DEVICE_FN void update_chunk(const TensorTable<kOperands, kTensors>& table, unsigned uses,
                                    unsigned writes, const F& f) {
  const int t = table.tensor_of(blockIdx.x);
  T* data[kOperands];
  CRESSET_UNROLL
  for (int k = 0; k < kOperands; ++k)
    data[k] = uses >> k & 1 ? static_cast<T*>(table.data[k][t]) : nullptr;
  const long start = static_cast<long>(blockIdx.x - table.first[t]) * kChunk;
  const long end = start + kChunk < table.sizes[t] ? start + kChunk : table.sizes[t];
  constexpr int kPack = 16 / sizeof(T);
  long i = start + threadIdx.x * kPack;
  const long packed = all_aligned(data) ? start + (end - start) / kPack * kPack : start;
  CRESSET_UNROLL
  for (int round = 0; round < kChunk / (256 * kPack); ++round, i += 256 * kPack)
    if (i < packed) update<kPack>(data, i, uses, writes, f);
  for (long k = packed + threadIdx.x; k < end; k += 256) update<1>(data, k, uses, writes, f);
}

// Buffers: parameter, gradient, exp_avg, exp_avg_sq, max_exp_avg_sq.
template <class T, int kTensors>
CRESSET_DEVICE_FN void fused_adam(const TensorTable<5, kTensors>& table, const AdamSettings& s) {
  using A = opmath_t<T>;
  if (s.found_inf != nullptr && *s.found_inf != 0) return;
  const AdamNumbers<A> n(s);
  const unsigned uses = n.amsgrad ? 31u : 15u, writes = (uses & ~2u) | (n.scaled ? 2u : 0u);
  update_chunk<T>(table, uses, writes, [&](A(&v)[5]) {
    if (n.scaled) v[1] = v[1] / n.scale;
    n.step(v[0], v[1], v[2], v[3], v[4]);
  });
}

// Buffers: parameter, gradient, momentum.
template <class T, int kTensors>
CRESSET_DEVICE_FN void fused_sgd(const TensorTable<3, kTensors>& table, const SgdSettings& s) {
  using A = opmath_t<T>;
  if (s.found_inf != nullptr && *s.found_inf != 0) return;
  const SgdNumbers<A> n(s);
  const unsigned uses = n.buffered ? 7u : 3u, writes = (uses & ~2u) | (n.scaled ? 2u : 0u);
  update_chunk<T>(table, uses, writes, [&](A(&v)[3]) {
    if (n.scaled) v[1] = v[1] / n.scale;
    n.step(v[0], v[1], v[2]);
  });
}

// Buffers: parameter, gradient, sum of squares.
template <class T, int kTensors> CRESSET_DEVICE_FN void
fused_adagrad(const TensorTable<3, kTensors>& table, const AdagradSettings& s) {
  using A = opmath_t<T>;
  if (s.found_inf != nullptr && *s.found_inf != 0) return;
  const bool scaled = s.grad_scale != nullptr;
  const A scale = scaled ? static_cast<A>(*s.grad_scale) : A(1), sign = s.maximize ? A(-1) : A(1);
  const A step_size = static_cast<A>(s.step_size), l2 = static_cast<A>(s.weight_decay),
          eps = static_cast<A>(s.eps);
  update_chunk<T>(table, 7u, scaled ? 7u : 5u, [&](A(&v)[3]) {
    if (scaled) v[1] = v[1] / scale;
    const A g = sign * v[1] + l2 * v[0];
    v[2] += g * g;
    v[0] -= step_size * (g / (root(v[2]) + eps));
  });
}

// ---- clipping: the sum of squares (or of |x|, or the largest |x|) of every chunk, then of all
enum NormKind : int { kNormSquares, kNormSum, kNormMax };

template <class A> CRESSET_DEVICE_FN A norm_term(int kind, A x) {
  const A a = x < 0 ? -x : x;
  return kind == kNormSquares ? a * a : a;
}
// NaN wins over any number.
template <class A> struct NormFold {
  int kind;
  CRESSET_DEVICE_FN A operator()(A a, A b) const {
    if (kind != kNormMax) return a + b;
    return a != a || a > b ? a : b;
  }
};

template <class T, int kTensors> CRESSET_DEVICE_FN void
norm_chunks(const TensorTable<1, kTensors>& table, opmath_t<T>* partial, int kind) {
  using A = opmath_t<T>;
  CRESSET_SHARED A scratch[32];
  const NormFold<A> fold{kind};
  const int t = table.tensor_of(blockIdx.x);
  const T* data = static_cast<const T*>(table.data[0][t]);
  const long start = static_cast<long>(blockIdx.x - table.first[t]) * kChunk;
  const long end = start + kChunk < table.sizes[t] ? start + kChunk : table.sizes[t];
  constexpr int kPack = 16 / sizeof(T);
  const bool aligned = (reinterpret_cast<unsigned long>(data) & 15) == 0;
  const long packed = aligned ? start + (end - start) / kPack * kPack : start;
  A sum = 0;
  long i = start + threadIdx.x * kPack;
  CRESSET_UNROLL
  for (int round = 0; round < kChunk / (256 * kPack); ++round, i += 256 * kPack) {
    if (i >= packed) continue;
    const Pack<T, kPack> p = load_pack<kPack>(data + i);
    CRESSET_UNROLL
    for (int j = 0; j < kPack; ++j) sum = fold(sum, norm_term(kind, convert<A>(p.v[j])));
  }
  for (long k = packed + threadIdx.x; k < end; k += 256)
    sum = fold(sum, norm_term(kind, convert<A>(data[k])));
  sum = block_fold(sum, fold, A(0), scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// The norm of everything, and what to multiply by so that it is at most max_norm. One block.
template <class T> CRESSET_DEVICE_FN void norm_total(const opmath_t<T>* partial, long chunks,
                                                     T* total, opmath_t<T>* factor, int kind,
                                                     double max_norm) {
  using A = opmath_t<T>;
  CRESSET_SHARED A scratch[32];
  const NormFold<A> fold{kind};
  A sum = 0;
  for (long i = threadIdx.x; i < chunks; i += blockDim.x) sum = fold(sum, partial[i]);
  sum = block_fold(sum, fold, A(0), scratch);
  if (threadIdx.x != 0) return;
  const A norm = kind == kNormSquares ? root(sum) : sum;
  *total = convert<T>(norm);
  const A limit = static_cast<A>(max_norm) / (convert<A>(*total) + static_cast<A>(1e-6));
  *factor = limit < A(1) || limit != limit ? limit : A(1);
}

// Every tensor times one number on the device.
template <class T, int kTensors> CRESSET_DEVICE_FN void
scale_tensors(const TensorTable<1, kTensors>& table, const opmath_t<T>* factor) {
  using A = opmath_t<T>;
  const A by = *factor;
  if (by == A(1)) return; // a norm within its bound, the common case: every bit stays
  update_chunk<T>(table, 1u, 1u, [&](A(&v)[1]) { v[0] *= by; });
}

} // namespace at::device

// Two sizes of table: one for few tensors, which costs little to pass, one for hundreds.
#define CRESSET_FUSED(T, size)                                                                     \
  CRESSET_KERNEL(256)                                                                              \
  fused_adam_##T##_##size(const __grid_constant__ at::device::TensorTable<5, size> table,          \
                          const __grid_constant__ at::device::AdamSettings s) {                    \
    at::device::fused_adam<cresset_##T>(table, s);                                                 \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  fused_sgd_##T##_##size(const __grid_constant__ at::device::TensorTable<3, size> table,           \
                         const __grid_constant__ at::device::SgdSettings s) {                      \
    at::device::fused_sgd<cresset_##T>(table, s);                                                  \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  fused_adagrad_##T##_##size(const __grid_constant__ at::device::TensorTable<3, size> table,       \
                             const __grid_constant__ at::device::AdagradSettings s) {              \
    at::device::fused_adagrad<cresset_##T>(table, s);                                              \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  norm_chunks_##T##_##size(const __grid_constant__ at::device::TensorTable<1, size> table,         \
                           at::device::opmath_t<cresset_##T>* partial, int kind) {                 \
    at::device::norm_chunks<cresset_##T>(table, partial, kind);                                    \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  scale_tensors_##T##_##size(const __grid_constant__ at::device::TensorTable<1, size> table,       \
                             const at::device::opmath_t<cresset_##T>* factor) {                    \
    at::device::scale_tensors<cresset_##T>(table, factor);                                         \
  }
#define CRESSET_FUSED_SIZES(T)                                                                     \
  CRESSET_FUSED(T, 48)                                                                             \
  CRESSET_FUSED(T, 512)                                                                            \
  CRESSET_KERNEL(1024)                                                                             \
  norm_total_##T(const at::device::opmath_t<cresset_##T>* partial, long chunks,                    \
                 cresset_##T* total, at::device::opmath_t<cresset_##T>* factor, int kind,          \
                 double max_norm) {                                                                \
    at::device::norm_total<cresset_##T>(partial, chunks, total, factor, kind, max_norm);           \
  }
CRESSET_FUSED_SIZES(f32)
CRESSET_FUSED_SIZES(f64)
CRESSET_FUSED_SIZES(f16)
CRESSET_FUSED_SIZES(bf16)
