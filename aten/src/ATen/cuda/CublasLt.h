// cuBLASLt, the vendor's matrix products, reached through a table of function pointers that is
// filled by dlopen on first use. The declarations are our own, written from the public
// documentation, of exactly what is called. Here too: one product described by plain numbers, with
// everything cuBLASLt derives from them (descriptors, the algorithm of its heuristics) kept in a
// table of the calling thread, so that a repeated product costs one look and one call.
#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/ScalarType.h>
#include <c10/cuda/DriverTypes.h>
#include <c10/macros/Macros.h>

namespace at::cuda {

// D = alpha op(A) op(B) + beta C + bias, all column-major, `batch` products at fixed distances.
// Hashed and compared byte by byte: no padding, and unused members are zero.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0, ldd = 0;
  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
  int8_t dtype = 0;   // c10::ScalarType of A, and of B unless `scaled`
  int8_t dtype_d = 0; // and of C, D and the bias: the same, or Float for half types
  bool transpose_a = false, transpose_b = false;
  bool conjugate_a = false, conjugate_b = false; // only with transposition
  bool tf32 = false;
  bool bias = false;                                          // one value per row of D
  uint8_t align_a = 0, align_b = 0, align_c = 0, align_d = 0; // log2 of the pointers' alignment
  int32_t device = 0;
  // 8-bit floating numbers: B has a type of its own, and A and B carry scales.
  int8_t dtype_b = 0;
  bool scaled = false, fast = false; // fast: sums in fewer bits
  int8_t unused[5] = {};
};

struct ProductData {
  const void *a, *b, *c;
  void* d;
  const void* bias;
  const void *alpha, *beta;                           // in the accumulator's type, on the host
  const float *scale_a = nullptr, *scale_b = nullptr; // on the device; null: one
};

// Queues the product on `stream`. Throws c10::NotImplementedError where there is no cuBLASLt, and
// c10::Error naming the shape when it refuses.
TORCH_API void run_product(const Product& product, const ProductData& data,
                           c10::cuda::CUstream stream);

// log2 of the largest power of two up to 256 that divides the address.
inline uint8_t alignment_log2(const void* p) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(p) | 256;
  return static_cast<uint8_t>(__builtin_ctzll(address));
}

} // namespace at::cuda
