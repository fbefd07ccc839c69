// where and masked_fill on CUDA: one kernel by element size. Numbers and CPU tensors of no
// dimensions travel as arguments of the launch.
#define CRESSET_KERNEL_TU
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/PointwiseLaunch.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/index/Native.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::native {
namespace {

using at::cuda::Kernel;

constexpr const char* kProgram = "native/index/Where.cuh";
Kernel kernels[5][2] = {
    {{kProgram, "where_flat_u8"}, {kProgram, "where_strided_u8"}},
    {{kProgram, "where_flat_i16"}, {kProgram, "where_strided_i16"}},
    {{kProgram, "where_flat_i32"}, {kProgram, "where_strided_i32"}},
    {{kProgram, "where_flat_i64"}, {kProgram, "where_strided_i64"}},
    {{kProgram, "where_flat_c128"}, {kProgram, "where_strided_c128"}},
};
int row_of(int64_t itemsize) {
  int row = 0;
  while ((int64_t(1) << row) < itemsize) ++row;
  return row;
}
at::cuda::CUfunction find_kernel(const void* row, int device, int kind) {
  return static_cast<const Kernel*>(row)[kind].function(device);
}

class Choice {
 public:
  explicit Choice(const Tensor& out) : out_(out), plan_(out.sizes(), 4) {
    call_.functions = {&find_kernel, kernels[row_of(out.itemsize())]};
    call_.inputs = 3;
    call_.largest = static_cast<int>(out.itemsize());
    call_.itemsize[0] = out.itemsize();
    call_.out = out.data_ptr();
    plan_.set(0, out);
  }
  void set(int k, const Scalar& value, ScalarType dtype) {
    call_.in[k] = nullptr;
    call_.number[k].set(value, dtype);
    call_.itemsize[k + 1] = c10::elementSize(dtype);
  }
  void set(int k, const Tensor& tensor, ScalarType dtype) {
    if (!tensor.is_cuda()) return set(k, tensor.item(), dtype);
    keep_[k] = tensor.to(dtype);
    call_.in[k] = keep_[k].data_ptr();
    call_.itemsize[k + 1] = keep_[k].itemsize();
    plan_.set(k + 1, keep_[k]);
  }
  void run() {
    plan_.build();
    const c10::DeviceIndex device = out_.device().index();
    at::cuda::launch_pointwise(call_, plan_, device, c10::cuda::getCurrentCUDAStream(device));
  }

 private:
  const Tensor& out_;
  Tensor keep_[3];
  at::cuda::PointwiseLaunch call_;
  at::cuda::StridedPlan plan_;
};

} // namespace

void where_cuda(const Tensor& condition, const Tensor& self, const Tensor& other,
                const Tensor& out) {
  if (out.numel() == 0) return;
  const c10::cuda::CUDAGuard guard(out.device());
  Choice choice(out);
  choice.set(0, condition, kBool);
  choice.set(1, self, out.scalar_type());
  choice.set(2, other, out.scalar_type());
  choice.run();
}

Tensor& masked_fill_scalar_cuda_(Tensor& self, const Tensor& mask, const Scalar& value) {
  masked_fill_scalar_meta_(self, mask, value); // the checks; raises the version
  assert_no_internal_overlap(self);
  assert_no_partial_overlap(self, mask);
  if (self.numel() == 0) return self;
  const c10::cuda::CUDAGuard guard(self.device());
  Choice choice(self);
  choice.set(0, mask, kBool);
  choice.set(1, value, self.scalar_type());
  choice.set(2, self, self.scalar_type());
  choice.run();
  return self;
}

} // namespace at::native
