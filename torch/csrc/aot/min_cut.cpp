// Dinic's algorithm with an explicit stack, since a chain of a program can be as long as the
// program; and the table of the 0/1 knapsack.

#include <torch/csrc/aot/min_cut.h>

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace torch::aot {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Residual capacities below this share of the largest finite one are rounding.
constexpr double kRounding = 1e-12;

class Network {
 public:
  Network(int32_t count, const std::vector<FlowEdge>& edges) : first_(count, -1), next_arc_(count) {
    double largest = 1;
    arcs_.reserve(2 * edges.size());
    for (const FlowEdge& edge : edges) {
      if (std::isfinite(edge.capacity)) largest = std::max(largest, edge.capacity);
      add(edge.from, edge.to, edge.capacity);
      add(edge.to, edge.from, 0);
    }
    least_ = largest * kRounding;
  }

  // Pushes flow until no path is left; returns the value, infinity where none bounds it.
  double saturate(int32_t source, int32_t sink) {
    double total = 0;
    while (reach(source)[sink] >= 0) {
      next_arc_ = first_;
      while (const double pushed = push_path(source, sink)) {
        total += pushed;
        if (!std::isfinite(total)) return kInfinity;
      }
    }
    return total;
  }

  // The distance of every node from the source along arcs with capacity left, -1 if none leads.
  const std::vector<int32_t>& reach(int32_t source) {
    level_.assign(first_.size(), -1);
    level_[source] = 0;
    queue_.assign(1, source);
    for (size_t head = 0; head < queue_.size(); ++head) {
      const int32_t node = queue_[head];
      for (int32_t arc = first_[node]; arc >= 0; arc = arcs_[arc].next) {
        if (arcs_[arc].left <= least_ || level_[arcs_[arc].to] >= 0) continue;
        level_[arcs_[arc].to] = level_[node] + 1;
        queue_.push_back(arcs_[arc].to);
      }
    }
    return level_;
  }

  // By node: whether arcs with capacity left lead from it to the sink.
  std::vector<bool> leads_to(int32_t sink) {
    std::vector<bool> found(first_.size());
    found[sink] = true;
    queue_.assign(1, sink);
    for (size_t head = 0; head < queue_.size(); ++head) {
      for (int32_t arc = first_[queue_[head]]; arc >= 0; arc = arcs_[arc].next) {
        const int32_t from = arcs_[arc].to;
        if (arcs_[arc ^ 1].left <= least_ || found[from]) continue;
        found[from] = true;
        queue_.push_back(from);
      }
    }
    return found;
  }

 private:
  struct Arc {
    int32_t to;
    int32_t next;
    double left;
  };

  void add(int32_t from, int32_t to, double capacity) {
    arcs_.push_back({to, first_[from], capacity});
    first_[from] = static_cast<int32_t>(arcs_.size()) - 1;
  }

  // One path along rising levels; returns what it carries, 0 when there is none.
  double push_path(int32_t source, int32_t sink) {
    path_.clear();
    int32_t node = source;
    while (node != sink) {
      int32_t& arc = next_arc_[node];
      while (arc >= 0 && (arcs_[arc].left <= least_ || level_[arcs_[arc].to] != level_[node] + 1)) {
        arc = arcs_[arc].next;
      }
      if (arc >= 0) {
        path_.push_back(arc);
        node = arcs_[arc].to;
        continue;
      }
      if (path_.empty()) return 0;
      const int32_t back = path_.back();
      path_.pop_back();
      node = arcs_[back ^ 1].to;
      next_arc_[node] = arcs_[back].next;
    }
    double least = kInfinity;
    for (const int32_t arc : path_) least = std::min(least, arcs_[arc].left);
    if (!std::isfinite(least)) return kInfinity;
    for (const int32_t arc : path_) {
      arcs_[arc].left -= least;
      arcs_[arc ^ 1].left += least;
    }
    return least;
  }

  std::vector<int32_t> first_;
  std::vector<int32_t> next_arc_;
  std::vector<int32_t> level_;
  std::vector<int32_t> queue_;
  std::vector<int32_t> path_;
  std::vector<Arc> arcs_;
  double least_ = 0;
};

} // namespace

Cut min_cut(int32_t count, const std::vector<FlowEdge>& edges, int32_t source, int32_t sink) {
  const auto inside = [&](int32_t node) { return node >= 0 && node < count; };
  TORCH_CHECK_VALUE(inside(source) && inside(sink) && source != sink,
                    "min_cut: expected two nodes below ", count, " as source and sink, got ",
                    source, " and ", sink);
  for (const FlowEdge& edge : edges) {
    TORCH_CHECK_VALUE(inside(edge.from) && inside(edge.to), "min_cut: edge from ", edge.from,
                      " to ", edge.to, " of a graph with ", count, " nodes");
    TORCH_CHECK_VALUE(edge.capacity >= 0, "min_cut: capacity ", edge.capacity, " is negative");
  }
  Network network(count, edges);
  Cut cut{network.saturate(source, sink), std::vector<bool>(count)};
  if (!std::isfinite(cut.value)) return cut;
  cut.on_source_side = network.leads_to(sink);
  cut.on_source_side.flip();
  return cut;
}

Choice knapsack(const std::vector<double>& weights, const std::vector<double>& values,
                double budget, int32_t steps) {
  TORCH_CHECK_VALUE(weights.size() == values.size(), "knapsack: ", weights.size(), " weights for ",
                    values.size(), " values");
  TORCH_CHECK_VALUE(steps > 0 && steps <= 1'000'000, "knapsack: ", steps, " steps");
  const size_t items = weights.size();
  Choice choice{0, 0, std::vector<bool>(items)};
  if (budget < 0) return choice;
  const double unit = budget > 0 ? budget / steps : 1;
  const int32_t levels = budget > 0 ? steps : 0;
  std::vector<double> best(levels + 1, 0);
  std::vector<std::vector<bool>> took(items, std::vector<bool>(levels + 1));
  std::vector<int32_t> cost(items);
  for (size_t item = 0; item < items; ++item) {
    TORCH_CHECK_VALUE(weights[item] >= 0, "knapsack: weight ", weights[item], " is negative");
    const double needed = std::ceil(weights[item] / unit);
    cost[item] = needed > levels ? levels + 1 : static_cast<int32_t>(needed);
    for (int32_t level = levels; level >= cost[item]; --level) {
      const double with = best[level - cost[item]] + values[item];
      if (with > best[level]) {
        best[level] = with;
        took[item][level] = true;
      }
    }
  }
  int32_t level = levels;
  for (size_t item = items; item-- > 0;) {
    if (!took[item][level]) continue;
    choice.taken[item] = true;
    choice.value += values[item];
    choice.weight += weights[item];
    level -= cost[item];
  }
  return choice;
}

} // namespace torch::aot
