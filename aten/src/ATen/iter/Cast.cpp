// The choice of the conversion table.
#include <ATen/iter/Cast.h>

#include <ATen/iter/CastTable.h>
#include <ATen/iter/CpuIsa.h>

namespace at {

native::Loop1d cast_loop(c10::ScalarType to, c10::ScalarType from) {
  static const cast::CastTable* const table = [] {
    auto* t = new cast::CastTable;
#if defined(__x86_64__)
    const Isa isa = cpu_isa();
    if (isa == Isa::Avx512)
      cast::avx512::fill(*t);
    else if (isa == Isa::Avx2)
      cast::avx2::fill(*t);
    else
      cast::base::fill(*t);
#else
    cast::base::fill(*t);
#endif
    return t;
  }();
  return table->loop[static_cast<int>(to)][static_cast<int>(from)];
}

} // namespace at
