// Gradients of Fourier transforms. The transform is a symmetric matrix, so its gradient is the
// transform in the other direction; what real data or half a spectrum adds is that an element may
// stand for two.
#include <ATen/ops/_fft_c2c.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/real.h>
#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {

Tensor fft_r2c_grad(const Tensor& grad, IntArrayRef dim, int64_t normalization, bool onesided,
                    IntArrayRef sizes) {
  Tensor whole = grad;
  const int64_t rank = grad.dim(), last = dim.back() < 0 ? dim.back() + rank : dim.back();
  if (onesided && grad.size(last) != sizes[last]) {
    // The half that was not returned has no gradient.
    c10::SmallVector<int64_t, 10> pad(static_cast<size_t>(2 * (rank - last)), 0);
    pad.back() = sizes[last] - grad.size(last);
    whole = at::constant_pad_nd(grad, pad);
  }
  return at::real(at::_fft_c2c(whole, dim, normalization, false));
}

Tensor fft_c2r_grad(const Tensor& grad, IntArrayRef dim, int64_t normalization) {
  const Tensor half = at::_fft_r2c(grad, dim, normalization, true);
  const int64_t rank = grad.dim(), last = dim.back() < 0 ? dim.back() + rank : dim.back();
  // Elements with a mirror image count twice: all but the first and, of an even length, the last.
  const int64_t twice = grad.size(last) - half.size(last);
  if (twice <= 0) return half;
  c10::SmallVector<int64_t, 6> shape(static_cast<size_t>(rank - last), 1);
  shape[0] = half.size(last);
  const Tensor weight =
      at::full(shape, Scalar(1.0), grad.scalar_type(), std::nullopt, grad.device(), std::nullopt);
  weight.slice(0, 1, 1 + twice).fill_(Scalar(2.0));
  return at::mul(half, weight);
}

} // namespace torch::autograd::generated
