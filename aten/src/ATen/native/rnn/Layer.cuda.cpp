// One direction of one recurrent layer on CUDA, and its gradient: the input's product with its
// weights is one product over all steps; each step then is a product of the state and one kernel
// (RnnCells.cuh). Rows and workspace are the CPU's (LayerShape.h).
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/matmul/Product.h>
#include <ATen/native/rnn/LayerShape.h>
#include <ATen/native/rnn/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

namespace at::native {
namespace {
using cuda::Kernel;
using rnn::LayerShape;
using rnn::Mode;
using OptionalTensor = std::optional<Tensor>;

constexpr const char* kProgram = "native/rnn/RnnCells.cuh";
constexpr int kThreads = 256;
const Kernel kLstm[4] = CRESSET_FLOATING_KERNELS(kProgram, "lstm_step");
const Kernel kLstmBackward[4] = CRESSET_FLOATING_KERNELS(kProgram, "lstm_step_backward");
const Kernel kGru[4] = CRESSET_FLOATING_KERNELS(kProgram, "gru_step");
const Kernel kGruBackward[4] = CRESSET_FLOATING_KERNELS(kProgram, "gru_step_backward");
const Kernel kPlain[4] = CRESSET_FLOATING_KERNELS(kProgram, "plain_step");
const Kernel kPlainBackward[4] = CRESSET_FLOATING_KERNELS(kProgram, "plain_step_backward");

bool given(const OptionalTensor& t) { return t && t->defined(); }
Tensor or_none(const OptionalTensor& t) { return given(t) ? t->contiguous() : Tensor(); }
void* data(const Tensor& t) { return t.defined() ? t.mutable_data_ptr() : nullptr; }
const void* address(const Tensor& t) { return t.defined() ? t.const_data_ptr() : nullptr; }
Tensor rows_of(const Tensor& t, int64_t columns) {
  return t.contiguous().view({columns == 0 ? 0 : t.numel() / columns, columns});
}
Tensor step_of(const Tensor& rows, const LayerShape& s, int64_t t) {
  return rows.narrow(0, s.starts[static_cast<size_t>(t)], s.sizes[static_cast<size_t>(t)]);
}
Tensor turned(const Tensor& t) { return t.transpose(0, 1); }

template <class... Args> void run(const Kernel& kernel, int64_t rows, int64_t n, Args... args) {
  cuda::launch(kernel, cuda::blocks_for(rows * n, kThreads), kThreads, 0, cuda::current_stream(),
               args...);
}

// out = x w^T (+ bias).
void input_product(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& out) {
  if (bias.defined()) out.copy_(bias.unsqueeze(0).expand(out.sizes()));
  (bias.defined() ? add_product_cuda : product_cuda)(x, turned(w), out, 1);
}

struct Forward {
  const LayerShape& s;
  int slot;
  Tensor x, w_ih, w_hh, bias, hidden_bias, w_hr;
  Tensor h, c, out, workspace; // the state is replaced; the workspace may be undefined

  void lstm() const {
    const int64_t H = s.hidden;
    const Tensor gates = workspace.defined()
                             ? workspace.narrow(1, 0, 4 * H)
                             : detail::empty({s.rows, 4 * H}, x.scalar_type(), x.device());
    const Tensor full =
        w_hr.defined() ? detail::empty({s.batch, H}, x.scalar_type(), x.device()) : Tensor();
    input_product(x, w_ih, bias, gates);
    for (const int64_t t : s.order) {
      const int64_t n = s.sizes[static_cast<size_t>(t)];
      const Tensor mine = step_of(gates, s, t), to = step_of(out, s, t), state = h.narrow(0, 0, n);
      add_product_cuda(state, turned(w_hh), mine, 1);
      if (w_hr.defined() && workspace.defined())
        step_of(workspace, s, t).narrow(1, s.before_at, s.state).copy_(state);
      run(kLstm[slot], n, H, data(mine), static_cast<long>(gates.stride(0)), data(c),
          w_hr.defined() ? nullptr : data(h), w_hr.defined() ? data(full) : data(to),
          static_cast<long>(n), static_cast<int>(H), static_cast<int>(workspace.defined()));
      if (!w_hr.defined()) continue;
      product_cuda(full.narrow(0, 0, n), turned(w_hr), to, 1);
      state.copy_(to);
    }
  }

  void gru() const {
    const int64_t H = s.hidden;
    const Tensor of_input = detail::empty({s.rows, 3 * H}, x.scalar_type(), x.device());
    const Tensor of_hidden = detail::empty({s.batch, 3 * H}, x.scalar_type(), x.device());
    input_product(x, w_ih, bias, of_input);
    for (const int64_t t : s.order) {
      const int64_t n = s.sizes[static_cast<size_t>(t)];
      product_cuda(h.narrow(0, 0, n), turned(w_hh), of_hidden.narrow(0, 0, n), 1);
      run(kGru[slot], n, H, address(step_of(of_input, s, t)), address(of_hidden),
          address(hidden_bias), data(h), data(step_of(out, s, t)),
          workspace.defined() ? data(step_of(workspace, s, t)) : nullptr,
          static_cast<long>(s.width), static_cast<long>(n), static_cast<int>(H));
    }
  }

  void plain() const {
    input_product(x, w_ih, bias, out);
    for (const int64_t t : s.order) {
      const int64_t n = s.sizes[static_cast<size_t>(t)];
      const Tensor mine = step_of(out, s, t);
      add_product_cuda(h.narrow(0, 0, n), turned(w_hh), mine, 1);
      run(kPlain[slot], n, s.hidden, data(mine), data(h),
          workspace.defined() ? data(step_of(workspace, s, t)) : nullptr, static_cast<long>(n),
          static_cast<int>(s.hidden), static_cast<int>(s.mode == Mode::Relu));
    }
  }

  void run_steps() const {
    if (s.mode == Mode::Lstm)
      lstm();
    else if (s.mode == Mode::Gru)
      gru();
    else
      plain();
  }
};

struct Backward {
  const LayerShape& s;
  int slot;
  Tensor grad_output, w_hh, w_hr, output, workspace;
  Tensor dh, dc;               // of the last state, replaced by those of the first
  Tensor dgx, dgh, dprojected; // of the products with the weights, row by row

  void step(int64_t t, const Tensor& full) const {
    const int64_t n = s.sizes[static_cast<size_t>(t)], H = s.hidden;
    const Tensor to_state = dh.narrow(0, 0, n), gates = step_of(dgx, s, t);
    Tensor extra = grad_output.defined() ? step_of(grad_output, s, t) : Tensor();
    const Tensor saved = step_of(workspace, s, t);
    const long rows = static_cast<long>(n), stride = static_cast<long>(s.width);
    const int units = static_cast<int>(H);
    if (s.mode == Mode::Gru) {
      run(kGruBackward[slot], n, H, address(saved), stride, data(dh), address(extra), data(gates),
          data(step_of(dgh, s, t)), rows, units);
      add_product_cuda(step_of(dgh, s, t), w_hh, to_state, 1);
      return;
    }
    if (s.mode != Mode::Lstm) {
      run(kPlainBackward[slot], n, H, address(step_of(output, s, t)), address(dh), address(extra),
          data(gates), rows, units, static_cast<int>(s.mode == Mode::Relu));
    } else {
      if (w_hr.defined()) {
        const Tensor projected = step_of(dprojected, s, t);
        projected.copy_(extra.defined() ? at::add(to_state, extra) : to_state);
        product_cuda(projected, w_hr, full.narrow(0, 0, n), 1);
        extra = Tensor();
      }
      run(kLstmBackward[slot], n, H, address(saved), stride, address(w_hr.defined() ? full : dh),
          address(extra), data(dc), data(gates), rows, units);
    }
    product_cuda(gates, w_hh, to_state, 1);
  }

  void run_steps() const {
    const Tensor full = w_hr.defined()
                            ? detail::empty({s.batch, s.hidden}, dgx.scalar_type(), dgx.device())
                            : Tensor();
    for (size_t i = s.order.size(); i-- > 0;) step(s.order[i], full);
  }
};

Tensor own_state(const OptionalTensor& t, IntArrayRef sizes, const Tensor& like) {
  const Tensor out = detail::empty(sizes, like.scalar_type(), like.device());
  if (given(t))
    out.copy_(*t);
  else
    out.zero_();
  return out;
}

// out = a^T b.
void outer_sum(const Tensor& a, const Tensor& b, const Tensor& out) {
  if (out.numel() == 0) return;
  if (a.size(0) == 0)
    out.zero_();
  else
    product_cuda(turned(a), b, out, 1);
}
Tensor column_sums(const Tensor& t) {
  const int64_t first = 0;
  return at::sum(t, IntArrayRef(&first, 1));
}

} // namespace

void rnn_layer_cuda(const Tensor& input, const Tensor& hx, const OptionalTensor& cx,
                    const Tensor& w_ih, const Tensor& w_hh, const OptionalTensor& b_ih,
                    const OptionalTensor& b_hh, const OptionalTensor& w_hr, IntArrayRef batch_sizes,
                    int64_t mode, bool reverse, bool save, const Tensor& output, const Tensor& hy,
                    const Tensor& cy, const Tensor& workspace) {
  cuda::check_same_device({&input, &hx, cuda::given(cx), &w_ih, &w_hh, cuda::given(b_ih),
                           cuda::given(b_hh), cuda::given(w_hr)});
  const LayerShape s(input, hx, w_hh, batch_sizes, mode, reverse);
  hy.copy_(hx);
  if (s.mode == Mode::Lstm) cy.copy_(*cx);
  if (s.rows == 0 || s.hidden == 0) return;
  Tensor bias = or_none(b_ih);
  if (s.mode != Mode::Gru && bias.defined() && given(b_hh)) bias = at::add(bias, *b_hh);
  const Forward forward{s,
                        cuda::floating_slot(input.scalar_type(), "rnn_layer_cuda"),
                        rows_of(input, s.features),
                        w_ih.contiguous(),
                        w_hh.contiguous(),
                        bias,
                        or_none(b_hh),
                        or_none(w_hr),
                        hy,
                        cy,
                        output.view({s.rows, s.state}),
                        save ? workspace : Tensor()};
  forward.run_steps();
}

void rnn_layer_backward_cuda(const OptionalTensor& grad_output, const OptionalTensor& grad_hy,
                             const OptionalTensor& grad_cy, const Tensor& input, const Tensor& hx,
                             const OptionalTensor&, const Tensor& w_ih, const Tensor& w_hh,
                             const OptionalTensor&, const OptionalTensor&,
                             const OptionalTensor& w_hr, const Tensor& output,
                             const Tensor& workspace, IntArrayRef batch_sizes, int64_t mode,
                             bool reverse, std::array<bool, 8> output_mask, const Tensor& d_input,
                             const Tensor& d_hx, const Tensor& d_cx, const Tensor& d_w_ih,
                             const Tensor& d_w_hh, const Tensor& d_b_ih, const Tensor& d_b_hh,
                             const Tensor& d_w_hr) {
  const LayerShape s(input, hx, w_hh, batch_sizes, mode, reverse);
  const bool lstm = s.mode == Mode::Lstm;
  const auto rows = [&](int64_t columns) {
    return detail::empty({s.rows, columns}, input.scalar_type(), input.device());
  };
  const Tensor dgx = rows(s.gates * s.hidden);
  const Backward b{s,
                   cuda::floating_slot(input.scalar_type(), "rnn_layer_backward_cuda"),
                   given(grad_output) ? rows_of(*grad_output, s.state) : Tensor(),
                   w_hh.contiguous(),
                   or_none(w_hr),
                   rows_of(output, s.state),
                   workspace,
                   own_state(grad_hy, {s.batch, s.state}, input),
                   own_state(lstm ? grad_cy : std::nullopt, {lstm ? s.batch : 0, s.hidden}, input),
                   dgx,
                   s.mode == Mode::Gru ? rows(s.gates * s.hidden) : dgx,
                   given(w_hr) ? rows(s.state) : Tensor()};
  if (s.rows > 0 && s.hidden > 0) b.run_steps();
  if (output_mask[0] && d_input.numel() > 0)
    product_cuda(dgx, w_ih, d_input.view({s.rows, s.features}), 1);
  if (output_mask[1]) d_hx.copy_(b.dh);
  if (output_mask[2]) d_cx.copy_(b.dc);
  if (output_mask[3]) outer_sum(dgx, rows_of(input, s.features), d_w_ih);
  if (output_mask[4]) outer_sum(b.dgh, workspace.narrow(1, s.before_at, s.state), d_w_hh);
  if (output_mask[5]) d_b_ih.copy_(column_sums(dgx));
  if (output_mask[6]) d_b_hh.copy_(column_sums(b.dgh));
  if (!output_mask[7]) return;
  // What the projection was given: o tanh(c) of every row.
  const int64_t H = s.hidden;
  outer_sum(b.dprojected, at::mul(workspace.narrow(1, 3 * H, H), workspace.narrow(1, 5 * H, H)),
            d_w_hr);
}

} // namespace at::native
