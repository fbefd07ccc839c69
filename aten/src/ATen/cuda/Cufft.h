// cuFFT, the vendor's Fourier transforms, reached through a table of function pointers that is
// filled by dlopen on first use. The declarations are our own, written from the public
// documentation, of exactly what is called. Plans are kept in a table of the calling thread.
#pragma once

#include <cstdint>

#include <c10/cuda/DriverTypes.h>
#include <c10/macros/Macros.h>

namespace at::cuda {

enum class FourierKind : int8_t { ComplexToComplex, RealToComplex, ComplexToReal };

// `batch` transforms of one to three dimensions, one after the other in dense memory. A real
// transform of n points along the last dimension has n / 2 + 1 complex ones; a forward one may
// leave room after them, up to `row` in all. Hashed and compared byte by byte: no padding, and
// unused members are zero.
struct FourierTransform {
  int64_t size[3] = {}; // of the real side where there is one
  int64_t batch = 1;
  int64_t row = 0; // 0: dense
  int32_t rank = 1;
  int32_t device = 0;
  FourierKind kind = FourierKind::ComplexToComplex;
  bool wide = false; // double
  bool inverse = false;
  uint8_t unused[5] = {}; // fills the last word
};

// Queues the transform, unscaled, on `stream`; `in` may be overwritten. Throws
// c10::NotImplementedError where there is no cuFFT, and c10::Error naming the sizes when it
// refuses.
TORCH_API void run_fourier(const FourierTransform& transform, void* in, void* out,
                           c10::cuda::CUstream stream);

} // namespace at::cuda
