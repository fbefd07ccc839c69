// segment_reduce on CUDA: the host side of SegmentReduce.cuh. Borders are read and checked on the
// host, which waits for the device.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/reduce/Native.h>
#include <ATen/native/reduce/SegmentReduce.args.h>
#include <ATen/native/reduce/Segments.h>
#include <ATen/native/shape/Geometry.h>

namespace at::native {
namespace {
using cuda::Kernel;

constexpr const char* kProgram = "native/reduce/SegmentReduce.cuh";
constexpr int kThreads = 256;
const Kernel kForward[4] = CRESSET_FLOATING_KERNELS(kProgram, "segment_reduce");
const Kernel kBackward[4] = CRESSET_FLOATING_KERNELS(kProgram, "segment_reduce_backward");

// The kernel's arguments, with the memory that their pointers are in.
struct Call {
  Call(const Segments& s, SegmentOp op, const std::optional<Scalar>& initial, Device device) {
    const int64_t n = s.outer * s.count;
    const Tensor host = detail::empty({2 * n}, kLong);
    auto* to = static_cast<int64_t*>(host.mutable_data_ptr());
    std::copy(s.begin.begin(), s.begin.end(), to);
    std::copy(s.end.begin(), s.end.end(), to + n);
    borders = detail::empty({2 * n}, kLong, device);
    borders.copy_(host);
    const auto* from = static_cast<const int64_t*>(borders.const_data_ptr());
    args = {from,
            from + n,
            n,
            s.count,
            s.size,
            s.inner,
            initial ? initial->toDouble() : 0.0,
            static_cast<int32_t>(op),
            initial.has_value()};
  }
  unsigned blocks() const { return cuda::blocks_for(args.segments * args.inner, kThreads); }
  Tensor borders;
  device::SegmentArgs args;
};

} // namespace

Tensor segment_reduce_cuda(const Tensor& data, std::string_view reduce,
                           const std::optional<Tensor>& lengths,
                           const std::optional<Tensor>& indices,
                           const std::optional<Tensor>& offsets, int64_t axis, bool unsafe,
                           const std::optional<Scalar>& initial) {
  TORCH_CHECK(!indices, "segment_reduce(): indices based reduction is not supported yet.");
  TORCH_CHECK(data.dim() > 0, "segment_reduce(): Expected a tensor with at least one dimension");
  const SegmentOp op = segment_op(reduce);
  const Segments s = segments_of(data, lengths, offsets, wrap_dim(axis, data.dim()), unsafe);
  const int slot = cuda::floating_slot(data.scalar_type(), "_segment_reduce_cuda");
  const Tensor x = data.contiguous();
  const Tensor out = detail::empty(s.shape, data.scalar_type(), data.device());
  if (out.numel() == 0) return out;
  const Call c(s, op, initial, data.device());
  cuda::launch(kForward[slot], c.blocks(), kThreads, 0, cuda::current_stream(), x.const_data_ptr(),
               out.mutable_data_ptr(), c.args);
  return out;
}

Tensor segment_reduce_backward_cuda(const Tensor& grad, const Tensor& output, const Tensor& data,
                                    std::string_view reduce, const std::optional<Tensor>& lengths,
                                    const std::optional<Tensor>& offsets, int64_t axis,
                                    const std::optional<Scalar>& initial) {
  TORCH_CHECK(data.dim() > 0, "segment_reduce(): Expected a tensor with at least one dimension");
  cuda::check_same_device({&data, &grad, &output});
  const SegmentOp op = segment_op(reduce);
  const Segments s = segments_of(data, lengths, offsets, wrap_dim(axis, data.dim()), true);
  TORCH_CHECK(grad.sizes() == IntArrayRef(s.shape) && output.sizes() == IntArrayRef(s.shape) &&
                  grad.scalar_type() == data.scalar_type() &&
                  output.scalar_type() == data.scalar_type(),
              "segment_reduce(): grad and output must have size ", IntArrayRef(s.shape),
              " and dtype ", data.scalar_type());
  const int slot = cuda::floating_slot(data.scalar_type(), "_segment_reduce_cuda");
  const Tensor g = grad.contiguous(), y = output.contiguous(), x = data.contiguous();
  const Tensor out = detail::empty(data.sizes(), data.scalar_type(), data.device());
  out.zero_();
  if (g.numel() == 0 || out.numel() == 0) return out;
  const Call c(s, op, initial, data.device());
  cuda::launch(kBackward[slot], c.blocks(), kThreads, 0, cuda::current_stream(), g.const_data_ptr(),
               y.const_data_ptr(), x.const_data_ptr(), out.mutable_data_ptr(), c.args);
  return out;
}

} // namespace at::native
