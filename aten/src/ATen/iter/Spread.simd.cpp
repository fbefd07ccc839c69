// See Spread.h.
#include <ATen/iter/Spread.h>
#include <ATen/vec/Vec.h>

namespace at::native {
namespace CRESSET_ISA {
namespace {

template <class T> C10_ALWAYS_INLINE vec::Vec<long> repeated(const char* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(T));
  return (vec::Vec<long>::Raw)vec::Vec<T>(value).v;
}

// 16 bytes: two halves that take turns.
struct Halves {};
template <> C10_ALWAYS_INLINE vec::Vec<long> repeated<Halves>(const char* from) {
  long half[2];
  __builtin_memcpy(half, from, sizeof(half));
#if defined(__AVX512F__)
  return vec::Vec<long>::Raw{half[0], half[1], half[0], half[1],
                             half[0], half[1], half[0], half[1]};
#elif defined(__AVX2__)
  return vec::Vec<long>::Raw{half[0], half[1], half[0], half[1]};
#else
  return vec::Vec<long>::Raw{half[0], half[1]};
#endif
}

template <class T>
void spread_rows(char* to, int64_t bytes, const char* from, int64_t step, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, to += bytes) {
    const vec::Vec<long> value = repeated<T>(from + r * step);
    for (int64_t i = 0; i < bytes; i += vec::kVecBytes) value.store(to + i);
  }
}

} // namespace

void spread(char* to, int64_t n, const char* from, int64_t step, int64_t rows, int size) {
  switch (size) {
  case 1:
    return spread_rows<signed char>(to, n, from, step, rows);
  case 2:
    return spread_rows<short>(to, 2 * n, from, step, rows);
  case 4:
    return spread_rows<int>(to, 4 * n, from, step, rows);
  case 8:
    return spread_rows<long>(to, 8 * n, from, step, rows);
  default:
    return spread_rows<Halves>(to, 16 * n, from, step, rows);
  }
}

} // namespace CRESSET_ISA
} // namespace at::native
