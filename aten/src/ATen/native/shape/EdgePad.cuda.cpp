// Reflection and replication padding on CUDA, one dimension after the other: the positions an
// output shows are computed on the device, the values are selected by them, and gradients are added
// back at them in a fixed order. repeat_interleave finds its positions by search.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Native.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/min.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros.h>

namespace at::native {
namespace {

enum class Edge { Reflect, Replicate };

Tensor positions(int64_t begin, int64_t end, Device device) {
  return at::arange(begin, end, TensorOptions().dtype(kLong).device(device));
}

// For each place of the padded dimension the place of the input it shows.
Tensor shown(int64_t size, int64_t left, int64_t right, Edge edge, Device device) {
  const Tensor place = positions(-left, size + right, device);
  const int64_t last = size - 1;
  if (edge == Edge::Replicate) return at::clamp(place, Scalar(0), Scalar(last));
  return at::rsub(at::abs(at::rsub(at::abs(place), last)), last);
}

template <class F> void for_padded(const Tensor& self, IntArrayRef padding, const F& f) {
  for (size_t i = 0; i < padding.size() / 2; ++i)
    f(self.dim() - 1 - static_cast<int64_t>(i), padding[2 * i], padding[2 * i + 1]);
}

void pad(const Tensor& self, IntArrayRef padding, Edge edge, const Tensor& out) {
  if (out.numel() == 0) return;
  Tensor t = self;
  for_padded(self, padding, [&](int64_t d, int64_t left, int64_t right) {
    if (left != 0 || right != 0)
      t = at::index_select(t, d, shown(self.size(d), left, right, edge, self.device()));
  });
  out.copy_(t);
}

void pad_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef padding, Edge edge,
                  const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  Tensor g = grad_output;
  for_padded(self, padding, [&](int64_t d, int64_t left, int64_t right) {
    if (left == 0 && right == 0) return;
    DimVector sizes(g.sizes());
    sizes[d] = self.size(d);
    g = at::index_add(at::zeros(sizes, g.options()), d,
                      shown(self.size(d), left, right, edge, self.device()), g);
  });
  grad_input.copy_(g);
}

} // namespace

void reflection_pad_cuda(const Tensor& self, IntArrayRef padding, const Tensor& out) {
  pad(self, padding, Edge::Reflect, out);
}
void replication_pad_cuda(const Tensor& self, IntArrayRef padding, const Tensor& out) {
  pad(self, padding, Edge::Replicate, out);
}
void reflection_pad_backward_cuda(const Tensor& grad_output, const Tensor& self,
                                  IntArrayRef padding, const Tensor& grad_input) {
  pad_backward(grad_output, self, padding, Edge::Reflect, grad_input);
}
void replication_pad_backward_cuda(const Tensor& grad_output, const Tensor& self,
                                   IntArrayRef padding, const Tensor& grad_input) {
  pad_backward(grad_output, self, padding, Edge::Replicate, grad_input);
}

Tensor repeat_interleave_cuda(const Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  const ScalarType dtype = repeats.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(dtype == kLong || dtype == kInt,
                              "\"repeat_interleave_cuda\" not implemented for '", dtype, "'");
  if (repeats.size(0) == 0) return detail::empty({0}, dtype, repeats.device());
  TORCH_CHECK(at::min(repeats).item<int64_t>() >= 0, "repeats can not be negative");
  const Tensor ends = at::cumsum(repeats.to(kLong), 0);
  const int64_t total = ends.select(0, ends.size(0) - 1).item<int64_t>();
  TORCH_CHECK(!output_size || *output_size == total,
              "repeat_interleave: Invalid output_size, expected ", total, " but got ",
              output_size.value_or(0));
  return at::searchsorted(ends, positions(0, total, repeats.device()), false, true).to(dtype);
}

} // namespace at::native
