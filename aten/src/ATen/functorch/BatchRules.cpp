// The batched level: which rule an operator follows, and the rules that are the same for many
// operators. In order: a rule by name, the rule of pointwise operators, an in-place operator by its
// functional form, and at last the samples one by one.
#include <ATen/functorch/BatchRule.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

#include <ATen/iter/TensorIterator.h>

namespace at::functorch {

// ---- Call ---------------------------------------------------------------------------------------
int Call::find(const char* name) const {
  for (size_t i = 0; i < schema.arguments.size(); ++i)
    if (schema.arguments[i].name == name) return static_cast<int>(i);
  return -1;
}
Tensor Call::front(const Tensor& t) const {
  const WrapperImpl* w = wrapper_at(t, *level);
  return w == nullptr ? t : move_dim(w->value, w->bdim, 0);
}
Tensor Call::expanded(const Tensor& t) const {
  if (batched(t)) return front(t);
  c10::DimVector sizes{batch()};
  for (const int64_t s : t.sizes()) sizes.push_back(s);
  return t.unsqueeze(0).expand(sizes);
}
Tensor Call::padded(const Tensor& t, int64_t rank) const {
  if (!batched(t)) return t;
  Tensor out = front(t);
  for (int64_t d = t.dim(); d < rank; ++d) out = out.unsqueeze(1);
  return out;
}
Tensor Call::wrap(const Tensor& value, int64_t bdim) const {
  return value.defined() ? wrap_batched(value, bdim, level) : value;
}
int64_t Call::max_rank() const {
  int64_t rank = 0;
  for (const IValue& v : args)
    each_tensor(v, [&](const Tensor& t) { rank = std::max(rank, t.dim()); });
  return rank;
}
void Call::run(Stack stack, int64_t bdim) {
  op.call_boxed(stack);
  for (IValue& v : stack) {
    map_tensors(v, [&](const Tensor& t) { return wrap(t, bdim); });
    results.push_back(std::move(v));
  }
}
int64_t Call::shifted(int64_t dim, int64_t rank) const {
  TORCH_CHECK_INDEX(rank > 0, "dimension specified as ", dim, " but tensor has no dimensions");
  TORCH_CHECK_INDEX(dim >= -rank && dim < rank,
                    "Dimension out of range (expected to be in range of [", -rank, ", ", rank - 1,
                    "], but got ", dim, ")");
  return (dim < 0 ? dim + rank : dim) + 1;
}

void throw_inplace(const OperatorEntry& op) {
  throw c10::Error(c10::str(
      "vmap: ", op.full_name(),
      "(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
      "that has more elements than `self`. This happened due to `other` being vmapped over but "
      "`self` not being vmapped over in a vmap. Please try to use out-of-place operators instead "
      "of ",
      op.full_name(), "."));
}
void Call::check_inplace() const {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!writes(schema, i)) continue;
    each_tensor(args[i], [&](const Tensor& t) {
      if (!batched(t)) throw_inplace(op);
    });
  }
}

// ---- rules for many operators -------------------------------------------------------------------
namespace {
bool is_inplace(const OperatorEntry& op) {
  const size_t n = std::strlen(op.name);
  return n > 0 && op.name[n - 1] == '_' && (op.flags & kOpMutates) != 0;
}

// A sample without dimensions gains one with the batch and would count for more in type promotion
// than it should: it gets the common type beforehand.
void settle_promotion(Call& call) {
  bool scalar = false, mixed = false;
  ScalarType first = ScalarType::Undefined;
  ResultType state;
  for (const IValue& v : call.args) {
    each_tensor(v, [&](const Tensor& t) {
      scalar = scalar || (call.batched(t) && t.dim() == 0);
      if (t.scalar_type() == kBool) return;
      mixed = mixed || (first != ScalarType::Undefined && first != t.scalar_type());
      first = t.scalar_type();
      state.add(t);
    });
  }
  if (!scalar || !mixed) return;
  const ScalarType common = state.get();
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (writes(call.schema, i)) continue;
    map_tensors(call.args[i], [&](const Tensor& t) {
      if (!call.batched(t) || t.dim() != 0 || t.scalar_type() == kBool) return t;
      return t.to(common);
    });
  }
}
} // namespace

void pointwise_rule(Call& call) {
  call.check_inplace();
  settle_promotion(call);
  const int64_t rank = call.max_rank();
  Stack stack = call.args;
  for (IValue& v : stack) map_tensors(v, [&](const Tensor& t) { return call.padded(t, rank); });
  if ((call.op.flags & kOpMutates) == 0) {
    call.run(std::move(stack));
    return;
  }
  call.op.call_boxed(stack);
  for (size_t i = 0; i < call.args.size(); ++i)
    if (writes(call.schema, i)) call.results.push_back(call.args[i]);
}

// The operator treats every element alike or needs no more than one tensor.
void unary_rule(Call& call) {
  Stack stack = call.args;
  for (size_t i = 0; i < stack.size(); ++i) {
    map_tensors(stack[i], [&](const Tensor& t) { return call.expanded(t); });
    // The format is that of a sample, which the value with its batch does not have.
    if (call.schema.arguments[i].type.kind == SchemaType::Kind::MemoryFormat && !stack[i].isNone())
      stack[i] = IValue(MemoryFormat::Contiguous);
  }
  if ((call.op.flags & kOpMutates) == 0) {
    call.run(std::move(stack));
    return;
  }
  call.check_inplace();
  call.op.call_boxed(stack);
  call.results.push_back(call.args[0]);
}

namespace {
bool is_dim_argument(const SchemaArgument& a) {
  static const char* names[] = {"dim", "dims", "dim0", "dim1", "dim2", "dimension", "axis"};
  if (a.type.kind != SchemaType::Kind::Int && a.type.kind != SchemaType::Kind::SymInt) return false;
  for (const char* name : names)
    if (a.name == name) return true;
  return false;
}

std::vector<int64_t> all_dims(int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= rank; ++d) out.push_back(d);
  return out;
}

// Dimension arguments become those of values with the batch in front.
void shift_dims(Call& call, Stack& stack, int64_t rank) {
  for (size_t i = 0; i < stack.size(); ++i) {
    const SchemaArgument& a = call.schema.arguments[i];
    if (!is_dim_argument(a)) continue;
    if (stack[i].isInt()) {
      const int64_t dim = call.shifted(stack[i].toInt(), rank);
      stack[i] = a.type.is_list ? IValue(std::vector<int64_t>{dim}) : IValue(dim);
    } else if (stack[i].isIntList()) {
      std::vector<int64_t> dims = stack[i].toIntList();
      if (dims.empty() && (call.flags & kAllIfNone)) {
        dims = all_dims(rank);
      } else {
        for (int64_t& d : dims) d = call.shifted(d, rank);
      }
      stack[i] = IValue(std::move(dims));
    } else if (a.type.is_list && (call.flags & kAllIfNone)) {
      stack[i] = IValue(all_dims(rank));
    }
  }
}
} // namespace

void dims_rule(Call& call) {
  Stack stack = call.args;
  int64_t rank = -1;
  bool scalar = false;
  for (IValue& v : stack) {
    map_tensors(v, [&](const Tensor& t) {
      if (rank < 0) rank = t.dim();
      Tensor out = call.expanded(t);
      if (t.dim() > 0 || (call.flags & kScalarOk) == 0) return out;
      scalar = true;
      return out.unsqueeze(1);
    });
  }
  if (scalar && rank == 0) rank = 1;
  shift_dims(call, stack, (call.flags & kGrows) != 0 ? rank + 1 : rank);
  if (!scalar) {
    call.run(std::move(stack));
    return;
  }
  call.op.call_boxed(stack);
  for (IValue& v : stack) {
    map_tensors(v, [&](const Tensor& t) { return call.wrap(t.dim() == 2 ? t.squeeze(1) : t); });
    call.results.push_back(std::move(v));
  }
}

void leading_rule(Call& call) {
  const int64_t rank = call.max_rank();
  Stack stack = call.args;
  for (IValue& v : stack) map_tensors(v, [&](const Tensor& t) { return call.padded(t, rank); });
  call.run(std::move(stack));
}

// ---- in-place operators -------------------------------------------------------------------------
namespace {
// The view that an in-place operator makes of its argument.
const OperatorEntry* view_of_inplace(const OperatorEntry& op) {
  std::string name = op.name;
  name.pop_back();
  Dispatcher& all = Dispatcher::singleton();
  if (const OperatorEntry* found = all.find(name, op.overload)) return found;
  return op.overload[0] == 0 ? all.find(name, "int") : nullptr;
}

// Computes the functional form and writes the result into the first argument.
void inplace_rule(Call& call) {
  call.check_inplace();
  Stack stack = call.args;
  functional_of(call.op)->call_boxed(stack);
  const Tensor self = call.tensor(0), result = stack[0].toTensor();
  TORCH_CHECK(self.sizes() == result.sizes(), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", result.sizes());
  self.copy_(result);
  call.results.push_back(call.args[0]);
}

// Changes the geometry of the first argument only.
void inplace_view_rule(Call& call) {
  Stack stack = call.args;
  view_of_inplace(call.op)->call_boxed(stack);
  const Tensor self = call.tensor(0);
  WrapperImpl* mine = wrapper_at(self, *call.level);
  const Tensor made = stack[0].toTensor();
  const WrapperImpl* changed = wrapper_at(made, *call.level);
  TORCH_INTERNAL_ASSERT(mine != nullptr && changed != nullptr, call.op.full_name());
  mine->value = changed->value;
  mine->bdim = changed->bdim;
  mine->refresh();
  call.results.push_back(call.args[0]);
}

// ---- choice -------------------------------------------------------------------------------------
struct Chosen {
  Rule rule = nullptr;
  int flags = 0;
};

void add_all(std::unordered_map<std::string, Chosen>& table, ArrayRef<RuleEntry> entries) {
  for (const RuleEntry& entry : entries) {
    std::string word;
    for (const char* p = entry.ops;; ++p) {
      if (*p != ' ' && *p != 0) {
        word += *p;
        continue;
      }
      if (!word.empty()) table["aten::" + word] = {entry.rule, entry.flags};
      word.clear();
      if (*p == 0) break;
    }
  }
}
const std::unordered_map<std::string, Chosen>& named_rules() {
  static const auto* table = [] {
    auto* all = new std::unordered_map<std::string, Chosen>;
    for (const ArrayRef<RuleEntry>& family :
         {shape_rules(), reduce_rules(), index_rules(), matmul_rules(), nn_rules(), norm_rules(),
          loss_rules(), refused_rules()})
      add_all(*all, family);
    return all;
  }();
  return *table;
}

} // namespace

bool has_named_rule(const OperatorEntry& op) { return named_rules().count(op.full_name()) != 0; }

namespace {
bool tagged(const OperatorEntry& op, const char* tag) {
  return std::strstr(op.tags_text, tag) != nullptr;
}

[[noreturn]] void refuse_dynamic(Call& call) {
  throw c10::Error(c10::str(
      "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
      "over ",
      call.op.full_name(), "."));
}
void dynamic_rule(Call& call) { refuse_dynamic(call); }
void unsupported_rule(Call& call) {
  throw c10::Error(c10::str("Batching rule not implemented for ", call.op.full_name(),
                            "; the fallback path doesn't work on out= or view ops."));
}

bool has_out_argument(const OperatorEntry& op) {
  for (const SchemaArgument& a : op.schema().arguments)
    if (a.is_out) return true;
  return false;
}

Chosen choose(const OperatorEntry& op) {
  const auto& named = named_rules();
  const auto it = named.find(op.full_name());
  if (it != named.end()) return it->second;
  if (has_out_argument(op)) return {unsupported_rule, 0};
  if (tagged(op, "pointwise")) return {pointwise_rule, 0};
  if (tagged(op, "inplace_view") && view_of_inplace(op) != nullptr) return {inplace_view_rule, 0};
  if (is_inplace(op) && functional_of(op) != nullptr) return {inplace_rule, 0};
  if (tagged(op, "data_dependent_output") || tagged(op, "dynamic_output_shape"))
    return {dynamic_rule, 0};
  if ((op.flags & kOpView) != 0) return {unsupported_rule, 0};
  return {};
}
} // namespace

Rule find_rule(const OperatorEntry& op, int* flags) {
  static std::mutex mutex;
  static std::unordered_map<const OperatorEntry*, Chosen> known;
  std::lock_guard<std::mutex> lock(mutex);
  auto it = known.find(&op);
  if (it == known.end()) it = known.emplace(&op, choose(op)).first;
  *flags = it->second.flags;
  return it->second.rule;
}

BatchedBy batched_by(const OperatorEntry& op) {
  int flags = 0;
  if (is_composite(op) && !has_named_rule(op)) return BatchedBy::Definition;
  return find_rule(op, &flags) != nullptr ? BatchedBy::Rule : BatchedBy::Samples;
}

void run_batched(const OperatorEntry& op, Stack& stack, size_t from, const LevelPtr& level) {
  Call call{
      op,    op.schema(), Stack(stack.begin() + static_cast<std::ptrdiff_t>(from), stack.end()),
      level, 0,           {}};
  const Rule rule = find_rule(op, &call.flags);
  if (rule != nullptr) {
    rule(call);
  } else {
    run_per_sample(call);
  }
  stack.resize(from);
  for (IValue& v : call.results) stack.push_back(std::move(v));
}

} // namespace at::functorch
