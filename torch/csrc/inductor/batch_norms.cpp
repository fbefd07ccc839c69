// Batch norms and what stands beside them: the sum with a residual stream and the positive part
// after a norm, and the mask of the positive part before its gradient. The kernels of a GPU do it
// on the way (ATen/native/norm/BatchNormNeighbours.h), which saves a pass over memory each.
#include <torch/csrc/inductor/ir.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include <ATen/iter/Pointwise.h>

namespace torch::inductor {
namespace {

using Kind = Place::Kind;

bool is_call(const Step& step, std::initializer_list<std::string_view> names) {
  return step.kind == Step::Kind::Call &&
         std::find(names.begin(), names.end(), step.op->name) != names.end() &&
         !has_kernel_of_user(*step.op);
}
bool is_norm(const Step& step) {
  return is_call(step, {"aten::native_batch_norm", "aten::_native_batch_norm_legit",
                        "aten::_native_batch_norm_legit.no_stats",
                        "aten::_native_batch_norm_legit_no_training",
                        "aten::_native_batch_norm_legit_functional"});
}
bool is_norm_backward(const Step& step) {
  return is_call(step, {"aten::native_batch_norm_backward"});
}

// Whether a step of a program is the functor of an operator, on operands of its result's dtype.
bool is_functor(const TileStep& step, std::string_view name, uint8_t inputs, int params) {
  return step.form == TileStep::Form::Functor && step.spec != nullptr && step.inputs == inputs &&
         step.spec->params == params && step.from == step.to && step.spec->name == name;
}
bool is_memory(const Place& place) { return place.kind == Kind::Memory; }
bool is_kernel_of(const Step& step, size_t loops) {
  return step.kind == Step::Kind::Fused && step.outputs.size() == 1 &&
         step.program.steps.size() == loops;
}

class Neighbours {
 public:
  explicit Neighbours(Plan& plan) : plan_(plan) {}

  void run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      if (is_norm(plan_.steps[i])) join_positive_part(i);
      if (is_norm_backward(plan_.steps[i])) i -= join_mask(i);
    }
  }

 private:
  Step& step(size_t i) { return plan_.steps[i]; }
  const View& view(int32_t v) const { return plan_.views[static_cast<size_t>(v)]; }

  bool uses(const Step& step, int32_t buffer) const {
    for (const CallArg& arg : step.args)
      for (const int32_t v : arg.views)
        if (v >= 0 && view(v).buffer == buffer) return true;
    const auto is_it = [&](const Pointer& p) { return p.buffer == buffer; };
    return std::any_of(step.pointers.begin(), step.pointers.end(), is_it);
  }
  bool makes(const Step& step, int32_t buffer) const {
    const auto is_it = [&](const auto& made) { return view(made.view).buffer == buffer; };
    return std::any_of(step.results.begin(), step.results.end(), is_it) ||
           std::any_of(step.outputs.begin(), step.outputs.end(), is_it);
  }
  bool is_output(int32_t buffer) const {
    return std::any_of(plan_.outputs.begin(), plan_.outputs.end(), [&](const Plan::Output& out) {
      return out.view >= 0 && view(out.view).buffer == buffer;
    });
  }
  static bool same_form(const View& a, const View& b) {
    return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides;
  }
  // An operand of a kernel that is read by the number of the result's elements.
  const Pointer& operand(const Step& step, const Place& place) const {
    return step.pointers[static_cast<size_t>(place.index)];
  }
  int32_t view_like(const View& form, const Pointer& place) {
    View made = form;
    made.buffer = place.buffer;
    made.offset = place.offset / static_cast<int64_t>(c10::elementSize(form.dtype));
    plan_.views.push_back(std::move(made));
    return static_cast<int32_t>(plan_.views.size()) - 1;
  }
  // The one step that uses a buffer after the i-th, or 0.
  size_t only_use(size_t i, int32_t buffer) {
    size_t found = 0;
    for (size_t k = i + 1; k < plan_.steps.size(); ++k) {
      if (!uses(step(k), buffer)) continue;
      if (found != 0) return 0;
      found = k;
    }
    return is_output(buffer) ? 0 : found;
  }

  // ---- forward
  void join_positive_part(size_t i) {
    Step& norm = step(i);
    const auto first = std::find_if(norm.results.begin(), norm.results.end(),
                                    [](const CallResult& r) { return r.index == 0; });
    if (first == norm.results.end()) return;
    const View made = view(first->view);
    const size_t k = only_use(i, made.buffer);
    if (k == 0) return;
    Step& after = step(k);
    if (after.outputs.size() != 1 || made.offset != 0 ||
        !same_form(made, view(after.outputs[0].view)))
      return;
    Step::BatchNormJoin join;
    if (!is_positive_part(after, made.buffer) && !adds_first(i, k, made, join.added)) return;
    join.rectifies = true;
    norm.batch_norm = join;
    norm.joined = after.outputs[0].view;
    after.may_be_joined = true;
  }
  bool is_positive_part(const Step& after, int32_t buffer) const {
    if (!is_kernel_of(after, 1)) return false;
    const TileStep& relu = after.program.steps[0];
    return is_functor(relu, "relu", 1, 0) && is_memory(relu.in[0]) &&
           operand(after, relu.in[0]).buffer == buffer && operand(after, relu.in[0]).offset == 0;
  }
  // relu(norm + other), where the other is there before the norm runs.
  bool adds_first(size_t i, size_t k, const View& made, int32_t& added) {
    const Step& after = step(k);
    if (!is_kernel_of(after, 2)) return false;
    const TileStep &add = after.program.steps[0], &relu = after.program.steps[1];
    const bool is_it = is_functor(add, "add", 2, 0) && is_functor(relu, "relu", 1, 0) &&
                       is_memory(add.in[0]) && is_memory(add.in[1]) &&
                       relu.in[0].kind == Kind::Register && add.out.kind == Kind::Register &&
                       relu.in[0].index == add.out.index && add.to == relu.from;
    if (!is_it) return false;
    const Pointer &a = operand(after, add.in[0]), &b = operand(after, add.in[1]);
    if (a.buffer == b.buffer || (a.buffer == made.buffer ? a : b).offset != 0) return false;
    const Pointer& other = a.buffer == made.buffer ? b : a;
    for (size_t between = i; between < k; ++between)
      if (makes(step(between), other.buffer)) return false;
    added = view_like(made, other);
    return true;
  }

  // ---- backward: whether the step before was taken out
  size_t join_mask(size_t i) {
    const CallArg& arg = step(i).args[0];
    if (arg.views.size() != 1 || arg.views[0] < 0) return 0;
    const View gradient = view(arg.views[0]);
    size_t k = i;
    while (k > 0 && !makes(step(k - 1), gradient.buffer)) --k;
    if (k == 0) return 0;
    const Step& mask = step(--k);
    if (!is_mask(mask) || only_use(k, gradient.buffer) != i || gradient.offset != 0 ||
        !same_form(gradient, view(mask.outputs[0].view)))
      return 0;
    const TileStep& loop = mask.program.steps[0];
    const Pointer from = operand(mask, loop.in[0]), positive = operand(mask, loop.in[1]);
    for (size_t between = k + 1; between < i; ++between)
      if (uses(step(between), from.buffer) || uses(step(between), positive.buffer)) return 0;
    take(k, i, view_like(gradient, from), view_like(gradient, positive), gradient.buffer);
    return 1;
  }
  // threshold_backward(gradient, positive, 0), both in the form of the result.
  static bool is_mask(const Step& step) {
    if (!is_kernel_of(step, 1)) return false;
    const TileStep& loop = step.program.steps[0];
    if (!is_functor(loop, "threshold_backward", 2, 1) || !is_memory(loop.in[0]) ||
        !is_memory(loop.in[1]) || loop.params < 0)
      return false;
    const char* threshold = step.program.pool.data() + loop.params;
    return std::all_of(threshold, threshold + c10::elementSize(loop.from),
                       [](char byte) { return byte == 0; });
  }
  void take(size_t k, size_t i, int32_t from, int32_t positive, int32_t made) {
    Step mask = std::move(step(k));
    Step& norm = step(i);
    norm.args[0].views[0] = from;
    norm.batch_norm.emplace().rectified = positive;
    norm.nodes.insert(norm.nodes.begin(), mask.nodes.begin(), mask.nodes.end());
    norm.name = mask.name + "_" + norm.name;
    norm.frees.erase(std::remove(norm.frees.begin(), norm.frees.end(), made), norm.frees.end());
    norm.frees.insert(norm.frees.end(), mask.frees.begin(), mask.frees.end());
    plan_.steps.erase(plan_.steps.begin() + static_cast<std::ptrdiff_t>(k));
  }

  Plan& plan_;
};

} // namespace

void join_batch_norms(Plan& plan) { Neighbours(plan).run(); }

} // namespace torch::inductor
