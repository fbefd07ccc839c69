// Recurrent networks as users call them: layers and directions stacked, dropout between them, and
// the single-step cells. All are made of _rnn_layer and differentiable through it.
#include <ATen/native/rnn/Native.h>
#include <ATen/native/rnn/RnnKernel.h>
#include <ATen/ops/_rnn_layer.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/stack.h>

namespace at::native {
namespace {
using rnn::Mode;
using OptionalTensor = std::optional<Tensor>;

// How a network is built, and how its input lies.
struct Network {
  Mode mode;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;
  int64_t directions() const { return bidirectional ? 2 : 1; }
};

struct States {
  Tensor output, h, c;
};

// The parameters of one direction of one layer.
struct Weights {
  Tensor w_ih, w_hh;
  OptionalTensor b_ih, b_hh, w_hr;
};

int64_t parameters_each(const Network& net, TensorList params) {
  const int64_t cells = net.layers * net.directions();
  const int64_t plain = net.has_biases ? 4 : 2;
  const auto count = static_cast<int64_t>(params.size());
  if (net.mode == Mode::Lstm && count == cells * (plain + 1)) return plain + 1;
  TORCH_CHECK(count == cells * plain, "rnn: expected ", cells * plain, " parameters for ",
              net.layers, " layers in ", net.directions(), " directions but got ", count);
  return plain;
}

Weights weights_of(const Network& net, TensorList params, int64_t each, int64_t cell) {
  const TensorList mine = params.slice(static_cast<size_t>(cell * each), static_cast<size_t>(each));
  Weights w;
  w.w_ih = mine[0];
  w.w_hh = mine[1];
  if (net.has_biases) {
    w.b_ih = mine[2];
    w.b_hh = mine[3];
  }
  if (each % 2 != 0) w.w_hr = mine.back();
  return w;
}

States run_cell(Mode mode, const Tensor& input, const Tensor& h, const OptionalTensor& c,
                const Weights& w, IntArrayRef batch_sizes, bool reverse) {
  const bool save = c10::tls_autograd_state.grad_mode;
  auto [output, hy, cy, workspace] =
      at::_rnn_layer(input, h, c, w.w_ih, w.w_hh, w.b_ih, w.b_hh, w.w_hr, batch_sizes,
                     static_cast<int64_t>(mode), reverse, save);
  return {output, hy, cy};
}

// hx, cx: [layers * directions, batch, units].
States run_network(const Network& net, const Tensor& input, const Tensor& hx, const Tensor& cx,
                   TensorList params, IntArrayRef batch_sizes) {
  const bool lstm = net.mode == Mode::Lstm;
  const int64_t cells = net.layers * net.directions();
  TORCH_CHECK(net.layers > 0, "rnn: num_layers must be positive, got ", net.layers);
  TORCH_CHECK(hx.dim() == 3 && hx.size(0) == cells, "rnn: expected a state of ", cells,
              " layers and directions but got ", hx.sizes());
  TORCH_CHECK(!lstm || (cx.dim() == 3 && cx.size(0) == cells), "rnn: expected a cell state of ",
              cells, " layers and directions but got ", cx.sizes());
  const int64_t each = parameters_each(net, params);
  std::vector<Tensor> hs, cs;
  Tensor layer_input = input;
  for (int64_t layer = 0; layer < net.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < net.directions(); ++d) {
      const int64_t cell = layer * net.directions() + d;
      const OptionalTensor c = lstm ? OptionalTensor(cx.select(0, cell)) : std::nullopt;
      const States s = run_cell(net.mode, layer_input, hx.select(0, cell), c,
                                weights_of(net, params, each, cell), batch_sizes, d == 1);
      outputs.push_back(s.output);
      hs.push_back(s.h);
      cs.push_back(s.c);
    }
    layer_input = outputs.size() == 1 ? outputs[0] : at::cat(outputs, -1);
    if (net.train && net.dropout != 0 && layer + 1 < net.layers)
      layer_input = at::dropout(layer_input, net.dropout, true);
  }
  return {layer_input, at::stack(hs, 0), lstm ? at::stack(cs, 0) : Tensor()};
}

States run_padded(const Network& net, const Tensor& input, const Tensor& hx, const Tensor& cx,
                  TensorList params, bool batch_first) {
  TORCH_CHECK(input.dim() == 3, "rnn: expected 3-D input but got ", input.sizes());
  States s = run_network(net, batch_first ? input.transpose(0, 1) : input, hx, cx, params, {});
  if (batch_first) s.output = s.output.transpose(0, 1);
  return s;
}

States run_packed(const Network& net, const Tensor& data, const Tensor& batch_sizes,
                  const Tensor& hx, const Tensor& cx, TensorList params) {
  TORCH_CHECK(batch_sizes.dim() == 1 && batch_sizes.scalar_type() == kLong && batch_sizes.is_cpu(),
              "batch_sizes should be a 1-D CPU int64 tensor, got ", batch_sizes);
  TORCH_CHECK(batch_sizes.numel() > 0, "rnn: batch_sizes is empty");
  const Tensor sizes = batch_sizes.contiguous();
  const int64_t* first = sizes.const_data_ptr<int64_t>();
  const std::vector<int64_t> steps(first, first + sizes.numel());
  return run_network(net, data, hx, cx, params, steps);
}

const Tensor& state_of(TensorList hx, size_t i) {
  TORCH_CHECK(hx.size() == 2, "lstm expects two hidden states");
  return hx[i];
}

Tensor one_step(Mode mode, const Tensor& input, const Tensor& hx, const Weights& w) {
  TORCH_CHECK(input.dim() == 2, "rnn cell: expected 2-D input but got ", input.sizes());
  return run_cell(mode, input.unsqueeze(0), hx, std::nullopt, w, {}, false).h;
}
} // namespace

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params,
                                        bool has_biases, int64_t num_layers, double dropout,
                                        bool train, bool bidirectional, bool batch_first) {
  const Network net{Mode::Lstm, has_biases, num_layers, dropout, train, bidirectional};
  const States s = run_padded(net, input, state_of(hx, 0), state_of(hx, 1), params, batch_first);
  return {s.output, s.h, s.c};
}
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes,
                                        TensorList hx, TensorList params, bool has_biases,
                                        int64_t num_layers, double dropout, bool train,
                                        bool bidirectional) {
  const Network net{Mode::Lstm, has_biases, num_layers, dropout, train, bidirectional};
  const States s = run_packed(net, data, batch_sizes, state_of(hx, 0), state_of(hx, 1), params);
  return {s.output, s.h, s.c};
}
std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih,
                                     const Tensor& w_hh, const OptionalTensor& b_ih,
                                     const OptionalTensor& b_hh) {
  TORCH_CHECK(input.dim() == 2, "rnn cell: expected 2-D input but got ", input.sizes());
  const States s = run_cell(Mode::Lstm, input.unsqueeze(0), state_of(hx, 0), state_of(hx, 1),
                            {w_ih, w_hh, b_ih, b_hh, std::nullopt}, {}, false);
  return {s.h, s.c};
}

#define CRESSET_RNN(name, kind)                                                                    \
  std::tuple<Tensor, Tensor> name(const Tensor& input, const Tensor& hx, TensorList params,        \
                                  bool has_biases, int64_t num_layers, double dropout, bool train, \
                                  bool bidirectional, bool batch_first) {                          \
    const Network net{kind, has_biases, num_layers, dropout, train, bidirectional};                \
    const States s = run_padded(net, input, hx, Tensor(), params, batch_first);                    \
    return {s.output, s.h};                                                                        \
  }                                                                                                \
  std::tuple<Tensor, Tensor> name(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, \
                                  TensorList params, bool has_biases, int64_t num_layers,          \
                                  double dropout, bool train, bool bidirectional) {                \
    const Network net{kind, has_biases, num_layers, dropout, train, bidirectional};                \
    const States s = run_packed(net, data, batch_sizes, hx, Tensor(), params);                     \
    return {s.output, s.h};                                                                        \
  }                                                                                                \
  Tensor name##_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih,                    \
                     const Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh) { \
    return one_step(kind, input, hx, {w_ih, w_hh, b_ih, b_hh, std::nullopt});                      \
  }
CRESSET_RNN(gru, Mode::Gru)
CRESSET_RNN(rnn_tanh, Mode::Tanh)
CRESSET_RNN(rnn_relu, Mode::Relu)
#undef CRESSET_RNN

} // namespace at::native
