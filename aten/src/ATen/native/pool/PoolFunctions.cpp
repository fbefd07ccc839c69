// Poolings made of others: over one dimension as over two with a height of one, and those without
// indices.
#include <ATen/core/HandlerKeys.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/pool/Native.h>
#include <ATen/native/pool/PoolWindows.h>
#include <ATen/ops/_adaptive_avg_pool2d.h>
#include <ATen/ops/_adaptive_avg_pool3d.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/max_pool1d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool3d_with_indices.h>
#include <ATen/ops/mean.h>

namespace at::native {
namespace {

void check_one_d(const Tensor& self, const char* op) {
  TORCH_CHECK(self.dim() == 2 || self.dim() == 3, "Expected 2 to 3 dimensions, but got ",
              self.dim(),
              "-dimensional tensor for argument #1 'self' (while checking arguments for ", op, ")");
}
int64_t single(IntArrayRef v, const char* op, const char* name) {
  TORCH_CHECK(v.size() == 1, op, "() argument '", name, "' should contain one int (got ", v.size(),
              ")");
  return v[0];
}
int64_t only(IntArrayRef v, const char* name, const char* kinds) {
  TORCH_CHECK(v.size() == 1, "max_pool1d() ", name, " must be ", kinds, " of size 1 but got size ",
              v.size());
  return v[0];
}

// Whether the places of the maxima are of no use: nothing differentiates, records or transforms the
// call. Other dtypes have no loop that is faster without them.
bool only_values(const Tensor& self) {
  constexpr DispatchKeySet kPlain =
      DispatchKeySet{DispatchKey::CPU, DispatchKey::ADInplaceOrView} | c10::kAutogradKeys;
  const c10::LocalDispatchKeySet& keys = c10::tls_dispatch_keys;
  return (self.key_set().raw() & ~kPlain.raw()) == 0 && (keys.included & ~keys.excluded) == 0 &&
         !(c10::tls_autograd_state.grad_mode && self.requires_grad()) && self.is_cpu() &&
         (self.scalar_type() == kFloat || self.scalar_type() == kDouble) && self.is_contiguous() &&
         self.suggest_memory_format() == MemoryFormat::Contiguous;
}

void check_max1d(const Tensor& self, int64_t kernel, int64_t stride, int64_t padding,
                 int64_t dilation, bool ceil_mode) {
  bool valid = self.dim() == 2 || self.dim() == 3;
  for (int64_t d = self.dim() == 3 ? 1 : 0; valid && d < self.dim(); ++d) valid = self.size(d) > 0;
  TORCH_CHECK(valid,
              "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size "
              "for input, but got:",
              self.sizes());
  TORCH_CHECK(kernel > 0, "max_pool1d() kernel_size must be greater than zero, but got ", kernel);
  TORCH_CHECK(stride > 0, "max_pool1d() stride must be greater than zero, but got ", stride);
  TORCH_CHECK(padding >= 0, "pad must be non-negative, but got pad: ", padding);
  TORCH_CHECK(dilation > 0, "max_pool1d() dilation must be greater than zero, but got ", dilation);
  const __int128 extent = __int128(kernel - 1) * dilation + 1;
  TORCH_CHECK(padding <= extent / 2,
              "pad should be at most half of effective kernel size, but got pad=", padding,
              ", kernel_size=", kernel, " and dilation=", dilation);
  const __int128 room =
      __int128(self.size(-1)) + 2 * __int128(padding) - extent + (ceil_mode ? stride - 1 : 0);
  const __int128 out = (room >= 0 ? room / stride : -((-room + stride - 1) / stride)) + 1;
  TORCH_CHECK(out > 0, "max_pool1d() Invalid computed output size: ", static_cast<int64_t>(out));
}

// The checked parameters of max_pool1d.
struct OneD {
  int64_t kernel, stride, padding, dilation;
};
OneD one_d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
           IntArrayRef dilation, bool ceil_mode) {
  const char* ints = "an int, list of ints or tuple of ints";
  const int64_t k = only(kernel_size, "kernel_size", ints);
  const int64_t s =
      stride.empty() ? k : only(stride, "stride", "None, an int, list of ints, or tuple of ints");
  const int64_t p = only(padding, "padding", ints), d = only(dilation, "dilation", ints);
  check_max1d(self, k, s, p, d, ceil_mode);
  return {k, s, p, d};
}

} // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntArrayRef kernel_size,
                                                   IntArrayRef stride, IntArrayRef padding,
                                                   IntArrayRef dilation, bool ceil_mode) {
  const OneD p = one_d(self, kernel_size, stride, padding, dilation, ceil_mode);
  const auto [values, indices] = at::max_pool2d_with_indices(
      self.unsqueeze(-2), {1, p.kernel}, {1, p.stride}, {0, p.padding}, {1, p.dilation}, ceil_mode);
  return {values.squeeze(-2), indices.squeeze(-2)};
}

Tensor max_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                  IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  if (only_values(self)) {
    const OneD p = one_d(self, kernel_size, stride, padding, dilation, ceil_mode);
    return max_pool_values(self.unsqueeze(-2), {1, p.kernel}, {1, p.stride}, {0, p.padding},
                           {1, p.dilation}, ceil_mode, 2, "max_pool2d")
        .squeeze(-2);
  }
  return std::get<0>(
      at::max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
}
Tensor max_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                  IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  if (only_values(self))
    return max_pool_values(self, kernel_size, stride, padding, dilation, ceil_mode, 2,
                           "max_pool2d");
  return std::get<0>(
      at::max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
}
Tensor max_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                  IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  if (only_values(self))
    return max_pool_values(self, kernel_size, stride, padding, dilation, ceil_mode, 3,
                           "max_pool3d");
  return std::get<0>(
      at::max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
}

Tensor avg_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                  IntArrayRef padding, bool ceil_mode, bool count_include_pad) {
  check_one_d(self, "avg_pool1d");
  const int64_t k = single(kernel_size, "avg_pool1d", "kernel_size");
  const int64_t s = stride.empty() ? k : single(stride, "avg_pool1d", "stride"),
                p = single(padding, "avg_pool1d", "padding");
  return at::avg_pool2d(self.unsqueeze(-2), {1, k}, {1, s}, {0, p}, ceil_mode, count_include_pad)
      .squeeze(-2);
}

Tensor adaptive_avg_pool1d(const Tensor& self, IntArrayRef output_size) {
  check_one_d(self, "adaptive_avg_pool1d");
  const int64_t n = single(output_size, "adaptive_avg_pool1d", "output_size");
  return at::adaptive_avg_pool2d(self.unsqueeze(-2), {1, n}).squeeze(-2);
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntArrayRef output_size) {
  check_one_d(self, "adaptive_max_pool1d");
  const int64_t n = single(output_size, "adaptive_max_pool1d", "output_size");
  const auto [values, indices] = at::adaptive_max_pool2d(self.unsqueeze(-2), {1, n});
  return {values.squeeze(-2), indices.squeeze(-2)};
}

Tensor adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
  TORCH_CHECK(output_size[0] >= 0 && output_size[1] >= 0,
              "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but "
              "received {",
              output_size[0], ", ", output_size[1], "}");
  const bool whole = output_size[0] == 1 && output_size[1] == 1;
  // One window that is the whole plane: the mean adds it up by registers.
  const bool seen = C10_UNLIKELY(seen_by_handlers(self) || is_symbolic(self)) && self.dim() >= 3;
  const bool plain = !seen && self.is_cpu() && (self.dim() == 3 || self.dim() == 4) &&
                     self.numel() > 0 && self.is_floating_point() && self.is_contiguous();
  if (whole && (plain || seen))
    return at::mean(self, OptionalIntArrayRef(IntArrayRef({-1, -2})), true);
  return at::_adaptive_avg_pool2d(self, output_size);
}
Tensor adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == 3, "adaptive_avg_pool3d: output_size must be 3");
  TORCH_CHECK(output_size[0] >= 0 && output_size[1] >= 0 && output_size[2] >= 0,
              "adaptive_avg_pool3d: elements of output_size must be greater than or equal to 0 but "
              "received {",
              output_size[0], ", ", output_size[1], ",", output_size[2], "}");
  return at::_adaptive_avg_pool3d(self, output_size);
}

} // namespace at::native
