// A recurrent layer written step by step with simple operators, for second derivatives. The
// gradients of the layer's three results enter as weights of one sum, whose gradient the backward
// operator computes.
#include <ATen/ops/cat.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/second_order.h>

namespace torch::autograd::generated {
namespace {
enum Argument { kInput, kHx, kCx, kWih, kWhh, kBih, kBhh, kWhr, kGrad, kGradH, kGradC };
enum Mode { kLstm, kGru, kTanh, kRelu };

OptionalTensor optional_of(const Tensor& t) {
  return t.defined() ? OptionalTensor(t) : std::nullopt;
}

struct State {
  Tensor h, c;
};

// The gates are summed as one product with the weights side by side, except the GRU's, whose parts
// are used apart.
State step(const Tensors& in, const Tensor& x, const State& s, int64_t mode) {
  const Tensor of_input = at::linear(x, in[kWih], optional_of(in[kBih]));
  const Tensor of_hidden = at::linear(s.h, in[kWhh], optional_of(in[kBhh]));
  if (mode == kGru) {
    const Tensors a = at::chunk(of_input, 3, 1), b = at::chunk(of_hidden, 3, 1);
    const Tensor r = at::sigmoid(a[0] + b[0]), z = at::sigmoid(a[1] + b[1]);
    const Tensor fresh = at::tanh(a[2] + r * b[2]);
    return {fresh + z * (s.h - fresh), Tensor()};
  }
  const Tensor sum = of_input + of_hidden;
  if (mode != kLstm) return {mode == kRelu ? at::relu(sum) : at::tanh(sum), Tensor()};
  const Tensors gates = at::chunk(sum, 4, 1);
  const Tensor c = at::sigmoid(gates[1]) * s.c + at::sigmoid(gates[0]) * at::tanh(gates[2]);
  const Tensor h = at::sigmoid(gates[3]) * at::tanh(c);
  return {in[kWhr].defined() ? at::linear(h, in[kWhr], std::nullopt) : h, c};
}

// The first n rows replaced.
Tensor with_rows(const Tensor& fresh, const Tensor& old) {
  const int64_t n = fresh.size(0);
  return n == old.size(0) ? fresh : at::cat({fresh, old.narrow(0, n, old.size(0) - n)}, 0);
}

Tensor weighted(const Tensor& value, const Tensor& weight) {
  return at::_ops::sum::call(value * weight, std::nullopt);
}

Forward layer_forward(std::vector<int64_t> sizes, int64_t mode, bool reverse) {
  return [sizes = std::move(sizes), mode, reverse](const Tensors& in) {
    const int64_t features = in[kInput].size(-1), state = in[kHx].size(1);
    const Tensor rows = in[kInput].reshape({-1, features});
    State now{in[kHx], in[kCx]};
    Tensor total = at::_ops::sum::call(now.h * 0, std::nullopt);
    const Tensor weights = in[kGrad].defined() ? in[kGrad].reshape({-1, state}) : Tensor();
    std::vector<int64_t> starts{0};
    for (const int64_t n : sizes) starts.push_back(starts.back() + n);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const size_t t = reverse ? sizes.size() - 1 - i : i;
      const int64_t n = sizes[t];
      const State active{now.h.narrow(0, 0, n), now.c.defined() ? now.c.narrow(0, 0, n) : Tensor()};
      const State next = step(in, rows.narrow(0, starts[t], n), active, mode);
      if (weights.defined()) total = total + weighted(next.h, weights.narrow(0, starts[t], n));
      now.h = with_rows(next.h, now.h);
      if (next.c.defined()) now.c = with_rows(next.c, now.c);
    }
    if (in[kGradH].defined()) total = total + weighted(now.h, in[kGradH]);
    if (in[kGradC].defined() && mode == kLstm) total = total + weighted(now.c, in[kGradC]);
    return total;
  };
}
} // namespace

std::array<Tensor, 11> rnn_second_order(const std::array<bool, 11>& mask, const TensorVec& grads,
                                        const Tensors& inputs, IntArrayRef batch_sizes,
                                        int64_t mode, bool reverse) {
  // From the order of the schema (three gradients first) to that of Argument, and back.
  constexpr size_t kFirst = 3;
  Tensors ordered(inputs.begin() + kFirst, inputs.end());
  ordered.insert(ordered.end(), inputs.begin(), inputs.begin() + kFirst);
  std::vector<bool> needed{false};
  for (size_t i = 0; i < ordered.size(); ++i) needed.push_back(mask[(i + kFirst) % mask.size()]);
  std::vector<int64_t> sizes(batch_sizes.begin(), batch_sizes.end());
  if (sizes.empty())
    sizes.assign(static_cast<size_t>(ordered[kInput].size(0)), ordered[kHx].size(0));
  const Tensor one = at::ones({}, ordered[kInput].options());
  const Tensors found = second_order_list(needed, layer_forward(std::move(sizes), mode, reverse),
                                          grads, one, ordered);
  std::array<Tensor, 11> out;
  for (size_t i = 0; i < ordered.size(); ++i) out[(i + kFirst) % out.size()] = found[i + 1];
  return out;
}

const char* rnn_layer_node(at::ScalarType dtype, const OptionalTensor& w_hr,
                           IntArrayRef batch_sizes, int64_t mode) {
  if (!batch_sizes.empty()) return "CatBackward0";
  const bool projects = w_hr && w_hr->defined();
  const bool fused = mode == kLstm && dtype == at::kFloat && !projects;
  return fused ? "MkldnnRnnLayerBackward0" : "StackBackward0";
}

} // namespace torch::autograd::generated
