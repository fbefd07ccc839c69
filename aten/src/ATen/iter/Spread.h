// Repeating elements: one value over a stretch of memory, for operands that are broadcast along the
// innermost dimension. Whole registers are stored, so that a register read back from there does not
// wait for many small stores.
#pragma once
#include <cstdint>

namespace at::native {

// Writes `rows` stretches of n elements of `size` bytes (1, 2, 4, 8 or 16) one after the other; the
// element of row r is at from + r * step. Up to kSpreadSlack bytes behind the last may be written.
using SpreadFn = void (*)(char* to, int64_t n, const char* from, int64_t step, int64_t rows,
                          int size);
inline constexpr int kSpreadSlack = 64;

namespace base {
void spread(char* to, int64_t n, const char* from, int64_t step, int64_t rows, int size);
} // namespace base
namespace avx2 {
void spread(char* to, int64_t n, const char* from, int64_t step, int64_t rows, int size);
} // namespace avx2
namespace avx512 {
void spread(char* to, int64_t n, const char* from, int64_t step, int64_t rows, int size);
} // namespace avx512

} // namespace at::native
