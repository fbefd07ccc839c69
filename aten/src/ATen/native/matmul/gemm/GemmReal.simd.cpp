// Kernel tables of float, double and their complex types for one instruction set.
#include <ATen/native/matmul/gemm/Sets.h>

namespace at::native::gemm::CRESSET_ISA {

const KernelSet* real_set(Elem elem) {
  static constexpr KernelSet f32 = make_real_set<float, float, kBlockRows, kBlockVecs>();
  static constexpr KernelSet f64 = make_real_set<double, double, kBlockRows, kBlockVecs>();
  static constexpr KernelSet c64 = make_complex_set<float>();
  static constexpr KernelSet c128 = make_complex_set<double>();
  switch (elem) {
  case Elem::F32:
    return &f32;
  case Elem::F64:
    return &f64;
  case Elem::C64:
    return &c64;
  case Elem::C128:
    return &c128;
  default:
    return nullptr;
  }
}

} // namespace at::native::gemm::CRESSET_ISA
