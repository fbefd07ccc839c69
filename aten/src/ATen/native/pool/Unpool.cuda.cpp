// Unpooling on CUDA: a scatter into planes of zeros. Where indices repeat, any of the values stays.
#include <ATen/core/Context.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/pool/Native.h>
#include <ATen/ops/scatter.h>

namespace at::native {
namespace {

void unpool(const Tensor& self, const Tensor& indices, IntArrayRef output_size, const Tensor& out) {
  cuda::check_same_device({&self, &indices});
  out.zero_();
  if (self.numel() == 0) return;
  const int64_t dims = static_cast<int64_t>(output_size.size());
  int64_t large = 1, small = 1;
  for (int64_t d = 1; d <= dims; ++d) {
    large *= out.size(-d);
    small *= self.size(-d);
  }
  const int64_t planes = self.numel() / small;
  TORCH_CHECK(large > 0, "Found an invalid max index: the output volumes are empty");
  const Tensor x = self.contiguous().view({planes, small});
  const Tensor places = indices.contiguous().view({planes, small});
  const Tensor zeros = detail::empty({planes, large}, self.scalar_type(), self.device());
  zeros.zero_();
  out.copy_(at::scatter(zeros, 1, places, x).view(out.sizes()));
}

} // namespace

void max_unpool2d_cuda(const Tensor& self, const Tensor& indices, IntArrayRef output_size,
                       const Tensor& out) {
  globalContext().alert_not_deterministic("max_unpooling2d_forward_out");
  unpool(self, indices, output_size, out);
}
void max_unpool3d_cuda(const Tensor& self, const Tensor& indices, IntArrayRef output_size,
                       IntArrayRef, IntArrayRef, const Tensor& out) {
  globalContext().alert_not_deterministic("max_unpooling3d_forward_out");
  unpool(self, indices, output_size, out);
}

} // namespace at::native
