// See Reverse.h: a register is turned by one permutation where the machine has it, and the rest of
// a row is a register that begins before it.
#include <ATen/native/shape/Reverse.h>

#include <ATen/vec/Vec.h>

namespace at::native::reverse {
namespace CRESSET_ISA {
namespace {

template <class T> C10_ALWAYS_INLINE typename vec::Vec<T>::Raw turned(typename vec::Vec<T>::Raw v) {
  constexpr int kLanes = vec::Vec<T>::kLanes;
  typename vec::Vec<vec::int_of<T>>::Raw order;
  for (int i = 0; i < kLanes; ++i) order[i] = static_cast<vec::int_of<T>>(kLanes - 1 - i);
  return __builtin_shuffle(v, order);
}

template <class T> void copy(char* to, const char* from, int64_t n) {
  constexpr int64_t kSize = sizeof(T), kLanes = vec::Vec<T>::kLanes;
  const auto block = [to, from](int64_t i) {
    const auto v = vec::Vec<T>::load(from - (i + kLanes - 1) * kSize);
    vec::Vec<T>(turned<T>(v.v)).store(to + i * kSize);
  };
  if (n < kLanes) {
    for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * kSize, from - i * kSize, kSize);
    return;
  }
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) block(i);
  if (i < n) block(n - kLanes);
}

} // namespace

Table table() { return {{&copy<signed char>, &copy<short>, &copy<int>, &copy<long>}}; }

} // namespace CRESSET_ISA
} // namespace at::native::reverse
