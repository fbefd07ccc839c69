// Dense matrix products on raw pointers: the one implementation behind matmul, linear, bmm,
// attention and (through im2col) convolution. It is our own rather than a BLAS because a library
// partitions by thread count and keeps its own threads: here work runs on our pool, the sum over k
// has a fixed order, and the direct paths for small products cost tens of nanoseconds.
//
// Bits of a result depend on the shape, the layout (which strides are 1), the element type and the
// instruction set; never on the number of threads, and not on values or addresses.
#pragma once

#include <c10/macros/Macros.h>

#include <cstdint>

namespace c10 {
struct Half;
struct BFloat16;
} // namespace c10

namespace at::native::gemm {

// The type alpha and beta are given in, and products are accumulated in.
template <class T> struct Accumulate { using type = T; };
template <> struct Accumulate<c10::Half> { using type = float; };
template <> struct Accumulate<c10::BFloat16> { using type = float; };
template <class T> using acc_t = typename Accumulate<T>::type;

// C[m,n] = alpha * A[m,k] * B[k,n] + beta * C. Element (i,p) of A is a[i*a_rs + p*a_cs], likewise B
// and C, so a transpose is a pair of strides; strides may be zero or negative for A and B. With
// beta == 0 C is not read. C must not overlap A or B, nor itself. Any of m, n, k may be 0; k == 0
// leaves beta * C. NaN and infinity propagate (no zero is skipped). Half and BFloat16 are
// accumulated in float and rounded once; integers wrap in their own type.
//
// T: float, double, c10::complex<float>, c10::complex<double>, c10::Half, c10::BFloat16, int8_t,
// int16_t, int32_t, int64_t, uint8_t. Callable from any thread, also inside a parallel region.
// Throws std::bad_alloc when scratch memory cannot be had.
template <class T> TORCH_API void gemm(int64_t m, int64_t n, int64_t k, acc_t<T> alpha, const T* a,
                                       int64_t a_rs, int64_t a_cs, const T* b, int64_t b_rs,
                                       int64_t b_cs, acc_t<T> beta, T* c, int64_t c_rs,
                                       int64_t c_cs);

// The same product `batch` times; matrix x of A starts at a + x*a_bs, and so on. A batch stride of
// 0 for A or B shares one matrix. Each result has the bits gemm() gives for that matrix, except
// that a shared B may be multiplied with all rows at once.
template <class T> TORCH_API void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k,
                                               acc_t<T> alpha, const T* a, int64_t a_bs,
                                               int64_t a_rs, int64_t a_cs, const T* b, int64_t b_bs,
                                               int64_t b_rs, int64_t b_cs, acc_t<T> beta, T* c,
                                               int64_t c_bs, int64_t c_rs, int64_t c_cs);

// C = alpha * A * B + bias, where bias (contiguous, length n, or nullptr) is added to every row
// before the rounding. C is not read.
template <class T> TORCH_API void gemm_bias(int64_t m, int64_t n, int64_t k, acc_t<T> alpha,
                                            const T* a, int64_t a_rs, int64_t a_cs, const T* b,
                                            int64_t b_rs, int64_t b_cs, const T* bias, T* c,
                                            int64_t c_rs, int64_t c_cs);

} // namespace at::native::gemm
