// sum, nansum and prod.
#include <ATen/native/reduce/Fold.h>
#include <ATen/native/reduce/FoldComplex.h>
#include <ATen/native/reduce/FoldOps.h>

namespace at::native::reduce {
namespace CRESSET_ISA {

void fill_sum(ReduceTable& table) {
  fill_fold<Sum>(table, ReduceOp::Sum, AllTypesAndBool{});
  fill_fold<NanSum>(table, ReduceOp::NanSum, FloatingTypes{});
  fill_fold<Prod>(table, ReduceOp::Prod, AllTypesAndBool{});
  using Complex = Types<c10::complex<float>, c10::complex<double>>;
  fill_fold_complex<Sum>(table, ReduceOp::Sum, Complex{});
  fill_fold_complex<Prod>(table, ReduceOp::Prod, Complex{});
}

} // namespace CRESSET_ISA
} // namespace at::native::reduce
