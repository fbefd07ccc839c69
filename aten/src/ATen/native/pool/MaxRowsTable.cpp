// The choice of the loops of max pooling for this machine.
#include <ATen/iter/CpuIsa.h>
#include <ATen/native/pool/MaxRows.h>

namespace at::native::max_rows {

const Table& table() {
  static const Table* const made = [] {
    auto* t = new Table;
    CRESSET_BY_ISA(, fill)(*t);
    return t;
  }();
  return *made;
}

} // namespace at::native::max_rows
