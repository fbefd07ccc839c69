// The table behind cast_loop: a loop for every pair of element types, filled on first use by the
// best instruction set.
#pragma once
#include <ATen/iter/LoopTable.h>

namespace at::cast {
struct CastTable {
  native::Loop1d loop[c10::NumScalarTypes][c10::NumScalarTypes] = {};
};
#if defined(__x86_64__)
namespace avx2 {
void fill(CastTable& table);
}
namespace avx512 {
void fill(CastTable& table);
}
#endif
namespace base {
void fill(CastTable& table);
}
} // namespace at::cast
