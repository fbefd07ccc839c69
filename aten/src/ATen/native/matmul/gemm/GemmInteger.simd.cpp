// Kernel tables of the integers for one instruction set. Products wrap in their own type, and
// wrapping is the same for signed and unsigned, so only unsigned kernels exist.
#include <ATen/native/matmul/gemm/Sets.h>

namespace at::native::gemm::CRESSET_ISA {

// A smaller register block than for floats: vector products of integers take temporaries.
constexpr int kIntegerRows = 4;
constexpr int kIntegerVecs = 2;

const KernelSet* integer_set(Elem elem) {
  static constexpr KernelSet u8 = make_real_set<uint8_t, uint8_t, kIntegerRows, kIntegerVecs>();
  static constexpr KernelSet u16 = make_real_set<uint16_t, uint16_t, kIntegerRows, kIntegerVecs>();
  static constexpr KernelSet u32 = make_real_set<uint32_t, uint32_t, kIntegerRows, kIntegerVecs>();
  static constexpr KernelSet u64 = make_real_set<uint64_t, uint64_t, kIntegerRows, kIntegerVecs>();
  switch (elem) {
  case Elem::U8:
    return &u8;
  case Elem::U16:
    return &u16;
  case Elem::U32:
    return &u32;
  case Elem::U64:
    return &u64;
  default:
    return nullptr;
  }
}

} // namespace at::native::gemm::CRESSET_ISA
