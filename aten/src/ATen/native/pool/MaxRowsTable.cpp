// The choice of the loops of max pooling for this machine.
#include <ATen/iter/CpuIsa.h>
#include <ATen/native/pool/MaxRows.h>

namespace at::native::max_rows {

const Table& table() {
  static const Table* const made = [] {
    auto* t = new Table;
#ifdef CRESSET_HAVE_X86_ISA
    const Isa isa = cpu_isa();
    if (isa == Isa::Avx512)
      avx512::fill(*t);
    else if (isa == Isa::Avx2)
      avx2::fill(*t);
    else
      base::fill(*t);
#else
    base::fill(*t);
#endif
    return t;
  }();
  return *made;
}

} // namespace at::native::max_rows
