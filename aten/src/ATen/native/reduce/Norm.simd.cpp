// The sums and extremes behind vector norms: |x|, x^2, |x|^p. Complex elements enter by their
// modulus, so the accumulators are real.
#include <ATen/native/reduce/Fold.h>
#include <ATen/native/reduce/FoldOps.h>

namespace at::native::reduce {
namespace CRESSET_ISA {

void fill_norm(ReduceTable& table) {
  using Inputs = Concat<FloatingTypes, AllComplexTypes>::type;
  fill_fold<AbsSum>(table, ReduceOp::AbsSum, Inputs{});
  fill_fold<SquareSum>(table, ReduceOp::SquareSum, Inputs{});
  fill_fold<AbsPowSum>(table, ReduceOp::AbsPowSum, Inputs{});
  fill_fold<AbsMax>(table, ReduceOp::AbsMax, Inputs{});
  fill_fold<AbsMin>(table, ReduceOp::AbsMin, Inputs{});
}

} // namespace CRESSET_ISA
} // namespace at::native::reduce
