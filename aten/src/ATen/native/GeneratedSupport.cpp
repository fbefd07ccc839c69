// What generated in-place and out variants share.
#include <ATen/native/GeneratedSupport.h>

#include <ATen/native/Resize.h>

namespace at::native {

bool resize_output(const Tensor& out, IntArrayRef sizes) {
  if (out.sizes() == sizes) return false;
  if (out.numel() != 0) {
    TORCH_WARN(
        "An output with one or more elements was resized since it had shape ", out.sizes(),
        ", which does not match the required output shape ", sizes,
        ". This behavior is deprecated, and in a future PyTorch release outputs will not be "
        "resized "
        "unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, "
        "inplace, to zero elements with t.resize_(0).");
  }
  resize_contiguous(out, sizes);
  return true;
}

namespace generated {
void store_inplace(Tensor& self, const Tensor& result) {
  TORCH_CHECK(self.sizes() == result.sizes(), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", result.sizes());
  TORCH_CHECK(c10::canCast(result.scalar_type(), self.scalar_type()), "result type ",
              result.scalar_type(), " can't be cast to the desired output type ",
              self.scalar_type());
  self.copy_(result);
}

Tensor kept_for_backward(const Tensor& self) {
  return c10::tls_autograd_state.grad_mode && self.requires_grad() ? self.clone() : self;
}

void store_out(Tensor& out, const Tensor& result) {
  if (!result.defined()) return; // a gradient that its mask left out
  TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), "result type ",
              result.scalar_type(), " can't be cast to the desired output type ", out.scalar_type(),
              ": Expected result to be safely castable from ", result.scalar_type(),
              " dtype, but got result with dtype ", out.scalar_type());
  TORCH_CHECK(out.device() == result.device(), "Expected out tensor to have device ",
              result.device(), ", but got ", out.device(), " instead");
  resize_output(out, result.sizes());
  out.copy_(result);
}

void store_sequence(Tensor& out, const Tensor& result) {
  const bool fits = out.numel() == result.numel() && out.dim() != 1;
  store_out(out, fits ? result.view(out.sizes()) : result);
}
} // namespace generated

} // namespace at::native
