// The choice of the reduction table for this machine.
#include <ATen/native/reduce/ReduceKernel.h>

#include <ATen/iter/CpuIsa.h>

namespace at::native::reduce {

const ReduceKernel* find_kernel(ReduceOp op, c10::ScalarType dtype) {
  static const ReduceTable* const table = [] {
    auto* t = new ReduceTable;
#define CRESSET_FILL_ALL(isa)                                                                      \
  isa::fill_sum(*t), isa::fill_minmax(*t), isa::fill_arg(*t), isa::fill_logic(*t),                 \
      isa::fill_norm(*t), isa::fill_var(*t), isa::fill_logsumexp(*t)
#if defined(CRESSET_HAVE_X86_ISA)
    const Isa isa = cpu_isa();
    if (isa == Isa::Avx512)
      CRESSET_FILL_ALL(avx512);
    else if (isa == Isa::Avx2)
      CRESSET_FILL_ALL(avx2);
    else
      CRESSET_FILL_ALL(base);
#else
    CRESSET_FILL_ALL(base);
#endif
#undef CRESSET_FILL_ALL
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
