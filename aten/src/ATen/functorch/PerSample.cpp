// What is done for operators without a rule: the samples one after the other, in C++. It is correct
// and slow, and says so once for each operator. Besides, operators that cannot be batched at all.
#include <ATen/functorch/BatchRule.h>

#include <mutex>
#include <unordered_set>

#include <ATen/ops/stack.h>

namespace at::functorch {
namespace {

void warn(const OperatorEntry& op) {
  static std::mutex mutex;
  static std::unordered_set<const OperatorEntry*> warned;
  if (!fallback_settings().warns) return;
  if (!fallback_settings().warns_always) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!warned.insert(&op).second) return;
  }
  TORCH_WARN("There is a performance drop because we have not yet implemented the batching rule "
             "for ",
             op.full_name(),
             ". Please file us an issue so that we can prioritize its "
             "implementation.");
}

// Results of each sample by position.
struct Gathered {
  std::vector<std::vector<Tensor>> tensors; // one result, or one item of a list
  bool is_list = false;
};

IValue stacked(Call& call, Gathered& g) {
  std::vector<Tensor> out;
  for (const auto& samples : g.tensors)
    out.push_back(samples[0].defined() ? call.wrap(at::stack(samples)) : Tensor());
  if (g.is_list) return IValue(std::move(out));
  return out.empty() ? IValue() : IValue(out[0]);
}

void collect(const IValue& v, std::vector<Gathered>& all, size_t at, const OperatorEntry& op) {
  if (all.size() <= at) all.resize(at + 1);
  Gathered& g = all[at];
  if (v.isTensorList()) {
    g.is_list = true;
    const auto& list = v.toTensorList();
    if (g.tensors.empty()) g.tensors.resize(list.size());
    for (size_t i = 0; i < list.size(); ++i) g.tensors[i].push_back(list[i]);
    return;
  }
  TORCH_CHECK(v.isTensor() || v.isNone(), "vmap: ", op.full_name(),
              " gives a value that is no tensor, which depends on the sample. It cannot be "
              "batched.");
  if (g.tensors.empty()) g.tensors.resize(1);
  g.tensors[0].push_back(v.toTensor());
}
} // namespace

FallbackSettings& fallback_settings() {
  static FallbackSettings settings;
  return settings;
}

void run_per_sample(Call& call) {
  TORCH_CHECK(fallback_settings().allowed, "Batching rule not implemented for ",
              call.op.full_name(), ". The fallback path is disabled.");
  TORCH_CHECK(call.batch() > 0, "Batching rule not implemented for ", call.op.full_name(),
              ". The fallback path does not support vmap over dims of size 0.");
  call.check_inplace();
  warn(call.op);
  std::vector<Gathered> all;
  for (int64_t b = 0; b < call.batch(); ++b) {
    Stack stack = call.args;
    for (IValue& v : stack) {
      map_tensors(v, [&](const Tensor& t) {
        const WrapperImpl* w = wrapper_at(t, *call.level);
        return w != nullptr ? w->value.select(w->bdim, b) : t;
      });
    }
    call.op.call_boxed(stack);
    if ((call.op.flags & kOpMutates) != 0) continue;
    for (size_t i = 0; i < stack.size(); ++i) collect(stack[i], all, i, call.op);
  }
  for (Gathered& g : all) call.results.push_back(stacked(call, g));
  if ((call.op.flags & kOpMutates) == 0) return;
  for (size_t i = 0; i < call.args.size(); ++i)
    if (writes(call.schema, i) && call.results.size() < call.schema.returns.size())
      call.results.push_back(call.args[i]);
}

// ---- refused ------------------------------------------------------------------------------------
namespace {
void refuse_item(Call&) {
  throw c10::Error(
      "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
      ".item() on a Tensor, please try to rewrite what you're doing with other operations.");
}
void refuse_control_flow(Call&) {
  throw c10::Error("vmap: It looks like you're attempting to use a Tensor in some data-dependent "
                   "control flow. We don't support that yet, please rewrite it with torch.where "
                   "or other operations on the whole tensor.");
}
void refuse_geometry(Call& call) {
  throw c10::Error(c10::str("vmap: ", call.op.full_name(),
                            " changes what memory a tensor stands for, which is not possible for "
                            "a tensor being vmapped over."));
}
} // namespace

ArrayRef<RuleEntry> refused_rules() {
  static const RuleEntry entries[] = {
      {"_local_scalar_dense", refuse_item, 0},
      {"equal allclose is_nonzero", refuse_control_flow, 0},
      {"resize_ resize_as_ set_.source_Storage set_.source_Storage_storage_offset "
       "set_.source_Tensor set_",
       refuse_geometry, 0},
  };
  return entries;
}

} // namespace at::functorch
