// See FakePlan.h. Plans are kept per thread, so that looking one up takes no lock.
#include <ATen/fake/FakePlan.h>

#include <ATen/core/FunctionSchema.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

namespace at::fake {

namespace {
std::atomic<uint64_t> generation{1}; // raised when plans may have become wrong

struct Rules {
  std::mutex mutex;
  std::unordered_set<const OperatorEntry*> operators;
};
Rules& rules() {
  static auto* all = new Rules; // outlives every static destructor
  return *all;
}
bool has_rule(const OperatorEntry& op) {
  std::lock_guard<std::mutex> lock(rules().mutex);
  return rules().operators.count(&op) != 0;
}

bool has_tag(const OperatorEntry& op, std::string_view tag) {
  std::string_view rest(op.tags_text);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    std::string_view one = rest.substr(0, comma);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    if (one == tag) return true;
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  const OperatorState* state = op.state.load();
  return state && std::find(state->tags.begin(), state->tags.end(), tag) != state->tags.end();
}

bool is_made_of_operators(const OperatorEntry& op) {
  if (op.flags & kOpComposite) return true;
  using K = DispatchKey;
  if (!op.has_kernel(K::CompositeImplicitAutograd)) return false;
  const K concrete[] = {K::CompositeExplicitAutograd, K::CPU, K::CUDA, K::Meta};
  return std::none_of(std::begin(concrete), std::end(concrete),
                      [&](K key) { return op.has_kernel(key); });
}

bool registered_at_run_time(const OperatorEntry& op) {
  const OperatorState* state = op.state.load();
  if (!state) return false;
  if (state->defined_at_runtime) return true;
  return std::any_of(state->kernels.begin(), state->kernels.end(), [](const auto& r) {
    return r.key == DispatchKey::Meta || r.key == DispatchKey::CompositeExplicitAutograd;
  });
}

// Lists of indices, which may be masks.
bool takes_optional_tensors(const OperatorEntry& op) {
  const std::vector<SchemaArgument>& arguments = op.schema().arguments;
  return std::any_of(arguments.begin(), arguments.end(), [](const SchemaArgument& a) {
    return a.type.kind == SchemaType::Kind::Tensor && a.type.is_list && a.type.element_optional;
  });
}

void choose_way(const OperatorEntry& op, FakePlan& plan) {
  using Way = FakePlan::Way;
  using Need = FakeMode::Need;
  auto by_mode = [&](Need need) {
    plan.way = Way::ByMode;
    plan.need = need;
  };
  const std::string_view name(op.name);
  if (has_rule(op)) return by_mode(Need::Rule);
  if (name == "aten::lift_fresh" || name == "aten::lift_fresh_copy" || name == "aten::lift")
    return by_mode(Need::Lift);
  if (is_made_of_operators(op)) {
    plan.way = Way::Parts;
    return;
  }
  if (registered_at_run_time(op) && op.has_kernel_for(DispatchKey::Meta)) {
    plan.way = Way::AsIs;
    return;
  }
  if (has_tag(op, "data_dependent_output")) return by_mode(Need::Data);
  const bool dynamic = has_tag(op, "dynamic_output_shape");
  plan.by_masks = dynamic && takes_optional_tensors(op);
  if (dynamic && !plan.by_masks) return by_mode(Need::DynamicShape);
  if (!op.has_kernel_for(DispatchKey::Meta)) return by_mode(Need::NoMeta);
}

// Operators whose first argument alone says where the result lies: they copy or look up across
// devices.
bool first_argument_decides(std::string_view name) {
  constexpr std::string_view kNames[] = {"aten::copy_",
                                         "aten::copy",
                                         "aten::index",
                                         "aten::index_put",
                                         "aten::index_put_",
                                         "aten::set_",
                                         "aten::_index_put_impl_",
                                         "aten::resize_as_"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

FakePlan make_plan(const OperatorEntry& op) {
  FakePlan plan;
  const FunctionSchema& schema = op.schema();
  plan.arguments = schema.arguments.size();
  choose_way(op, plan);
  plan.mutates = schema.is_mutable();
  plan.reads_values = !has_tag(op, "nondeterministic_seeded") && !has_tag(op, "inplace_view");
  plan.first_decides = first_argument_decides(op.name);
  plan.shares_version = std::strcmp(op.name, "aten::detach") == 0;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const SchemaArgument& argument = schema.arguments[i];
    const bool tensor = argument.type.kind == SchemaType::Kind::Tensor;
    if (argument.type.kind == SchemaType::Kind::Device) plan.device_argument = static_cast<int>(i);
    if (argument.name == "pin_memory") plan.pin_argument = static_cast<int>(i);
    if (i == 0 && tensor && argument.type.is_list)
      plan.per_element = std::strncmp(op.name, "aten::_foreach", 14) == 0 ||
                         std::strncmp(op.name, "aten::_fused", 12) == 0;
  }
  for (const SchemaArgument& result : schema.returns) {
    int from = -1;
    if (result.alias && result.alias->is_write) {
      for (size_t i = 0; i < schema.arguments.size(); ++i) {
        const auto& alias = schema.arguments[i].alias;
        if (alias && alias->is_write && alias->before == result.alias->before)
          from = static_cast<int>(i);
      }
    }
    plan.returned.push_back(from);
  }
  const OperatorState* state = op.state.load();
  plan.kernels = state ? state->kernels.size() : 0;
  return plan;
}

struct Plans {
  uint64_t made_in = 0;
  std::unordered_map<const OperatorEntry*, FakePlan> known;
};
} // namespace

void add_rule(const OperatorEntry& op) {
  std::lock_guard<std::mutex> lock(rules().mutex);
  rules().operators.insert(&op);
  generation.fetch_add(1);
}

const FakePlan& plan_of(const OperatorEntry& op) {
  static thread_local Plans plans;
  const uint64_t now = generation.load(std::memory_order_relaxed);
  if (C10_UNLIKELY(plans.made_in != now)) {
    plans.known.clear();
    plans.made_in = now;
  }
  auto found = plans.known.find(&op);
  if (C10_LIKELY(found != plans.known.end())) {
    const OperatorState* state = op.state.load(std::memory_order_relaxed);
    if (C10_LIKELY(found->second.kernels == (state ? state->kernels.size() : 0)))
      return found->second;
    plans.known.erase(found);
  }
  return plans.known.emplace(&op, make_plan(op)).first->second;
}

} // namespace at::fake
