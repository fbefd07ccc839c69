// Matrix products of integers, which the vendor's library does not have: 16 x 16 tiles through
// shared memory, sums that wrap around as the CPU's do.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/matmul/IntegerProduct.args.h>

namespace at::device {

template <class T> CRESSET_DEVICE_FN void integer_product(const T* a, const T* b, const T* c, T* d,
                                                          const IntegerProduct& p) {
  CRESSET_SHARED T left[16][17], right[16][17];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const long row = static_cast<long>(blockIdx.y) * 16 + y;
  const long column = static_cast<long>(blockIdx.x) * 16 + x;
  a += blockIdx.z * p.a[0];
  b += blockIdx.z * p.b[0];
  unsigned long sum = 0;
  for (long start = 0; start < p.k; start += 16) {
    left[y][x] = row < p.m && start + x < p.k ? a[row * p.a[1] + (start + x) * p.a[2]] : T(0);
    right[y][x] =
        start + y < p.k && column < p.n ? b[(start + y) * p.b[1] + column * p.b[2]] : T(0);
    __syncthreads();
    CRESSET_UNROLL
    for (int i = 0; i < 16; ++i)
      sum += static_cast<unsigned long>(static_cast<long>(left[y][i])) *
             static_cast<unsigned long>(static_cast<long>(right[i][x]));
    __syncthreads();
  }
  if (row >= p.m || column >= p.n) return;
  unsigned long result = sum * static_cast<unsigned long>(p.alpha);
  if (p.beta != 0)
    result += static_cast<unsigned long>(p.beta) *
              static_cast<unsigned long>(
                  static_cast<long>(c[blockIdx.z * p.c[0] + row * p.c[1] + column * p.c[2]]));
  d[blockIdx.z * p.d[0] + row * p.d[1] + column * p.d[2]] = static_cast<T>(result);
}

} // namespace at::device

#define CRESSET_INTEGER_PRODUCT(T)                                                                 \
  CRESSET_KERNEL(256)                                                                              \
  integer_product_##T(const cresset_##T* a, const cresset_##T* b, const cresset_##T* c,            \
                      cresset_##T* d, const __grid_constant__ at::device::IntegerProduct p) {      \
    at::device::integer_product(a, b, c, d, p);                                                    \
  }
CRESSET_INTEGER_PRODUCT(u8)
CRESSET_INTEGER_PRODUCT(i8)
CRESSET_INTEGER_PRODUCT(i16)
CRESSET_INTEGER_PRODUCT(i32)
CRESSET_INTEGER_PRODUCT(i64)
