// Gradients of attention that a graph joins again. A model computes queries, keys and values by one
// product and splits it, so its backward graph computes three gradients and copies them into one.
// The kernel can write them side by side at once (ATen/native/attention/PackedGradients.h), and
// then nothing is left to copy. Whether it did is known only when it ran: the call is told where
// the joined gradient is expected, and the step that copies does nothing where it is found there.
#include <torch/csrc/inductor/ir.h>

#include <algorithm>
#include <string_view>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/attention/PackedGradients.h>

namespace torch::inductor {
namespace {

constexpr size_t kParts = 3;

bool is_cat(const Step& step) {
  return step.kind == Step::Kind::Call && std::string_view(step.op->name) == "aten::cat" &&
         step.args.size() == 2 && step.args[0].views.size() == kParts && step.args[1].value.isInt();
}
bool makes_gradients(const Step& step) {
  return step.kind == Step::Kind::Call && step.results.size() == kParts &&
         std::string_view(step.op->name) == "aten::_cudnn_attention_backward";
}

class Joiner {
 public:
  explicit Joiner(Plan& plan) : plan_(plan), uses_(static_cast<size_t>(plan.buffers)) {}

  void run() {
    const auto found = std::find_if(plan_.steps.begin(), plan_.steps.end(), makes_gradients);
    if (found == plan_.steps.end()) return;
    count_uses();
    for (auto from = found; from != plan_.steps.end(); ++from) {
      if (!makes_gradients(*from)) continue;
      const auto to =
          std::find_if(from, plan_.steps.end(), [&](const Step& s) { return joins(*from, s); });
      if (to == plan_.steps.end()) continue;
      from->joined = to->results[0].view;
      to->may_be_joined = true;
    }
  }

 private:
  const View& view(int32_t v) const { return plan_.views[static_cast<size_t>(v)]; }
  void count(int32_t v) {
    if (v >= 0) ++uses_[static_cast<size_t>(view(v).buffer)];
  }
  void count_uses() {
    for (const Step& step : plan_.steps) {
      for (const CallArg& arg : step.args)
        for (const int32_t v : arg.views) count(v);
      for (const Pointer& p : step.pointers)
        if (p.buffer >= 0) ++uses_[static_cast<size_t>(p.buffer)];
    }
    for (const Plan::Output& output : plan_.outputs) count(output.view);
  }

  // Whether the step joins the three gradients, batch x heads x length x dim each, along the last
  // of batch x length x (heads dim), and nothing else reads them.
  bool joins(const Step& from, const Step& to) const {
    if (!is_cat(to)) return false;
    const int64_t dim = to.args[1].value.toInt();
    if (dim != 2 && dim != -1) return false;
    for (size_t k = 0; k < kParts; ++k) {
      const View& made = view(from.results[k].view);
      const View& part = view(to.args[0].views[k]);
      if (part.buffer != made.buffer || uses_[static_cast<size_t>(made.buffer)] != 1 ||
          !is_joinable(made, part))
        return false;
    }
    return true;
  }
  static bool is_joinable(const View& made, const View& part) {
    if (made.sizes.size() != 4 || part.sizes.size() != 3 || made.dtype != part.dtype ||
        made.offset != 0 || part.offset != 0)
      return false;
    const int64_t heads = made.sizes[1], width = made.sizes[3];
    return part.sizes[0] == made.sizes[0] && part.sizes[1] == made.sizes[2] &&
           part.sizes[2] == heads * width && part.strides[0] == made.strides[0] &&
           part.strides[1] == made.strides[2] && part.strides[2] == 1 && made.strides[3] == 1 &&
           made.strides[1] == width;
  }

  Plan& plan_;
  std::vector<int32_t> uses_; // of each buffer, by steps and outputs
};

} // namespace

void join_gradients(Plan& plan) { Joiner(plan).run(); }

at::Tensor joined_gradient(const std::vector<at::Tensor>& parts, const View& expected) {
  const at::Tensor& first = parts[0];
  if (first.storage_offset() != 0 || first.scalar_type() != expected.dtype ||
      expected.offset != 0 || !at::native::are_parts_of_one(first, parts[1], parts[2]))
    return {};
  const int64_t sizes[] = {first.size(0), first.size(2), 3 * first.size(1) * first.size(3)};
  if (at::IntArrayRef(expected.sizes) != at::IntArrayRef(sizes) ||
      expected.strides != c10::contiguous_strides(sizes))
    return {};
  return at::detail::checked_tensor(first.storage(), expected.dtype, expected.sizes,
                                    expected.strides, 0);
}

} // namespace torch::inductor
