// The contract between the reduction driver, which is compiled once, and the reductions themselves,
// which are compiled per operation, element type and instruction set. A reduction is three small
// functions on arrays of accumulators; which elements they see and in which order is the driver's
// decision, so that every reduction is fast for every layout and has the same bits on every number
// of threads (Note [Fixed reduction tree] in ReduceDriver.cpp).
#pragma once
#include <cstdint>

#include <c10/core/ScalarType.h>

namespace at::native::reduce {

enum class ReduceOp : uint8_t {
  Sum,
  NanSum,
  Prod,
  Max,
  Min,
  MinMax,
  ArgMax,
  ArgMin,
  All,
  Any,
  CountNonzero,
  XorSum,
  AbsSum,
  SquareSum,
  AbsPowSum,
  AbsMax,
  AbsMin,
  Var,
  LogSumExp,
};
constexpr int kReduceOps = static_cast<int>(ReduceOp::LogSumExp) + 1;

// A block of `count` elements for each of `outputs` results. Strides are in bytes.
struct LeafArgs {
  const char* in;
  int64_t outputs;
  int64_t output_stride;
  int64_t count;
  int64_t stride;
  int64_t index; // position of the first element within the reduction, for arg-reductions
  double param;  // the exponent of AbsPowSum
};

struct FinishArgs {
  int64_t count; // elements per result
  double param;
};

// Sets `args.outputs` accumulators from the elements alone; a count of 0 gives the identity.
using LeafFn = void (*)(char* acc, const LeafArgs& args);
// a[i] = a[i] with b[i]; b covers later elements than a.
using CombineFn = void (*)(char* a, const char* b, int64_t outputs);
// Turns accumulators into values: value[k] receives `outputs` elements of value_dtype[k].
using FinishFn = void (*)(char* const* value, const char* acc, int64_t outputs,
                          const FinishArgs& args);

struct ReduceKernel {
  LeafFn leaf = nullptr; // null: the operation is not defined for the type
  CombineFn combine = nullptr;
  FinishFn finish = nullptr; // null: the accumulators are the values
  int32_t acc_bytes = 0;     // per result
  int32_t values = 1;
  c10::ScalarType value_dtype[2] = {c10::ScalarType::Undefined, c10::ScalarType::Undefined};
  ReduceOp op = ReduceOp::Sum; // the entry's own place in the table, for other devices
  c10::ScalarType dtype = c10::ScalarType::Undefined;
};

struct ReduceTable {
  ReduceKernel kernel[kReduceOps][c10::NumScalarTypes];
};

// The kernel of the best instruction set; null when the operation is not defined for the type.
const ReduceKernel* find_kernel(ReduceOp op, c10::ScalarType dtype);

#define CRESSET_REDUCE_FILLS(isa)                                                                  \
  namespace isa {                                                                                  \
  void fill_sum(ReduceTable& table);                                                               \
  void fill_minmax(ReduceTable& table);                                                            \
  void fill_arg(ReduceTable& table);                                                               \
  void fill_logic(ReduceTable& table);                                                             \
  void fill_norm(ReduceTable& table);                                                              \
  void fill_var(ReduceTable& table);                                                               \
  void fill_logsumexp(ReduceTable& table);                                                         \
  }
CRESSET_REDUCE_FILLS(base)
#if defined(CRESSET_HAVE_X86_ISA)
CRESSET_REDUCE_FILLS(avx2)
CRESSET_REDUCE_FILLS(avx512)
#endif
#undef CRESSET_REDUCE_FILLS

} // namespace at::native::reduce
