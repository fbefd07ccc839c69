// Copies in which the destination's neighbours are far apart in the source and the other way round:
// tiles of 32 x 32 elements go through shared memory, so that both sides
// are read and written in their own order. By element size.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/copy/Transpose.args.h>

namespace at::device {

template <class T> CRESSET_DEVICE_FN void transpose(const TransposeArgs& a) {
  constexpr int kTile = 32, kDepth = 8;
  CRESSET_SHARED T tile[kTile][kTile + 1];
  const long across = (a.columns + kTile - 1) / kTile, down = (a.rows + kTile - 1) / kTile;
  const long matrix = blockIdx.x / (across * down);
  const long rest = blockIdx.x - matrix * (across * down);
  const long first_row = rest / across * kTile, first_column = rest % across * kTile;
  const char* in = static_cast<const char*>(a.in);
  char* out = static_cast<char*>(a.out);
  unsigned left = static_cast<unsigned>(matrix);
  for (int d = 0; d < a.ndim; ++d) {
    const unsigned q = a.size[d].quotient(left);
    const long i = left - q * a.size[d].divisor;
    left = q;
    in += i * a.in_stride[d];
    out += i * a.out_stride[d];
  }
  const int x = threadIdx.x & 31, y = threadIdx.x >> 5;
  // A warp reads along the rows' direction, which is contiguous in the source.
  CRESSET_UNROLL
  for (int k = 0; k < kTile; k += kDepth) {
    const long r = first_row + x, c = first_column + y + k;
    if (r < a.rows && c < a.columns)
      tile[y + k][x] = reinterpret_cast<const T*>(in + c * a.in_column)[r];
  }
  __syncthreads();
  CRESSET_UNROLL
  for (int k = 0; k < kTile; k += kDepth) {
    const long r = first_row + y + k, c = first_column + x;
    if (r < a.rows && c < a.columns) reinterpret_cast<T*>(out + r * a.out_row)[c] = tile[x][y + k];
  }
}

} // namespace at::device

#define CRESSET_TRANSPOSE(type)                                                                    \
  CRESSET_KERNEL(256) transpose_##type(const __grid_constant__ at::device::TransposeArgs args) {   \
    at::device::transpose<cresset_##type>(args);                                                   \
  }
CRESSET_TRANSPOSE(u8)
CRESSET_TRANSPOSE(i16)
CRESSET_TRANSPOSE(i32)
CRESSET_TRANSPOSE(i64)
CRESSET_TRANSPOSE(c128)
