// where: the element of the second operand where the first is true, of the third elsewhere. By
// element size: values only move.
#include <ATen/cuda/device/Pointwise.cuh>

namespace at::device {
struct Choose {
  static constexpr bool kStoredType = true;
  template <class V> CRESSET_DEVICE_FN static V apply(V condition, V a, V b) {
    return convert<bool>(condition) ? a : b;
  }
};
} // namespace at::device

#define CRESSET_WHERE(type)                                                                        \
  CRESSET_POINTWISE_KERNELS(where, type,                                                           \
                            at::device::Mixed<at::device::Choose, cresset_##type, cresset_##type,  \
                                              0, bool, cresset_##type, cresset_##type>)
CRESSET_WHERE(u8)
CRESSET_WHERE(i16)
CRESSET_WHERE(i32)
CRESSET_WHERE(i64)
CRESSET_WHERE(c128)
