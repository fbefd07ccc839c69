// Pointwise operators whose result has another kind of type than their operands: frexp's exponent,
// and complex numbers made of two real ones.
#include <ATen/cuda/device/Pointwise.cuh>

namespace at::native::fn {

struct FrexpMantissa {
  template <class V> CRESSET_DEVICE_FN static V apply(V x) {
    int e = 0;
    return vm::isfinite(x) ? static_cast<V>(::frexp(static_cast<double>(x), &e)) : x;
  }
};
struct FrexpExponent {
  template <class V> CRESSET_DEVICE_FN static int apply(V x) {
    int e = 0;
    if (vm::isfinite(x)) ::frexp(static_cast<double>(x), &e);
    return e;
  }
};
struct JoinComplex {
  template <class V> CRESSET_DEVICE_FN static c10::complex<V> apply(V re, V im) { return {re, im}; }
};
struct JoinPolar {
  template <class V> CRESSET_DEVICE_FN static c10::complex<V> apply(V size, V angle) {
    return {size * vm::cos(angle), size * vm::sin(angle)};
  }
};

} // namespace at::native::fn

#define CRESSET_PARTS(name, functor, out, type, ...)                                               \
  CRESSET_POINTWISE_KERNELS(                                                                       \
      name, type,                                                                                  \
      at::device::Mixed<at::native::fn::functor, cresset_##out, cresset_##type, 0, __VA_ARGS__>)
#define CRESSET_FREXP(type)                                                                        \
  CRESSET_PARTS(mantissa, FrexpMantissa, type, type, cresset_##type)                               \
  CRESSET_PARTS(exponent, FrexpExponent, i32, type, cresset_##type)
#define CRESSET_JOIN(type, out)                                                                    \
  CRESSET_PARTS(complex, JoinComplex, out, type, cresset_##type, cresset_##type)                   \
  CRESSET_PARTS(polar, JoinPolar, out, type, cresset_##type, cresset_##type)
CRESSET_FREXP(f16)
CRESSET_FREXP(bf16)
CRESSET_FREXP(f32)
CRESSET_FREXP(f64)
CRESSET_JOIN(f16, c32)
CRESSET_JOIN(f32, c64)
CRESSET_JOIN(f64, c128)
