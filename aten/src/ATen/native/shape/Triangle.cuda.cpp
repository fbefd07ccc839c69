// tril and triu on CUDA.
#include <algorithm>

#include <ATen/core/Tensor.h>
#include <ATen/cuda/Launch.h>
#include <ATen/cuda/StridedPlan.h>
#include <ATen/native/shape/Native.h>
#include <ATen/native/shape/Triangle.args.h>
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

using Args = at::device::TriangleArgs;

// Matrices [begin, begin + count) of a batch; their packs are fewer than 2^31.
void launch_batch(const Tensor& in, const Tensor& out, Args args, int64_t begin, int64_t count) {
  const int64_t rows = in.size(-2), columns = in.size(-1), itemsize = in.itemsize();
  const int64_t offset = begin * rows * columns * itemsize;
  args.in = static_cast<const char*>(in.data_ptr()) + offset;
  args.out = static_cast<char*>(out.data_ptr()) + offset;
  const auto aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  args.packed = columns * itemsize % 16 == 0 && aligned(args.in) && aligned(args.out);
  const int64_t step = args.packed ? 16 / itemsize : 1;
  args.n = count * rows * columns / step;
  args.across = at::cuda::Divider(static_cast<uint32_t>(columns / step));
  int size = 0;
  while ((int64_t(1) << size) < itemsize) ++size;
  at::cuda::launch(kernels[size], static_cast<unsigned>((args.n + 1023) / 1024), 256, 0,
                   c10::cuda::getCurrentCUDAStream(), args);
}

void triangle_cuda(const Tensor& self, int64_t diagonal, int upper, const Tensor& out) {
  if (self.numel() == 0) return;
  const c10::cuda::CUDAGuard guard(self.device());
  const Tensor in = self.contiguous();
  const int64_t columns = self.size(-1), rows = self.size(-2), matrix = rows * columns;
  constexpr int64_t kMost = (int64_t(1) << 31) - 4096;
  TORCH_CHECK_NOT_IMPLEMENTED(matrix <= kMost, "triangles of ", rows, " x ", columns,
                              " are not implemented on cuda");
  Args args = {};
  // Beyond the matrix every diagonal is the same; clamping keeps the arithmetic in range.
  args.diagonal = std::clamp(diagonal, -(rows + columns + 1), rows + columns + 1);
  args.upper = upper;
  args.rows = at::cuda::Divider(static_cast<uint32_t>(rows));
  const int64_t batch = self.numel() / matrix, most = kMost / matrix;
  for (int64_t begin = 0; begin < batch; begin += most)
    launch_batch(in, out, args, begin, std::min(most, batch - begin));
}

} // namespace

void tril_cuda(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle_cuda(self, diagonal, 0, out);
}
void triu_cuda(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle_cuda(self, diagonal, 1, out);
}

} // namespace at::native
