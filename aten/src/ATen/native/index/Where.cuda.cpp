// where and masked_fill on CUDA: one pair of kernels by element size.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/PointwiseLaunch.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/CTypeName.h>
#include <ATen/native/index/Native.h>

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
} // namespace

void where_cuda(const Tensor& condition, const Tensor& self, const Tensor& other,
                const Tensor& out) {
  at::cuda::PairLaunch choice(kernels[row_of(out.itemsize())], 3, out);
  choice.set(0, condition, kBool);
  choice.set(1, self, out.scalar_type());
  choice.set(2, other, out.scalar_type());
  choice.run();
}

// In one pass, where the composite copies first.
Tensor masked_fill_scalar_cuda(const Tensor& self, const Tensor& mask, const Scalar& value) {
  const DimVector shape = broadcast_shapes(self.sizes(), mask.sizes());
  TORCH_CHECK(self.device() == mask.device(),
              "expected self and mask to be on the same device, but got mask on ", mask.device(),
              " and self on ", self.device());
  TORCH_CHECK(mask.scalar_type() == kBool,
              "masked_fill_ only supports boolean masks, but got mask with dtype ",
              c_type_name(mask.scalar_type()));
  Tensor out = detail::empty(shape, self.scalar_type(), self.device());
  at::cuda::PairLaunch choice(kernels[row_of(self.itemsize())], 3, out);
  choice.set(0, mask, kBool);
  choice.set(1, value, self.scalar_type());
  choice.set(2, self, self.scalar_type());
  choice.run();
  return out;
}

Tensor& masked_fill_scalar_cuda_(Tensor& self, const Tensor& mask, const Scalar& value) {
  masked_fill_scalar_meta_(self, mask, value); // the checks; raises the version
  assert_no_internal_overlap(self);
  assert_no_partial_overlap(self, mask);
  at::cuda::PairLaunch choice(kernels[row_of(self.itemsize())], 3, self);
  choice.set(0, mask, kBool);
  choice.set(1, value, self.scalar_type());
  choice.set(2, self, self.scalar_type());
  choice.run();
  return self;
}

} // namespace at::native
