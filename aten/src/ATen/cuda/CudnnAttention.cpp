// See CudnnAttention.h.
#include <ATen/cuda/CudnnAttention.h>

#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <unordered_map>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/ByteKey.h>
#include <ATen/cuda/CudnnGraph.h>

namespace at::cuda {
namespace {

using namespace cudnn;
using Sizes = std::array<int64_t, 4>;
using Node = void*; // a tensor of the graph

enum PointwiseMode : int {
  kAdd = 0,
  kMultiply = 1,
  kDivide = 6,
  kSubtract = 9,
  kExponential = 13,
  kLogarithm = 15,
  kIdentity = 21,
  kNotBelow = 303,
  kIndex = 501,
  kSelect = 601,
};
enum ReductionMode : int { kSum = 0, kLargest = 3 };
constexpr int kBernoulli = 0;

// Tensors that a call binds to memory, or, by value, to a number on the host.
enum TensorId : int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOutput,
  kLogarithms,
  kBias,
  kSeed,
  kOffset,
  kScale,
  kHidden,     // the score of a key that the mask hides
  kKeepFactor, // 1 / (1 - p)
  kKeepChance, // 1 - p
  kGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kRowSums,   // of gradient * output
  kQuerySums, // of the query's gradient, in float
  kFirstInner,
};

Sizes dense(const Sizes& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
}
Sizes transposed(const Sizes& s) { return {s[0], s[1], s[3], s[2]}; }
Sizes with_dim(const int64_t (&strides)[3]) { return {strides[0], strides[1], strides[2], 1}; }

// Collects operations with all that they refer to.
class Builder {
 public:
  Node bound(TensorId id, DataType type, const Sizes& sizes, const Sizes& strides) {
    return tensor(id, type, sizes, strides, false, false);
  }
  Node number(TensorId id) {
    return tensor(id, kFloatData, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
  }
  Node inner(DataType type, const Sizes& sizes, const Sizes& strides) {
    return tensor(next_++, type, sizes, strides, true, false);
  }
  Node inner(DataType type, const Sizes& sizes) { return inner(type, sizes, dense(sizes)); }

  void pointwise(PointwiseMode mode, Node x, Node other, Node out, DataType compute = kFloatData,
                 Node condition = nullptr, int64_t axis = -1) {
    const Descriptor& kind = kept_.emplace_back(kPointwiseDescriptor);
    kind.set(kPointwiseMode, kPointwiseModeValue, static_cast<int>(mode));
    kind.set(kPointwiseCompute, kDataTypeValue, compute);
    if (axis >= 0) kind.set(kPointwiseAxis, kInt64Value, axis);
    kind.finish();
    const Descriptor& operation = kept_.emplace_back(kPointwiseOperation);
    operation.set(kPointwiseOf, kind);
    operation.set(kPointwiseInput, kDescriptorValue, x);
    if (other) operation.set(kPointwiseOther, kDescriptorValue, other);
    if (condition) operation.set(kPointwiseCondition, kDescriptorValue, condition);
    operation.set(kPointwiseOutput, kDescriptorValue, out);
    add(operation);
  }
  void product(Node left, Node right, Node out) {
    const Descriptor& kind = kept_.emplace_back(kProductDescriptor);
    kind.set(kProductCompute, kDataTypeValue, kFloatData);
    kind.finish();
    const Descriptor& operation = kept_.emplace_back(kProductOperation);
    operation.set(kProductOf, kind);
    operation.set(kProductLeft, kDescriptorValue, left);
    operation.set(kProductRight, kDescriptorValue, right);
    operation.set(kProductResult, kDescriptorValue, out);
    add(operation);
  }
  void reduce(ReductionMode mode, Node x, Node out) {
    const Descriptor& kind = kept_.emplace_back(kReductionDescriptor);
    kind.set(kReductionOperator, kReductionOperatorValue, static_cast<int>(mode));
    kind.set(kReductionCompute, kDataTypeValue, kFloatData);
    kind.finish();
    const Descriptor& operation = kept_.emplace_back(kReductionOperation);
    operation.set(kReductionOf, kind);
    operation.set(kReductionInput, kDescriptorValue, x);
    operation.set(kReductionOutput, kDescriptorValue, out);
    add(operation);
  }
  void reshape(Node x, Node out) {
    const Descriptor& operation = kept_.emplace_back(kReshapeOperation);
    operation.set(kReshapeInput, kDescriptorValue, x);
    operation.set(kReshapeOutput, kDescriptorValue, out);
    add(operation);
  }
  // Ones with the chance `keep`, else zeros.
  void bernoulli(double keep, Node seed, Node offset, Node out) {
    const Descriptor& kind = kept_.emplace_back(kRandomDescriptor);
    kind.set(kRandomDistribution, kDistributionValue, kBernoulli);
    kind.set(kRandomProbability, kDoubleValue, keep);
    kind.finish();
    const Descriptor& operation = kept_.emplace_back(kRandomOperation);
    operation.set(kRandomOf, kind);
    operation.set(kRandomOutput, kDescriptorValue, out);
    operation.set(kRandomSeed, kDescriptorValue, seed);
    operation.set(kRandomOffset, kDescriptorValue, offset);
    add(operation);
  }

  Plan plan(int device) const {
    std::vector<Plan> plans = plans_of(graph_of(device, operations_), device, {}, 1);
    return plans.empty() ? Plan() : std::move(plans[0]);
  }

 private:
  Node tensor(int64_t id, DataType type, const Sizes& sizes, const Sizes& strides, bool is_inner,
              bool by_value) {
    const Descriptor& made = kept_.emplace_back(kTensor);
    made.set(kTensorType, kDataTypeValue, type);
    made.set(kTensorSizes, kInt64Value, sizes.data(), 4);
    made.set(kTensorStrides, kInt64Value, strides.data(), 4);
    made.set(kTensorId, kInt64Value, id);
    made.set(kTensorAlignment, kInt64Value, int64_t(16));
    made.set(kTensorVirtual, kBooleanValue, is_inner);
    made.set(kTensorByValue, kBooleanValue, by_value);
    made.finish();
    return made.get();
  }
  void add(const Descriptor& operation) {
    operation.finish();
    operations_.push_back(operation.get());
  }

  std::deque<Descriptor> kept_; // a deque: references stay while it grows
  std::vector<void*> operations_;
  int64_t next_ = kFirstInner;
};

// What the graphs of both passes share.
struct Problem {
  explicit Problem(const CudnnAttention& attention)
      : a(attention), type(data_type(static_cast<ScalarType>(a.dtype))),
        query_sizes{a.batch, a.heads, a.queries, a.dim}, key_sizes{a.batch, a.key_heads, a.keys,
                                                                   a.dim},
        value_sizes{a.batch, a.key_heads, a.keys, a.value_dim}, output_sizes{a.batch, a.heads,
                                                                             a.queries,
                                                                             a.value_dim},
        score_sizes{a.batch, a.heads, a.queries, a.keys}, row_sizes{a.batch, a.heads, a.queries,
                                                                    1} {
    std::memcpy(&keep, &a.keep, sizeof keep);
    q = g.bound(kQuery, type, query_sizes, with_dim(a.q));
    k_transposed = g.bound(kKey, type, transposed(key_sizes), transposed(with_dim(a.k)));
    out = g.bound(kOutput, type, output_sizes, with_dim(a.out));
    scale = g.number(kScale);
    if (keep == 0) return;
    const Sizes one = {1, 1, 1, 1};
    kept = g.inner(kFloatData, score_sizes);
    g.bernoulli(keep, g.bound(kSeed, kInt64Data, one, one), g.bound(kOffset, kInt64Data, one, one),
                kept);
    keep_factor = g.number(kKeepFactor);
  }

  Node scores() { return g.inner(kFloatData, score_sizes); }
  Node rows() { return g.inner(kFloatData, row_sizes); }
  Node lse() { return g.bound(kLogarithms, kFloatData, row_sizes, dense(row_sizes)); }
  Node apply(PointwiseMode mode, Node x, Node other, Node result) {
    g.pointwise(mode, x, other, result);
    return result;
  }

  // query key^T scale + bias.
  Node raw_scores() {
    const Node products = scores();
    g.product(q, k_transposed, products);
    Node s = apply(kMultiply, products, scale, scores());
    if (a.bias_sizes[0] == 0) return s;
    const Sizes sizes = {a.bias_sizes[0], a.bias_sizes[1], a.bias_sizes[2], a.bias_sizes[3]};
    return apply(kAdd, s, g.bound(kBias, type, sizes, with_dim(a.bias)), scores());
  }
  // With -inf where a key comes after the query.
  Node masked(Node s) {
    if (!a.causal) return s;
    const Node row = g.inner(kInt32Data, score_sizes), column = g.inner(kInt32Data, score_sizes),
               seen = g.inner(kBooleanData, score_sizes), result = scores();
    g.pointwise(kIndex, s, nullptr, row, kFloatData, nullptr, 2);
    g.pointwise(kIndex, s, nullptr, column, kFloatData, nullptr, 3);
    g.pointwise(kNotBelow, row, column, seen, kBooleanData);
    g.pointwise(kSelect, s, g.number(kHidden), result, kFloatData, seen);
    return result;
  }
  // Dropout of probabilities, written to `result`.
  Node dropped(Node p, Node result) {
    return apply(kMultiply, apply(kMultiply, p, kept, scores()), keep_factor, result);
  }

  const CudnnAttention& a;
  DataType type;
  Sizes query_sizes, key_sizes, value_sizes, output_sizes, score_sizes, row_sizes;
  double keep = 0;
  Builder g;
  Node q, k_transposed, out, scale, kept = nullptr, keep_factor = nullptr;
};

Plan forward_plan(const CudnnAttention& a) {
  Problem p(a);
  const Node s = p.masked(p.raw_scores()), top = p.rows(), total = p.rows();
  p.g.reduce(kLargest, s, top);
  const Node e = p.apply(kExponential, p.apply(kSubtract, s, top, p.scores()), nullptr, p.scores());
  p.g.reduce(kSum, e, total);
  // Without this output there is no engine for the graph.
  p.apply(kAdd, top, p.apply(kLogarithm, total, nullptr, p.rows()), p.lse());
  const Node rounded = p.g.inner(p.type, p.score_sizes);
  if (p.kept == nullptr)
    p.apply(kDivide, e, total, rounded);
  else
    p.dropped(p.apply(kDivide, e, total, p.scores()), rounded);
  p.g.product(rounded, p.g.bound(kValue, p.type, p.value_sizes, with_dim(a.v)), p.out);
  return p.g.plan(a.device);
}

// The gradient of what many query heads share is summed over them.
void shared_gradient(Problem& p, Node left, Node right, TensorId id, const Sizes& sizes,
                     const int64_t (&strides)[3]) {
  const Node result = p.g.bound(id, p.type, sizes, with_dim(strides));
  if (p.a.heads == p.a.key_heads) {
    p.g.product(left, right, result);
    return;
  }
  const Node each = p.g.inner(p.type, {sizes[0], p.a.heads, sizes[2], sizes[3]});
  p.g.product(left, right, each);
  p.g.reduce(kSum, each, result);
}

// The scores are computed again from the saved logarithms. With P the probabilities (times what the
// dropout makes of them, P'), G the output's gradient and D the rows' sums of G * output, scaled
// back by the dropout's 1 - p: dV = P'^T G, dS = P (kept * G V^T - D) / (1 - p) * scale,
// dQ = dS K and dK = dS^T Q.
Plan backward_plan(const CudnnAttention& a) {
  Problem p(a);
  Builder& g = p.g;
  const Node grad = g.bound(kGradient, p.type, p.output_sizes, with_dim(a.out));
  const Node row_sums = g.bound(kRowSums, kFloatData, p.row_sizes, dense(p.row_sizes));
  const Node in_rows = p.rows();
  g.reduce(kSum, p.apply(kMultiply, grad, p.out, g.inner(kFloatData, p.output_sizes)), in_rows);
  p.apply(kMultiply, in_rows, g.number(kKeepChance), row_sums);

  const Node s = p.masked(p.apply(kSubtract, p.raw_scores(), p.lse(), p.scores()));
  const Node weights = p.apply(kExponential, s, nullptr, p.scores());
  const Node used = p.kept == nullptr ? weights : p.dropped(weights, p.scores());
  const Sizes turned = transposed(p.score_sizes), turned_strides = transposed(dense(p.score_sizes));
  const Node used_turned = g.inner(p.type, turned, turned_strides);
  g.reshape(used, used_turned);
  shared_gradient(p, used_turned, grad, kValueGradient, p.value_sizes, a.dv);

  Node to_weights = p.scores();
  const Sizes v_turned = transposed(with_dim(a.v));
  g.product(grad, g.bound(kValue, p.type, transposed(p.value_sizes), v_turned), to_weights);
  if (p.kept) to_weights = p.apply(kMultiply, to_weights, p.kept, p.scores());
  const Node centred = p.apply(kSubtract, to_weights, row_sums, p.scores());
  Node to_scores = p.apply(kMultiply, centred, weights, p.scores());
  if (p.kept) to_scores = p.apply(kMultiply, to_scores, p.keep_factor, p.scores());
  to_scores = p.apply(kMultiply, to_scores, p.scale, p.scores());

  const Node k = g.inner(kFloatData, p.key_sizes);
  g.reshape(p.k_transposed, k);
  const Node sums = g.bound(kQuerySums, kFloatData, p.query_sizes, dense(p.query_sizes));
  g.product(to_scores, k, sums);
  p.apply(kIdentity, sums, nullptr, g.bound(kQueryGradient, p.type, p.query_sizes, with_dim(a.dq)));
  const Node to_scores_turned = g.inner(p.type, turned, turned_strides);
  g.reshape(to_scores, to_scores_turned);
  shared_gradient(p, to_scores_turned, p.q, kKeyGradient, p.key_sizes, a.dk);
  return g.plan(a.device);
}

// Null where cuDNN has no kernel.
const Plan* plan_of(const CudnnAttention& a) {
  // Plans live as long as the process: a destructor at a thread's end might run after the
  // library's own.
  thread_local auto* plans = new std::unordered_map<CudnnAttention, Plan, ByteHash, SameBytes>;
  auto found = plans->find(a);
  if (found == plans->end()) {
    Plan made;
    try {
      made = a.backward ? backward_plan(a) : forward_plan(a);
    } catch (const Unsupported&) {
      made = Plan();
    }
    found = plans->emplace(a, std::move(made)).first;
  }
  return found->second.plan.get() ? &found->second : nullptr;
}

} // namespace

bool has_attention_plan(const CudnnAttention& attention) {
  return library() != nullptr && plan_of(attention) != nullptr;
}

void run_attention(const CudnnAttention& a, const CudnnAttentionData& data,
                   c10::cuda::CUstream stream) {
  const Plan* const plan = library() ? plan_of(a) : nullptr;
  TORCH_CHECK(plan != nullptr, "cuDNN has no attention kernel for this call");
  double keep = 0;
  std::memcpy(&keep, &a.keep, sizeof keep);
  const double chance = keep == 0 ? 1 : keep;
  const float scale = static_cast<float>(data.scale), keep_factor = static_cast<float>(1 / chance),
              keep_chance = static_cast<float>(chance),
              hidden = -std::numeric_limits<float>::infinity();
  int64_t ids[kFirstInner];
  const void* pointers[kFirstInner];
  int64_t count = 0;
  const auto bind = [&](TensorId id, const void* pointer) {
    ids[count] = id;
    pointers[count++] = pointer;
  };
  bind(kQuery, data.q);
  bind(kKey, data.k);
  bind(kValue, data.v);
  bind(kOutput, data.out);
  bind(kScale, &scale);
  bind(kLogarithms, data.lse);
  if (a.bias_sizes[0] != 0) bind(kBias, data.bias);
  if (a.causal) bind(kHidden, &hidden);
  if (keep != 0) {
    bind(kSeed, data.seed);
    bind(kOffset, static_cast<const char*>(data.seed) + 16);
    bind(kKeepFactor, &keep_factor);
  }
  Tensor row_sums, query_sums;
  if (a.backward) {
    const Device device(kCUDA, static_cast<c10::DeviceIndex>(a.device));
    row_sums = detail::empty({a.batch, a.heads, a.queries}, kFloat, device);
    query_sums = detail::empty({a.batch, a.heads, a.queries, a.dim}, kFloat, device);
    query_sums.zero_(); // blocks of keys add to it
    bind(kKeepChance, &keep_chance);
    bind(kGradient, data.grad);
    bind(kQueryGradient, data.dq);
    bind(kKeyGradient, data.dk);
    bind(kValueGradient, data.dv);
    bind(kRowSums, row_sums.const_data_ptr());
    bind(kQuerySums, query_sums.const_data_ptr());
  }
  Status status = kSuccess;
  try {
    status = execute(*plan, a.device, stream, ids, pointers, count);
  } catch (const Unsupported&) {
    status = -1;
  }
  TORCH_CHECK(status == kSuccess, "cuDNN error: ",
              status < 0 ? "the arguments were refused" : library()->cudnnGetErrorString(status),
              " in attention of ", a.batch, "x", a.heads, " heads, ", a.queries, " queries, ",
              a.keys, " keys, dim ", a.dim, " (dtype ", static_cast<ScalarType>(a.dtype), ")");
}

} // namespace at::cuda
