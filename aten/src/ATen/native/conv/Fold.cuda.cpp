// im2col and col2im on CUDA: the host side of Fold.cuh.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/conv/Fold.args.h>
#include <ATen/native/conv/FoldGeometry.h>
#include <ATen/native/conv/Native.h>

#include <limits>

namespace at::native {
namespace {
using cuda::Kernel;
using device::FoldArgs;

constexpr const char* kProgram = "native/conv/Fold.cuh";
constexpr int kThreads = 256;
// By the logarithm of the element's size.
const Kernel kUnfold[5] = {{kProgram, "unfold_u8"},
                           {kProgram, "unfold_i16"},
                           {kProgram, "unfold_i32"},
                           {kProgram, "unfold_i64"},
                           {kProgram, "unfold_c128"}};
const Kernel kFold[4] = CRESSET_FLOATING_KERNELS(kProgram, "fold");
const Kernel kFoldC64{kProgram, "fold_c64"}, kFoldC128{kProgram, "fold_c128"},
    kFoldBool{kProgram, "fold_bool"};

const Kernel& fold_kernel(ScalarType dtype) {
  if (dtype == kComplexFloat) return kFoldC64;
  if (dtype == kComplexDouble) return kFoldC128;
  if (dtype == kBool) return kFoldBool;
  return kFold[cuda::floating_slot(dtype, "col2im_out_cuda")];
}

FoldArgs arguments(const ConvGeometry& g) {
  FoldArgs a = {};
  a.planes = g.n * g.c;
  a.height = g.in[1];
  a.width = g.in[2];
  for (int d = 0; d < 2; ++d) {
    a.kernel[d] = g.kernel[d + 1];
    a.out[d] = g.out[d + 1];
    a.stride[d] = g.stride[d + 1];
    a.padding[d] = g.padding[d + 1];
    a.dilation[d] = g.dilation[d + 1];
  }
  const int64_t columns = a.planes * a.kernel[0] * a.kernel[1] * a.out[0] * a.out[1];
  a.small = columns < std::numeric_limits<int32_t>::max();
  return a;
}

void run(const Kernel& kernel, const Tensor& self, const FoldArgs& a, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor x = self.contiguous();
  const Tensor target = out.is_contiguous() ? out : out.contiguous();
  cuda::launch(kernel, cuda::blocks_for(out.numel(), kThreads), kThreads, 0, cuda::current_stream(),
               x.const_data_ptr(), target.mutable_data_ptr(), a);
  if (!target.is_same(out)) out.copy_(target);
}

} // namespace

void im2col_cuda(const Tensor& self, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
                 IntArrayRef stride, const Tensor& out) {
  int slot = 0;
  while ((int64_t(1) << slot) < static_cast<int64_t>(self.itemsize())) ++slot;
  run(kUnfold[slot], self, arguments(unfold_geometry(self, kernel, dilation, padding, stride)),
      out);
}

void col2im_cuda(const Tensor& self, IntArrayRef size, IntArrayRef kernel, IntArrayRef dilation,
                 IntArrayRef padding, IntArrayRef stride, const Tensor& out) {
  run(fold_kernel(self.scalar_type()), self,
      arguments(fold_geometry(self, size, kernel, dilation, padding, stride)), out);
}

} // namespace at::native
