// A program with its plans: finding the one for the inputs at hand, making it, keeping those used
// last. See plan.h.
#include <torch/csrc/inductor/plan.h>

#include <iterator>

#include <torch/csrc/inductor/template.h>

namespace torch::inductor {
namespace {

using at::IValue;
using at::Tensor;
using c10::DispatchKey;

bool is_plain_input(const Tensor& t) {
  // Wrappers of function transforms have no memory of their own.
  return (t.is_cpu() || t.is_cuda()) && t.layout() == at::kStrided && t.has_storage() &&
         !t.key_set().has_any({DispatchKey::Python, DispatchKey::Conjugate, DispatchKey::Negative,
                               DispatchKey::Fake, DispatchKey::Functionalize,
                               DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper});
}

// Kernels are called as they are: nothing is recorded, no mode looks on.
class BelowAutograd {
 public:
  BelowAutograd() : guard_(c10::kAutogradKeys | c10::kAutocastKeys) {}

 private:
  c10::ExcludeDispatchKeyGuard guard_;
};

// What the compiled form of a program depends on.
std::string signature(const TileProgram& program) {
  std::string out;
  const auto add = [&](const auto& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const auto add_place = [&](const Place& p) {
    add(p.kind);
    add(p.size);
    add(p.index);
    add(p.rows);
  };
  for (const TileStep& step : program.steps) {
    add(step.loop);
    add(step.params);
    add(step.inputs);
    add(step.lone);
    add_place(step.out);
    for (int k = 0; k < step.inputs; ++k) add_place(step.in[static_cast<size_t>(k)]);
    add(step.form);
    add(step.from);
    add(step.to);
    add(step.spec);
  }
  return out;
}

} // namespace

void Compiled::share_tiers(Plan& plan) {
  const auto share = [&](TileProgram& program) {
    if (!program.tier) return;
    const auto [known, is_new] = tiers_.emplace(signature(program), program.tier);
    if (!is_new) program.tier = known->second;
  };
  for (Step& step : plan.steps) {
    share(step.program);
    if (!step.chain) continue;
    for (ChainPart& part : step.chain->parts) share(part.program);
  }
}

uint64_t Compiled::mark_of(c10::ArrayRef<IValue> inputs) const {
  uint64_t mark = inputs.size();
  const auto add = [&](int64_t value) {
    mark = (mark ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15u;
    mark ^= mark >> 29;
  };
  for (const IValue& value : inputs) {
    if (!value.isTensor()) {
      add(value.bits.i);
      continue;
    }
    const auto& t = static_cast<const c10::TensorImpl&>(*value.ref);
    for (const int64_t size : t.sizes()) add(size);
    for (const int64_t stride : t.strides()) add(stride);
  }
  return mark;
}

bool Compiled::fits(const Plan& plan, c10::ArrayRef<IValue> inputs) const {
  return plan.matches(inputs) && !(program_.mutates && plan.apart && !are_apart(inputs));
}

std::shared_ptr<const Plan> Compiled::find(c10::ArrayRef<IValue> inputs) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (plans_.empty()) return nullptr;
  if (fits(*plans_.front().plan, inputs)) return plans_.front().plan;
  const auto [begin, end] = by_mark_.equal_range(mark_of(inputs));
  for (auto known = begin; known != end; ++known) {
    if (!fits(*known->second->plan, inputs)) continue;
    plans_.splice(plans_.begin(), plans_, known->second);
    return plans_.front().plan;
  }
  return nullptr;
}

std::shared_ptr<const Plan> Compiled::keep(const std::shared_ptr<Plan>& plan,
                                           c10::ArrayRef<IValue> inputs) {
  const std::lock_guard<std::mutex> lock(mutex_);
  share_tiers(*plan);
  plans_.push_front({mark_of(inputs), plan});
  by_mark_.emplace(plans_.front().mark, plans_.begin());
  steps_ += plan->steps.size();
  while (steps_ > kMostSteps && plans_.size() > kFewPlans) {
    const auto oldest = std::prev(plans_.end());
    const auto [begin, end] = by_mark_.equal_range(oldest->mark);
    for (auto known = begin; known != end; ++known) {
      if (known->second != oldest) continue;
      by_mark_.erase(known);
      break;
    }
    steps_ -= oldest->plan->steps.size();
    plans_.pop_back();
  }
  return plan;
}

std::vector<std::shared_ptr<const Plan>> Compiled::plans() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<const Plan>> found;
  for (const auto& entry : plans_) found.push_back(entry.plan);
  return found;
}

std::shared_ptr<Plan> Compiled::from_template(c10::ArrayRef<IValue> inputs) {
  std::vector<std::shared_ptr<const PlanTemplate>> known;
  std::vector<std::vector<Plan::InputKey>> examples;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    known = templates_;
  }
  for (const std::shared_ptr<const PlanTemplate>& made : known)
    if (std::shared_ptr<Plan> plan = made->at(program_, inputs)) return plan;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (plans_.empty() || attempts_ >= kMostTemplates) return nullptr;
    for (const Known& plan : plans_)
      if (examples.size() < kExamples) examples.push_back(plan.plan->keys);
    ++attempts_;
  }
  const std::shared_ptr<const PlanTemplate> made = PlanTemplate::make(program_, examples, inputs);
  std::shared_ptr<Plan> plan = made ? made->at(program_, inputs) : nullptr;
  if (!plan) return nullptr;
  planned_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard<std::mutex> lock(mutex_);
  templates_.insert(templates_.begin(), made);
  return plan;
}

std::shared_ptr<const Plan> Compiled::prepare(c10::ArrayRef<IValue> inputs) {
  if (std::shared_ptr<const Plan> found = find(inputs)) return found;
  if (const std::shared_ptr<Plan> plan = from_template(inputs)) return keep(plan, inputs);
  planned_.fetch_add(1, std::memory_order_relaxed);
  // Two threads that meet the same new shape both make its plan.
  return keep(make_plan(program_, inputs), inputs);
}

std::vector<IValue> Compiled::run(std::vector<IValue>& inputs,
                                  const std::vector<Tensor>& constants) {
  TORCH_CHECK(static_cast<int64_t>(inputs.size()) == program_.inputs, "a compiled graph takes ",
              program_.inputs, " arguments and got ", inputs.size());
  for (const IValue& value : inputs) {
    if (value.isTensor() && !is_plain_input(value.toTensor()))
      throw NotLowered("a compiled graph takes plain tensors of the CPU or of a CUDA device");
  }
  BelowAutograd below;
  const std::shared_ptr<const Plan> plan = prepare(inputs);
  return plan->run(inputs, constants);
}

} // namespace torch::inductor
