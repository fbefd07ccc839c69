// The half of a real signal's transform that the other half determines: the element at (i, ..., k)
// is the conjugate of the one at (-i, ..., -k), each counted around its dimension.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/fft/Symmetry.args.h>

namespace at::device {

template <class T> CRESSET_DEVICE_FN void fill_symmetry(const SymmetryArgs& a) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  unsigned rest = a.missing.quotient(static_cast<unsigned>(i));
  const long k = a.known + (i - static_cast<long>(rest) * a.missing.divisor);
  long to = k, from = a.row - k, stride = a.row;
  for (int d = 0; d < a.mirrored; ++d) {
    const Divider& size = a.size[d];
    const unsigned above = size.quotient(rest), at = rest - above * size.divisor;
    to += at * stride;
    from += (at == 0 ? 0 : size.divisor - at) * stride;
    stride *= size.divisor;
    rest = above;
  }
  T* data = static_cast<T*>(a.data) + rest * a.batch;
  const T other = data[from];
  data[to] = T(other.real(), -other.imag());
}

} // namespace at::device

#define CRESSET_SYMMETRY(type)                                                                     \
  CRESSET_KERNEL(256) fill_symmetry_##type(const __grid_constant__ at::device::SymmetryArgs a) {   \
    at::device::fill_symmetry<cresset_##type>(a);                                                  \
  }
CRESSET_SYMMETRY(c64)
CRESSET_SYMMETRY(c128)
