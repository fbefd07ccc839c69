// See PointwiseLaunch.h.
#include <ATen/cuda/PointwiseLaunch.h>

#include <algorithm>
#include <cstring>

#include <ATen/iter/Number.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::cuda {
namespace {

bool is_aligned(const void* p, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) == 0;
}

// One dimension in which every operand advances by its element or not at all.
bool launch_flat(const PointwiseLaunch& call, const StridedPlan& plan, int device,
                 CUstream stream) {
  if (plan.ndim > 1) return false;
  FlatArgs args;
  args.n = plan.numel();
  args.out = call.out;
  args.single = 0;
  args.aligned = is_aligned(call.out, 16);
  for (int k = 0; k < call.inputs; ++k) {
    args.in[k] = call.in[k];
    const int64_t stride = plan.ndim == 0 ? 0 : plan.stride[0][k + 1];
    if (call.in[k] == nullptr || stride == 0) {
      args.single |= 1u << k;
      if (call.in[k] == nullptr) args.number[k] = call.number[k];
    } else {
      if (stride != call.itemsize[k + 1]) return false;
      args.aligned &= is_aligned(call.in[k], 16);
    }
  }
  if (plan.ndim == 1 && plan.stride[0][0] != call.itemsize[0]) return false;
  std::memcpy(args.param, call.param, sizeof(args.param));
  void* pointers[] = {&args};
  launch_overlapping(call.functions(device, 0), flat_blocks(args.n, call.largest), kFlatThreads,
                     stream, pointers);
  return true;
}

// Whether whole packs can be moved along the innermost dimension.
bool can_pack(const PointwiseLaunch& call, const StridedPlan& p, int64_t pack) {
  if (pack == 1 || p.size[0] % pack != 0 || p.stride[0][0] != call.itemsize[0]) return false;
  for (int k = 0; k < p.operands; ++k) {
    const void* pointer = k == 0 ? call.out : call.in[k - 1];
    if (pointer == nullptr || p.stride[0][k] == 0) continue;
    if (p.stride[0][k] != call.itemsize[k]) return false;
    const int64_t bytes = pack * call.itemsize[k];
    if (!is_aligned(pointer, bytes)) return false;
    for (int d = 1; d < p.ndim; ++d)
      if (p.stride[d][k] % bytes != 0) return false;
  }
  return true;
}

void launch_strided(const PointwiseLaunch& call, const StridedPlan& plan, int device,
                    CUstream stream) {
  const int64_t pack = pack_size(call.largest);
  const bool packed = can_pack(call, plan, pack);
  StridedArgs args;
  args.packed = packed;
  args.inner = 0;
  args.out = call.out;
  for (int k = 0; k < call.inputs; ++k) {
    args.in[k] = call.in[k];
    if (call.in[k] == nullptr) args.number[k] = call.number[k];
    if (plan.stride[0][k + 1] != 0) args.inner |= 1u << k;
  }
  args.ndim = plan.ndim;
  args.n = static_cast<uint32_t>(packed ? plan.numel() / pack : plan.numel());
  for (int d = 0; d < plan.ndim; ++d) {
    // Along the innermost dimension a step is a pack.
    const int64_t step = packed && d == 0 ? pack : 1;
    args.size[d] = Divider(static_cast<uint32_t>(plan.size[d] / step));
    for (int k = 0; k < plan.operands; ++k) args.stride[d][k] = plan.stride[d][k] * step;
  }
  std::memcpy(args.param, call.param, sizeof(args.param));
  void* pointers[] = {&args};
  launch_function(call.functions(device, 1), (args.n + kPointwiseThreads - 1) / kPointwiseThreads,
                  kPointwiseThreads, 0, stream, pointers);
}

// Halves the outermost dimension until the kernel's 31-bit index and number of dimensions suffice.
void launch_split(const PointwiseLaunch& call, const StridedPlan& plan, int device,
                  CUstream stream) {
  if (plan.ndim <= kMaxDims && plan.numel() < (int64_t(1) << 31)) {
    launch_strided(call, plan, device, stream);
    return;
  }
  const int last = plan.ndim - 1;
  const int64_t whole = plan.size[last];
  for (int half = 0; half < 2; ++half) {
    PointwiseLaunch part = call;
    StridedPlan piece = plan;
    const int64_t begin = half == 0 ? 0 : whole / 2;
    piece.size[last] = half == 0 ? whole / 2 : whole - whole / 2;
    if (piece.size[last] == 1) piece.ndim = last;
    part.out = static_cast<char*>(call.out) + begin * plan.stride[last][0];
    for (int k = 0; k < call.inputs; ++k)
      if (call.in[k] != nullptr)
        part.in[k] = static_cast<const char*>(call.in[k]) + begin * plan.stride[last][k + 1];
    launch_split(part, piece, device, stream);
  }
}

} // namespace

Number number_of(const Scalar& value, ScalarType dtype) {
  Number number = {};
  switch (dtype) {
#define CASE(T, Name)                                                                              \
  case ScalarType::Name: {                                                                         \
    const T converted(static_cast<float>(value.toDouble()));                                       \
    std::memcpy(number.bytes, &converted, sizeof(T));                                              \
    return number;                                                                                 \
  }
    CRESSET_FORALL_FLOAT8_TYPES(CASE)
#undef CASE
  default:
    iter::store_number(value, dtype, iter::NumberRule::Wrap, number.bytes);
    return number;
  }
}

void launch_pointwise(const PointwiseLaunch& call, const StridedPlan& plan, int device,
                      CUstream stream) {
  if (!launch_flat(call, plan, device, stream)) launch_split(call, plan, device, stream);
}

namespace {
CUfunction find_in_pair(const void* pair, int device, int kind) {
  return static_cast<const Kernel*>(pair)[kind].function(device);
}
} // namespace

PairLaunch::PairLaunch(const Kernel* pair, int inputs, const Tensor& out)
    : out_(out), plan_(out.sizes(), inputs + 1) {
  call_.functions = {&find_in_pair, pair};
  call_.inputs = inputs;
  call_.itemsize[0] = out.itemsize();
  plan_.set(0, out);
}

void PairLaunch::set(int k, const Scalar& value, ScalarType dtype) {
  call_.in[k] = nullptr;
  call_.number[k] = number_of(value, dtype);
  call_.itemsize[k + 1] = c10::elementSize(dtype);
}

void PairLaunch::set(int k, const Tensor& tensor, ScalarType dtype) {
  if (!tensor.is_cuda()) return set(k, tensor.item(), dtype);
  keep_[k] = tensor.to(dtype);
  call_.in[k] = tensor.numel() == 0 ? nullptr : keep_[k].data_ptr();
  call_.itemsize[k + 1] = keep_[k].itemsize();
  plan_.set(k + 1, keep_[k]);
}

void PairLaunch::run() {
  if (out_.numel() == 0) return;
  const CUDAGuard guard(out_.device());
  call_.largest = 1;
  for (int k = 0; k <= call_.inputs; ++k)
    call_.largest = std::max(call_.largest, static_cast<int>(call_.itemsize[k]));
  call_.out = out_.data_ptr();
  plan_.build();
  const c10::DeviceIndex device = out_.device().index();
  launch_pointwise(call_, plan_, device, getCurrentCUDAStream(device));
}

const char* device_type_name(ScalarType dtype) {
  switch (dtype) {
  case ScalarType::Byte:
    return "u8";
  case ScalarType::Char:
    return "i8";
  case ScalarType::Short:
    return "i16";
  case ScalarType::Int:
    return "i32";
  case ScalarType::Long:
    return "i64";
  case ScalarType::UInt16:
    return "u16";
  case ScalarType::UInt32:
    return "u32";
  case ScalarType::UInt64:
    return "u64";
  case ScalarType::Bool:
    return "bool";
  case ScalarType::Half:
    return "f16";
  case ScalarType::BFloat16:
    return "bf16";
  case ScalarType::Float:
    return "f32";
  case ScalarType::Double:
    return "f64";
  case ScalarType::ComplexHalf:
    return "c32";
  case ScalarType::ComplexFloat:
    return "c64";
  case ScalarType::ComplexDouble:
    return "c128";
  case ScalarType::Float8_e4m3fn:
    return "f8e4m3fn";
  case ScalarType::Float8_e5m2:
    return "f8e5m2";
  case ScalarType::Float8_e4m3fnuz:
    return "f8e4m3fnuz";
  case ScalarType::Float8_e5m2fnuz:
    return "f8e5m2fnuz";
  default:
    return nullptr;
  }
}

} // namespace at::cuda
