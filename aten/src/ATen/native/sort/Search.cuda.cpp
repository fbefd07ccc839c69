// searchsorted on CUDA: the host side of Search.cuh. bucketize comes through it.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/sort/Native.h>
#include <ATen/native/sort/Search.args.h>

namespace at::native {
namespace {

using cuda::Kernel;

constexpr const char* kProgram = "native/sort/Search.cuh";
struct TypedKernel {
  ScalarType dtype;
  Kernel kernel;
};
const TypedKernel kKernels[] = {
    {kByte, {kProgram, "search_u8"}},    {kChar, {kProgram, "search_i8"}},
    {kShort, {kProgram, "search_i16"}},  {kInt, {kProgram, "search_i32"}},
    {kLong, {kProgram, "search_i64"}},   {kUInt16, {kProgram, "search_u16"}},
    {kUInt32, {kProgram, "search_u32"}}, {kUInt64, {kProgram, "search_u64"}},
    {kHalf, {kProgram, "search_f16"}},   {kBFloat16, {kProgram, "search_bf16"}},
    {kFloat, {kProgram, "search_f32"}},  {kDouble, {kProgram, "search_f64"}},
};

using device::SearchArgs;

const Kernel& kernel_for(ScalarType dtype) {
  for (const TypedKernel& k : kKernels)
    if (k.dtype == dtype) return k.kernel;
  TORCH_CHECK_NOT_IMPLEMENTED(false, "\"searchsorted_out_cuda\" not implemented for '", dtype, "'");
}

// A number on the CPU may be searched for in a sequence on the device.
Tensor on_device(const Tensor& t, ScalarType dtype, Device device) {
  if (t.device() == device) return t.to(dtype).contiguous();
  const Tensor moved = detail::empty(t.sizes(), dtype, device);
  moved.copy_(t);
  return moved;
}

} // namespace

void searchsorted_cuda(const Tensor& sorted_sequence, const Tensor& self, bool out_int32,
                       bool right, std::optional<std::string_view> side,
                       const std::optional<Tensor>& sorter, const Tensor& out) {
  if (self.numel() == 0) return;
  const ScalarType dtype = result_type_of(sorted_sequence, self);
  const Kernel& kernel = kernel_for(dtype);
  const Tensor rows = sorted_sequence.to(dtype).contiguous();
  const Tensor values = on_device(self, dtype, sorted_sequence.device());
  const Tensor order = sorter && sorter->defined() ? sorter->contiguous() : Tensor();
  const Tensor to =
      out.is_contiguous() ? out : detail::empty(out.sizes(), out.scalar_type(), out.device());
  const bool one_row = rows.dim() == 1;
  const SearchArgs args{rows.const_data_ptr(),
                        order.defined() ? order.const_data_ptr<int64_t>() : nullptr,
                        values.const_data_ptr(),
                        to.mutable_data_ptr(),
                        values.numel(),
                        one_row ? values.numel() : values.size(-1),
                        rows.size(-1),
                        one_row,
                        right || (side && *side == "right"),
                        out_int32,
                        cuda::index_check("searchsorted")};
  cuda::launch(kernel, cuda::blocks_for(args.count, 256), 256, 0, cuda::current_stream(), args);
  if (!to.is_same(out)) out.copy_(to);
}

} // namespace at::native
