// How operators run on wrappers. See Note [Levels by wrapper].
#pragma once
#include <atomic>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>
#include <ATen/functional/Engine.h>
#include <ATen/functorch/Level.h>

namespace at::functorch {

// Registers the kernels for the keys of wrappers, and for the mode of functionalize when asked.
// Does nothing when they are in place.
void register_kernels(bool functionalize);

// The operator on a stack whose arguments begin at `from`, interpreted by `level`.
void run_batched(const OperatorEntry& op, Stack& stack, size_t from, const LevelPtr& level);
void run_random(const OperatorEntry& op, Stack& stack, size_t from, const LevelPtr& level);

void run_functional(const OperatorEntry& op, Stack& stack, size_t from, const LevelPtr& level);

// The jvp level differentiates, which is above this library: set by torch/csrc/functorch.
using JvpKernel = void (*)(const OperatorEntry& op, Stack& stack, size_t from,
                           const LevelPtr& level);
TORCH_API extern JvpKernel jvp_kernel;

// The operator's decomposition into others, with the arguments as they are.
void run_composite(const OperatorEntry& op, Stack& stack);
// Whether the operator can only be, or had better be, run as other operators.
TORCH_API bool is_composite(const OperatorEntry& op);
bool is_random(const OperatorEntry& op);
// Levels from this id on have had their say about the random operator being run.
uint64_t& random_limit();

// Whether the tables have a rule for just this operator.
bool has_named_rule(const OperatorEntry& op);

// How vmap treats an operator: by a rule, through its definition in terms of others, or sample by
// sample.
enum class BatchedBy { Rule, Definition, Samples };
TORCH_API BatchedBy batched_by(const OperatorEntry& op);

// What vmap does with an operator that it can only call sample by sample: whether it may, whether
// it warns, and whether it warns on every call instead of once for an operator.
struct FallbackSettings {
  std::atomic<bool> allowed{true}, warns{true}, warns_always{false};
};
TORCH_API FallbackSettings& fallback_settings();

// See ATen/functional/Engine.h.
using functional::each_tensor;
using functional::functional_of;
using functional::map_tensors;

// Whether argument `i` is written by the operator.
inline bool writes(const FunctionSchema& schema, size_t i) {
  return schema.arguments[i].alias && schema.arguments[i].alias->is_write;
}

} // namespace at::functorch
