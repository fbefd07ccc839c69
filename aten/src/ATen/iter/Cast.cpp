// The choice of the conversion table.
#include <ATen/iter/Cast.h>

#include <ATen/iter/CastTable.h>
#include <ATen/iter/CpuIsa.h>

namespace at {

native::Loop1d cast_loop(c10::ScalarType to, c10::ScalarType from) {
  static const cast::CastTable* const table = [] {
    auto* t = new cast::CastTable;
    CRESSET_BY_ISA(cast::, fill)(*t);
    return t;
  }();
  return table->loop[static_cast<int>(to)][static_cast<int>(from)];
}

} // namespace at
