// tril and triu on CUDA.
#include <algorithm>

#include <ATen/core/Tensor.h>
#include <ATen/cuda/Launch.h>
#include <ATen/native/shape/Native.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::native {
namespace {

using at::cuda::Kernel;

constexpr const char* kProgram = "native/shape/Triangle.cuh";
Kernel kernels[] = {{kProgram, "triangle_u8"},
                    {kProgram, "triangle_i16"},
                    {kProgram, "triangle_i32"},
                    {kProgram, "triangle_i64"},
                    {kProgram, "triangle_c128"}};

void triangle_cuda(const Tensor& self, int64_t diagonal, int upper, const Tensor& out) {
  if (self.numel() == 0) return;
  const c10::cuda::CUDAGuard guard(self.device());
  const Tensor in = self.contiguous();
  const int64_t columns = self.size(-1), rows = self.size(-2), all_rows = self.numel() / columns;
  // Beyond the matrix every diagonal is the same; clamping keeps the arithmetic in range.
  const int64_t limit = rows + columns + 1;
  diagonal = std::clamp(diagonal, -limit, limit);
  int size = 0;
  while ((int64_t(1) << size) < self.itemsize()) ++size;
  const unsigned threads =
      static_cast<unsigned>(std::min<int64_t>(256, (columns + 31) / 32 * 32));
  const unsigned blocks = static_cast<unsigned>(std::min<int64_t>(all_rows, 1 << 20));
  at::cuda::launch(kernels[size], blocks, threads, 0, c10::cuda::getCurrentCUDAStream(),
                   out.data_ptr(), in.data_ptr(), all_rows, rows, columns, diagonal, upper);
}

} // namespace

void tril_cuda(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle_cuda(self, diagonal, 0, out);
}
void triu_cuda(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle_cuda(self, diagonal, 1, out);
}

} // namespace at::native
