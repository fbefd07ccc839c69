// tril and triu by element size: packs of 16 bytes, several in flight; what is dropped is not read.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/shape/Triangle.args.h>

namespace at::device {

template <class T, int kCount> CRESSET_DEVICE_FN void triangle_steps(const TriangleArgs& a) {
  constexpr int kSteps = 4;
  const long first = static_cast<long>(blockIdx.x) * blockDim.x * kSteps + threadIdx.x;
  Pack<T, kCount> x[kSteps];
  long distance[kSteps]; // j - i of the pack's first element
  CRESSET_UNROLL
  for (int s = 0; s < kSteps; ++s) {
    const long p = first + s * blockDim.x;
    const unsigned row = a.across.quotient(static_cast<unsigned>(p));
    const unsigned i = row - a.rows.quotient(row) * a.rows.divisor;
    distance[s] = (p - static_cast<long>(row) * a.across.divisor) * kCount - static_cast<long>(i);
    const bool any = a.upper ? distance[s] + kCount - 1 >= a.diagonal : distance[s] <= a.diagonal;
    if (p < a.n && any) {
      x[s] = load_pack<kCount>(static_cast<const T*>(a.in) + p * kCount);
    } else {
      CRESSET_UNROLL
      for (int k = 0; k < kCount; ++k) x[s].v[k] = T();
    }
  }
  CRESSET_UNROLL
  for (int s = 0; s < kSteps; ++s) {
    const long p = first + s * blockDim.x;
    CRESSET_UNROLL
    for (int k = 0; k < kCount; ++k) {
      const long d = distance[s] + k;
      if (a.upper ? d < a.diagonal : d > a.diagonal) x[s].v[k] = T();
    }
    if (p < a.n) store_pack(static_cast<T*>(a.out) + p * kCount, x[s]);
  }
}
template <class T> CRESSET_DEVICE_FN void triangle(const TriangleArgs& a) {
  if (a.packed)
    triangle_steps<T, 16 / sizeof(T)>(a);
  else
    triangle_steps<T, 1>(a);
}

} // namespace at::device

#define CRESSET_TRIANGLE(type)                                                                     \
  CRESSET_KERNEL(256) triangle_##type(const __grid_constant__ at::device::TriangleArgs args) {     \
    at::device::triangle<cresset_##type>(args);                                                    \
  }
CRESSET_TRIANGLE(u8)
CRESSET_TRIANGLE(i16)
CRESSET_TRIANGLE(i32)
CRESSET_TRIANGLE(i64)
CRESSET_TRIANGLE(c128)
