// Copying elements in the opposite order, per instruction set.
#pragma once
#include <cstdint>

namespace at::native::reverse {

// to[i] = from[-i] for n elements of 1, 2, 4 or 8 bytes; `from` is the last one. The two do not
// overlap.
using CopyFn = void (*)(char* to, const char* from, int64_t n);

struct Table {
  CopyFn copy[4]; // by the logarithm of the size
};

namespace base {
Table table();
}
namespace avx2 {
Table table();
}
namespace avx512 {
Table table();
}

} // namespace at::native::reverse
