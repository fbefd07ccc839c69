// See MaxRows.h. Plain loops that the compiler turns into vector code, strides 1 and 2 apart.
#include <ATen/native/pool/MaxRows.h>

#include <limits>

namespace at::native::max_rows {
namespace CRESSET_ISA {
namespace {

// Element `at`, counted in the plane, of the first window, and of the others with it. kStride 0: as
// the argument says.
template <class T, int kStride>
__attribute__((optimize("O3"))) void tap(const T* __restrict from, int64_t place, int64_t stride_,
                                         int64_t count, T* __restrict best,
                                         int32_t* __restrict where) {
  const int64_t stride = kStride > 0 ? kStride : stride_;
  const int32_t first = static_cast<int32_t>(place), next = static_cast<int32_t>(stride);
  for (int32_t i = 0; i < static_cast<int32_t>(count); ++i) {
    const T v = from[i * stride];
    const bool wins = static_cast<bool>(static_cast<int>(v > best[i]) | static_cast<int>(v != v));
    best[i] = wins ? v : best[i];
    where[i] = wins ? first + i * next : where[i];
  }
}

template <class T> void row(const RowShape& s, const void* plane_, void* out_, int32_t* where) {
  const T* plane = static_cast<const T*>(plane_);
  T* out = static_cast<T*>(out_);
  for (int64_t i = 0; i < s.count; ++i) {
    out[i] = -std::numeric_limits<T>::infinity();
    where[i] = static_cast<int32_t>(s.lines[0] + i * s.stride);
  }
  const auto one = s.stride == 1 ? &tap<T, 1> : s.stride == 2 ? &tap<T, 2> : &tap<T, 0>;
  for (int64_t line = 0; line < s.line_count; ++line)
    for (int64_t k = 0; k < s.taps; ++k) {
      const int64_t place = s.lines[line] + k * s.step;
      one(plane + place, place, s.stride, s.count, out, where);
    }
}
} // namespace

void fill(Table& table) {
  table.row[static_cast<int>(c10::ScalarType::Float)] = &row<float>;
  table.row[static_cast<int>(c10::ScalarType::Double)] = &row<double>;
}
} // namespace CRESSET_ISA
} // namespace at::native::max_rows
