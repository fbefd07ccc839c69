// The pointwise part of one step of a recurrent layer and of its gradient; the products around it
// are cuBLASLt's. One thread has one hidden unit of one sequence. Rows of gates, and of what the
// gradient needs, lie `stride` elements apart: the workspace has them side by side.
#include <ATen/cuda/device/Prelude.cuh>

namespace at::device {

template <class A> CRESSET_DEVICE_FN A logistic(A x) { return A(1) / (A(1) + exp(-x)); }

// The unit of this thread; false past the end.
struct RnnUnit {
  long row;
  int unit;
};
CRESSET_DEVICE_FN bool rnn_unit(RnnUnit& u, long rows, int n) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  u.row = i / n;
  u.unit = static_cast<int>(i - u.row * n);
  return i < rows * n;
}

// gates: i, f, g, o. With `save` they stay for the gradient, followed by the cell before, tanh of
// the cell and (where h is given) the state before.
template <class T> CRESSET_DEVICE_FN void lstm_step(T* gates, long stride, T* c, T* h, T* out,
                                                    long rows, int n, int save) {
  using A = opmath_t<T>;
  RnnUnit u;
  if (!rnn_unit(u, rows, n)) return;
  T* const row = gates + u.row * stride + u.unit;
  const long at_state = u.row * n + u.unit;
  const A in = logistic(convert<A>(row[0])), forget = logistic(convert<A>(row[n])),
          cell = tanh(convert<A>(row[2 * n])), open = logistic(convert<A>(row[3 * n]));
  const A before = convert<A>(c[at_state]), after = forget * before + in * cell;
  const A bent = tanh(after);
  const T result = convert<T>(open * bent);
  if (save) {
    row[0] = convert<T>(in);
    row[n] = convert<T>(forget);
    row[2 * n] = convert<T>(cell);
    row[3 * n] = convert<T>(open);
    row[4 * n] = convert<T>(before);
    row[5 * n] = convert<T>(bent);
    if (h) row[6 * n] = h[at_state];
  }
  c[at_state] = convert<T>(after);
  out[at_state] = result;
  if (h) h[at_state] = result;
}

// dc: the gradient of the new cell, replaced by that of the old one. extra may be null.
template <class T> CRESSET_DEVICE_FN void lstm_step_backward(const T* saved, long stride,
                                                             const T* dh, const T* extra, T* dc,
                                                             T* dgates, long rows, int n) {
  using A = opmath_t<T>;
  RnnUnit u;
  if (!rnn_unit(u, rows, n)) return;
  const T* const row = saved + u.row * stride + u.unit;
  const long at_state = u.row * n + u.unit;
  const A in = convert<A>(row[0]), forget = convert<A>(row[n]), cell = convert<A>(row[2 * n]),
          open = convert<A>(row[3 * n]), before = convert<A>(row[4 * n]),
          bent = convert<A>(row[5 * n]);
  const A d = convert<A>(dh[at_state]) + (extra ? convert<A>(extra[at_state]) : A(0));
  const A to_cell = convert<A>(dc[at_state]) + d * open * (A(1) - bent * bent);
  T* const to = dgates + u.row * 4 * n + u.unit;
  to[0] = convert<T>(to_cell * cell * in * (A(1) - in));
  to[n] = convert<T>(to_cell * before * forget * (A(1) - forget));
  to[2 * n] = convert<T>(to_cell * in * (A(1) - cell * cell));
  to[3 * n] = convert<T>(d * bent * open * (A(1) - open));
  dc[at_state] = convert<T>(to_cell * forget);
}

// of_input, of_hidden: r, z, n before their functions. saved (or null): r, z, n, the hidden part of
// n, the state before.
template <class T> CRESSET_DEVICE_FN void gru_step(const T* of_input, const T* of_hidden,
                                                   const T* bias, T* h, T* out, T* saved,
                                                   long stride, long rows, int n) {
  using A = opmath_t<T>;
  RnnUnit u;
  if (!rnn_unit(u, rows, n)) return;
  const T* const x = of_input + u.row * 3 * n + u.unit;
  const T* const y = of_hidden + u.row * 3 * n + u.unit;
  const auto hidden = [&](int gate) {
    return convert<A>(y[gate * n]) + (bias ? convert<A>(bias[gate * n + u.unit]) : A(0));
  };
  const long at_state = u.row * n + u.unit;
  const A reset = logistic(convert<A>(x[0]) + hidden(0)),
          keep = logistic(convert<A>(x[n]) + hidden(1)), own = hidden(2),
          fresh = tanh(convert<A>(x[2 * n]) + reset * own), before = convert<A>(h[at_state]);
  if (saved) {
    T* const row = saved + u.row * stride + u.unit;
    row[0] = convert<T>(reset);
    row[n] = convert<T>(keep);
    row[2 * n] = convert<T>(fresh);
    row[3 * n] = convert<T>(own);
    row[4 * n] = h[at_state];
  }
  const T result = convert<T>((A(1) - keep) * fresh + keep * before);
  h[at_state] = result;
  out[at_state] = result;
}

// dh: the gradient of the new state, replaced by the part that goes straight to the old one.
template <class T> CRESSET_DEVICE_FN void gru_step_backward(const T* saved, long stride, T* dh,
                                                            const T* extra, T* d_input, T* d_hidden,
                                                            long rows, int n) {
  using A = opmath_t<T>;
  RnnUnit u;
  if (!rnn_unit(u, rows, n)) return;
  const T* const row = saved + u.row * stride + u.unit;
  const long at_state = u.row * n + u.unit, at_gates = u.row * 3 * n + u.unit;
  const A reset = convert<A>(row[0]), keep = convert<A>(row[n]), fresh = convert<A>(row[2 * n]),
          own = convert<A>(row[3 * n]), before = convert<A>(row[4 * n]);
  const A d = convert<A>(dh[at_state]) + (extra ? convert<A>(extra[at_state]) : A(0));
  const A to_fresh = d * (A(1) - keep) * (A(1) - fresh * fresh),
          to_keep = d * (before - fresh) * keep * (A(1) - keep),
          to_reset = to_fresh * own * reset * (A(1) - reset);
  d_input[at_gates] = d_hidden[at_gates] = convert<T>(to_reset);
  d_input[at_gates + n] = d_hidden[at_gates + n] = convert<T>(to_keep);
  d_input[at_gates + 2 * n] = convert<T>(to_fresh);
  d_hidden[at_gates + 2 * n] = convert<T>(to_fresh * reset);
  dh[at_state] = convert<T>(d * keep);
}

// out: before the function, after it on return; saved (or null): the state before.
template <class T>
CRESSET_DEVICE_FN void plain_step(T* out, T* h, T* saved, long rows, int n, int relu) {
  using A = opmath_t<T>;
  RnnUnit u;
  if (!rnn_unit(u, rows, n)) return;
  const long i = u.row * n + u.unit;
  const A x = convert<A>(out[i]);
  if (saved) saved[i] = h[i];
  h[i] = out[i] = convert<T>(relu ? (x > A(0) || x != x ? x : A(0)) : tanh(x));
}
template <class T> CRESSET_DEVICE_FN void plain_step_backward(const T* out, const T* dh,
                                                              const T* extra, T* dgates, long rows,
                                                              int n, int relu) {
  using A = opmath_t<T>;
  RnnUnit u;
  if (!rnn_unit(u, rows, n)) return;
  const long i = u.row * n + u.unit;
  const A y = convert<A>(out[i]), d = convert<A>(dh[i]) + (extra ? convert<A>(extra[i]) : A(0));
  dgates[i] = convert<T>(relu ? (y > A(0) ? d : A(0)) : d * (A(1) - y * y));
}

} // namespace at::device

#define CRESSET_RNN_CELLS(type)                                                                    \
  CRESSET_KERNEL(256)                                                                              \
  lstm_step_##type(cresset_##type* gates, long stride, cresset_##type* c, cresset_##type* h,       \
                   cresset_##type* out, long rows, int n, int save) {                              \
    at::device::lstm_step(gates, stride, c, h, out, rows, n, save);                                \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  lstm_step_backward_##type(const cresset_##type* saved, long stride, const cresset_##type* dh,    \
                            const cresset_##type* extra, cresset_##type* dc,                       \
                            cresset_##type* dgates, long rows, int n) {                            \
    at::device::lstm_step_backward(saved, stride, dh, extra, dc, dgates, rows, n);                 \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  gru_step_##type(const cresset_##type* of_input, const cresset_##type* of_hidden,                 \
                  const cresset_##type* bias, cresset_##type* h, cresset_##type* out,              \
                  cresset_##type* saved, long stride, long rows, int n) {                          \
    at::device::gru_step(of_input, of_hidden, bias, h, out, saved, stride, rows, n);               \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  gru_step_backward_##type(const cresset_##type* saved, long stride, cresset_##type* dh,           \
                           const cresset_##type* extra, cresset_##type* d_input,                   \
                           cresset_##type* d_hidden, long rows, int n) {                           \
    at::device::gru_step_backward(saved, stride, dh, extra, d_input, d_hidden, rows, n);           \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  plain_step_##type(cresset_##type* out, cresset_##type* h, cresset_##type* saved, long rows,      \
                    int n, int relu) {                                                             \
    at::device::plain_step(out, h, saved, rows, n, relu);                                          \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  plain_step_backward_##type(const cresset_##type* out, const cresset_##type* dh,                  \
                             const cresset_##type* extra, cresset_##type* dgates, long rows,       \
                             int n, int relu) {                                                    \
    at::device::plain_step_backward(out, dh, extra, dgates, rows, n, relu);                        \
  }
CRESSET_RNN_CELLS(f32)
CRESSET_RNN_CELLS(f64)
CRESSET_RNN_CELLS(f16)
CRESSET_RNN_CELLS(bf16)
