// One direction of one recurrent layer over a whole sequence, and its gradient. The input's product
// with its weights is one matrix product over all steps; each step then multiplies the state and
// runs the fused pointwise loop.
//
// Padded and packed input are one case: data is a matrix of rows, step t owns the next sizes[t]
// rows, and the state has a row for every sequence, of which the first sizes[t] take part.
// Sequences that have ended (or not begun, when running backwards in time) keep their row of the
// state.
#include <algorithm>
#include <cstring>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/IsaTable.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/matmul/gemm/Gemm.h>
#include <ATen/native/rnn/LayerShape.h>
#include <ATen/native/rnn/Native.h>
#include <ATen/native/rnn/RnnKernel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/sum.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {

namespace rnn {
CRESSET_DEFINE_ISA_TABLE(Table);
} // namespace rnn
namespace {
using rnn::Mode;
using Shape = rnn::LayerShape;
using OptionalTensor = std::optional<Tensor>;
constexpr int64_t kGrainUnits = 4096;
// Up to this many rows the arranged product is the faster one, and from this many multiplications
// on other threads help with it.
constexpr int64_t kFewRows = 32;
constexpr int64_t kSharedWork = 1 << 21;

const rnn::Loops& loops_for(ScalarType dtype) {
  const rnn::Loops& loops = rnn::table().loops[static_cast<int>(dtype)];
  TORCH_CHECK_NOT_IMPLEMENTED(loops.lstm != nullptr, "\"rnn_layer_cpu\" not implemented for '",
                              dtype, "'");
  return loops;
}

bool given(const OptionalTensor& t) { return t && t->defined(); }

// C = A B^T (+ beta C) for row-major A [m, k] and B [n, k].
template <class T> void times_transposed(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                                         const T* b, float beta, T* c, int64_t ldc) {
  gemm::gemm<T>(m, n, k, 1, a, lda, 1, b, 1, k, beta, c, ldc, 1);
}

// c = a w (or c += a w) at every step, for the same w: element (k, n) at data[n n_stride +
// k k_stride].
template <class T> class Recurrence {
 public:
  Recurrence(const rnn::Loops& loops, const Shape& s, const T* w, int64_t n_stride,
             int64_t k_stride, int64_t n, int64_t k)
      : loops_(loops), w_(w), n_stride_(n_stride), k_stride_(k_stride), n_(n), k_(k) {
    if (loops.panel == 0 || s.batch > kFewRows || s.sizes.size() < 4) return;
    count_ = (n + loops.panel - 1) / loops.panel;
    panels_ = detail::empty({count_ * loops.panel * k}, c10::scalar_type_of<T>);
    if (panels_.numel() > 0) loops.arrange(w, n_stride, k_stride, n, k, panels_.data_ptr());
  }
  void run(int64_t rows, const T* a, int64_t lda, T* c, int64_t ldc, bool add) const {
    if (count_ == 0) {
      gemm::gemm<T>(rows, n_, k_, 1, a, lda, 1, w_, k_stride_, n_stride_, add ? 1 : 0, c, ldc, 1);
      return;
    }
    const int64_t work = rows * k_ * loops_.panel;
    const int64_t grain = work * count_ < kSharedWork ? count_ : (count_ + 3) / 4;
    parallel_for(0, count_, grain, [&](int64_t begin, int64_t end) {
      loops_.product(a, lda, rows, panels_.data_ptr(), n_, k_, begin, end, c, ldc, add);
    });
  }

 private:
  const rnn::Loops& loops_;
  const T* w_;
  int64_t n_stride_, k_stride_, n_, k_;
  int64_t count_ = 0;
  Tensor panels_;
};

template <class F> void each_row(int64_t rows, int64_t units, const F& f) {
  const int64_t grain = std::max<int64_t>(1, kGrainUnits / std::max<int64_t>(1, units));
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) f(row);
  });
}

template <class T> void copy_rows(const T* from, int64_t from_stride, T* to, int64_t to_stride,
                                  int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(to + r * to_stride, from + r * from_stride, sizeof(T) * n);
}

template <class T> struct Forward {
  const Shape& s;
  const rnn::Loops& loops;
  const T* x;
  const T* w_ih;
  const T* w_hh;
  const T* bias;        // of the input's product; LSTM and plain: both biases
  const T* hidden_bias; // GRU
  const T* w_hr;
  T* h; // state, replaced
  T* c;
  T* out;
  T* saved; // workspace or null

  void lstm() {
    const int64_t H = s.hidden, P = s.state, W = saved ? s.width : 4 * H;
    const Tensor scratch =
        saved ? Tensor() : detail::empty({s.rows, 4 * H}, c10::scalar_type_of<T>);
    T* gates = saved ? saved : scratch.data_ptr<T>();
    const Tensor unprojected = detail::empty({w_hr ? s.batch : 0, H}, c10::scalar_type_of<T>);
    T* full = w_hr ? unprojected.data_ptr<T>() : nullptr;
    gemm::gemm_bias<T>(s.rows, 4 * H, s.features, 1, x, s.features, 1, w_ih, 1, s.features, bias,
                       gates, W, 1);
    const Recurrence<T> recurrence(loops, s, w_hh, P, 1, 4 * H, P);
    for (const int64_t t : s.order) {
      check_interrupt();
      const int64_t n = s.sizes[t], start = s.starts[t];
      T* mine = gates + start * W;
      recurrence.run(n, h, P, mine, W, true);
      if (saved) copy_rows(h, P, mine + s.before_at, W, n, P);
      each_row(n, 4 * H, [&](int64_t r) {
        T* row = mine + r * W;
        T* to = w_hr ? full + r * H : out + (start + r) * P;
        loops.lstm(row, c + r * H, to, saved ? row + 4 * H : nullptr, saved ? row + 5 * H : nullptr,
                   H);
      });
      if (w_hr) times_transposed<T>(n, P, H, full, H, w_hr, 0, out + start * P, P);
      copy_rows(out + start * P, P, h, P, n, P);
    }
  }

  void gru() {
    const int64_t H = s.hidden, W = s.width;
    const Tensor of_input = detail::empty({s.rows, 3 * H}, c10::scalar_type_of<T>);
    const Tensor of_hidden = detail::empty({s.batch, 3 * H}, c10::scalar_type_of<T>);
    T* gx = of_input.data_ptr<T>();
    T* gh = of_hidden.data_ptr<T>();
    gemm::gemm_bias<T>(s.rows, 3 * H, s.features, 1, x, s.features, 1, w_ih, 1, s.features, bias,
                       gx, 3 * H, 1);
    const Recurrence<T> recurrence(loops, s, w_hh, H, 1, 3 * H, H);
    for (const int64_t t : s.order) {
      check_interrupt();
      const int64_t n = s.sizes[t], start = s.starts[t];
      if (hidden_bias) copy_rows(hidden_bias, 0, gh, 3 * H, n, 3 * H);
      recurrence.run(n, h, H, gh, 3 * H, hidden_bias != nullptr);
      T* mine = saved ? saved + start * W : nullptr;
      if (saved) copy_rows(h, H, mine + s.before_at, W, n, H);
      each_row(n, 3 * H, [&](int64_t r) {
        loops.gru(gx + (start + r) * 3 * H, gh + r * 3 * H, h + r * H,
                  saved ? mine + r * W : nullptr, H);
      });
      copy_rows(h, H, out + start * H, H, n, H);
    }
  }

  void plain() {
    const int64_t H = s.hidden;
    gemm::gemm_bias<T>(s.rows, H, s.features, 1, x, s.features, 1, w_ih, 1, s.features, bias, out,
                       H, 1);
    const Recurrence<T> recurrence(loops, s, w_hh, H, 1, H, H);
    for (const int64_t t : s.order) {
      check_interrupt();
      const int64_t n = s.sizes[t], start = s.starts[t];
      T* mine = out + start * H;
      recurrence.run(n, h, H, mine, H, true);
      if (saved) copy_rows(h, H, saved + start * H, H, n, H);
      each_row(n, H, [&](int64_t r) { loops.plain(mine + r * H, H, s.mode == Mode::Relu); });
      copy_rows(mine, H, h, H, n, H);
    }
  }

  void run() {
    if (s.mode == Mode::Lstm)
      lstm();
    else if (s.mode == Mode::Gru)
      gru();
    else
      plain();
  }
};

template <class T> struct Backward {
  const Shape& s;
  const rnn::Loops& loops;
  const T* grad_output;            // or null
  const Recurrence<T>& recurrence; // from gates to the state before
  const T* w_hr;
  const T* output;
  const T* saved;
  T* dh;         // [batch, state]: of the last state, replaced by that of the first
  T* dc;         // [batch, hidden]
  T* dgx;        // [rows, gates * hidden]: of what the input's product gave
  T* dgh;        // the same of the state's product; equal to dgx but for the GRU
  T* dprojected; // [rows, state], LSTM with projection

  // dh += the gradient of the step's output
  void add_output(int64_t start, int64_t n) {
    if (grad_output == nullptr) return;
    const int64_t P = s.state;
    each_row(n, P, [&](int64_t r) {
      loops.add(dh + r * P, grad_output + (start + r) * P, dh + r * P, P);
    });
  }

  void lstm(int64_t start, int64_t n, T* full) {
    const int64_t H = s.hidden, P = s.state, W = s.width;
    if (w_hr) {
      copy_rows(dh, P, dprojected + start * P, P, n, P);
      gemm::gemm<T>(n, H, P, 1, dh, P, 1, w_hr, H, 1, 0, full, H, 1);
    }
    const T* d = w_hr ? full : dh;
    each_row(n, 4 * H, [&](int64_t r) {
      const T* row = saved + (start + r) * W;
      loops.lstm_backward(row, row + 4 * H, row + 5 * H, d + r * H, dc + r * H,
                          dgx + (start + r) * 4 * H, H);
    });
    recurrence.run(n, dgx + start * 4 * H, 4 * H, dh, P, false);
  }
  void gru(int64_t start, int64_t n) {
    const int64_t H = s.hidden, W = s.width;
    each_row(n, 3 * H, [&](int64_t r) {
      const T* row = saved + (start + r) * W;
      loops.gru_backward(row, row + s.before_at, dh + r * H, dgx + (start + r) * 3 * H,
                         dgh + (start + r) * 3 * H, H);
    });
    recurrence.run(n, dgh + start * 3 * H, 3 * H, dh, H, true);
  }
  void plain(int64_t start, int64_t n) {
    const int64_t H = s.hidden;
    each_row(n, H, [&](int64_t r) {
      loops.plain_backward(output + (start + r) * H, dh + r * H, dgx + (start + r) * H, H,
                           s.mode == Mode::Relu);
    });
    recurrence.run(n, dgx + start * H, H, dh, H, false);
  }

  void run() {
    const Tensor scratch = detail::empty({w_hr ? s.batch : 0, s.hidden}, c10::scalar_type_of<T>);
    for (size_t i = s.order.size(); i-- > 0;) {
      check_interrupt();
      const int64_t t = s.order[i], start = s.starts[t], n = s.sizes[t];
      add_output(start, n);
      if (s.mode == Mode::Lstm)
        lstm(start, n, w_hr ? scratch.data_ptr<T>() : nullptr);
      else if (s.mode == Mode::Gru)
        gru(start, n);
      else
        plain(start, n);
    }
  }
};

template <class T> const T* data_or_null(const Tensor& t) {
  return t.defined() ? t.const_data_ptr<T>() : nullptr;
}
Tensor contiguous_or_none(const OptionalTensor& t) { return given(t) ? t->contiguous() : Tensor(); }

// A state that the kernel may overwrite: a copy, or zeros.
Tensor own_state(const OptionalTensor& t, IntArrayRef sizes, ScalarType dtype) {
  Tensor out = detail::empty(sizes, dtype);
  if (given(t))
    out.copy_(*t);
  else
    out.zero_();
  return out;
}
} // namespace

void rnn_layer_cpu(const Tensor& input, const Tensor& hx, const OptionalTensor& cx,
                   const Tensor& w_ih, const Tensor& w_hh, const OptionalTensor& b_ih,
                   const OptionalTensor& b_hh, const OptionalTensor& w_hr, IntArrayRef batch_sizes,
                   int64_t mode, bool reverse, bool save, const Tensor& output, const Tensor& hy,
                   const Tensor& cy, const Tensor& workspace) {
  const Shape s(input, hx, w_hh, batch_sizes, mode, reverse);
  const rnn::Loops& loops = loops_for(input.scalar_type());
  const Tensor x = input.contiguous(), wi = w_ih.contiguous(), wh = w_hh.contiguous(),
               wr = contiguous_or_none(w_hr), bh = contiguous_or_none(b_hh);
  Tensor bi = contiguous_or_none(b_ih);
  if (s.mode != Mode::Gru && bi.defined() && bh.defined()) bi = at::add(bi, bh).contiguous();
  hy.copy_(hx);
  if (s.mode == Mode::Lstm) cy.copy_(*cx);
  dtype_switch<FloatingTypes>(input.scalar_type(), "rnn_layer_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (s.rows == 0 || s.hidden == 0) return;
    Forward<T> forward{s,
                       loops,
                       static_cast<const T*>(x.data_ptr()),
                       wi.const_data_ptr<T>(),
                       wh.const_data_ptr<T>(),
                       data_or_null<T>(bi),
                       data_or_null<T>(bh),
                       data_or_null<T>(wr),
                       hy.data_ptr<T>(),
                       s.mode == Mode::Lstm ? cy.data_ptr<T>() : nullptr,
                       output.data_ptr<T>(),
                       save ? workspace.data_ptr<T>() : nullptr};
    BlockingRegion unlocked;
    forward.run();
  });
}

namespace {
struct Gradients {
  Tensor dh, dc, dgx, dgh, dprojected;
};

// The matrices of gradients that the time loop leaves.
Gradients walk_back(const Shape& s, const OptionalTensor& grad_output,
                    const OptionalTensor& grad_hy, const OptionalTensor& grad_cy,
                    const Tensor& w_hh, const OptionalTensor& w_hr, const Tensor& output,
                    const Tensor& workspace) {
  const ScalarType dtype = output.scalar_type();
  const bool lstm = s.mode == Mode::Lstm;
  Gradients g;
  g.dh = own_state(grad_hy, {s.batch, s.state}, dtype);
  g.dc = own_state(lstm ? grad_cy : std::nullopt, {lstm ? s.batch : 0, s.hidden}, dtype);
  g.dgx = detail::empty({s.rows, s.gates * s.hidden}, dtype);
  g.dgh = s.mode == Mode::Gru ? detail::empty({s.rows, s.gates * s.hidden}, dtype) : g.dgx;
  const Tensor wh = w_hh.contiguous(), wr = contiguous_or_none(w_hr), out = output.contiguous(),
               from = contiguous_or_none(grad_output);
  g.dprojected = detail::empty({wr.defined() ? s.rows : 0, s.state}, dtype);
  dtype_switch<FloatingTypes>(dtype, "rnn_layer_backward_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (s.rows == 0 || s.hidden == 0) return;
    const Recurrence<T> recurrence(loops_for(dtype), s, wh.const_data_ptr<T>(), 1, s.state, s.state,
                                   s.gates * s.hidden);
    Backward<T> backward{s,
                         loops_for(dtype),
                         data_or_null<T>(from),
                         recurrence,
                         data_or_null<T>(wr),
                         out.const_data_ptr<T>(),
                         workspace.const_data_ptr<T>(),
                         g.dh.data_ptr<T>(),
                         static_cast<T*>(lstm ? g.dc.data_ptr() : nullptr),
                         g.dgx.data_ptr<T>(),
                         g.dgh.data_ptr<T>(),
                         static_cast<T*>(wr.defined() ? g.dprojected.data_ptr() : nullptr)};
    BlockingRegion unlocked;
    backward.run();
  });
  return g;
}

// out = a^T b for a [rows, m] and b [rows, n] whose rows lie `ldb` apart.
void outer_sum(const Tensor& a, const Tensor& b, int64_t offset, int64_t n, int64_t ldb,
               const Tensor& out) {
  dtype_switch<FloatingTypes>(a.scalar_type(), "rnn_layer_backward_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t rows = a.size(0), m = a.size(1);
    if (rows == 0 || m == 0 || n == 0) {
      out.zero_();
      return;
    }
    const T* right = static_cast<const T*>(b.data_ptr()) + offset;
    gemm::gemm<T>(m, n, rows, 1, a.const_data_ptr<T>(), 1, m, right, ldb, 1, 0, out.data_ptr<T>(),
                  n, 1);
  });
}

void input_gradient(const Tensor& dgx, const Tensor& w_ih, const Tensor& out) {
  const Tensor w = w_ih.contiguous();
  dtype_switch<FloatingTypes>(dgx.scalar_type(), "rnn_layer_backward_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t rows = dgx.size(0), k = dgx.size(1), n = w.size(1);
    if (out.numel() == 0) return;
    gemm::gemm<T>(rows, n, k, 1, static_cast<const T*>(dgx.data_ptr()), k, 1,
                  static_cast<const T*>(w.data_ptr()), n, 1, 0, out.data_ptr<T>(), n, 1);
  });
}

Tensor column_sums(const Tensor& t) {
  const int64_t dims[1] = {0};
  return at::sum(t, IntArrayRef(dims));
}

// o * tanh(c) of every row: what the projection was given.
Tensor unprojected(const Shape& s, const Tensor& workspace) {
  const Tensor out = detail::empty({s.rows, s.hidden}, workspace.scalar_type());
  const rnn::Loops& loops = loops_for(workspace.scalar_type());
  const int64_t size = workspace.itemsize();
  if (out.numel() == 0) return out;
  const char* from = static_cast<const char*>(workspace.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  each_row(s.rows, s.hidden, [&](int64_t r) {
    const char* row = from + r * s.width * size;
    loops.multiply(row + 3 * s.hidden * size, row + 5 * s.hidden * size, to + r * s.hidden * size,
                   s.hidden);
  });
  return out;
}
} // namespace

void rnn_layer_backward_cpu(const OptionalTensor& grad_output, const OptionalTensor& grad_hy,
                            const OptionalTensor& grad_cy, const Tensor& input, const Tensor& hx,
                            const OptionalTensor&, const Tensor& w_ih, const Tensor& w_hh,
                            const OptionalTensor&, const OptionalTensor&,
                            const OptionalTensor& w_hr, const Tensor& output,
                            const Tensor& workspace, IntArrayRef batch_sizes, int64_t mode,
                            bool reverse, std::array<bool, 8> output_mask, const Tensor& d_input,
                            const Tensor& d_hx, const Tensor& d_cx, const Tensor& d_w_ih,
                            const Tensor& d_w_hh, const Tensor& d_b_ih, const Tensor& d_b_hh,
                            const Tensor& d_w_hr) {
  const Shape s(input, hx, w_hh, batch_sizes, mode, reverse);
  const Gradients g = walk_back(s, grad_output, grad_hy, grad_cy, w_hh, w_hr, output, workspace);
  if (output_mask[0]) input_gradient(g.dgx, w_ih, d_input);
  if (output_mask[1]) d_hx.copy_(g.dh);
  if (output_mask[2]) d_cx.copy_(g.dc);
  if (output_mask[3]) {
    const Tensor x = input.contiguous();
    outer_sum(g.dgx, x, 0, s.features, s.features, d_w_ih);
  }
  if (output_mask[4]) outer_sum(g.dgh, workspace, s.before_at, s.state, s.width, d_w_hh);
  if (output_mask[5]) d_b_ih.copy_(column_sums(g.dgx));
  if (output_mask[6]) d_b_hh.copy_(column_sums(g.dgh));
  if (output_mask[7])
    outer_sum(g.dprojected, unprojected(s, workspace), 0, s.hidden, s.hidden, d_w_hr);
}

} // namespace at::native

namespace at::meta {
namespace {
using OptionalTensor = std::optional<Tensor>;

void check_matrix(const char* name, const Tensor& t, int64_t rows, int64_t columns,
                  ScalarType dtype) {
  TORCH_CHECK(t.dim() == 2 && t.size(0) == rows && t.size(1) == columns, "rnn: expected ", name,
              " of shape [", rows, ", ", columns, "] but got ", t.sizes());
  TORCH_CHECK(t.scalar_type() == dtype, "rnn: expected ", name, " of dtype ", dtype, " but got ",
              t.scalar_type());
}
void check_vector(const char* name, const OptionalTensor& t, int64_t n, ScalarType dtype) {
  if (!t || !t->defined()) return;
  TORCH_CHECK(t->dim() == 1 && t->size(0) == n && t->scalar_type() == dtype, "rnn: expected ", name,
              " of ", n, " ", dtype, " elements but got ", t->sizes(), " of ", t->scalar_type());
}

// Everything the kernels rely on. Returns the number of rows.
int64_t check_layer(const Tensor& input, const Tensor& hx, const OptionalTensor& cx,
                    const Tensor& w_ih, const Tensor& w_hh, const OptionalTensor& b_ih,
                    const OptionalTensor& b_hh, const OptionalTensor& w_hr, IntArrayRef batch_sizes,
                    int64_t mode) {
  TORCH_CHECK(mode >= 0 && mode <= 3, "rnn: unknown mode ", mode);
  const auto kind = static_cast<native::rnn::Mode>(mode);
  const ScalarType dtype = input.scalar_type();
  TORCH_CHECK(input.dim() == (batch_sizes.empty() ? 3 : 2), "rnn: expected ",
              batch_sizes.empty() ? "3-D input" : "2-D packed data", " but got ", input.sizes());
  TORCH_CHECK(hx.dim() == 2 && w_hh.dim() == 2,
              "rnn: expected matrices for the state and the "
              "weights but got ",
              hx.sizes(), " and ", w_hh.sizes());
  const int64_t gates = native::rnn::gate_count(kind);
  TORCH_CHECK(w_hh.size(0) % gates == 0, "rnn: expected weights of ", gates, " gates but got ",
              w_hh.sizes());
  const int64_t batch = hx.size(0), hidden = w_hh.size(0) / gates;
  const bool projects = w_hr && w_hr->defined();
  TORCH_CHECK(!projects || kind == native::rnn::Mode::Lstm, "rnn: only LSTM has projections");
  check_matrix("w_ih", w_ih, gates * hidden, input.size(-1), dtype);
  check_matrix("w_hh", w_hh, gates * hidden, hx.size(1), dtype);
  check_matrix("hx", hx, batch, projects ? hx.size(1) : hidden, dtype);
  if (projects) check_matrix("w_hr", *w_hr, hx.size(1), hidden, dtype);
  check_vector("b_ih", b_ih, gates * hidden, dtype);
  check_vector("b_hh", b_hh, gates * hidden, dtype);
  if (kind == native::rnn::Mode::Lstm) {
    TORCH_CHECK(cx && cx->defined(), "rnn: LSTM needs a cell state");
    check_matrix("cx", *cx, batch, hidden, dtype);
  }
  if (batch_sizes.empty()) {
    TORCH_CHECK(input.size(1) == batch, "rnn: expected a state of ", input.size(1),
                " sequences but got ", batch);
    return input.size(0) * batch;
  }
  int64_t rows = 0, last = batch;
  for (const int64_t size : batch_sizes) {
    TORCH_CHECK(size >= 0 && size <= last,
                "rnn: batch_sizes must not increase or exceed the number of states (", batch,
                "), got ", batch_sizes);
    last = size;
    rows += size;
  }
  TORCH_CHECK(rows == input.size(0), "rnn: batch_sizes add up to ", rows,
              " but the packed data has ", input.size(0), " rows");
  return rows;
}

int64_t workspace_width(int64_t mode, int64_t hidden, int64_t state) {
  const auto kind = static_cast<native::rnn::Mode>(mode);
  const int64_t own = kind == native::rnn::Mode::Lstm ? 6 : kind == native::rnn::Mode::Gru ? 4 : 0;
  return own * hidden + state;
}
} // namespace

void meta_rnn_layer(OutputBuilder& out, const Tensor& input, const Tensor& hx,
                    const OptionalTensor& cx, const Tensor& w_ih, const Tensor& w_hh,
                    const OptionalTensor& b_ih, const OptionalTensor& b_hh,
                    const OptionalTensor& w_hr, IntArrayRef batch_sizes, int64_t mode, bool,
                    bool save) {
  if (batch_sizes.empty() && native::any_symbolic(input, hx)) {
    // The number of steps and of sequences may vary; the widths are those of the weights.
    TORCH_CHECK(input.dim() == 3 && hx.dim() == 2,
                "rnn: expected 3-D input and a matrix of states");
    TORCH_CHECK(c10::expect_true(c10::sym_eq(input.sym_size(1), hx.sym_size(0))),
                "rnn: expected a state of ", input.sym_size(1), " sequences but got ",
                hx.sym_size(0));
    TORCH_CHECK(c10::expect_true(c10::sym_eq(input.sym_size(2), w_ih.sym_size(1))),
                "rnn: expected input of width ", w_ih.sym_size(1), " but got ", input.sym_size(2));
    native::SymDimVector wide(input.sym_sizes());
    wide.back() = hx.sym_size(1);
    const ScalarType kind = input.scalar_type();
    const SymInt none[] = {SymInt(0)};
    const int64_t units = w_hh.size(0) / native::rnn::gate_count(native::rnn::Mode(mode));
    const SymInt kept = save ? input.sym_size(0) * input.sym_size(1) : SymInt(0);
    const SymInt space[] = {kept, SymInt(workspace_width(mode, units, w_hh.size(1)))};
    out.set_symint(0, wide, kind);
    out.set_symint(1, hx.sym_sizes(), kind);
    out.set_symint(2, mode == 0 ? cx->sym_sizes() : SymIntArrayRef(none, 1), kind);
    out.set_symint(3, space, kind);
    return;
  }
  const int64_t rows = check_layer(input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes, mode);
  const bool lstm = mode == 0;
  const ScalarType dtype = input.scalar_type();
  DimVector sizes(input.sizes());
  sizes.back() = hx.size(1);
  out.set(0, sizes, dtype);
  out.set(1, hx.sizes(), dtype);
  out.set(2, lstm ? cx->sizes() : IntArrayRef{0}, dtype);
  const int64_t hidden = w_hh.size(0) / native::rnn::gate_count(native::rnn::Mode(mode));
  out.set(3, {save ? rows : 0, workspace_width(mode, hidden, hx.size(1))}, dtype);
}

void meta_rnn_layer_backward(OutputBuilder& out, const OptionalTensor& grad_output,
                             const OptionalTensor& grad_hy, const OptionalTensor& grad_cy,
                             const Tensor& input, const Tensor& hx, const OptionalTensor& cx,
                             const Tensor& w_ih, const Tensor& w_hh, const OptionalTensor& b_ih,
                             const OptionalTensor& b_hh, const OptionalTensor& w_hr,
                             const Tensor& output, const Tensor& workspace, IntArrayRef batch_sizes,
                             int64_t mode, bool, std::array<bool, 8> output_mask) {
  const int64_t rows = check_layer(input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes, mode);
  const int64_t hidden = w_hh.size(0) / native::rnn::gate_count(native::rnn::Mode(mode));
  const ScalarType dtype = input.scalar_type();
  TORCH_CHECK(workspace.dim() == 2 && workspace.size(0) == rows &&
                  workspace.size(1) == workspace_width(mode, hidden, hx.size(1)) &&
                  workspace.is_contiguous() && workspace.scalar_type() == dtype,
              "rnn: the workspace does not belong to these arguments");
  DimVector sizes(input.sizes());
  sizes.back() = hx.size(1);
  const auto fits = [&](const OptionalTensor& t, IntArrayRef expected) {
    TORCH_CHECK(!t || !t->defined() || (t->sizes() == expected && t->scalar_type() == dtype),
                "rnn: expected a gradient of shape ", expected, " but got ", t->sizes());
  };
  fits(grad_output, sizes);
  fits(output, sizes);
  fits(grad_hy, hx.sizes());
  if (mode == 0) fits(grad_cy, cx->sizes());
  const OptionalTensor all[8] = {input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr};
  for (int i = 0; i < 8; ++i) {
    const bool wanted = output_mask[static_cast<size_t>(i)];
    TORCH_CHECK(!wanted || (all[i] && all[i]->defined()),
                "rnn: a gradient is asked for an argument that was not given");
    out.set(i, wanted ? all[i]->sizes() : IntArrayRef{0}, dtype);
  }
}

} // namespace at::meta
