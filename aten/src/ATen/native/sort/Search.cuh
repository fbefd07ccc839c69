// Binary search of values in sorted rows, one thread per value. See Search.cuda.cpp.
#include <ATen/cuda/device/ErrorSlot.cuh>
#include <ATen/native/sort/Search.args.h>

namespace at::device {

template <class T> CRESSET_DEVICE_FN void search(const SearchArgs& a) {
  using C = opmath_t<T>;
  const long i = static_cast<long>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= a.count) return;
  const long start = a.one_row != 0 ? 0 : i / a.per_row * a.n;
  const T* row = static_cast<const T*>(a.rows) + start;
  const C v = convert<C>(static_cast<const T*>(a.values)[i]);
  long low = 0, high = a.n;
  while (low < high) {
    const long middle = low + (high - low) / 2;
    long place = middle;
    if (a.order != nullptr) {
      place = a.order[start + middle];
      if (!a.check.within(place, a.n, -1)) return;
    }
    const C m = convert<C>(row[place]);
    // Written so that NaN lies behind everything.
    if (a.right != 0 ? m > v : m >= v)
      high = middle;
    else
      low = middle + 1;
  }
  if (a.narrow != 0)
    static_cast<int*>(a.out)[i] = static_cast<int>(low);
  else
    static_cast<long*>(a.out)[i] = low;
}

} // namespace at::device

#define CRESSET_SEARCH(type)                                                                       \
  CRESSET_KERNEL(256) search_##type(const __grid_constant__ at::device::SearchArgs args) {         \
    at::device::search<cresset_##type>(args);                                                      \
  }
CRESSET_SEARCH(u8)
CRESSET_SEARCH(i8)
CRESSET_SEARCH(i16)
CRESSET_SEARCH(i32)
CRESSET_SEARCH(i64)
CRESSET_SEARCH(u16)
CRESSET_SEARCH(u32)
CRESSET_SEARCH(u64)
CRESSET_SEARCH(f16)
CRESSET_SEARCH(bf16)
CRESSET_SEARCH(f32)
CRESSET_SEARCH(f64)
