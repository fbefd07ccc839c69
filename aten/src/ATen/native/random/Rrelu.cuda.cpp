// rrelu on CUDA, composed from other operators: the noise is the slope of every element, 1 where it
// is positive.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/random/Native.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/uniform.h>
#include <ATen/ops/where.h>

namespace at::native {

Tensor rrelu_with_noise_cuda(const Tensor& self, Tensor& noise, const Scalar& lower,
                             const Scalar& upper, bool training,
                             std::optional<Generator> generator) {
  const double low = lower.toDouble(), high = upper.toDouble();
  TORCH_CHECK(low <= high, "Lower bound should be less than or equal to the upper bound");
  const Tensor positive = at::gt(self, 0);
  if (!training) return at::where(positive, self, at::mul(self, (low + high) / 2));
  cuda::check_same_device({&self, &noise});
  TORCH_CHECK(noise.sizes() == self.sizes() && noise.is_contiguous() &&
                  noise.scalar_type() == self.scalar_type(),
              "noise tensor must be contiguous and have the same shape and dtype as self");
  at::_ops::uniform_::call(noise, low, high, generator);
  at::_ops::masked_fill__Scalar::call(noise, positive, 1);
  return at::mul(self, noise);
}

} // namespace at::native
