// The host side of GridSampler.cuh. Half types are computed in float.
#include <ATen/core/Context.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/interpolate/GridSampler.args.h>
#include <ATen/native/interpolate/Native.h>

#include <limits>

namespace at::native {
namespace {
using cuda::Kernel;
using device::GridSamplerArgs;

constexpr const char* kProgram = "native/interpolate/GridSampler.cuh";
constexpr int kThreads = 256;
constexpr int64_t kChannels = 8; // of one thread, as in the program
const Kernel kSample[4] = CRESSET_FLOATING_KERNELS(kProgram, "grid_sample");
const Kernel kToInput[4] = CRESSET_FLOATING_KERNELS(kProgram, "grid_to_input");
const Kernel kToGrid[4] = CRESSET_FLOATING_KERNELS(kProgram, "grid_to_grid");

int64_t threads_of(const GridSamplerArgs& a) {
  return a.batch * a.points * ((a.channels + kChannels - 1) / kChannels);
}
GridSamplerArgs arguments(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                          bool align_corners) {
  GridSamplerArgs a = {};
  a.batch = input.size(0);
  a.channels = input.size(1);
  a.points = 1;
  for (int64_t d = 1; d < grid.dim() - 1; ++d) a.points *= grid.size(d);
  a.dims = static_cast<int32_t>(input.dim()) - 2;
  a.size[0] = 1;
  for (int32_t d = 0; d < a.dims; ++d) a.size[3 - a.dims + d] = input.size(2 + d);
  a.mode = static_cast<int32_t>(mode);
  a.padding = static_cast<int32_t>(padding);
  a.align_corners = align_corners;
  a.small = threads_of(a) < std::numeric_limits<int32_t>::max();
  return a;
}
unsigned blocks_of(const GridSamplerArgs& a) { return cuda::blocks_for(threads_of(a), kThreads); }

void run_forward(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                 bool align_corners, const Tensor& out) {
  cuda::check_same_device({&input, &grid});
  if (out.numel() == 0) return;
  const Tensor x = input.contiguous(), points = grid.contiguous();
  const Tensor target = out.is_contiguous() ? out : out.contiguous();
  const GridSamplerArgs a = arguments(input, grid, mode, padding, align_corners);
  cuda::launch(kSample[cuda::floating_slot(input.scalar_type(), "grid_sampler_cuda")], blocks_of(a),
               kThreads, 0, cuda::current_stream(), x.const_data_ptr(), points.const_data_ptr(),
               target.mutable_data_ptr(), a);
  if (!target.is_same(out)) out.copy_(target);
}

void run_backward(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t mode,
                  int64_t padding, bool align_corners, std::array<bool, 2> mask,
                  const Tensor& input_grad, const Tensor& grid_grad, const char* name) {
  cuda::check_same_device({&grad, &input, &grid});
  const ScalarType dtype = input.scalar_type(), wide = dtype == kDouble ? kDouble : kFloat;
  const int slot = cuda::floating_slot(dtype, "grid_sampler_backward_cuda");
  const Tensor g = grad.contiguous(), x = input.contiguous(), points = grid.contiguous();
  const GridSamplerArgs a = arguments(input, grid, mode, padding, align_corners);
  const auto stream = cuda::current_stream();
  if (mask[0]) {
    globalContext().alert_not_deterministic(name);
    const bool direct = input_grad.is_contiguous() && dtype == wide;
    const Tensor sums = direct ? input_grad : detail::empty(input.sizes(), wide, input.device());
    sums.zero_();
    if (g.numel() > 0)
      cuda::launch(kToInput[slot], blocks_of(a), kThreads, 0, stream, g.const_data_ptr(),
                   points.const_data_ptr(), sums.mutable_data_ptr(), a);
    if (!direct) input_grad.copy_(sums);
  }
  if (mask[1] && grid_grad.numel() > 0) {
    const bool direct = grid_grad.is_contiguous();
    const Tensor to = direct ? grid_grad : detail::empty(grid.sizes(), dtype, grid.device());
    cuda::launch(kToGrid[slot], cuda::blocks_for(a.batch * a.points, kThreads), kThreads, 0, stream,
                 g.const_data_ptr(), x.const_data_ptr(), points.const_data_ptr(),
                 to.mutable_data_ptr(), a);
    if (!direct) grid_grad.copy_(to);
  }
}

} // namespace

void grid_sampler_2d_cuda(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                          bool align_corners, const Tensor& out) {
  run_forward(input, grid, mode, padding, align_corners, out);
}
void grid_sampler_3d_cuda(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                          bool align_corners, const Tensor& out) {
  run_forward(input, grid, mode, padding, align_corners, out);
}
void grid_sampler_2d_backward_cuda(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                   int64_t mode, int64_t padding, bool align_corners,
                                   std::array<bool, 2> mask, const Tensor& input_grad,
                                   const Tensor& grid_grad) {
  run_backward(grad, input, grid, mode, padding, align_corners, mask, input_grad, grid_grad,
               "grid_sampler_2d_backward_cuda");
}
void grid_sampler_3d_backward_cuda(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                   int64_t mode, int64_t padding, bool align_corners,
                                   std::array<bool, 2> mask, const Tensor& input_grad,
                                   const Tensor& grid_grad) {
  run_backward(grad, input, grid, mode, padding, align_corners, mask, input_grad, grid_grad,
               "grid_sampler_3d_backward_cuda");
}

} // namespace at::native
