// What batching rules are written with. A rule gets an operator's arguments, of which at least one
// is batched at the level, and computes the results of all samples at once.
//
// Two ways to write one: on values, with the batch dimension in front (`Call::front` and the like),
// or as other operators on the batched tensors themselves, which then follow their own rules.
#pragma once
#include <ATen/functorch/Interpret.h>

namespace at::functorch {

struct Call;
using Rule = void (*)(Call& call);

// What a rule may be told by the table.
enum RuleFlags : int {
  kScalarOk = 1,  // a tensor without dimensions is treated as having one
  kAllIfNone = 2, // no dimensions given means all of them
  kGrows = 4,     // dimension numbers are those of the result, which has one more
};

struct Call {
  const OperatorEntry& op;
  const FunctionSchema& schema;
  Stack args;
  LevelPtr level;
  int flags = 0;
  Stack results;

  int64_t batch() const { return level->batch_size; }
  bool batched(const Tensor& t) const { return wrapper_at(t, *level) != nullptr; }
  // The position of an argument, -1 when the operator has none of that name.
  int find(const char* name) const;
  Tensor tensor(size_t i) const { return args[i].toTensor(); }
  std::optional<Tensor> optional(size_t i) const {
    return args[i].isNone() ? std::nullopt : std::optional<Tensor>(args[i].toTensor());
  }

  // The value with the batch dimension in front; the tensor itself when it is not batched.
  Tensor front(const Tensor& t) const;
  // The same, with a batch dimension (of stride zero) where there was none.
  Tensor expanded(const Tensor& t) const;
  // The value as seen by broadcasting against samples of `rank` dimensions.
  Tensor padded(const Tensor& t, int64_t rank) const;
  // A value with its batch dimension at `bdim` as a tensor of the level.
  Tensor wrap(const Tensor& value, int64_t bdim = 0) const;

  // The largest number of dimensions of a sample.
  int64_t max_rank() const;
  // Calls the operator on values, `stack` being its arguments; takes all results as having the
  // batch dimension in front.
  void run(Stack stack, int64_t bdim = 0);
  void give(const Tensor& value, int64_t bdim = 0) { results.emplace_back(wrap(value, bdim)); }
  void give_batched(const Tensor& t) { results.emplace_back(t); }
  // A dimension of a sample as one of the value with the batch in front.
  int64_t shifted(int64_t dim, int64_t rank) const;
  void check_inplace() const;
};

// The rule of an operator from the tables, null when there is none.
Rule find_rule(const OperatorEntry& op, int* flags);

// Calls the operator on the samples one after the other.
void run_per_sample(Call& call);
[[noreturn]] void throw_inplace(const OperatorEntry& op);

// ---- rules by family (rows of the table in BatchRules.cpp)
struct RuleEntry {
  const char* ops; // "sum mean.dim": names with overloads
  Rule rule;
  int flags;
};
ArrayRef<RuleEntry> shape_rules();
ArrayRef<RuleEntry> reduce_rules();
ArrayRef<RuleEntry> index_rules();
ArrayRef<RuleEntry> matmul_rules();
ArrayRef<RuleEntry> nn_rules();
ArrayRef<RuleEntry> norm_rules();
ArrayRef<RuleEntry> loss_rules();
ArrayRef<RuleEntry> refused_rules();

// Rules that several families use.
void pointwise_rule(Call& call);
void unary_rule(Call& call);
void dims_rule(Call& call);
void leading_rule(Call& call); // the operator takes any number of leading batch dimensions

} // namespace at::functorch
