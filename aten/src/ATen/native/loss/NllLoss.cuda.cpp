// The host side of NllLoss.cuh, for batches and for images. A class outside the range is reported
// by the kernel and raised as IndexError at the next synchronisation.
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/loss/LossUtil.h>
#include <ATen/native/loss/Native.h>
#include <ATen/native/loss/NllLoss.args.h>

namespace at::native {
namespace {
using cuda::blocks_for;
using cuda::Kernel;

constexpr const char* kProgram = "native/loss/NllLoss.cuh";
const Kernel kEach[4] = CRESSET_FLOATING_KERNELS(kProgram, "nll_each");
const Kernel kSum[4] = CRESSET_FLOATING_KERNELS(kProgram, "nll_sum");
const Kernel kBackward[4] = CRESSET_FLOATING_KERNELS(kProgram, "nll_backward");

device::NllWalk walk_of(const Tensor& t) {
  if (t.dim() == 4)
    return {t.size(0) * t.size(2) * t.size(3),
            t.size(1),
            t.size(2),
            t.size(3),
            t.stride(0),
            t.stride(1),
            t.stride(2),
            t.stride(3)};
  if (t.dim() == 2) return {t.size(0), t.size(1), 1, 1, t.stride(0), t.stride(1), 0, 0};
  return {1, t.size(0), 1, 1, 0, t.stride(0), 0, 0};
}

Tensor weights_of(const std::optional<Tensor>& weight, ScalarType dtype) {
  return weight && weight->defined() ? weight->to(dtype).contiguous() : Tensor();
}
const void* data_or_null(const Tensor& t) { return t.defined() ? t.const_data_ptr() : nullptr; }

void forward(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
             int64_t reduction, int64_t ignore, const Tensor& output, const Tensor& total_weight) {
  const int slot = cuda::floating_slot(self.scalar_type(), "nll_loss_cuda");
  cuda::check_same_device({&self, &target, cuda::given(weight)});
  const device::NllWalk walk = walk_of(self);
  const Tensor classes = target.to(kLong).contiguous(), w = weights_of(weight, self.scalar_type());
  const device::IndexCheck check = cuda::index_check("nll_loss");
  const auto stream = cuda::current_stream();
  const void *x = self.const_data_ptr(), *t = classes.const_data_ptr(), *scale = data_or_null(w);
  if (reduction == kNoReduction) {
    total_weight.zero_();
    cuda::launch(kEach[slot], blocks_for(walk.count, 256), 256, 0, stream, x, t, scale,
                 output.mutable_data_ptr(), walk, ignore, check);
    return;
  }
  cuda::launch(kSum[slot], 1, 1024, 0, stream, x, t, scale, output.mutable_data_ptr(),
               total_weight.mutable_data_ptr(), static_cast<int>(reduction == kMeanReduction), walk,
               ignore, check);
}

void backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
              const std::optional<Tensor>& weight, int64_t reduction, int64_t ignore,
              const Tensor& total_weight, const Tensor& grad_input) {
  const ScalarType dtype = self.scalar_type();
  const int slot = cuda::floating_slot(dtype, "nll_loss_backward_cuda");
  cuda::check_same_device({&self, &grad_output, &target, cuda::given(weight), &total_weight});
  const device::NllWalk walk = walk_of(grad_input);
  const bool each = reduction == kNoReduction;
  const Tensor classes = target.to(kLong).contiguous(), w = weights_of(weight, dtype);
  const Tensor grad = grad_output.to(dtype).contiguous(), total = total_weight.to(dtype);
  TORCH_CHECK(grad.numel() == (each ? walk.count : 1),
              "Expected a single element grad_output tensor or one for each target, but got: ",
              grad_output.sizes());
  TORCH_CHECK(total_weight.numel() == 1,
              "expected total_weight to be a  single element tensor, got: ", total_weight.sizes());
  grad_input.zero_();
  cuda::launch(kBackward[slot], blocks_for(walk.count, 256), 256, 0, cuda::current_stream(),
               grad.const_data_ptr(), classes.const_data_ptr(), data_or_null(w),
               total.const_data_ptr(), grad_input.mutable_data_ptr(),
               static_cast<int>(reduction == kMeanReduction), static_cast<int>(each), walk, ignore,
               cuda::index_check("nll_loss"));
}
} // namespace

void nll_loss_forward_cuda(const Tensor& self, const Tensor& target,
                           const std::optional<Tensor>& weight, int64_t reduction,
                           int64_t ignore_index, const Tensor& output, const Tensor& total_weight) {
  forward(self, target, weight, reduction, ignore_index, output, total_weight);
}
void nll_loss2d_forward_cuda(const Tensor& self, const Tensor& target,
                             const std::optional<Tensor>& weight, int64_t reduction,
                             int64_t ignore_index, const Tensor& output,
                             const Tensor& total_weight) {
  forward(self, target, weight, reduction, ignore_index, output, total_weight);
}
void nll_loss_backward_cuda(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                            const std::optional<Tensor>& weight, int64_t reduction,
                            int64_t ignore_index, const Tensor& total_weight,
                            const Tensor& grad_input) {
  backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, grad_input);
}
void nll_loss2d_backward_cuda(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                              const std::optional<Tensor>& weight, int64_t reduction,
                              int64_t ignore_index, const Tensor& total_weight,
                              const Tensor& grad_input) {
  backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, grad_input);
}

} // namespace at::native
