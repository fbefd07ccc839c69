// max, min and both at once.
#include <ATen/native/reduce/Extremum.h>

namespace at::native::reduce {
namespace CRESSET_ISA {
namespace {
template <class... Ts> void fill_pairs(ReduceTable& table, Types<Ts...>) {
  ((table.kernel[static_cast<int>(ReduceOp::MinMax)][static_cast<int>(c10::scalar_type_of<Ts>)] =
        FoldPair<Fold<MinOp, Ts>, Fold<MaxOp, Ts>>::kernel(c10::scalar_type_of<vec::opmath_t<Ts>>)),
   ...);
}
} // namespace

void fill_minmax(ReduceTable& table) {
  fill_fold<MaxOp>(table, ReduceOp::Max, RealTypes{});
  fill_fold<MinOp>(table, ReduceOp::Min, RealTypes{});
  fill_pairs(table, RealTypes{});
}

} // namespace CRESSET_ISA
} // namespace at::native::reduce
