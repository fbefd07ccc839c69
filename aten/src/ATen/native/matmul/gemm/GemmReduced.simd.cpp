// Kernel tables of Half and BFloat16 for one instruction set: widened to float while packing, so
// that they run at the speed of float, and rounded once at the end.
#include <ATen/native/matmul/gemm/Sets.h>

namespace at::native::gemm::CRESSET_ISA {

const KernelSet* reduced_set(Elem elem) {
  static constexpr KernelSet f16 = make_real_set<HalfBits, float, kBlockRows, kBlockVecs>();
  static constexpr KernelSet bf16 = make_real_set<BFloat16Bits, float, kBlockRows, kBlockVecs>();
  switch (elem) {
  case Elem::F16:
    return &f16;
  case Elem::BF16:
    return &bf16;
  default:
    return nullptr;
  }
}

} // namespace at::native::gemm::CRESSET_ISA
