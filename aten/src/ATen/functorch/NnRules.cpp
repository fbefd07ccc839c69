// Batching rules of convolution, pooling, padding and attention. Operators with a dimension for
// examples of their own take the batch in it; a convolution whose weights differ between samples is
// one with more groups.
#include <ATen/functorch/BatchRule.h>

#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/add.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/sum.h>

namespace at::functorch {
namespace {

// The two leading dimensions as one, and back.
Tensor folded(const Tensor& t) { return t.flatten(0, 1); }
Tensor unfolded(const Tensor& t, int64_t b) {
  std::vector<int64_t> shape{b, b == 0 ? 0 : t.sizes()[0] / b};
  shape.insert(shape.end(), t.sizes().begin() + 1, t.sizes().end());
  return t.reshape(shape);
}

// Samples of [N, C, ...] go into N; those of [C, ...] are examples. `flags` is the rank with N.
void fold_rule(Call& call) {
  const int64_t rank = call.tensor(0).dim(), full = call.flags;
  TORCH_CHECK(rank == full || rank == full - 1, call.op.full_name(), ": expected a ", full - 1,
              "D or ", full, "D tensor, got ", rank, "D");
  Stack stack = call.args;
  for (size_t i = 0; i < stack.size(); ++i) {
    map_tensors(stack[i], [&](const Tensor& t) {
      const Tensor out = call.expanded(t);
      return rank == full ? folded(out) : out;
    });
    const std::string& name = call.schema.arguments[i].name;
    if ((name != "input_size" && name != "size") || !stack[i].isIntList()) continue;
    // A size that begins with the number of examples.
    std::vector<int64_t> size = stack[i].toIntList();
    if (!size.empty()) size[0] *= call.batch();
    stack[i] = IValue(std::move(size));
  }
  call.op.call_boxed(stack);
  for (const IValue& v : stack)
    call.give(rank == full ? unfolded(v.toTensor(), call.batch()) : v.toTensor());
}
// The first dimension is that of examples, however many follow.
void fold_first_rule(Call& call) {
  call.flags = static_cast<int>(call.tensor(0).dim());
  fold_rule(call);
}

// ---- convolution
// Dimension `at` of [B, ...] as B times itself: [B, N, C] -> [N, B * C] for at = 1.
Tensor into_channels(const Tensor& t, int64_t at) {
  const Tensor moved = move_dim(t, 0, at);
  return moved.flatten(at, at + 1);
}
Tensor from_channels(const Tensor& t, int64_t at, int64_t b) {
  std::vector<int64_t> shape(t.sizes().begin(), t.sizes().end());
  shape[at] /= b;
  shape.insert(shape.begin() + at, b);
  return t.reshape(shape);
}
Tensor channel_bias(const Tensor& bias, int64_t rank) {
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[1] = bias.sizes()[0];
  return bias.reshape(shape);
}

void convolution_rule(Call& call) {
  const Tensor input = call.tensor(0), weight = call.tensor(1);
  const std::optional<Tensor> bias = call.optional(2);
  const int64_t b = call.batch();
  TORCH_CHECK(input.dim() == weight.dim(), "convolution: expected input of the rank of weight (",
              weight.dim(), "), got ", input.dim());
  const bool own_bias = bias && (call.batched(*bias) || call.batched(weight));
  Stack stack = call.args;
  if (own_bias) stack[2] = IValue();
  Tensor out;
  if (b == 0 || (call.batched(input) && !call.batched(weight))) {
    stack[0] = IValue(folded(call.expanded(input)));
    call.op.call_boxed(stack);
    out = call.wrap(unfolded(stack[0].toTensor(), b));
  } else if (call.batched(weight)) {
    stack[0] = IValue(into_channels(call.expanded(input), 1));
    stack[1] = IValue(into_channels(call.front(weight), 0));
    stack[8] = IValue(stack[8].toInt() * b);
    call.op.call_boxed(stack);
    out = call.wrap(from_channels(stack[0].toTensor(), 1, b), 1);
  } else {
    call.op.call_boxed(stack);
    out = stack[0].toTensor();
  }
  call.give_batched(own_bias ? at::add(out, channel_bias(*bias, input.dim())) : out);
}

// Gradients at input, weight and bias. That at the weight is one for each sample.
void convolution_backward_rule(Call& call) {
  const Tensor grad = call.tensor(0), input = call.tensor(1), weight = call.tensor(2);
  const std::vector<bool> mask = call.args[10].toBoolList();
  const int64_t b = call.batch();
  Tensor at_input, at_weight, at_bias;
  if (mask[2]) {
    std::vector<int64_t> dims{0};
    for (int64_t d = 2; d < grad.dim(); ++d) dims.push_back(d);
    at_bias = at::sum(grad, OptionalIntArrayRef(IntArrayRef(dims)));
  }
  Stack stack = call.args;
  stack[3] = IValue();
  const bool shared = !call.batched(weight);
  if (mask[0] && shared) {
    stack[0] = IValue(folded(call.expanded(grad)));
    stack[1] = IValue(folded(call.expanded(input)));
    stack[10] = IValue(std::vector<bool>{true, false, false});
    Stack run = stack;
    call.op.call_boxed(run);
    at_input = call.wrap(unfolded(run[0].toTensor(), b));
  }
  if (mask[1] || (mask[0] && !shared)) {
    stack[0] = IValue(into_channels(call.expanded(grad), 1));
    stack[1] = IValue(into_channels(call.expanded(input), 1));
    stack[2] = IValue(into_channels(call.expanded(weight), 0));
    stack[9] = IValue(stack[9].toInt() * b);
    stack[10] = IValue(std::vector<bool>{mask[0] && !shared, bool(mask[1]), false});
    call.op.call_boxed(stack);
    if (mask[0] && !shared) at_input = call.wrap(from_channels(stack[0].toTensor(), 1, b), 1);
    if (mask[1]) at_weight = call.wrap(from_channels(stack[1].toTensor(), 0, b));
  }
  for (const Tensor& t : {at_input, at_weight, at_bias}) call.results.emplace_back(t);
}

// ---- attention
void attention_rule(Call& call) {
  const Tensor q = call.tensor(0);
  const std::optional<Tensor> mask = call.optional(5);
  if (!mask) {
    call.flags = 4;
    fold_rule(call);
    return;
  }
  run_per_sample(call);
}
void attention_backward_rule(Call& call) {
  if (call.optional(8)) {
    run_per_sample(call);
    return;
  }
  call.flags = 4;
  fold_rule(call);
}
} // namespace

ArrayRef<RuleEntry> nn_rules() {
  static const RuleEntry entries[] = {
      {"convolution", convolution_rule, 0},
      {"convolution_backward", convolution_backward_rule, 0},
      {"reflection_pad1d replication_pad1d reflection_pad1d_backward replication_pad1d_backward "
       "col2im upsample_nearest1d upsample_linear1d _upsample_nearest_exact1d "
       "upsample_nearest1d_backward upsample_linear1d_backward _upsample_nearest_exact1d_backward "
       "affine_grid_generator",
       fold_rule, 3},
      {"max_pool2d_with_indices max_pool2d_with_indices_backward avg_pool2d avg_pool2d_backward "
       "adaptive_max_pool2d adaptive_max_pool2d_backward _adaptive_avg_pool2d "
       "_adaptive_avg_pool2d_backward max_unpool2d reflection_pad2d replication_pad2d "
       "reflection_pad2d_backward replication_pad2d_backward im2col fractional_max_pool2d "
       "upsample_nearest2d upsample_bilinear2d upsample_bicubic2d _upsample_nearest_exact2d "
       "_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa grid_sampler_2d "
       "fractional_max_pool2d_backward upsample_nearest2d_backward upsample_bilinear2d_backward "
       "upsample_bicubic2d_backward _upsample_nearest_exact2d_backward "
       "_upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward "
       "_upsample_lanczos2d_aa_backward grid_sampler_2d_backward affine_grid_generator_backward",
       fold_rule, 4},
      {"max_pool3d_with_indices max_pool3d_with_indices_backward avg_pool3d avg_pool3d_backward "
       "adaptive_max_pool3d adaptive_max_pool3d_backward _adaptive_avg_pool3d "
       "_adaptive_avg_pool3d_backward max_unpool3d reflection_pad3d replication_pad3d "
       "reflection_pad3d_backward replication_pad3d_backward upsample_nearest3d "
       "upsample_trilinear3d _upsample_nearest_exact3d grid_sampler_3d fractional_max_pool3d "
       "fractional_max_pool3d_backward upsample_nearest3d_backward upsample_trilinear3d_backward "
       "_upsample_nearest_exact3d_backward grid_sampler_3d_backward",
       fold_rule, 5},
      {"native_channel_shuffle", fold_first_rule, 0},
      {"_scaled_dot_product_flash_attention_for_cpu", attention_rule, 0},
      {"_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward_rule, 0},
  };
  return entries;
}

} // namespace at::functorch
