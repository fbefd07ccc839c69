// See PoolRows.h. Plain loops that the compiler turns into vector code, strides 1 and 2 apart.
#include <ATen/native/pool/PoolRows.h>

#include <algorithm>
#include <limits>

namespace at::native::pool_rows {
namespace CRESSET_ISA {
namespace {

template <class T> bool wins(T v, T best) {
  return static_cast<bool>(static_cast<int>(v > best) | static_cast<int>(v != v));
}

// What one element of every window does to the results. kStride 0: as the argument says.
template <class T> struct Place {
  T* best_;
  int32_t* where_;
  template <int kStride> __attribute__((optimize("O3"))) void
  tap(const T* __restrict from, int64_t place, int64_t stride_, int64_t count) const {
    const int64_t stride = kStride > 0 ? kStride : stride_;
    const int32_t first = static_cast<int32_t>(place), next = static_cast<int32_t>(stride);
    T* __restrict const best = best_;
    int32_t* __restrict const where = where_;
    for (int32_t i = 0; i < static_cast<int32_t>(count); ++i) {
      const T v = from[i * stride];
      const bool better = wins(v, best[i]);
      best[i] = better ? v : best[i];
      where[i] = better ? first + i * next : where[i];
    }
  }
};
template <class T> struct Largest {
  T* best_;
  template <int kStride> __attribute__((optimize("O3"))) void
  tap(const T* __restrict from, int64_t, int64_t stride_, int64_t count) const {
    const int64_t stride = kStride > 0 ? kStride : stride_;
    T* __restrict const best = best_;
    for (int32_t i = 0; i < static_cast<int32_t>(count); ++i)
      best[i] = wins(from[i * stride], best[i]) ? from[i * stride] : best[i];
  }
};
template <class T> struct Sum {
  T* sum_;
  template <int kStride> __attribute__((optimize("O3"))) void
  tap(const T* __restrict from, int64_t, int64_t stride_, int64_t count) const {
    const int64_t stride = kStride > 0 ? kStride : stride_;
    T* __restrict const sum = sum_;
    for (int32_t i = 0; i < static_cast<int32_t>(count); ++i) sum[i] += from[i * stride];
  }
};

template <class T, class Step> void walk(const RowShape& s, const T* plane, const Step& step) {
  for (int64_t line = 0; line < s.line_count; ++line)
    for (int64_t k = 0; k < s.taps; ++k) {
      const int64_t place = s.lines[line] + k * s.step;
      if (s.stride == 1)
        step.template tap<1>(plane + place, place, 1, s.count);
      else if (s.stride == 2)
        step.template tap<2>(plane + place, place, 2, s.count);
      else
        step.template tap<0>(plane + place, place, s.stride, s.count);
    }
}

template <class T> void max(const RowShape& s, const void* plane, void* out_, int32_t* where) {
  T* out = static_cast<T*>(out_);
  std::fill(out, out + s.count, -std::numeric_limits<T>::infinity());
  if (where == nullptr) return walk(s, static_cast<const T*>(plane), Largest<T>{out});
  for (int64_t i = 0; i < s.count; ++i) where[i] = static_cast<int32_t>(s.lines[0] + i * s.stride);
  walk(s, static_cast<const T*>(plane), Place<T>{out, where});
}
template <class T> void sum(const RowShape& s, const void* plane, void* out_) {
  T* out = static_cast<T*>(out_);
  std::fill(out, out + s.count, T(0));
  walk(s, static_cast<const T*>(plane), Sum<T>{out});
}
} // namespace

void fill(Table& table) {
  table.max[static_cast<int>(c10::ScalarType::Float)] = &max<float>;
  table.max[static_cast<int>(c10::ScalarType::Double)] = &max<double>;
  table.sum[static_cast<int>(c10::ScalarType::Float)] = &sum<float>;
  table.sum[static_cast<int>(c10::ScalarType::Double)] = &sum<double>;
}
} // namespace CRESSET_ISA
} // namespace at::native::pool_rows
