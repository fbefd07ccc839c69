// Gradients of norms that meet another gradient. In a network of residual blocks the gradient of a
// norm's input is added to the one that came past the block; a kernel of a GPU can add to that sum
// at once (ATen/native/norm/PendingSum.h). Whether it did is known only when it ran: the call is
// told of the sum, and the step that adds does nothing where its result is found there.
#include <torch/csrc/inductor/ir.h>

#include <algorithm>
#include <string_view>

#include <ATen/iter/Pointwise.h>

namespace torch::inductor {
namespace {

bool is_norm_backward(const Step& step) {
  if (step.kind != Step::Kind::Call) return false;
  const std::string_view name = step.op->name;
  return name == "aten::native_layer_norm_backward" || name == "aten::_fused_rms_norm_backward";
}

// Whether the step does nothing but add two tensors of its result's form.
bool only_adds(const Step& step) {
  if (step.kind != Step::Kind::Fused || step.outputs.size() != 1 || step.program.steps.size() != 1)
    return false;
  const TileStep& add = step.program.steps[0];
  return add.form == TileStep::Form::Functor && add.spec != nullptr && add.spec->params == 0 &&
         std::string_view(add.spec->name) == "add" && add.inputs == 2 && add.from == add.to &&
         add.in[0].kind == Place::Kind::Memory && add.in[1].kind == Place::Kind::Memory;
}

class SumFinder {
 public:
  explicit SumFinder(Plan& plan) : plan_(plan) {}

  void run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      if (is_norm_backward(plan_.steps[i])) offer(i);
  }

 private:
  const View& view(int32_t v) const { return plan_.views[static_cast<size_t>(v)]; }

  void offer(size_t from) {
    Step& norm = plan_.steps[from];
    const auto first = std::find_if(norm.results.begin(), norm.results.end(),
                                    [](const CallResult& r) { return r.index == 0; });
    if (first == norm.results.end()) return;
    const View gradient = view(first->view);
    size_t to = from + 1;
    while (to < plan_.steps.size() && !uses(plan_.steps[to], gradient.buffer)) ++to;
    if (to == plan_.steps.size()) return;
    Step& sum = plan_.steps[to];
    const int32_t other = other_operand(sum, gradient);
    if (other < 0 || uses(norm, other)) return;
    for (size_t between = from + 1; between < to; ++between)
      if (uses(plan_.steps[between], other)) return;
    View offered = gradient;
    offered.buffer = other;
    norm.sum = static_cast<int32_t>(plan_.views.size());
    plan_.views.push_back(std::move(offered));
    norm.joined = sum.outputs[0].view;
    sum.may_be_joined = true;
  }

  // What the step adds to `gradient` and nobody needs afterwards, or -1.
  int32_t other_operand(const Step& step, const View& gradient) const {
    if (!only_adds(step)) return -1;
    const TileStep& add = step.program.steps[0];
    const Pointer& a = step.pointers[static_cast<size_t>(add.in[0].index)];
    const Pointer& b = step.pointers[static_cast<size_t>(add.in[1].index)];
    if (a.buffer == b.buffer || a.offset != 0 || b.offset != 0) return -1;
    const int32_t other = a.buffer == gradient.buffer ? b.buffer : a.buffer;
    const View& result = view(step.outputs[0].view);
    const bool same_form = gradient.dtype == result.dtype && gradient.offset == 0 &&
                           gradient.sizes == result.sizes && gradient.strides == result.strides;
    return same_form && ends(step, gradient.buffer) && ends(step, other) ? other : -1;
  }
  bool ends(const Step& step, int32_t buffer) const {
    return !plan_.outer[static_cast<size_t>(buffer)] &&
           std::find(step.frees.begin(), step.frees.end(), buffer) != step.frees.end();
  }

  bool uses(const Step& step, int32_t buffer) const {
    for (const CallArg& arg : step.args)
      for (const int32_t v : arg.views)
        if (v >= 0 && view(v).buffer == buffer) return true;
    return std::any_of(step.pointers.begin(), step.pointers.end(),
                       [&](const Pointer& p) { return p.buffer == buffer; });
  }

  Plan& plan_;
};

} // namespace

void offer_sums(Plan& plan) { SumFinder(plan).run(); }

} // namespace torch::inductor
