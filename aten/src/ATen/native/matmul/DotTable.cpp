// The choice of the loops of dot products for this machine.
#include <ATen/iter/CpuIsa.h>
#include <ATen/native/matmul/Dot.h>

namespace at::native::dot {

const Table& table() {
  static const Table* const made = [] {
    auto* t = new Table;
    CRESSET_BY_ISA(, fill)(*t);
    return t;
  }();
  return *made;
}

} // namespace at::native::dot
