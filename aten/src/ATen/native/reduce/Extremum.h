// Two reductions side by side, such as maximum and minimum. Included by kernel files.
#pragma once
#include <ATen/native/reduce/Fold.h>
#include <ATen/native/reduce/FoldOps.h>

namespace at::native::reduce {
namespace CRESSET_ISA {

// Two folds of one element type side by side: accumulators of the first, then of the second.
template <class First, class Second> struct FoldPair {
  using A = typename First::A;
  static void leaf(char* acc, const LeafArgs& a) {
    First::leaf(acc, a);
    Second::leaf(acc + a.outputs * static_cast<int64_t>(sizeof(A)), a);
  }
  static void combine(char* a, const char* b, int64_t outputs) {
    const int64_t half = outputs * static_cast<int64_t>(sizeof(A));
    First::combine(a, b, outputs);
    Second::combine(a + half, b + half, outputs);
  }
  static void finish(char* const* value, const char* acc, int64_t outputs, const FinishArgs&) {
    const int64_t half = outputs * static_cast<int64_t>(sizeof(A));
    __builtin_memcpy(value[0], acc, half);
    __builtin_memcpy(value[1], acc + half, half);
  }
  static ReduceKernel kernel(c10::ScalarType value) {
    return {&leaf, &combine, &finish, 2 * static_cast<int32_t>(sizeof(A)), 2, {value, value}};
  }
};

} // namespace CRESSET_ISA
} // namespace at::native::reduce
