// Fractional max pooling on CUDA, composed of other operators: where each window begins is computed
// for all planes at once, the elements of the windows are gathered and their maxima taken. See
// Fractional.cpp for the places of the windows. Gradients are added up in a fixed order.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/pool/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/trunc.h>

namespace at::native {
namespace {

int64_t plane_of(const Tensor& t, int64_t dims) {
  int64_t elements = 1;
  for (int64_t d = 1; d <= dims; ++d) elements *= t.size(-d);
  return elements;
}

// planes x out: the first element of every window along one dimension.
Tensor starts(const Tensor& sample, int64_t in, int64_t out, int64_t kernel) {
  const int64_t last = in - kernel;
  const TensorOptions places = TensorOptions().dtype(kLong).device(sample.device());
  const Tensor number = at::arange(Scalar(out), places);
  const double step = out > 1 ? static_cast<double>(last) / static_cast<double>(out - 1) : 0;
  // In single precision, as the CPU computes them: an edge may be hit exactly.
  const Scalar rounded = sample.scalar_type() == kDouble ? step : static_cast<float>(step);
  const Tensor u = sample.reshape({-1, 1});
  const Tensor begin =
      at::sub(at::trunc(at::mul(at::add(u, number), rounded)), at::trunc(at::mul(u, rounded)));
  const double bound = static_cast<double>(last);
  Tensor found =
      at::clamp(at::nan_to_num(begin, 0., bound, 0.), Scalar(0.), Scalar(bound)).to(kLong);
  found.select(1, out - 1).fill_(last);
  return found;
}

void fractional(const Tensor& self, IntArrayRef kernel, IntArrayRef output, const Tensor& samples,
                const Tensor& out, const Tensor& indices, const char* name) {
  cuda::check_same_device({&self, &samples});
  cuda::floating_slot(self.scalar_type(), name);
  if (out.numel() == 0) return;
  const int64_t dims = static_cast<int64_t>(kernel.size());
  const int64_t planes = self.numel() / plane_of(self, dims);
  const TensorOptions places = TensorOptions().dtype(kLong).device(self.device());
  const Tensor draws = samples.contiguous().view({-1, dims}).narrow(0, 0, planes);
  const Tensor numbers = self.scalar_type() == kDouble ? draws : draws.to(kFloat);
  // planes x (windows) x (elements of a window), grown by a dimension at a time.
  Tensor where = at::arange(Scalar(1), places).view({1, 1, 1});
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t in = self.size(self.dim() - dims + i);
    // Over planes the first number is the width's; over volumes they stand in order.
    const Tensor begin = starts(numbers.select(1, dims == 2 ? 1 - i : i), in, output[i], kernel[i]);
    const Tensor reach = at::add(begin.unsqueeze(2), at::arange(Scalar(kernel[i]), places));
    const int64_t windows = where.size(1) * output[i], elements = where.size(2) * kernel[i];
    where = at::add(at::mul(where.unsqueeze(2).unsqueeze(4), Scalar(in)),
                    reach.unsqueeze(1).unsqueeze(3))
                .reshape({planes, windows, elements});
  }
  const Tensor x = self.contiguous().view({planes, -1});
  const Tensor elements = at::gather(x, 1, where.flatten(1)).view(where.sizes());
  const auto [best, chosen] = at::max(elements, 2, /*keepdim=*/true);
  out.copy_(best.view(out.sizes()));
  indices.copy_(at::gather(where, 2, chosen).view(indices.sizes()));
}

void fractional_backward(const Tensor& grad, const Tensor& self, int64_t dims,
                         const Tensor& indices, const Tensor& out, const char* name) {
  cuda::check_same_device({&grad, &self, &indices});
  cuda::floating_slot(self.scalar_type(), name);
  out.zero_();
  if (grad.numel() == 0) return;
  const int64_t planes = self.numel() / plane_of(self, dims);
  const ScalarType wide = self.scalar_type() == kDouble ? kDouble : kFloat;
  const Tensor zeros = detail::empty({planes, plane_of(self, dims)}, wide, self.device());
  zeros.zero_();
  const Tensor sums = at::scatter_add(zeros, 1, indices.contiguous().view({planes, -1}),
                                      grad.contiguous().view({planes, -1}).to(wide));
  out.copy_(sums.view(out.sizes()));
}

} // namespace

void fractional_max_pool2d_cuda(const Tensor& self, IntArrayRef kernel, IntArrayRef output,
                                const Tensor& samples, const Tensor& out, const Tensor& indices) {
  fractional(self, kernel, output, samples, out, indices, "fractional_max_pool2d_out_cuda_frame");
}
void fractional_max_pool3d_cuda(const Tensor& self, IntArrayRef kernel, IntArrayRef output,
                                const Tensor& samples, const Tensor& out, const Tensor& indices) {
  fractional(self, kernel, output, samples, out, indices, "fractional_max_pool3d_out_frame");
}
void fractional_max_pool2d_backward_cuda(const Tensor& grad, const Tensor& self, IntArrayRef,
                                         IntArrayRef, const Tensor& indices, const Tensor& out) {
  fractional_backward(grad, self, 2, indices, out, "fractional_max_pool2d_backward_out_cuda_frame");
}
void fractional_max_pool3d_backward_cuda(const Tensor& grad, const Tensor& self, IntArrayRef,
                                         IntArrayRef, const Tensor& indices, const Tensor& out) {
  fractional_backward(grad, self, 3, indices, out, "fractional_max_pool3d_backward_out_frame");
}

} // namespace at::native
