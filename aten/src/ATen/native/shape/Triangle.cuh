// tril and triu: one block per row (of rows of all matrices, one after the other), by element size.
#include <ATen/cuda/device/Prelude.cuh>

namespace at::device {

// Columns j of row i with j - i <= diagonal are the lower triangle; `upper` keeps j - i >=
// diagonal.
template <class T> CRESSET_DEVICE_FN void triangle(T* out, const T* in, long all_rows, long rows,
                                                   long columns, long diagonal, int upper) {
  for (long r = blockIdx.x; r < all_rows; r += gridDim.x) {
    const long i = r % rows;
    for (long j = threadIdx.x; j < columns; j += blockDim.x) {
      const bool keep = upper ? j - i >= diagonal : j - i <= diagonal;
      // What is dropped is not read.
      T value = T();
      if (keep) value = in[r * columns + j];
      out[r * columns + j] = value;
    }
  }
}

} // namespace at::device

#define CRESSET_TRIANGLE(type)                                                                     \
  CRESSET_KERNEL(256)                                                                              \
  triangle_##type(cresset_##type* out, const cresset_##type* in, long all_rows, long rows,         \
                  long columns, long diagonal, int upper) {                                        \
    at::device::triangle(out, in, all_rows, rows, columns, diagonal, upper);                       \
  }
CRESSET_TRIANGLE(u8)
CRESSET_TRIANGLE(i16)
CRESSET_TRIANGLE(i32)
CRESSET_TRIANGLE(i64)
CRESSET_TRIANGLE(c128)
