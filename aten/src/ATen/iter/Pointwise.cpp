// The driver of pointwise operators. The common case (tensors of one dtype and shape, contiguous)
// takes a short path that computes nothing twice; everything else goes through the iterator.
#include <ATen/iter/Pointwise.h>

#include <cstring>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/SymbolicTensor.h>
#include <ATen/core/Undefined.h>
#ifndef CRESSET_NO_CUDA
#include <ATen/cuda/Pointwise.h>
#endif
#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/Number.h>
#include <ATen/iter/PointwiseJob.h>
#include <ATen/iter/PointwiseRecord.h>
#include <ATen/iter/SymbolicShapes.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/parallel/Parallel.h>

namespace at::iter {

ScalarType loop_dtype(const PointwiseSpec& spec, Operands operands, ScalarType compute) {
  if (!c10::isReducedFloatingType(compute) || spec.numbers != NumberRule::Wide) return compute;
  for (const Operand& op : operands) {
    const bool wide = op.tensor ? op.tensor->dim() == 0 && op.tensor->scalar_type() != compute &&
                                      c10::isFloatingType(op.tensor->scalar_type())
                                : !number_fits(*op.scalar, compute);
    if (wide) return kFloat;
  }
  return compute;
}

namespace {

thread_local PointwiseRecorder* recorder = nullptr;

// Scalars converted to the type the loop computes in, one after the other.
struct ParamBuffer {
  alignas(16) char bytes[kMaxParams * 16];
  const void* fill(const PointwiseSpec& spec, Params params, ScalarType compute) {
    return fill(spec, params, compute, bytes);
  }
  static const void* fill(const PointwiseSpec& spec, Params params, ScalarType compute,
                          char* bytes) {
    if (params.size() == 0) return nullptr;
    const ScalarType type = c10::toOpMathType(compute);
    const int64_t size = c10::elementSize(type);
    char* p = bytes;
    for (const Scalar* s : params) {
      if (spec.numbers == NumberRule::Checked && type != compute)
        store_number(*s, compute, NumberRule::Checked, p);
      store_number(*s, type, NumberRule::Checked, p);
      p += size;
    }
    return bytes;
  }
};

native::Loop1d loop_for(const PointwiseSpec& spec, ScalarType compute) {
  static const int isa = static_cast<int>(cpu_isa());
  const native::Loop1d loop = spec.loops[isa]->loop[static_cast<int>(compute)];
  TORCH_CHECK_NOT_IMPLEMENTED(loop != nullptr, "\"", spec.name, "_cpu\" not implemented for '",
                              compute, "'");
  return loop;
}

ScalarType output_dtype(const PointwiseSpec& spec, ScalarType compute) {
  if (spec.out == OutKind::Bool) return kBool;
  return spec.out == OutKind::Real ? c10::toRealValueType(compute) : compute;
}

// A tensor that joins the others as a number does.
bool is_lone_value(const TensorImpl& t, const TensorImpl& first) {
  return t.dim() == 0 && first.dim() != 0 && t.dtype() == first.dtype();
}

// The operand that gives shape and dtype, or null when the operands do not qualify.
const Tensor* plain_operand(const PointwiseSpec& spec, Operands operands) {
  const Tensor* first = nullptr;
  for (const Operand& op : operands) {
    if (op.tensor == nullptr) continue;
    if (C10_UNLIKELY(!op.tensor->defined())) detail::throw_undefined(spec.name);
    const TensorImpl& t = *op.tensor->unsafeGetTensorImpl();
    if (!t.device().is_cpu() || !t.is_contiguous() || t.is_wrapped_number()) return nullptr;
    if (first == nullptr) {
      first = op.tensor;
    } else if (t.dtype() != first->scalar_type() || t.sizes() != first->sizes()) {
      if (!is_lone_value(t, *first->unsafeGetTensorImpl())) return nullptr;
    }
  }
  return first;
}

// Whether a number that is no element of the dtype is simply rounded to one.
bool rounds(const PointwiseSpec& spec, ScalarType compute) {
  return c10::isReducedFloatingType(compute) && spec.numbers == NumberRule::Wrap;
}

bool try_fast(const PointwiseSpec& spec, Tensor* out, const Tensor* inplace, Operands operands,
              Params params) {
  PointwiseJob job;
  if (!plan_pointwise(spec, out, inplace, operands, params, job)) return false;
  if (job.numel <= TensorIterator::kGrain) {
    job.loop(job.data, job.strides, job.numel, job.params);
    return true;
  }
  BlockingRegion unlocked;
  parallel_for(0, job.numel, TensorIterator::kGrain,
               [&](int64_t begin, int64_t end) { job.run(begin, end); });
  return true;
}

ScalarType compute_dtype(const PointwiseSpec& spec, Operands operands) {
  ResultType state;
  for (const Operand& op : operands) {
    if (op.tensor)
      state.add(*op.tensor);
    else
      state.add(*op.scalar);
  }
  const ScalarType common = state.get();
  if (spec.promote == Promote::None) {
    for (const Operand& op : operands) {
      TORCH_CHECK(!op.tensor || op.tensor->scalar_type() == common, spec.name,
                  ": expected all tensors to have the same dtype, got ", op.tensor->scalar_type(),
                  " and ", common);
    }
  }
  if (spec.promote == Promote::Float && c10::isIntegralType(common, true))
    return c10::get_default_dtype();
  // float32 holds every float8 exactly, so that comparisons need no loops of their own.
  if (spec.out == OutKind::Bool && c10::isFloat8Type(common)) return kFloat;
  return common;
}

// The device everything runs on: a CPU tensor of no dimensions may stand beside another device.
Device common_device(Operands operands, const Tensor* target) {
  const Tensor* decides = target;
  for (const Operand& op : operands) {
    if (!op.tensor) continue;
    if (!decides || (decides->is_cpu() && decides->dim() == 0 && !target)) decides = op.tensor;
  }
  if (!decides) return Device(kCPU);
  for (const Operand& op : operands) {
    if (!op.tensor || op.tensor->device() == decides->device()) continue;
    TORCH_CHECK(op.tensor->is_cpu() && op.tensor->dim() == 0,
                "Expected all tensors to be on the same device, but found at least two devices, ",
                decides->device(), " and ", op.tensor->device(), "!");
  }
  return decides->device();
}

DimVector common_shape(Operands operands) {
  DimVector shape;
  bool started = false;
  for (const Operand& op : operands) {
    if (!op.tensor) continue;
    shape = started ? broadcast_shapes(shape, op.tensor->sizes()) : DimVector(op.tensor->sizes());
    started = true;
  }
  return shape;
}

void check_target(const Tensor& target, IntArrayRef shape, ScalarType result, Operands operands) {
  TORCH_CHECK(c10::canCast(result, target.scalar_type()), "result type ", result,
              " can't be cast to the desired output type ", target.scalar_type());
  TORCH_CHECK(target.sizes() == shape, "output with shape ", target.sizes(),
              " doesn't match the broadcast shape ", shape);
  assert_no_internal_overlap(target);
  for (const Operand& op : operands)
    if (op.tensor) assert_no_partial_overlap(target, *op.tensor);
}

void run_cpu(const PointwiseSpec& spec, const Tensor& target, Operands operands, Params params,
             IntArrayRef shape, ScalarType result) {
  const ScalarType compute = loop_dtype(spec, operands, result);
  const native::Loop1d loop = loop_for(spec, compute);
  ParamBuffer buffer;
  const void* loop_params = buffer.fill(spec, params, compute);
  TensorIterator iter(shape);
  iter.add_output(target, output_dtype(spec, compute));
  alignas(16) char numbers[kMaxInputs][16];
  int index = 0;
  for (const Operand& op : operands) {
    if (op.tensor) {
      iter.add_input(*op.tensor, compute);
    } else {
      store_number(*op.scalar, compute, spec.numbers, numbers[index]);
      iter.add_constant(numbers[index]);
    }
    ++index;
  }
  iter.build();
  iter.run(loop, loop_params);
}

// What run_cpu would do with these operands; nothing where it would fail, which stays for the call
// on the CPU to say.
void record(const PointwiseSpec& spec, const Tensor& target, Operands operands, Params params,
            ScalarType result) {
  PointwiseRecord call{};
  try {
    call.spec = &spec;
    call.target = target;
    call.compute = loop_dtype(spec, operands, result);
    call.produced = output_dtype(spec, call.compute);
    call.loop = loop_for(spec, call.compute);
    ParamBuffer::fill(spec, params, call.compute, call.params.data());
    for (const Operand& op : operands) {
      if (op.scalar)
        store_number(*op.scalar, call.compute, spec.numbers,
                     call.numbers[call.operands.size()].data());
      call.operands.push_back(op.tensor ? *op.tensor : Tensor());
    }
  } catch (const c10::Error&) {
    return;
  }
  recorder->calls.push_back(std::move(call));
}

void run_general(const PointwiseSpec& spec, const Tensor& target, Operands operands, Params params,
                 IntArrayRef shape, ScalarType compute, Device device) {
  if (device.is_meta()) {
    if (C10_UNLIKELY(recorder != nullptr)) record(spec, target, operands, params, compute);
    return;
  }
  if (device.is_cpu()) {
    run_cpu(spec, target, operands, params, shape, compute);
    return;
  }
#ifndef CRESSET_NO_CUDA
  if (device.is_cuda()) {
    cuda::pointwise_general(spec, target, operands, params, shape, compute,
                            output_dtype(spec, compute));
    return;
  }
#endif
  TORCH_CHECK_NOT_IMPLEMENTED(false, "\"", spec.name, "\" not implemented for '", compute, "' on ",
                              device);
}

bool has_symbols(Operands operands) {
  for (const Operand& op : operands)
    if (op.tensor && op.tensor->unsafeGetTensorImpl()->has_symbolic_sizes()) return true;
  return false;
}

c10::SmallVector<const Tensor*, 4> tensors_of(Operands operands) {
  c10::SmallVector<const Tensor*, 4> tensors;
  for (const Operand& op : operands)
    if (op.tensor) tensors.push_back(op.tensor);
  return tensors;
}

Tensor allocate_symbolic(ScalarType dtype, Device device, Operands operands) {
  const auto tensors = tensors_of(operands);
  const std::vector<SymInt> shape = symbolic_broadcast(tensors);
  return detail::empty_strided_symint(shape, symbolic_output_strides(shape, tensors), dtype,
                                      device);
}

void check_symbolic_target(const Tensor& target, ScalarType result, Operands operands) {
  TORCH_CHECK(c10::canCast(result, target.scalar_type()), "result type ", result,
              " can't be cast to the desired output type ", target.scalar_type());
  const std::vector<SymInt> shape = symbolic_broadcast(tensors_of(operands));
  TORCH_CHECK(target.sym_sizes() == SymIntArrayRef(shape), "output with shape ", target.sym_sizes(),
              " doesn't match the broadcast shape ", SymIntArrayRef(shape));
}

Tensor allocate(IntArrayRef shape, ScalarType dtype, Device device, Operands operands) {
  return detail::empty_strided(shape, pointwise_output_strides(shape, tensors_of(operands)), dtype,
                               device);
}
} // namespace

PointwiseRecorder::PointwiseRecorder() : outer_(recorder) { recorder = this; }
PointwiseRecorder::~PointwiseRecorder() { recorder = outer_; }

bool plan_pointwise(const PointwiseSpec& spec, Tensor* out, const Tensor* inplace,
                    Operands operands, Params params, PointwiseJob& job) {
  const Tensor* first = plain_operand(spec, operands);
  if (first == nullptr) return false;
  const ScalarType compute = first->scalar_type();
  if (spec.promote == Promote::Float && c10::isIntegralType(compute, true)) return false;
  if (c10::isFloat8Type(compute)) return false;
  if (inplace && (inplace != operands.begin()->tensor || output_dtype(spec, compute) != compute))
    return false;

  const int64_t itemsize = first->itemsize();
  int count = 1;
  for (const Operand& op : operands) {
    if (op.tensor != nullptr) {
      const TensorImpl& t = *op.tensor->unsafeGetTensorImpl();
      const bool lone = is_lone_value(t, *first->unsafeGetTensorImpl());
      job.data[count] = static_cast<char*>(op.tensor->data_ptr());
      // What shares memory with the target without being it is for the long path to refuse.
      if (inplace && op.tensor != inplace && op.tensor->is_alias_of(*inplace) &&
          (lone || job.data[count] != inplace->data_ptr()))
        return false;
      job.strides[count] = lone ? 0 : itemsize;
    } else {
      // A number joins when its category is not above the tensor's.
      const Scalar& s = *op.scalar;
      const bool fits = c10::isComplexType(compute) ||
                        (c10::isFloatingType(compute) && !s.isComplex()) ||
                        (c10::isIntegralType(compute, false) && s.isIntegral(true));
      if (!fits) return false;
      if (!number_fits(s, compute) && !rounds(spec, compute)) return false;
      store_number(s, compute, NumberRule::Wrap, job.numbers[count - 1]);
      job.data[count] = job.numbers[count - 1];
      job.strides[count] = 0;
    }
    ++count;
  }
  job.loop = loop_for(spec, compute);
  job.params = ParamBuffer::fill(spec, params, compute, job.param_bytes);
  if (inplace == nullptr) *out = detail::empty(first->sizes(), output_dtype(spec, compute));
  const Tensor& target = inplace ? *inplace : *out;
  job.data[0] = static_cast<char*>(target.data_ptr());
  job.strides[0] = target.itemsize();
  job.count = count;
  job.numel = first->numel();
  return true;
}

Tensor pointwise(const PointwiseSpec& spec, Operands operands, Params params) {
  Tensor out;
  if (C10_LIKELY(try_fast(spec, &out, nullptr, operands, params))) return out;
#ifndef CRESSET_NO_CUDA
  if (C10_LIKELY(cuda::pointwise_fast(spec, &out, nullptr, operands, params))) return out;
#endif
  const ScalarType compute = compute_dtype(spec, operands);
  const Device device = common_device(operands, nullptr);
  if (device.is_meta() && has_symbols(operands)) {
    out = allocate_symbolic(output_dtype(spec, compute), device, operands);
    if (C10_UNLIKELY(recorder != nullptr)) record(spec, out, operands, params, compute);
    return out;
  }
  const DimVector shape = common_shape(operands);
  out = allocate(shape, output_dtype(spec, compute), device, operands);
  run_general(spec, out, operands, params, shape, compute, device);
  return out;
}

Tensor& pointwise_(const PointwiseSpec& spec, Tensor& self, Operands operands, Params params) {
  bool done = try_fast(spec, nullptr, &self, operands, params);
#ifndef CRESSET_NO_CUDA
  if (!done) done = cuda::pointwise_fast(spec, nullptr, &self, operands, params);
#endif
  if (C10_UNLIKELY(!done)) {
    TORCH_CHECK(spec.out != OutKind::Real || !self.is_complex(), "In-place ", spec.name,
                " is not supported for complex tensors.");
    const ScalarType compute = compute_dtype(spec, operands);
    const Device device = common_device(operands, &self);
    if (device.is_meta() && has_symbols(operands)) {
      check_symbolic_target(self, output_dtype(spec, compute), operands);
      self.unsafeGetTensorImpl()->bump_version();
      return self;
    }
    const DimVector shape = common_shape(operands);
    check_target(self, shape, output_dtype(spec, compute), operands);
    run_general(spec, self, operands, params, shape, compute, device);
  }
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor& pointwise_out(const PointwiseSpec& spec, Tensor& out, Operands operands, Params params) {
  const ScalarType compute = compute_dtype(spec, operands);
  const Device device = common_device(operands, &out);
  const DimVector shape = common_shape(operands);
  const ScalarType result = output_dtype(spec, compute);
  // An operator of one tensor that keeps the dtype keeps it on the way out too.
  const bool keeps = spec.inputs == 1 && spec.params == 0 && spec.promote == Promote::Default &&
                     (spec.out == OutKind::Same || spec.out == OutKind::Real);
  TORCH_CHECK(!keeps || out.scalar_type() == compute || out.scalar_type() == result, "Found dtype ",
              out.scalar_type(), " but expected ", compute);
  TORCH_CHECK(c10::canCast(result, out.scalar_type()), "result type ", result,
              " can't be cast to the desired output type ", out.scalar_type());
  native::resize_output(out, shape);
  check_target(out, shape, result, operands);
  run_general(spec, out, operands, params, shape, compute, device);
  out.unsafeGetTensorImpl()->bump_version();
  return out;
}

} // namespace at::iter
