// Shape arithmetic that cannot overflow in silence. Everything that turns sizes into counts or byte
// lengths goes through these.
#pragma once
#include <cstdint>

#include <c10/util/ArrayRef.h>

namespace c10 {

[[noreturn]] C10_API void throw_size_overflow(IntArrayRef sizes);

inline bool mul_overflows(int64_t a, int64_t b, int64_t* out) {
  return __builtin_mul_overflow(a, b, out);
}
inline bool add_overflows(int64_t a, int64_t b, int64_t* out) {
  return __builtin_add_overflow(a, b, out);
}

// Product of sizes; Error when it exceeds int64. Sizes must not be negative.
inline int64_t checked_numel(IntArrayRef sizes) {
  int64_t n = 1;
  bool overflow = false;
  bool zero = false;
  for (int64_t s : sizes) {
    zero |= s == 0;
    overflow |= mul_overflows(n, s, &n);
  }
  if (C10_UNLIKELY(overflow)) {
    if (zero) return 0;
    throw_size_overflow(sizes);
  }
  return n;
}

// Bytes a strided tensor reaches from the start of its storage; Error on overflow or negatives.
C10_API int64_t checked_storage_bytes(IntArrayRef sizes, IntArrayRef strides, int64_t itemsize,
                                      int64_t storage_offset);

} // namespace c10
