// The CTC loss on CUDA: the host side of CtcLoss.cuh. Lengths are known on the host; labels are
// checked there, which waits for the device.
#include <ATen/core/Context.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/loss/CtcBatch.h>
#include <ATen/native/loss/CtcLoss.args.h>
#include <ATen/native/loss/Native.h>

#include <limits>

namespace at::native {
namespace {
using cuda::Kernel;
using device::CtcArgs;

constexpr const char* kProgram = "native/loss/CtcLoss.cuh";
constexpr int kThreads = 256;
const Kernel kForward[2] = {{kProgram, "ctc_forward_f32"}, {kProgram, "ctc_forward_f64"}};
const Kernel kBackward[2] = {{kProgram, "ctc_backward_f32"}, {kProgram, "ctc_backward_f64"}};

int slot_of(ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(dtype == kFloat || dtype == kDouble,
                              "\"ctc_loss_cuda\" not implemented for '", dtype, "'");
  return dtype == kDouble ? 1 : 0;
}

// Labels, offsets and lengths, one after the other, on the device.
struct OnDevice {
  OnDevice(const CtcBatch& b, Device device) {
    const int64_t labels = b.values.numel(), n = b.samples;
    const Tensor host = detail::empty({labels + 3 * n}, kLong);
    auto* to = static_cast<int64_t*>(host.mutable_data_ptr());
    to = std::copy_n(static_cast<const int64_t*>(b.values.const_data_ptr()), labels, to);
    to = std::copy(b.offsets.begin(), b.offsets.end(), to);
    to = std::copy(b.input_lengths.begin(), b.input_lengths.end(), to);
    std::copy(b.target_lengths.begin(), b.target_lengths.end(), to);
    memory = detail::empty(host.sizes(), kLong, device);
    memory.copy_(host);
    const auto* from = static_cast<const int64_t*>(memory.const_data_ptr());
    args = {from,   from + labels, from + labels + n, from + labels + 2 * n,
            n,      b.frames,      b.classes,         b.states(),
            b.blank};
  }
  Tensor memory;
  CtcArgs args;
};

} // namespace

std::tuple<Tensor, Tensor> ctc_loss_cuda(const Tensor& log_probs, const Tensor& targets,
                                         IntArrayRef input_lengths, IntArrayRef target_lengths,
                                         int64_t blank, bool /*zero_infinity*/) {
  const CtcBatch b(log_probs, targets, input_lengths, target_lengths, blank);
  const ScalarType dtype = log_probs.scalar_type();
  const int slot = slot_of(dtype);
  const Tensor x = log_probs.contiguous();
  const Tensor losses = detail::empty({b.samples}, dtype, x.device());
  const Tensor alpha = detail::empty({b.samples, b.frames, b.states()}, dtype, x.device());
  alpha.fill_(-std::numeric_limits<double>::infinity());
  const OnDevice on(b, x.device());
  cuda::launch(kForward[slot], static_cast<unsigned>(b.samples), kThreads, 0,
               cuda::current_stream(), x.const_data_ptr(), alpha.mutable_data_ptr(),
               losses.mutable_data_ptr(), on.args);
  return {losses, alpha};
}

Tensor ctc_loss_backward_cuda(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                              IntArrayRef input_lengths, IntArrayRef target_lengths,
                              const Tensor& neg_log_likelihood, const Tensor& log_alpha,
                              int64_t blank, bool zero_infinity) {
  globalContext().alert_not_deterministic("ctc_loss_backward_gpu");
  cuda::check_same_device({&log_probs, &grad, &neg_log_likelihood, &log_alpha});
  const CtcBatch b(log_probs, targets, input_lengths, target_lengths, blank);
  const ScalarType dtype = log_probs.scalar_type();
  const int slot = slot_of(dtype);
  const Tensor x = log_probs.contiguous(), alpha = log_alpha.to(dtype).contiguous(),
               losses = neg_log_likelihood.to(dtype).contiguous(), g = grad.to(dtype).contiguous();
  TORCH_CHECK(alpha.numel() == b.samples * b.frames * b.states() && losses.numel() == b.samples &&
                  g.numel() == b.samples,
              "_ctc_loss_backward: grad, neg_log_likelihood and log_alpha do not fit the batch");
  const Tensor result = detail::empty(x.sizes(), dtype, x.device());
  result.zero_();
  const Tensor beta = detail::empty({b.samples, 2, b.states()}, dtype, x.device());
  const OnDevice on(b, x.device());
  cuda::launch(kBackward[slot], static_cast<unsigned>(b.samples), kThreads, 0,
               cuda::current_stream(), g.const_data_ptr(), x.const_data_ptr(),
               alpha.const_data_ptr(), losses.const_data_ptr(), beta.mutable_data_ptr(),
               result.mutable_data_ptr(), on.args, static_cast<int>(zero_infinity));
  return result;
}

} // namespace at::native
