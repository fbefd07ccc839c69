// What the kernels of a recurrent layer on every device share: the numbers of a layer, and which
// rows of its data belong to which step.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/native/rnn/RnnKernel.h>

namespace at::native::rnn {

// The numbers of a layer, and which rows belong to which step.
struct LayerShape {
  LayerShape(const Tensor& input, const Tensor& hx, const Tensor& w_hh, IntArrayRef batch_sizes,
             int64_t mode_, bool reverse)
      : mode(static_cast<Mode>(mode_)), gates(gate_count(mode)), batch(hx.size(0)),
        features(input.size(-1)), hidden(w_hh.size(0) / gates), state(hx.size(1)) {
    if (batch_sizes.empty())
      sizes.assign(static_cast<size_t>(input.size(0)), batch);
    else
      sizes.assign(batch_sizes.begin(), batch_sizes.end());
    for (const int64_t size : sizes) {
      starts.push_back(rows);
      rows += size;
    }
    order.resize(sizes.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<int64_t>(reverse ? order.size() - 1 - i : i);
    switch (mode) {
    case Mode::Lstm:
      before_at = 6 * hidden;
      break;
    case Mode::Gru:
      before_at = 4 * hidden;
      break;
    default:
      before_at = 0;
    }
    width = before_at + state;
  }
  Mode mode;
  int64_t gates, batch, features, hidden, state;
  int64_t rows = 0;
  std::vector<int64_t> sizes, starts, order; // order: steps as they are taken
  // A row of the workspace: LSTM: gates (4), cell before, tanh(cell), state before. GRU: r, z, n,
  // hidden part of n, state before. Else: state before.
  int64_t before_at, width;
};

} // namespace at::native::rnn
