// What the C interface numbers and writes once per dtype, device, layout and memory format. The
// values are those of c10's enumerations, which never change; the library checks them.
#pragma once

#define CRESSET_FORALL_SHIM_DEVICES(X)                                                             \
  X(cpu, CPU) X(cuda, CUDA) X(meta, Meta) X(xpu, XPU) X(mps, MPS) X(privateuse1, PrivateUse1)

// X(name, member of ScalarType, C type of one element)
#define CRESSET_FORALL_SHIM_NUMBERS(X)                                                             \
  X(bool, Bool, bool)                                                                              \
  X(uint8, Byte, uint8_t)                                                                          \
  X(int8, Char, int8_t)                                                                            \
  X(int16, Short, int16_t)                                                                         \
  X(int32, Int, int32_t)                                                                           \
  X(int64, Long, int64_t)                                                                          \
  X(uint16, UInt16, uint16_t)                                                                      \
  X(uint32, UInt32, uint32_t)                                                                      \
  X(uint64, UInt64, uint64_t)                                                                      \
  X(float32, Float, float)                                                                         \
  X(float64, Double, double)
#define CRESSET_FORALL_SHIM_DTYPES(X)                                                              \
  CRESSET_FORALL_SHIM_NUMBERS(X)                                                                   \
  X(float16, Half, )                                                                               \
  X(bfloat16, BFloat16, )                                                                          \
  X(complex32, ComplexHalf, )                                                                      \
  X(complex64, ComplexFloat, )                                                                     \
  X(complex128, ComplexDouble, )                                                                   \
  X(float8_e5m2, Float8_e5m2, )                                                                    \
  X(float8_e4m3fn, Float8_e4m3fn, )                                                                \
  X(float8_e5m2fnuz, Float8_e5m2fnuz, )                                                            \
  X(float8_e4m3fnuz, Float8_e4m3fnuz, )

#define CRESSET_FORALL_SHIM_LAYOUTS(X)                                                             \
  X(strided, Strided)                                                                              \
  X(sparse_coo, Sparse)                                                                            \
  X(sparse_csr, SparseCsr)                                                                         \
  X(sparse_csc, SparseCsc) X(sparse_bsr, SparseBsr) X(sparse_bsc, SparseBsc) X(jagged, Jagged)
#define CRESSET_FORALL_SHIM_MEMORY_FORMATS(X)                                                      \
  X(contiguous_format, Contiguous)                                                                 \
  X(preserve_format, Preserve)                                                                     \
  X(channels_last, ChannelsLast) X(channels_last_3d, ChannelsLast3d)
