// The choice of the loops of embedding_bag for this machine.
#include <ATen/iter/CpuIsa.h>
#include <ATen/native/index/BagRows.h>

namespace at::native::bag_rows {

const Table& table() {
  static const Table* const made = [] {
    auto* t = new Table;
    CRESSET_BY_ISA(, fill)(*t);
    return t;
  }();
  return *made;
}

} // namespace at::native::bag_rows
