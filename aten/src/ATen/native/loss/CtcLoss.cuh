// Connectionist temporal classification (CtcLoss.cpp says what is computed). A block has one sample
// and steps through its frames; the threads share the states of a frame.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/loss/CtcLoss.args.h>

namespace at::device {

template <class T> CRESSET_DEVICE_FN T ctc_impossible() {
  return -c10::numeric_limits<T>::infinity();
}
// log(e^a + e^b).
template <class T> CRESSET_DEVICE_FN T ctc_add(T a, T b) {
  const T top = a > b ? a : b, low = a > b ? b : a;
  return top == ctc_impossible<T>() ? top : top + log1p(exp(low - top));
}

// One sample's chain of states.
struct CtcChain {
  const int64_t* labels;
  long frames, states, blank;
  CRESSET_DEVICE_FN CtcChain(const CtcArgs& a, long sample)
      : labels(a.targets + a.offsets[sample]), frames(a.input_lengths[sample]),
        states(2 * a.target_lengths[sample] + 1), blank(a.blank) {}
  CRESSET_DEVICE_FN long label(long s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
  // Whether state s may follow s - 2: two different labels without the blank between them.
  CRESSET_DEVICE_FN bool skips(long s) const {
    return s % 2 == 1 && s >= 2 && labels[s / 2] != labels[s / 2 - 1];
  }
};

template <class T>
CRESSET_DEVICE_FN void ctc_forward(const T* log_probs, T* alpha, T* losses, const CtcArgs& a) {
  const long sample = blockIdx.x, frame = a.samples * a.classes;
  const CtcChain chain(a, sample);
  const T* const p = log_probs + sample * a.classes;
  T* const rows = alpha + sample * a.frames * a.states;
  for (long t = 0; t < chain.frames; ++t) {
    const T* const before = rows + (t - 1) * a.states;
    for (long s = threadIdx.x; s < chain.states; s += blockDim.x) {
      T reached = s < 2 ? T(0) : ctc_impossible<T>();
      if (t > 0) {
        reached = before[s];
        if (s > 0) reached = ctc_add(reached, before[s - 1]);
        if (chain.skips(s)) reached = ctc_add(reached, before[s - 2]);
      }
      rows[t * a.states + s] = reached + p[t * frame + chain.label(s)];
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  if (chain.frames == 0) {
    losses[sample] = chain.states == 1 ? T(0) : -ctc_impossible<T>();
    return;
  }
  const T* const last = rows + (chain.frames - 1) * a.states;
  const T end = last[chain.states - 1];
  losses[sample] = -(chain.states > 1 ? ctc_add(end, last[chain.states - 2]) : end);
}

// The likelihoods of the frames after and of this one by state, in two rows of `beta` in turns. A
// label's share of a frame is the sum of the chances of its states, each at most 1.
template <class T> CRESSET_DEVICE_FN void ctc_backward(const T* grad, const T* log_probs,
                                                       const T* alpha, const T* losses, T* beta,
                                                       T* out, const CtcArgs& a,
                                                       int zero_infinity) {
  const long sample = blockIdx.x, frame = a.samples * a.classes;
  const CtcChain chain(a, sample);
  const T* const p = log_probs + sample * a.classes;
  const T* const ahead = alpha + sample * a.frames * a.states;
  T* const to = out + sample * a.classes;
  T* const behind = beta + sample * 2 * a.states;
  const T loss = losses[sample], scale = grad[sample];
  const bool lost = loss == -ctc_impossible<T>();
  for (long t = chain.frames - 1; t >= 0; --t) {
    T* const now = behind + t % 2 * a.states;
    const T* const next = behind + (t + 1) % 2 * a.states;
    for (long c = threadIdx.x; c < a.classes; c += blockDim.x) {
      const T unseen = lost ? (zero_infinity ? T(0) : c10::numeric_limits<T>::quiet_NaN())
                            : exp(p[t * frame + c]) * scale;
      to[t * frame + c] = unseen;
    }
    for (long s = threadIdx.x; s < chain.states; s += blockDim.x) {
      T left = s >= chain.states - 2 ? T(0) : ctc_impossible<T>();
      if (t < chain.frames - 1) {
        left = next[s];
        if (s + 1 < chain.states) left = ctc_add(left, next[s + 1]);
        if (s + 2 < chain.states && chain.skips(s + 2)) left = ctc_add(left, next[s + 2]);
      }
      now[s] = left + p[t * frame + chain.label(s)];
    }
    __syncthreads();
    if (lost) continue;
    for (long s = threadIdx.x; s < chain.states; s += blockDim.x) {
      const long c = chain.label(s);
      const T chance = ahead[t * a.states + s] + now[s] + loss - p[t * frame + c];
      if (chance > ctc_impossible<T>()) atomicAdd(to + t * frame + c, -exp(chance) * scale);
    }
  }
}

} // namespace at::device

#define CRESSET_CTC(T)                                                                             \
  CRESSET_KERNEL(256)                                                                              \
  ctc_forward_##T(const cresset_##T* log_probs, cresset_##T* alpha, cresset_##T* losses,           \
                  at::device::CtcArgs a) {                                                         \
    at::device::ctc_forward(log_probs, alpha, losses, a);                                          \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  ctc_backward_##T(const cresset_##T* grad, const cresset_##T* log_probs,                          \
                   const cresset_##T* alpha, const cresset_##T* losses, cresset_##T* beta,         \
                   cresset_##T* out, at::device::CtcArgs a, int zero_infinity) {                   \
    at::device::ctc_backward(grad, log_probs, alpha, losses, beta, out, a, zero_infinity);         \
  }
CRESSET_CTC(f32)
CRESSET_CTC(f64)
