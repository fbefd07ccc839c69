// See Pointwise.h. A call of the short way costs the checks, one allocation, the arguments and the
// launch: the function's address is kept per program, device and type. Other calls are planned
// (StridedPlan.h); operands of another dtype are converted first, by a launch of their own, unless
// they are large enough for a program compiled for the very combination to pay.
#include <ATen/cuda/Pointwise.h>

#include <string>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/Nvrtc.h>
#include <ATen/cuda/PointwiseLaunch.h>
#include <ATen/cuda/PointwiseProgram.h>
#include <ATen/cuda/Program.h>
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

// ---- functions of the table's programs
// -----------------------------------------------------------
C10_COLD CUfunction load_uniform(const PointwiseProgram& p, int device, ScalarType dtype,
                                 int kind) {
  const std::string type = device_type_name(dtype);
  const std::string name = std::string(p.table) + "_" + kKindNames[kind] + "_" + type;
  const std::string text = "#include <ATen/cuda/device/Pointwise.cuh>\n#include <" +
                           std::string(p.header) + ">\nCRESSET_POINTWISE(" + p.table + ", " +
                           p.functor + ", " + std::to_string(p.inputs) + ", " +
                           std::to_string(p.params) + ", " + out_kind_name(p.out) + ", " + type +
                           ")\n";
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
  for (const Scalar* s : params) (param++)->set(*s, type);
}

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// A number joins when its category is not above the tensors'.
bool number_fits(const Scalar& s, ScalarType compute) {
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

// ---- conversions
// ----------------------------------------------------------------------------------
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

// ---- the general way
// ------------------------------------------------------------------------------
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

} // namespace

bool pointwise_fast(const PointwiseSpec& spec, Tensor* out, const Tensor* inplace,
                    Operands operands, Params params) {
  const Tensor* first = common_tensor(operands);
  if (first == nullptr) return false;
  const ScalarType compute = first->scalar_type();
  if (spec.promote == Promote::Float && c10::isIntegralType(compute, true)) return false;
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
      if (!number_fits(*op.scalar, compute)) return false;
      args.in[k] = nullptr;
      args.single |= 1u << k;
      args.number[k].set(*op.scalar, compute);
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
  launch_function(uniform_function(program, device.index(), compute, 0),
                  flat_blocks(args.n, static_cast<int>(first->itemsize()), spec.inputs),
                  kPointwiseThreads, 0, getCurrentCUDAStream(device.index()), pointers);
  return true;
}

void pointwise_general(const PointwiseSpec& spec, const Tensor& target, Operands operands,
                       Params params, IntArrayRef shape, ScalarType compute, ScalarType result) {
  const PointwiseProgram& program = program_for(spec, compute);
  const UniformCall uniform{&program, compute};
  const CUDAGuard guard(target.device());
  const bool direct = target.scalar_type() == result;
  const Tensor to = direct ? target : detail::empty(shape, result, target.device());

  PointwiseLaunch call;
  call.functions = {&find_uniform, &uniform};
  call.inputs = spec.inputs;
  call.largest = static_cast<int>(c10::elementSize(compute));
  call.itemsize[0] = to.itemsize();
  StridedPlan plan(shape, spec.inputs + 1);
  plan.set(0, to);
  Tensor keep[kMaxInputs];
  int k = 0;
  for (const Operand& op : operands) {
    call.itemsize[k + 1] = call.largest;
    call.in[k] = nullptr;
    if (op.tensor == nullptr) {
      call.number[k].set(*op.scalar, compute);
    } else if (!op.tensor->is_cuda()) {
      call.number[k].set(op.tensor->item(), compute); // of no dimensions, on the CPU
    } else {
      const bool same = op.tensor->scalar_type() == compute;
      keep[k] = same || op.tensor->numel() == 0 ? *op.tensor : converted(*op.tensor, compute);
      call.in[k] = keep[k].data_ptr();
      plan.set(k + 1, keep[k]);
    }
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

void copy_on_device(const Tensor& dst, const Tensor& src) {
  if (dst.numel() == 0) return;
  const CUDAGuard guard(dst.device());
  CastPair pair{src.scalar_type(), dst.scalar_type()};
  if (pair.from == pair.to) pair.from = pair.to = carrier(src.itemsize());
  PointwiseLaunch call;
  call.functions = {&cast_function, &pair};
  call.inputs = 1;
  call.itemsize[0] = dst.itemsize();
  call.itemsize[1] = src.itemsize();
  call.largest = static_cast<int>(std::max(dst.itemsize(), src.itemsize()));
  call.out = dst.data_ptr();
  call.in[0] = src.data_ptr();
  StridedPlan plan(dst.sizes(), 2);
  plan.set(0, dst);
  plan.set(1, src);
  plan.build();
  const c10::DeviceIndex device = dst.device().index();
  launch_pointwise(call, plan, device, getCurrentCUDAStream(device));
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
  call.number[0].set(value, dst.scalar_type());
  StridedPlan plan(dst.sizes(), 2);
  plan.set(0, dst);
  plan.build();
  const c10::DeviceIndex device = dst.device().index();
  launch_pointwise(call, plan, device, getCurrentCUDAStream(device));
}

} // namespace at::cuda
