// The cheapest cut of a graph between a source and a sink, and the best choice of items within a
// budget: the two optimisation problems of dividing a joint graph into forward and backward.
// Plain algorithms over indices; they know no tensor and no Python.

#pragma once

#include <c10/macros/Macros.h>

#include <cstdint>
#include <vector>

namespace torch::aot {

// One direction of flow. A capacity of infinity can never be cut.
struct FlowEdge {
  int32_t from;
  int32_t to;
  double capacity;
};

struct Cut {
  double value;
  // By node: whether it stays on the side of the source.
  std::vector<bool> on_source_side;
};

// The minimum cut of `count` nodes. Among the cheapest cuts it is the one nearest to the sink: of
// values of one size along a chain the last is saved, and the least is computed again.
// The value is infinity where edges that cannot be cut join source and sink; the sides then mean
// nothing. Time O(count^2 edges), in practice near linear for graphs of programs.
// Throws c10::Error for a node out of range or a negative capacity.
TORCH_API Cut min_cut(int32_t count, const std::vector<FlowEdge>& edges, int32_t source,
                      int32_t sink);

struct Choice {
  double value;
  double weight;
  std::vector<bool> taken;
};

// The items of greatest total value whose weights stay within the budget, by dynamic programming
// over `steps` levels of weight: weights are rounded up to a level, so the budget always holds.
TORCH_API Choice knapsack(const std::vector<double>& weights, const std::vector<double>& values,
                          double budget, int32_t steps);

} // namespace torch::aot
