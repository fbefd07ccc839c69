// The host side of CrossEntropy.cuh: cross entropy of a matrix of scores with class targets.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/loss/LossUtil.h>
#include <ATen/native/loss/Native.h>

namespace at::native {
namespace {
using cuda::Kernel;

constexpr const char* kProgram = "native/loss/CrossEntropy.cuh";
const Kernel kRows[4] = CRESSET_FLOATING_KERNELS(kProgram, "cross_entropy_rows");
const Kernel kTotal[4] = CRESSET_FLOATING_KERNELS(kProgram, "cross_entropy_total");
const Kernel kBackward[4] = CRESSET_FLOATING_KERNELS(kProgram, "cross_entropy_backward");

unsigned row_threads(int64_t n) {
  return n >= 16384 ? 512 : n >= 4096 ? 256 : n >= 512 ? 128 : n > 64 ? 64 : 32;
}
const void* data_or_null(const Tensor& t) { return t.defined() ? t.const_data_ptr() : nullptr; }
Tensor weights_of(const std::optional<Tensor>& weight, ScalarType dtype) {
  return weight && weight->defined() ? weight->to(dtype).contiguous() : Tensor();
}
ScalarType accumulator(ScalarType dtype) { return dtype == kDouble ? kDouble : kFloat; }

} // namespace

std::tuple<Tensor, Tensor, Tensor> cross_entropy_rows_cuda(const Tensor& self, const Tensor& target,
                                                           const std::optional<Tensor>& weight,
                                                           int64_t reduction, int64_t ignore_index,
                                                           bool float_output) {
  const ScalarType dtype = self.scalar_type(), wide = accumulator(dtype);
  const int slot = cuda::floating_slot(dtype, "cross_entropy_cuda");
  cuda::check_same_device({&self, &target, cuda::given(weight)});
  const int64_t rows = self.size(0), n = self.size(1);
  const Device device = self.device();
  const Tensor x = self.contiguous(), classes = target.to(kLong).contiguous(),
               w = weights_of(weight, dtype);
  const bool each = reduction == kNoReduction;
  const Tensor log_sums = detail::empty({rows}, wide, device);
  const Tensor each_loss = detail::empty({rows}, wide, device),
               each_weight = detail::empty({rows}, wide, device);
  void *losses = each_loss.mutable_data_ptr(), *weights = each_weight.mutable_data_ptr();
  const auto stream = cuda::current_stream();
  cuda::launch(kRows[slot], static_cast<unsigned>(rows), row_threads(n), 0, stream,
               x.const_data_ptr(), classes.const_data_ptr(), data_or_null(w),
               log_sums.mutable_data_ptr(), losses, weights, n, ignore_index,
               cuda::index_check("cross_entropy_loss"));
  const Tensor total = detail::empty({}, wide, device);
  const Tensor out = detail::empty({}, wide, device);
  cuda::launch(kTotal[slot], 1, rows > 256 ? 1024 : 256, 0, stream, losses, weights,
               out.mutable_data_ptr(), total.mutable_data_ptr(), rows,
               static_cast<int>(reduction == kMeanReduction));
  const Tensor& result = each ? each_loss : out;
  return {result.to(float_output ? wide : dtype), log_sums, total};
}

Tensor cross_entropy_rows_backward_cuda(const Tensor& grad_output, const Tensor& self,
                                        const Tensor& target, const std::optional<Tensor>& weight,
                                        int64_t reduction, int64_t ignore_index,
                                        const Tensor& log_sums, const Tensor& total_weight) {
  const ScalarType dtype = self.scalar_type();
  const int slot = cuda::floating_slot(dtype, "cross_entropy_cuda");
  cuda::check_same_device({&self, &target, &grad_output, cuda::given(weight), &log_sums});
  const int64_t rows = self.size(0), n = self.size(1);
  const bool each = reduction == kNoReduction;
  TORCH_CHECK(grad_output.numel() == (each ? rows : 1),
              "Expected a single element grad_output tensor or one for each target, but got: ",
              grad_output.sizes());
  Tensor x = self.contiguous();
  if (!cuda::is_aligned16(x.const_data_ptr())) x = x.clone(); // lies as the fresh result does
  const Tensor classes = target.to(kLong).contiguous(), w = weights_of(weight, dtype),
               grad = grad_output.to(accumulator(dtype)).contiguous();
  const Tensor out = detail::empty({rows, n}, dtype, self.device());
  cuda::launch(kBackward[slot], static_cast<unsigned>(rows), row_threads(n), 0,
               cuda::current_stream(), x.const_data_ptr(), classes.const_data_ptr(),
               data_or_null(w), log_sums.const_data_ptr(), grad.const_data_ptr(),
               total_weight.const_data_ptr(), out.mutable_data_ptr(), n, ignore_index,
               static_cast<int>(reduction == kMeanReduction), static_cast<int>(each));
  return out;
}

} // namespace at::native
