// The host side of Pool.cuh: poolings and their gradients on CUDA. Contiguous and channels-last
// tensors are read as they lie; others are copied first.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/pool/Native.h>
#include <ATen/native/pool/Pool.args.h>
#include <ATen/native/pool/PoolWindows.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mean.h>

#include <algorithm>
#include <limits>

namespace at::native {
namespace {
using cuda::Kernel;
using device::PoolDimension;
using device::PoolNumbers;
using device::PoolPlanes;

constexpr const char* kProgram = "native/pool/Pool.cuh";
#define CRESSET_TYPES(name)                                                                        \
  {                                                                                                \
    {{kProgram, name "_f32"}, {kProgram, name "_f32_wide"}},                                       \
        {{kProgram, name "_f64"}, {kProgram, name "_f64_wide"}},                                   \
        {{kProgram, name "_f16"}, {kProgram, name "_f16_wide"}}, {                                 \
      {kProgram, name "_bf16"}, { kProgram, name "_bf16_wide" }                                    \
    }                                                                                              \
  }
const Kernel kMax[4][2] = CRESSET_TYPES("pool_max");
const Kernel kMaxBackward[4][2] = CRESSET_TYPES("pool_max_backward");
#define CRESSET_PACKED(name)                                                                       \
  {                                                                                                \
    {kProgram, name "_f32_packed"}, {kProgram, name "_f64_packed"},                                \
        {kProgram, name "_f16_packed"}, {                                                          \
      kProgram, name "_bf16_packed"                                                                \
    }                                                                                              \
  }
const Kernel kMaxPacked[4] = CRESSET_PACKED("pool_max");
const Kernel kMaxBackwardPacked[4] = CRESSET_PACKED("pool_max_backward");
const Kernel kMean[4][2] = CRESSET_TYPES("pool_mean");
const Kernel kMeanBackward[4][2] = CRESSET_TYPES("pool_mean_backward");
constexpr int kThreads = 256;

bool is_channels_last(const Tensor& t) {
  return t.suggest_memory_format() != MemoryFormat::Contiguous;
}
// Contiguous or channels last, whichever is asked for.
Tensor laid_out(const Tensor& t, bool channels_last) {
  if (!channels_last) return t.contiguous();
  return t.contiguous(t.dim() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast);
}
PoolPlanes planes_of(const Tensor& t, int64_t dims, bool channels_last) {
  const int64_t channels = t.size(-dims - 1);
  int64_t plane = 1;
  for (int64_t d = 1; d <= dims; ++d) plane *= t.size(-d);
  if (channels_last) return {plane * channels, 1, channels};
  return {plane * channels, plane, 1};
}

// Read only where all places are below 2^31.
void set_divisors(PoolNumbers& n) {
  const auto fast = [](int64_t d) {
    return device::Divider(static_cast<uint32_t>(std::clamp<int64_t>(d, 1, 1 << 30)));
  };
  int64_t large = 1, small = 1;
  for (PoolDimension& d : n.axis) {
    d.by_in = fast(d.in);
    d.by_out = fast(d.out);
    d.by_stride = fast(d.stride);
    large *= d.in;
    small *= d.out;
  }
  n.by_channels = fast(n.channels);
  n.by_large = fast(large);
  n.by_small = fast(small);
}

// The geometry of both sides; `params` null: adaptive.
PoolNumbers numbers_of(const Tensor& large, const Tensor& small, const PoolParams* params,
                       int64_t dims, bool channels_last) {
  PoolNumbers n{};
  for (int i = 0; i < 3; ++i) n.axis[i] = {1, 1, 1, 1, 0, 1, {}, {}, {}, 0};
  for (int64_t i = 0; i < dims; ++i) {
    PoolDimension& axis = n.axis[3 - dims + i];
    axis.in = large.size(i - dims);
    axis.out = small.size(i - dims);
    const size_t k = static_cast<size_t>(i);
    axis.kernel = params ? params->kernel[k] : 0;
    axis.stride = params ? params->stride[k] : 1;
    axis.padding = params ? params->padding[k] : 0;
    axis.dilation = params ? params->dilation[k] : 1;
    // Shares that come out even are windows of one size, whose places need no wide division.
    if (!params && axis.in % std::max<int64_t>(axis.out, 1) == 0)
      axis.kernel = axis.stride = axis.in / std::max<int64_t>(axis.out, 1);
  }
  n.samples = large.dim() == dims + 2 ? large.size(0) : 1;
  n.channels = large.size(-dims - 1);
  n.large = planes_of(large, dims, channels_last);
  n.small = planes_of(small, dims, channels_last);
  n.with_padding = 1;
  n.channels_last = channels_last;
  set_divisors(n);
  return n;
}

// Room for a window's end beyond the last position.
bool is_wide(const PoolNumbers& n, const Tensor& large, const Tensor& small) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max() / 2;
  if (large.numel() > kLimit || small.numel() > kLimit) return true;
  for (const PoolDimension& d : n.axis) {
    int64_t extent = 0, reach = 0;
    if (c10::mul_overflows(d.kernel, d.dilation, &extent) ||
        c10::mul_overflows(d.out, d.stride, &reach) || extent > kLimit / 2 || reach > kLimit / 2 ||
        d.in > kLimit / 2 || d.padding > kLimit / 2)
      return true;
  }
  return false;
}

template <class... Args> void launch(const Kernel (&kernels)[4][2], const char* name,
                                     const PoolNumbers& n, const Tensor& large, const Tensor& small,
                                     const Tensor& result, Args... pointers) {
  const int slot = cuda::floating_slot(result.scalar_type(), name);
  cuda::launch(kernels[slot][is_wide(n, large, small)], cuda::blocks_for(result.numel(), kThreads),
               kThreads, 0, cuda::current_stream(), pointers..., n);
}

// The same for packs of channels, where these lie side by side; false where they do not.
template <class... Args> bool launch_packed(const Kernel (&kernels)[4], const char* name,
                                            PoolNumbers n, const Tensor& large, const Tensor& small,
                                            const Tensor& result, Args... pointers) {
  const int slot = cuda::floating_slot(result.scalar_type(), name);
  const int64_t pack = result.scalar_type() == kDouble ? 2 : 4;
  if (!n.channels_last || n.channels % pack != 0 || is_wide(n, large, small) ||
      !(cuda::is_aligned16(pointers) && ...))
    return false;
  n.channels /= pack;
  n.large.channel = n.small.channel = pack;
  set_divisors(n);
  cuda::launch(kernels[slot], cuda::blocks_for(result.numel() / pack, kThreads), kThreads, 0,
               cuda::current_stream(), pointers..., n);
  return true;
}

// `out` itself where it lies so; otherwise a copy, which `store` takes back.
void store(const Tensor& out, const Tensor& target) {
  if (!out.is_same(target)) out.copy_(target);
}

void max_windows(const Tensor& self, const PoolParams* params, int64_t dims, const Tensor& out,
                 const Tensor& indices, const char* name) {
  cuda::floating_slot(self.scalar_type(), name);
  if (out.numel() == 0) return;
  const bool last = is_channels_last(self);
  const Tensor x = laid_out(self, last), y = laid_out(out, last), at = laid_out(indices, last);
  const PoolNumbers n = numbers_of(x, y, params, dims, last);
  const void* in = x.const_data_ptr();
  void *values = y.mutable_data_ptr(), *places = at.mutable_data_ptr();
  if (!launch_packed(kMaxPacked, name, n, x, y, y, in, values, places))
    launch(kMax, name, n, x, y, y, in, values, places);
  store(out, y);
  store(indices, at);
}

void max_gradient(const Tensor& grad, const Tensor& self, const Tensor& indices,
                  const PoolParams* params, int64_t dims, const Tensor& out, const char* name) {
  cuda::check_same_device({&self, &grad, &indices});
  if (out.numel() == 0) return;
  const bool last = is_channels_last(self);
  const Tensor g = laid_out(grad, last), at = laid_out(indices, last), dx = laid_out(out, last);
  const PoolNumbers n = numbers_of(dx, g, params, dims, last);
  const void *from = g.const_data_ptr(), *places = at.const_data_ptr();
  void* to = dx.mutable_data_ptr();
  if (!launch_packed(kMaxBackwardPacked, name, n, dx, g, dx, from, places, to))
    launch(kMaxBackward, name, n, dx, g, dx, from, places, to);
  store(out, dx);
}

void mean_windows(const Tensor& self, const PoolParams* params, int64_t dims, bool with_padding,
                  std::optional<int64_t> divisor, const Tensor& out, const char* name) {
  cuda::floating_slot(self.scalar_type(), name);
  if (out.numel() == 0) return;
  const bool last = is_channels_last(self);
  const Tensor x = laid_out(self, last), y = laid_out(out, last);
  PoolNumbers n = numbers_of(x, y, params, dims, last);
  n.with_padding = with_padding;
  n.divisor = divisor.value_or(0);
  const void* in = x.const_data_ptr();
  launch(kMean, name, n, x, y, y, in, y.mutable_data_ptr());
  store(out, y);
}

// The number of values of the one window that is everything, or 0 where there are several windows.
int64_t whole_window(const Tensor& large, const Tensor& small, int64_t dims) {
  int64_t values = 1;
  for (int64_t d = -dims; d < 0; ++d) {
    if (small.size(d) != 1) return 0;
    values *= large.size(d);
  }
  return values;
}

void mean_gradient(const Tensor& grad, const Tensor& self, const PoolParams* params, int64_t dims,
                   bool with_padding, std::optional<int64_t> divisor, const Tensor& out,
                   const char* name) {
  cuda::check_same_device({&self, &grad});
  if (out.numel() == 0) return;
  if (grad.numel() == 0) {
    out.zero_();
    return;
  }
  if (const int64_t values = params ? 0 : whole_window(out, grad, dims)) {
    out.copy_(at::div(grad, static_cast<double>(values)).expand(out.sizes()));
    return;
  }
  const bool last = is_channels_last(self);
  const Tensor g = laid_out(grad, last), dx = laid_out(out, last);
  PoolNumbers n = numbers_of(dx, g, params, dims, last);
  n.with_padding = with_padding;
  n.divisor = divisor.value_or(0);
  const void* from = g.const_data_ptr();
  launch(kMeanBackward, name, n, dx, g, dx, from, dx.mutable_data_ptr());
  store(out, dx);
}

// One window over everything is a mean, whose kernel shares a window among threads.
void adaptive_mean(const Tensor& self, int64_t dims, const Tensor& out, const char* name) {
  DimVector all;
  for (int64_t d = -dims; d < 0; ++d) all.push_back(d);
  if (out.numel() == 0 || !whole_window(self, out, dims))
    return mean_windows(self, nullptr, dims, true, std::nullopt, out, name);
  cuda::floating_slot(self.scalar_type(), name);
  out.copy_(at::mean(self, IntArrayRef(all), true));
}

} // namespace

void max_pool2d_with_indices_cuda(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                  IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                                  const Tensor& out, const Tensor& indices) {
  const PoolParams p = pool_params(kernel, stride, padding, dilation, ceil_mode, 2, "max_pool2d");
  max_windows(self, &p, 2, out, indices, "max_pool2d_cuda");
}
void max_pool3d_with_indices_cuda(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                  IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                                  const Tensor& out, const Tensor& indices) {
  const PoolParams p = pool_params(kernel, stride, padding, dilation, ceil_mode, 3, "max_pool3d");
  max_windows(self, &p, 3, out, indices, "max_pool3d_cuda");
}
void max_pool2d_with_indices_backward_cuda(const Tensor& grad, const Tensor& self,
                                           IntArrayRef kernel, IntArrayRef stride,
                                           IntArrayRef padding, IntArrayRef dilation,
                                           bool ceil_mode, const Tensor& indices,
                                           const Tensor& out) {
  const PoolParams p = pool_params(kernel, stride, padding, dilation, ceil_mode, 2, "max_pool2d");
  max_gradient(grad, self, indices, &p, 2, out, "max_pool2d_backward_cuda");
}
void max_pool3d_with_indices_backward_cuda(const Tensor& grad, const Tensor& self,
                                           IntArrayRef kernel, IntArrayRef stride,
                                           IntArrayRef padding, IntArrayRef dilation,
                                           bool ceil_mode, const Tensor& indices,
                                           const Tensor& out) {
  const PoolParams p = pool_params(kernel, stride, padding, dilation, ceil_mode, 3, "max_pool3d");
  max_gradient(grad, self, indices, &p, 3, out, "max_pool3d_backward_cuda");
}
void avg_pool2d_cuda(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, bool ceil_mode, bool include_pad,
                     std::optional<int64_t> divisor, const Tensor& out) {
  const PoolParams p = pool_params(kernel, stride, padding, {1}, ceil_mode, 2, "avg_pool2d");
  mean_windows(self, &p, 2, include_pad, divisor, out, "avg_pool2d_cuda");
}
void avg_pool3d_cuda(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, bool ceil_mode, bool include_pad,
                     std::optional<int64_t> divisor, const Tensor& out) {
  const PoolParams p = pool_params(kernel, stride, padding, {1}, ceil_mode, 3, "avg_pool3d");
  mean_windows(self, &p, 3, include_pad, divisor, out, "avg_pool3d_cuda");
}
void avg_pool2d_backward_cuda(const Tensor& grad, const Tensor& self, IntArrayRef kernel,
                              IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                              bool include_pad, std::optional<int64_t> divisor, const Tensor& out) {
  const PoolParams p = pool_params(kernel, stride, padding, {1}, ceil_mode, 2, "avg_pool2d");
  mean_gradient(grad, self, &p, 2, include_pad, divisor, out, "avg_pool2d_backward_cuda");
}
void avg_pool3d_backward_cuda(const Tensor& grad, const Tensor& self, IntArrayRef kernel,
                              IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                              bool include_pad, std::optional<int64_t> divisor, const Tensor& out) {
  const PoolParams p = pool_params(kernel, stride, padding, {1}, ceil_mode, 3, "avg_pool3d");
  mean_gradient(grad, self, &p, 3, include_pad, divisor, out, "avg_pool3d_backward_cuda");
}

void adaptive_max_pool2d_cuda(const Tensor& self, IntArrayRef, const Tensor& out,
                              const Tensor& indices) {
  max_windows(self, nullptr, 2, out, indices, "adaptive_max_pool2d_cuda");
}
void adaptive_max_pool3d_cuda(const Tensor& self, IntArrayRef, const Tensor& out,
                              const Tensor& indices) {
  max_windows(self, nullptr, 3, out, indices, "adaptive_max_pool3d_cuda");
}
void adaptive_max_pool2d_backward_cuda(const Tensor& grad, const Tensor& self,
                                       const Tensor& indices, const Tensor& out) {
  max_gradient(grad, self, indices, nullptr, 2, out, "adaptive_max_pool2d_backward_cuda");
}
void adaptive_max_pool3d_backward_cuda(const Tensor& grad, const Tensor& self,
                                       const Tensor& indices, const Tensor& out) {
  max_gradient(grad, self, indices, nullptr, 3, out, "adaptive_max_pool3d_backward_cuda");
}
void adaptive_avg_pool2d_cuda(const Tensor& self, IntArrayRef, const Tensor& out) {
  adaptive_mean(self, 2, out, "adaptive_avg_pool2d_cuda");
}
void adaptive_avg_pool3d_cuda(const Tensor& self, IntArrayRef, const Tensor& out) {
  adaptive_mean(self, 3, out, "adaptive_avg_pool3d_cuda");
}
void adaptive_avg_pool2d_backward_cuda(const Tensor& grad, const Tensor& self, const Tensor& out) {
  mean_gradient(grad, self, nullptr, 2, true, std::nullopt, out,
                "adaptive_avg_pool2d_backward_cuda");
}
void adaptive_avg_pool3d_backward_cuda(const Tensor& grad, const Tensor& self, const Tensor& out) {
  mean_gradient(grad, self, nullptr, 3, true, std::nullopt, out,
                "adaptive_avg_pool3d_backward_cuda");
}

} // namespace at::native
