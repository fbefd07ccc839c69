// The typed front of the library: each element type becomes an Elem and a Problem in bytes.
#include <ATen/native/matmul/gemm/Gemm.h>

#include <ATen/native/matmul/gemm/Driver.h>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

namespace at::native::gemm {
namespace {

template <class T> constexpr Elem elem_of = Elem::Count;
template <> constexpr Elem elem_of<float> = Elem::F32;
template <> constexpr Elem elem_of<double> = Elem::F64;
template <> constexpr Elem elem_of<c10::complex<float>> = Elem::C64;
template <> constexpr Elem elem_of<c10::complex<double>> = Elem::C128;
template <> constexpr Elem elem_of<c10::Half> = Elem::F16;
template <> constexpr Elem elem_of<c10::BFloat16> = Elem::BF16;
template <> constexpr Elem elem_of<int8_t> = Elem::U8;
template <> constexpr Elem elem_of<uint8_t> = Elem::U8;
template <> constexpr Elem elem_of<int16_t> = Elem::U16;
template <> constexpr Elem elem_of<int32_t> = Elem::U32;
template <> constexpr Elem elem_of<int64_t> = Elem::U64;

const char* bytes(const void* p) { return static_cast<const char*>(p); }

} // namespace

template <class T> void gemm(int64_t m, int64_t n, int64_t k, acc_t<T> alpha, const T* a,
                             int64_t a_rs, int64_t a_cs, const T* b, int64_t b_rs, int64_t b_cs,
                             acc_t<T> beta, T* c, int64_t c_rs, int64_t c_cs) {
  const Problem p{m,
                  n,
                  k,
                  {bytes(a), a_rs, a_cs},
                  {bytes(b), b_rs, b_cs},
                  reinterpret_cast<char*>(c),
                  c_rs,
                  c_cs,
                  &alpha,
                  &beta,
                  beta == acc_t<T>(0),
                  beta == acc_t<T>(1),
                  nullptr};
  run(elem_of<T>, p, Threads::Pool);
}

template <class T>
void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, acc_t<T> alpha, const T* a,
                  int64_t a_bs, int64_t a_rs, int64_t a_cs, const T* b, int64_t b_bs, int64_t b_rs,
                  int64_t b_cs, acc_t<T> beta, T* c, int64_t c_bs, int64_t c_rs, int64_t c_cs) {
  const Problem p{m,
                  n,
                  k,
                  {bytes(a), a_rs, a_cs},
                  {bytes(b), b_rs, b_cs},
                  reinterpret_cast<char*>(c),
                  c_rs,
                  c_cs,
                  &alpha,
                  &beta,
                  beta == acc_t<T>(0),
                  beta == acc_t<T>(1),
                  nullptr};
  run_batched(elem_of<T>, p, {batch, a_bs, b_bs, c_bs});
}

template <class T> void gemm_bias(int64_t m, int64_t n, int64_t k, acc_t<T> alpha, const T* a,
                                  int64_t a_rs, int64_t a_cs, const T* b, int64_t b_rs,
                                  int64_t b_cs, const T* bias, T* c, int64_t c_rs, int64_t c_cs) {
  const acc_t<T> beta(0);
  const Problem p{m,
                  n,
                  k,
                  {bytes(a), a_rs, a_cs},
                  {bytes(b), b_rs, b_cs},
                  reinterpret_cast<char*>(c),
                  c_rs,
                  c_cs,
                  &alpha,
                  &beta,
                  true,
                  false,
                  bytes(bias)};
  run(elem_of<T>, p, Threads::Pool);
}

#define CRESSET_GEMM_INSTANTIATE(T)                                                                \
  template TORCH_API void gemm<T>(int64_t, int64_t, int64_t, acc_t<T>, const T*, int64_t, int64_t, \
                                  const T*, int64_t, int64_t, acc_t<T>, T*, int64_t, int64_t);     \
  template TORCH_API void gemm_batched<T>(int64_t, int64_t, int64_t, int64_t, acc_t<T>, const T*,  \
                                          int64_t, int64_t, int64_t, const T*, int64_t, int64_t,   \
                                          int64_t, acc_t<T>, T*, int64_t, int64_t, int64_t);       \
  template TORCH_API void gemm_bias<T>(int64_t, int64_t, int64_t, acc_t<T>, const T*, int64_t,     \
                                       int64_t, const T*, int64_t, int64_t, const T*, T*, int64_t, \
                                       int64_t);

CRESSET_GEMM_INSTANTIATE(float)
CRESSET_GEMM_INSTANTIATE(double)
CRESSET_GEMM_INSTANTIATE(c10::complex<float>)
CRESSET_GEMM_INSTANTIATE(c10::complex<double>)
CRESSET_GEMM_INSTANTIATE(c10::Half)
CRESSET_GEMM_INSTANTIATE(c10::BFloat16)
CRESSET_GEMM_INSTANTIATE(int8_t)
CRESSET_GEMM_INSTANTIATE(uint8_t)
CRESSET_GEMM_INSTANTIATE(int16_t)
CRESSET_GEMM_INSTANTIATE(int32_t)
CRESSET_GEMM_INSTANTIATE(int64_t)
#undef CRESSET_GEMM_INSTANTIATE

} // namespace at::native::gemm
