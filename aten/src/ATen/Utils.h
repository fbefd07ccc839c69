// at::tensor and what else C++ code expects of at:: beside operators.
#pragma once
#include <initializer_list>
#include <vector>

#include <ATen/core/Tensor.h>

namespace at {

// A vector of values, with the dtype of their C++ type unless the options name another.
#define CRESSET_TENSOR(T, Name)                                                                    \
  TORCH_API Tensor tensor(ArrayRef<T> values, const TensorOptions& options);                       \
  inline Tensor tensor(std::initializer_list<T> values, const TensorOptions& options) {            \
    return tensor(ArrayRef<T>(values.begin(), values.size()), options);                            \
  }                                                                                                \
  inline Tensor tensor(T value, const TensorOptions& options) {                                    \
    return tensor(ArrayRef<T>(&value, 1), options);                                                \
  }                                                                                                \
  inline Tensor tensor(ArrayRef<T> values) { return tensor(values, TensorOptions(c10::k##Name)); } \
  inline Tensor tensor(std::initializer_list<T> values) {                                          \
    return tensor(ArrayRef<T>(values.begin(), values.size()));                                     \
  }                                                                                                \
  inline Tensor tensor(T value) { return tensor(ArrayRef<T>(&value, 1)); }
CRESSET_TENSOR(uint8_t, Byte)
CRESSET_TENSOR(int8_t, Char)
CRESSET_TENSOR(int16_t, Short)
CRESSET_TENSOR(int32_t, Int)
CRESSET_TENSOR(int64_t, Long)
CRESSET_TENSOR(c10::Half, Half)
CRESSET_TENSOR(c10::BFloat16, BFloat16)
CRESSET_TENSOR(float, Float)
CRESSET_TENSOR(double, Double)
CRESSET_TENSOR(c10::complex<float>, ComplexFloat)
CRESSET_TENSOR(c10::complex<double>, ComplexDouble)
#undef CRESSET_TENSOR

// Makes all generators of all devices start from `seed`.
TORCH_API void manual_seed(uint64_t seed);

} // namespace at
