// See flex.h.
#include <torch/csrc/inductor/flex.h>

namespace torch::inductor {
namespace {

using at::IValue;
using at::Tensor;
using at::native::flex::GradientFunction;
using at::native::flex::Operands;
using at::native::flex::Tile;

using Values = std::vector<IValue>;

Values inputs_of(const Tile& tile, const Values& buffers) {
  Values inputs{tile.scores, tile.batch, tile.head, tile.query, tile.key};
  inputs.insert(inputs.end(), buffers.begin(), buffers.end());
  return inputs;
}

Values gradient_inputs_of(const Tile& tile, const Tensor& grad, const FlexGraphs& graphs,
                          int64_t part) {
  Values inputs{tile.scores, tile.batch, tile.head, tile.query, tile.key, grad};
  inputs.insert(inputs.end(), graphs.buffers.begin(), graphs.buffers.end());
  const Values& sums = graphs.sums.at(static_cast<size_t>(part));
  inputs.insert(inputs.end(), sums.begin(), sums.end());
  return inputs;
}

// Plans are made here, on the calling thread: a shape function may be the program's own.
void add_functions(Operands& operands, const FlexGraphs& graphs, bool backward) {
  operands.modify = [&graphs](const Tile& tile) -> Tensor {
    Compiled* const graph = tile.partial ? graphs.partial : graphs.full;
    if (!graph) return tile.scores;
    Values inputs = inputs_of(tile, graphs.buffers);
    return graph->run(inputs).at(0).toTensor();
  };
  operands.prepare = [&graphs, backward](const Tile& tile) {
    const c10::ExcludeDispatchKeyGuard below(c10::kAutogradKeys | c10::kAutocastKeys);
    for (Compiled* graph : {graphs.full, graphs.partial})
      if (graph) graph->prepare(inputs_of(tile, graphs.buffers));
    if (!backward) return;
    for (Compiled* graph : {graphs.full_gradient, graphs.partial_gradient})
      if (graph) graph->prepare(gradient_inputs_of(tile, tile.scores.clone(), graphs, 0));
  };
}

} // namespace

at::native::flex::Results flex_forward(Operands operands, const FlexGraphs& graphs) {
  add_functions(operands, graphs, false);
  return at::native::flex::forward(operands);
}

at::native::flex::Gradients flex_backward(Operands operands,
                                          const at::native::flex::Results& results,
                                          const Tensor& grad, const Tensor& grad_logsumexp,
                                          const FlexGraphs& graphs) {
  add_functions(operands, graphs, true);
  GradientFunction gradient;
  if (graphs.full_gradient || graphs.partial_gradient) {
    gradient = [&graphs](const Tile& tile, const Tensor& of, int64_t part) -> Tensor {
      Compiled* const graph = tile.partial ? graphs.partial_gradient : graphs.full_gradient;
      if (!graph) return of;
      Values inputs = gradient_inputs_of(tile, of, graphs, part);
      return graph->run(inputs).at(0).toTensor();
    };
  }
  return at::native::flex::backward(operands, results, grad, grad_logsumexp, gradient,
                                    static_cast<int64_t>(graphs.sums.size()));
}

} // namespace torch::inductor
