// cat of contiguous tensors: the result is rows in which each input contributes one block. All
// inputs go in one launch; blockIdx.y says which. Elements are moved in the largest unit that
// divides every block and address, up to 16 bytes.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/shape/Cat.args.h>

namespace at::device {

template <class T> CRESSET_DEVICE_FN void cat(T* out, const CatTable& table) {
  const T* in = static_cast<const T*>(table.data[blockIdx.y]);
  const long width = table.width[blockIdx.y], n = table.rows * width;
  T* to = out + table.offset[blockIdx.y];
  const bool small = n <= 0x7fffffff;
  for (long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += static_cast<long>(gridDim.x) * blockDim.x) {
    const long r = small ? static_cast<unsigned>(i) / static_cast<unsigned>(width) : i / width;
    to[r * table.row + (i - r * width)] = in[i];
  }
}

} // namespace at::device

#define CRESSET_CAT(name, T)                                                                       \
  CRESSET_KERNEL(256) cat_##name(T* out, const __grid_constant__ at::device::CatTable table) {     \
    at::device::cat(out, table);                                                                   \
  }
CRESSET_CAT(1, unsigned char)
CRESSET_CAT(2, unsigned short)
CRESSET_CAT(4, unsigned)
CRESSET_CAT(8, uint2)
CRESSET_CAT(16, uint4)
