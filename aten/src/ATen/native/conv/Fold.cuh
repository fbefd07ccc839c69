// Sliding windows as columns, by element size, and the sum of columns back into planes: each
// element of the plane collects the windows that cover it, so that every sum has one owner.
#include <ATen/cuda/device/Prelude.cuh>
#include <ATen/native/conv/Fold.args.h>

namespace at::device {

// I is the type of positions among all elements: a division of 32 bits costs a third of one of 64.
template <class T, class I>
CRESSET_DEVICE_FN void unfold_windows(const T* planes, T* columns, const FoldArgs& a) {
  const long index = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= a.planes * a.kernel[0] * a.kernel[1] * a.out[0] * a.out[1]) return;
  const I i = static_cast<I>(index), columns_of = static_cast<I>(a.out[1]),
          rows_of = static_cast<I>(a.out[0]), wide = static_cast<I>(a.kernel[1]),
          high = static_cast<I>(a.kernel[0]);
  const I line = i / columns_of, ox = i - line * columns_of;
  const I rest = line / rows_of, oy = line - rest * rows_of;
  const I window = rest / wide, kx = rest - window * wide;
  const I plane = window / high, ky = window - plane * high;
  const long y = static_cast<long>(oy) * a.stride[0] - a.padding[0] + ky * a.dilation[0];
  const long x = static_cast<long>(ox) * a.stride[1] - a.padding[1] + kx * a.dilation[1];
  const bool inside = y >= 0 && y < a.height && x >= 0 && x < a.width;
  columns[index] = inside ? planes[(plane * a.height + y) * a.width + x] : T();
}

template <class T, class A>
CRESSET_DEVICE_FN void fold_windows(const T* columns, T* planes, const FoldArgs& a) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long x = i % a.width, y = i / a.width % a.height, plane = i / a.width / a.height;
  if (plane >= a.planes) return;
  A sum = A();
  for (long ky = 0; ky < a.kernel[0]; ++ky) {
    const long fy = y + a.padding[0] - ky * a.dilation[0], oy = fy / a.stride[0];
    if (fy < 0 || oy * a.stride[0] != fy || oy >= a.out[0]) continue;
    for (long kx = 0; kx < a.kernel[1]; ++kx) {
      const long fx = x + a.padding[1] - kx * a.dilation[1], ox = fx / a.stride[1];
      if (fx < 0 || ox * a.stride[1] != fx || ox >= a.out[1]) continue;
      const long row = (plane * a.kernel[0] + ky) * a.kernel[1] + kx;
      const T value = columns[(row * a.out[0] + oy) * a.out[1] + ox];
      if constexpr (std::is_same_v<T, bool>)
        sum = sum || value;
      else
        sum = sum + convert<A>(value);
    }
  }
  planes[i] = convert<T>(sum);
}

} // namespace at::device

#define CRESSET_UNFOLD(T)                                                                          \
  CRESSET_KERNEL(256)                                                                              \
  unfold_##T(const cresset_##T* planes, cresset_##T* columns, at::device::FoldArgs a) {            \
    if (a.small)                                                                                   \
      at::device::unfold_windows<cresset_##T, unsigned>(planes, columns, a);                       \
    else                                                                                           \
      at::device::unfold_windows<cresset_##T, long>(planes, columns, a);                           \
  }
CRESSET_UNFOLD(u8)
CRESSET_UNFOLD(i16)
CRESSET_UNFOLD(i32)
CRESSET_UNFOLD(i64)
CRESSET_UNFOLD(c128)
#define CRESSET_FOLD(T)                                                                            \
  CRESSET_KERNEL(256)                                                                              \
  fold_##T(const cresset_##T* columns, cresset_##T* planes, at::device::FoldArgs a) {              \
    at::device::fold_windows<cresset_##T, at::device::opmath_t<cresset_##T>>(columns, planes, a);  \
  }
CRESSET_FOLD(f32)
CRESSET_FOLD(f64)
CRESSET_FOLD(f16)
CRESSET_FOLD(bf16)
CRESSET_FOLD(c64)
CRESSET_FOLD(c128)
CRESSET_FOLD(bool)
