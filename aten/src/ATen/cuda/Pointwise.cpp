// See Pointwise.h. A call of the short way costs the checks, one allocation, the arguments and the
// launch: the function's address is kept per program, device and type. Other calls are planned
// (StridedPlan.h); operands of another dtype are converted first, by a launch of their own, unless
// they are large enough for a program compiled for the very combination to pay.
#include <ATen/cuda/Pointwise.h>

#include <algorithm>
#include <string>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/Nvrtc.h>
#include <ATen/cuda/PointwiseLaunch.h>
#include <ATen/cuda/PointwiseProgram.h>
#include <ATen/cuda/Program.h>
#include <ATen/iter/Number.h>
#include <ATen/native/copy/Transpose.args.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::cuda {
namespace {

using iter::Operand;
using iter::Operands;
using iter::OutKind;
using iter::Params;
using iter::PointwiseSpec;
using iter::Promote;

const std::vector<std::string>& pointwise_options() {
  // As on the CPU: fused products leave an imaginary residue in a * conj(a).
  static const std::vector<std::string> options = {"--fmad=false"};
  return options;
}

constexpr const char* kKindNames[] = {"flat", "strided"};

const char* out_kind_name(OutKind kind) {
  return kind == OutKind::Bool ? "Bool" : kind == OutKind::Real ? "Real" : "Same";
}

// ---- functions of the table's programs ----------------------------------------------------------
C10_COLD CUfunction load_uniform(const PointwiseProgram& p, int device, ScalarType dtype,
                                 int kind) {
  const std::string type = device_type_name(dtype);
  const std::string name = std::string(p.table) + "_" + kKindNames[kind] + "_" + type;
  const std::string text =
      "#include <ATen/cuda/device/Pointwise.cuh>\n#include <" + std::string(p.header) +
      ">\nCRESSET_POINTWISE(" + p.table + ", " + p.functor + ", " + std::to_string(p.inputs) +
      ", " + std::to_string(p.params) + ", " + out_kind_name(p.out) + ", " + type + ")\n";
  return load_generated(device, p.image, text, pointwise_options(), name.c_str());
}

std::atomic<CUfunction>* new_slots(std::atomic<std::atomic<CUfunction>*>& slots, size_t count) {
  auto* made = new std::atomic<CUfunction>[count]();
  std::atomic<CUfunction>* expected = nullptr;
  if (slots.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) return made;
  delete[] made; // another thread was faster
  return expected;
}

CUfunction uniform_function(const PointwiseProgram& p, int device, ScalarType dtype, int kind) {
  std::atomic<CUfunction>* slots = p.functions.load(std::memory_order_acquire);
  if (C10_UNLIKELY(slots == nullptr))
    slots = new_slots(p.functions, static_cast<size_t>(device_count()) * c10::NumScalarTypes * 2);
  std::atomic<CUfunction>& slot =
      slots[(device * c10::NumScalarTypes + static_cast<int>(dtype)) * 2 + kind];
  CUfunction function = slot.load(std::memory_order_acquire);
  if (C10_UNLIKELY(function == nullptr)) {
    function = load_uniform(p, device, dtype, kind);
    slot.store(function, std::memory_order_release);
  }
  return function;
}

const PointwiseProgram& program_for(const PointwiseSpec& spec, ScalarType compute) {
  const PointwiseProgram* p = spec.cuda;
  TORCH_CHECK_NOT_IMPLEMENTED(p != nullptr && (p->types >> static_cast<int>(compute) & 1), "\"",
                              spec.name, "_cuda\" not implemented for '", compute, "'");
  return *p;
}

ScalarType output_dtype(const PointwiseSpec& spec, ScalarType compute) {
  if (spec.out == OutKind::Bool) return kBool;
  return spec.out == OutKind::Real ? c10::toRealValueType(compute) : compute;
}

void set_params(Number* param, Params params, ScalarType compute) {
  if (params.size() == 0) return;
  const ScalarType type = c10::toOpMathType(compute);
  for (const Scalar* s : params) *param++ = number_of(*s, type);
}

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// A number joins when its category is not above the tensors'.
bool number_joins(const Scalar& s, ScalarType compute) {
  return c10::isComplexType(compute) || (c10::isFloatingType(compute) && !s.isComplex()) ||
         (c10::isIntegralType(compute, false) && s.isIntegral(true));
}

// The tensor whose dtype, shape and device all others share; null when they do not.
const Tensor* common_tensor(Operands operands) {
  const Tensor* first = nullptr;
  for (const Operand& op : operands) {
    if (op.tensor == nullptr) continue;
    const TensorImpl& t = *op.tensor->unsafeGetTensorImpl();
    if (!t.is_contiguous() || !t.device().is_cuda()) return nullptr;
    if (first == nullptr) {
      first = op.tensor;
    } else if (t.dtype() != first->scalar_type() || t.device() != first->device() ||
               t.sizes() != first->sizes()) {
      return nullptr;
    }
  }
  return first;
}

// ---- conversions --------------------------------------------------------------------------------
constexpr int kTypes = c10::NumScalarTypes;

C10_COLD CUfunction load_cast(ScalarType from, ScalarType to, int device, int kind) {
  const char *source = device_type_name(from), *target = device_type_name(to);
  TORCH_CHECK_NOT_IMPLEMENTED(source != nullptr && target != nullptr,
                              "\"copy_\" not implemented for '", source ? to : from, "' on cuda");
  const std::string image = std::string("cast_") + source;
  const std::string name = image + "_" + kKindNames[kind] + "_" + target;
  const std::string text = std::string("#include <ATen/cuda/device/Pointwise.cuh>\nCRESSET_CAST(") +
                           source + ", " + target + ")\n";
  return load_generated(device, image.c_str(), text, pointwise_options(), name.c_str());
}

struct CastPair {
  ScalarType from, to;
};
CUfunction cast_function(const void* program, int device, int kind) {
  static std::atomic<std::atomic<CUfunction>*> all = nullptr;
  const CastPair& pair = *static_cast<const CastPair*>(program);
  std::atomic<CUfunction>* slots = all.load(std::memory_order_acquire);
  if (C10_UNLIKELY(slots == nullptr))
    slots = new_slots(all, static_cast<size_t>(device_count()) * kTypes * kTypes * 2);
  const int from = static_cast<int>(pair.from), to = static_cast<int>(pair.to);
  std::atomic<CUfunction>& slot = slots[((device * kTypes + from) * kTypes + to) * 2 + kind];
  CUfunction function = slot.load(std::memory_order_acquire);
  if (C10_UNLIKELY(function == nullptr)) {
    function = load_cast(pair.from, pair.to, device, kind);
    slot.store(function, std::memory_order_release);
  }
  return function;
}

// Elements that only move are moved as integers of their size.
ScalarType carrier(int64_t itemsize) {
  switch (itemsize) {
  case 1:
    return kByte;
  case 2:
    return kShort;
  case 4:
    return kInt;
  case 8:
    return kLong;
  default:
    return kComplexDouble;
  }
}

// ---- transposing copies -------------------------------------------------------------------------
constexpr int64_t kTile = 32;

using device::kTileDims;
using device::TransposeArgs;

constexpr const char* kTransposeProgram = "native/copy/Transpose.cuh";
Kernel transpose_kernels[] = {{kTransposeProgram, "transpose_u8"},
                              {kTransposeProgram, "transpose_i16"},
                              {kTransposeProgram, "transpose_i32"},
                              {kTransposeProgram, "transpose_i64"},
                              {kTransposeProgram, "transpose_c128"}};

// Copies by tiles when the plan's innermost dimension is contiguous in the destination only and
// another one in the source; returns false when it is not so.
bool copy_tiles(const PointwiseLaunch& call, const StridedPlan& plan, CUstream stream) {
  const int64_t itemsize = call.itemsize[0];
  if (plan.ndim < 2 || plan.ndim > kTileDims || plan.stride[0][0] != itemsize ||
      plan.stride[0][1] == itemsize || plan.stride[0][1] == 0 || plan.size[0] < 8)
    return false;
  int turned = 1;
  while (turned < plan.ndim && plan.stride[turned][1] != itemsize) ++turned;
  if (turned == plan.ndim || plan.size[turned] < 8) return false;
  TransposeArgs args = {};
  args.out = call.out;
  args.in = call.in[0];
  args.columns = plan.size[0];
  args.rows = plan.size[turned];
  args.out_row = plan.stride[turned][0];
  args.in_column = plan.stride[0][1];
  int64_t matrices = 1;
  for (int d = 1; d < plan.ndim; ++d) {
    if (d == turned) continue;
    matrices *= plan.size[d];
    if (plan.size[d] >= (int64_t(1) << 31)) return false;
    args.size[args.ndim] = Divider(static_cast<uint32_t>(plan.size[d]));
    args.out_stride[args.ndim] = plan.stride[d][0];
    args.in_stride[args.ndim++] = plan.stride[d][1];
  }
  const int64_t tiles =
      ((args.rows + kTile - 1) / kTile) * ((args.columns + kTile - 1) / kTile) * matrices;
  if (tiles >= (int64_t(1) << 31) || matrices >= (int64_t(1) << 31)) return false;
  int size = 0;
  while ((int64_t(1) << size) < itemsize) ++size;
  launch(transpose_kernels[size], static_cast<unsigned>(tiles), 256, 0, stream, args);
  return true;
}

// ---- the general way ----------------------------------------------------------------------------
// The operand without the dimensions it is only repeated along.
Tensor unrepeated(const Tensor& t) {
  DimVector sizes(t.sizes());
  bool repeats = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && t.strides()[d] == 0) {
      sizes[d] = 1;
      repeats = true;
    }
  }
  return repeats ? detail::view_of(t, sizes, t.strides(), t.storage_offset()) : t;
}

Tensor converted(const Tensor& t, ScalarType dtype) {
  const Tensor source = unrepeated(t);
  Tensor out = detail::empty(source.sizes(), dtype, source.device());
  copy_on_device(out, source);
  return out;
}

struct UniformCall {
  const PointwiseProgram* program;
  ScalarType compute;
};
CUfunction find_uniform(const void* program, int device, int kind) {
  const auto& call = *static_cast<const UniformCall*>(program);
  return uniform_function(*call.program, device, call.compute, kind);
}

// ---- operands of several dtypes -----------------------------------------------------------------
// From this many elements on, a program for the very combination of dtypes (a tenth of a second of
// compilation, once per machine) beats converting the operands first.
constexpr int64_t kWorthCompiling = int64_t(1) << 20;

struct MixedCall {
  const PointwiseProgram* program;
  ScalarType compute, out, in[kMaxInputs];
  std::string types() const {
    std::string text = std::string(device_type_name(out)) + ", " + device_type_name(compute);
    for (int k = 0; k < program->inputs; ++k)
      text += std::string(", cresset_") + device_type_name(in[k]);
    return text;
  }
};
CUfunction find_mixed(const void* call_pointer, int device, int kind) {
  const auto& call = *static_cast<const MixedCall*>(call_pointer);
  const PointwiseProgram& p = *call.program;
  const std::string name = std::string(p.table) + "_" + kKindNames[kind] + "_mixed";
  const std::string text = "#include <ATen/cuda/device/Pointwise.cuh>\n#include <" +
                           std::string(p.header) + ">\nCRESSET_POINTWISE_MIXED(" + p.table + ", " +
                           p.functor + ", " + std::to_string(p.params) + ", " + call.types() +
                           ")\n";
  return load_generated(device, nullptr, text, pointwise_options(), name.c_str());
}

bool is_mixed(const Tensor& target, Operands operands, ScalarType compute, ScalarType result) {
  if (target.scalar_type() != result) return true;
  for (const Operand& op : operands)
    if (op.tensor && op.tensor->is_cuda() && op.tensor->scalar_type() != compute) return true;
  return false;
}

bool has_kernels(Operands operands, const Tensor& target) {
  if (device_type_name(target.scalar_type()) == nullptr) return false;
  for (const Operand& op : operands)
    if (op.tensor && device_type_name(op.tensor->scalar_type()) == nullptr) return false;
  return !nvrtc_version().empty();
}

} // namespace

bool pointwise_fast(const PointwiseSpec& spec, Tensor* out, const Tensor* inplace,
                    Operands operands, Params params) {
  const Tensor* first = common_tensor(operands);
  if (first == nullptr) return false;
  const ScalarType compute = first->scalar_type();
  if (spec.promote == Promote::Float && c10::isIntegralType(compute, true)) return false;
  if (iter::loop_dtype(spec, operands, compute) != compute) return false;
  const ScalarType result = output_dtype(spec, compute);
  if (inplace && (inplace != operands.begin()->tensor || result != compute)) return false;

  FlatArgs args;
  args.single = 0;
  bool aligned = true;
  int k = 0;
  for (const Operand& op : operands) {
    if (op.tensor != nullptr) {
      args.in[k] = op.tensor->data_ptr();
      aligned &= is_aligned(args.in[k]);
    } else {
      if (!number_joins(*op.scalar, compute)) return false;
      args.in[k] = nullptr;
      args.single |= 1u << k;
      args.number[k] = number_of(*op.scalar, compute);
    }
    ++k;
  }
  const PointwiseProgram& program = program_for(spec, compute);
  const Device device = first->device();
  const CUDAGuard guard(device.index());
  if (inplace == nullptr) *out = detail::empty(first->sizes(), result, device);
  args.n = first->numel();
  if (C10_UNLIKELY(args.n == 0)) return true;
  args.out = (inplace ? *inplace : *out).data_ptr();
  args.aligned = aligned && is_aligned(args.out);
  set_params(args.param, params, compute);
  void* pointers[] = {&args};
  launch_overlapping(uniform_function(program, device.index(), compute, 0),
                     flat_blocks(args.n, static_cast<int>(first->itemsize())), kFlatThreads,
                     getCurrentCUDAStream(device.index()), pointers);
  return true;
}

void pointwise_general(const PointwiseSpec& spec, const Tensor& target, Operands operands,
                       Params params, IntArrayRef shape, ScalarType compute, ScalarType result) {
  if (const ScalarType wide = iter::loop_dtype(spec, operands, compute); wide != compute) {
    result = result == compute ? wide : result;
    compute = wide;
  }
  const PointwiseProgram& program = program_for(spec, compute);
  const CUDAGuard guard(target.device());
  const bool mixed = target.numel() >= kWorthCompiling &&
                     is_mixed(target, operands, compute, result) && has_kernels(operands, target);
  const UniformCall uniform{&program, compute};
  MixedCall combination{&program, compute, target.scalar_type(), {}};
  const bool direct = mixed || target.scalar_type() == result;
  const Tensor to = direct ? target : detail::empty(shape, result, target.device());

  PointwiseLaunch call;
  if (mixed)
    call.functions = {&find_mixed, &combination};
  else
    call.functions = {&find_uniform, &uniform};
  call.inputs = spec.inputs;
  call.itemsize[0] = to.itemsize();
  call.largest = static_cast<int>(to.itemsize());
  StridedPlan plan(shape, spec.inputs + 1);
  plan.set(0, to);
  Tensor keep[kMaxInputs];
  int k = 0;
  for (const Operand& op : operands) {
    call.in[k] = nullptr;
    combination.in[k] = compute;
    if (op.tensor == nullptr) {
      call.number[k] = number_of(*op.scalar, compute);
    } else if (!op.tensor->is_cuda()) {
      call.number[k] = number_of(op.tensor->item(), compute); // of no dimensions, on the CPU
    } else {
      const bool as_is = mixed || op.tensor->scalar_type() == compute || target.numel() == 0;
      keep[k] = as_is ? *op.tensor : converted(*op.tensor, compute);
      call.in[k] = op.tensor->numel() == 0 ? nullptr : keep[k].data_ptr();
      plan.set(k + 1, keep[k]);
      combination.in[k] = keep[k].scalar_type();
    }
    call.itemsize[k + 1] = c10::elementSize(combination.in[k]);
    call.largest = std::max(call.largest, static_cast<int>(call.itemsize[k + 1]));
    ++k;
  }
  if (to.numel() == 0) return;
  set_params(call.param, params, compute);
  call.out = to.data_ptr();
  plan.build();
  const c10::DeviceIndex device = target.device().index();
  launch_pointwise(call, plan, device, getCurrentCUDAStream(device));
  if (!direct) copy_on_device(target, to);
}

namespace {
void run_copy(const Tensor& dst, const void* from, CastPair pair, StridedPlan& plan) {
  if (pair.from == pair.to) pair.from = pair.to = carrier(dst.itemsize());
  PointwiseLaunch call;
  call.functions = {&cast_function, &pair};
  call.inputs = 1;
  call.itemsize[0] = dst.itemsize();
  call.itemsize[1] = c10::elementSize(pair.from);
  call.largest = static_cast<int>(std::max(call.itemsize[0], call.itemsize[1]));
  call.out = dst.data_ptr();
  call.in[0] = from;
  plan.set(0, dst);
  plan.build();
  const c10::DeviceIndex device = dst.device().index();
  const CUstream stream = getCurrentCUDAStream(device);
  if (pair.from == pair.to && copy_tiles(call, plan, stream)) return;
  launch_pointwise(call, plan, device, stream);
}
} // namespace

void copy_on_device(const Tensor& dst, const Tensor& src) {
  if (dst.numel() == 0) return;
  const CUDAGuard guard(dst.device());
  StridedPlan plan(dst.sizes(), 2);
  plan.set(1, src);
  run_copy(dst, src.data_ptr(), {src.scalar_type(), dst.scalar_type()}, plan);
}

void copy_walked_on_device(const Tensor& dst, const void* from, IntArrayRef strides) {
  if (dst.numel() == 0) return;
  const CUDAGuard guard(dst.device());
  StridedPlan plan(dst.sizes(), 2);
  plan.set(1, strides);
  run_copy(dst, from, {dst.scalar_type(), dst.scalar_type()}, plan);
}

void fill_on_device(const Tensor& dst, const Scalar& value) {
  if (dst.numel() == 0) return;
  const CUDAGuard guard(dst.device());
  const ScalarType moved = carrier(dst.itemsize());
  const CastPair pair{moved, moved};
  PointwiseLaunch call;
  call.functions = {&cast_function, &pair};
  call.inputs = 1;
  call.itemsize[0] = call.itemsize[1] = dst.itemsize();
  call.largest = static_cast<int>(dst.itemsize());
  call.out = dst.data_ptr();
  call.in[0] = nullptr;
  call.number[0] = number_of(value, dst.scalar_type());
  StridedPlan plan(dst.sizes(), 2);
  plan.set(0, dst);
  plan.build();
  const c10::DeviceIndex device = dst.device().index();
  launch_pointwise(call, plan, device, getCurrentCUDAStream(device));
}

} // namespace at::cuda
