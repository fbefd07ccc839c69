// The choice of the reduction table for this machine.
#include <ATen/native/reduce/ReduceKernel.h>

#include <ATen/iter/CpuIsa.h>

namespace at::native::reduce {

const ReduceKernel* find_kernel(ReduceOp op, c10::ScalarType dtype) {
  static const ReduceTable* const table = [] {
    auto* t = new ReduceTable;
    CRESSET_BY_ISA(, fill_sum)(*t);
    CRESSET_BY_ISA(, fill_minmax)(*t);
    CRESSET_BY_ISA(, fill_arg)(*t);
    CRESSET_BY_ISA(, fill_logic)(*t);
    CRESSET_BY_ISA(, fill_norm)(*t);
    CRESSET_BY_ISA(, fill_var)(*t);
    CRESSET_BY_ISA(, fill_logsumexp)(*t);
    for (int op = 0; op < kReduceOps; ++op) {
      for (int dtype = 0; dtype < c10::NumScalarTypes; ++dtype) {
        t->kernel[op][dtype].op = static_cast<ReduceOp>(op);
        t->kernel[op][dtype].dtype = static_cast<c10::ScalarType>(dtype);
      }
    }
    return t;
  }();
  const ReduceKernel& kernel = table->kernel[static_cast<int>(op)][static_cast<int>(dtype)];
  return kernel.leaf ? &kernel : nullptr;
}

} // namespace at::native::reduce
