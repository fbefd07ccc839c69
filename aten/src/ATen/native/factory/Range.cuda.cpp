// See RangeKernel.h.
#include <ATen/native/factory/RangeKernel.h>

#include <algorithm>

#include <ATen/cuda/Launch.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::native {
namespace {

using at::cuda::Kernel;

constexpr const char* kProgram = "native/factory/Range.cuh";
#define CRESSET_RANGE_KERNEL(type) Kernel kernel_##type(kProgram, "range_" #type);
CRESSET_RANGE_KERNEL(u8)
CRESSET_RANGE_KERNEL(i8)
CRESSET_RANGE_KERNEL(i16)
CRESSET_RANGE_KERNEL(i32)
CRESSET_RANGE_KERNEL(i64)
CRESSET_RANGE_KERNEL(u16)
CRESSET_RANGE_KERNEL(u32)
CRESSET_RANGE_KERNEL(u64)
CRESSET_RANGE_KERNEL(f16)
CRESSET_RANGE_KERNEL(bf16)
CRESSET_RANGE_KERNEL(f32)
CRESSET_RANGE_KERNEL(f64)
CRESSET_RANGE_KERNEL(c64)
CRESSET_RANGE_KERNEL(c128)
#undef CRESSET_RANGE_KERNEL

const Kernel* kernel_for(ScalarType dtype) {
  switch (dtype) {
  case kByte:
    return &kernel_u8;
  case kChar:
    return &kernel_i8;
  case kShort:
    return &kernel_i16;
  case kInt:
    return &kernel_i32;
  case kLong:
    return &kernel_i64;
  case kUInt16:
    return &kernel_u16;
  case kUInt32:
    return &kernel_u32;
  case kUInt64:
    return &kernel_u64;
  case kHalf:
    return &kernel_f16;
  case kBFloat16:
    return &kernel_bf16;
  case kFloat:
    return &kernel_f32;
  case kDouble:
    return &kernel_f64;
  case kComplexFloat:
    return &kernel_c64;
  case kComplexDouble:
    return &kernel_c128;
  default:
    return nullptr;
  }
}

} // namespace

void fill_range_cuda(const Tensor& out, RangeArgs args) {
  const Kernel* kernel = kernel_for(out.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(kernel != nullptr, "\"range_cuda\" not implemented for '",
                              out.scalar_type(), "'");
  args.n = out.numel();
  if (args.n == 0) return;
  args.out = out.data_ptr();
  const c10::cuda::CUDAGuard guard(out.device());
  const int64_t blocks = std::min<int64_t>((args.n + 255) / 256, 65536);
  at::cuda::launch(*kernel, static_cast<unsigned>(blocks), 256, 0,
                   c10::cuda::getCurrentCUDAStream(), args);
}

} // namespace at::native
