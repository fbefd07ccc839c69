// Running plans. See plan.h.
#include <torch/csrc/inductor/plan.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/attention/PackedGradients.h>
#include <ATen/native/norm/BatchNormNeighbours.h>
#include <ATen/native/norm/PendingSum.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/inductor/cuda_compile.h>
#include <torch/csrc/inductor/cuda_kernel.h>
#include <torch/csrc/inductor/ir.h>
#include <torch/csrc/inductor/recordings.h>

namespace torch::inductor {
namespace {

using at::IValue;
using at::ScalarType;
using at::Tensor;
using c10::DispatchKey;

class Run {
 public:
  Run(const Plan& plan, std::vector<IValue>& inputs, const std::vector<Tensor>& constants)
      : plan_(plan), buffers_(static_cast<size_t>(plan.buffers)) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int32_t b = plan.input_buffers[i];
      if (b >= 0) buffers_[static_cast<size_t>(b)] = inputs[i].toTensor();
    }
    inputs.clear();
    for (size_t i = 0; i < constants.size(); ++i)
      buffers_[static_cast<size_t>(plan.constant_buffers[i])] = constants[i];
  }

  std::vector<IValue> operator()() {
    for (const Step& step : plan_.steps) {
      if (step.kind == Step::Kind::Call)
        call(step);
      else if (step.kind == Step::Kind::Fused)
        fused(step);
      else if (step.kind == Step::Kind::Chain)
        chain(step);
      else
        reduce(step);
      for (const int32_t b : step.frees) buffers_[static_cast<size_t>(b)].reset();
    }
    std::vector<IValue> outputs;
    outputs.reserve(plan_.outputs.size());
    for (size_t i = 0; i < plan_.outputs.size(); ++i) outputs.push_back(output(i, outputs));
    return outputs;
  }

 private:
  const Tensor& base(int32_t b) const { return buffers_[static_cast<size_t>(b)]; }
  const View& view(int32_t v) const { return plan_.views[static_cast<size_t>(v)]; }
  bool is_outer(int32_t b) const { return plan_.outer[static_cast<size_t>(b)]; }
  // Elements from the storage's first byte to the buffer's: inputs begin where their tensor does.
  int64_t start(int32_t b, const Tensor& t) const {
    return plan_.uses_offsets || t.storage_offset() == 0 || !is_outer(b) ? 0 : t.storage_offset();
  }
  char* address(int32_t b) const {
    const Tensor& t = base(b);
    char* data = static_cast<char*>(t.storage()->data());
    return data + start(b, t) * t.itemsize();
  }

  static bool looks_like(const Tensor& t, const View& v, int64_t offset) {
    return t.scalar_type() == v.dtype && t.storage_offset() == offset &&
           t.sizes() == at::IntArrayRef(v.sizes) && t.strides() == at::IntArrayRef(v.strides);
  }
  Tensor tensor(int32_t id) const {
    const View& v = view(id);
    const Tensor& t = base(v.buffer);
    int64_t offset = v.offset;
    const int64_t first = start(v.buffer, t);
    if (first != 0) offset += first * t.itemsize() / c10::elementSize(v.dtype);
    if (C10_UNLIKELY(!other_dtype_.empty()) && has_other_dtype(v)) {
      if (t.sizes() == at::IntArrayRef(v.sizes) && t.strides() == at::IntArrayRef(v.strides))
        return t;
      return at::detail::view_of(t, v.sizes, v.strides, offset);
    }
    if (looks_like(t, v, offset)) return t;
    return t.scalar_type() == v.dtype
               ? at::detail::view_of(t, v.sizes, v.strides, offset)
               : at::detail::view_of_dtype(t, v.dtype, v.sizes, v.strides, offset);
  }
  IValue output(size_t i, const std::vector<IValue>& before) const {
    const Plan::Output& out = plan_.outputs[i];
    if (out.view < 0) return out.value;
    const View& v = view(out.view);
    const Tensor& t = base(v.buffer);
    // One tensor for one node of the graph, another one for what is the same by a view.
    bool given = false;
    for (size_t k = 0; k < i; ++k) {
      if (plan_.outputs[k].view == out.view) return before[k];
      given = given || (before[k].isTensor() && before[k].toTensor().is_same(t));
    }
    if (is_outer(v.buffer)) {
      const Tensor found = tensor(out.view);
      return given && found.is_same(t)
                 ? at::detail::view_of(t, t.sizes(), t.strides(), t.storage_offset())
                 : found;
    }
    if (has_other_dtype(v)) return tensor(out.view);
    if (!given && looks_like(t, v, v.offset)) return t;
    return at::detail::checked_tensor(t.storage(), v.dtype, v.sizes, v.strides, v.offset);
  }

  // ---- calls
  void call(const Step& step) {
    if (C10_UNLIKELY(step.may_be_joined) && base(view(step.results[0].view).buffer).defined())
      return;
    at::Stack stack;
    stack.reserve(step.args.size() + 2);
    for (const CallArg& arg : step.args) stack.push_back(argument(arg));
    if (C10_UNLIKELY(step.sum >= 0)) {
      call_with_sum(step, stack);
    } else if (C10_UNLIKELY(step.batch_norm.has_value())) {
      call_with_neighbours(step, stack);
    } else if (C10_UNLIKELY(step.joined >= 0)) {
      const at::native::PackGradients packs(true);
      step.op->call_boxed(stack);
      if (take_joined(step, stack)) return;
    } else {
      step.op->call_boxed(stack);
    }
    for (const CallResult& result : step.results) {
      const IValue& value = stack[static_cast<size_t>(result.index)];
      const View& expected = view(result.view);
      Tensor& slot = buffers_[static_cast<size_t>(expected.buffer)];
      slot = result.item < 0 ? value.toTensor()
                             : value.toTensorList()[static_cast<size_t>(result.item)];
      if (C10_LIKELY(looks_like(slot, expected, expected.offset))) continue;
      if (slot.scalar_type() != expected.dtype) other_dtype_[expected.buffer] = expected.dtype;
      slot = arranged(slot, expected);
    }
  }
  // Lets the call add its first result to a sum that nobody else has.
  void call_with_sum(const Step& step, at::Stack& stack) {
    const View& form = view(step.sum);
    const Tensor& there = base(form.buffer);
    Tensor sum;
    if (is_own(there) && there.scalar_type() == form.dtype && there.storage_offset() == 0)
      sum = at::detail::checked_tensor(there.storage(), form.dtype, form.sizes, form.strides, 0);
    {
      const at::native::OfferSum offer(sum.defined() ? &sum : nullptr);
      const at::native::GrantSum grant;
      step.op->call_boxed(stack);
    }
    if (sum.defined() && stack[0].toTensor().is_same(sum))
      buffers_[static_cast<size_t>(view(step.joined).buffer)] = sum;
  }
  void call_with_neighbours(const Step& step, at::Stack& stack) {
    const Step::BatchNormJoin& join = *step.batch_norm;
    at::native::BatchNormNeighbours near;
    near.rectifies = join.rectifies;
    if (join.added >= 0) near.added = tensor(join.added);
    if (join.rectified >= 0) near.rectified = tensor(join.rectified);
    {
      const at::native::OfferNeighbours offer(&near);
      step.op->call_boxed(stack);
    }
    if (near.is_done) buffers_[static_cast<size_t>(view(step.joined).buffer)] = stack[0].toTensor();
  }
  bool take_joined(const Step& step, const at::Stack& results) {
    std::vector<Tensor> parts;
    for (const CallResult& result : step.results)
      parts.push_back(results[static_cast<size_t>(result.index)].toTensor());
    const View& expected = view(step.joined);
    Tensor joined = joined_gradient(parts, expected);
    if (!joined.defined()) return false;
    buffers_[static_cast<size_t>(expected.buffer)] = std::move(joined);
    return true;
  }
  // A result with the strides that the plan counts on.
  Tensor arranged(const Tensor& t, const View& v) const {
    int64_t reach = v.offset + 1;
    for (size_t d = 0; d < v.sizes.size(); ++d) reach += (v.sizes[d] - 1) * v.strides[d];
    TORCH_CHECK(t.sizes() == at::IntArrayRef(v.sizes),
                "a compiled graph expected a result of shape ", at::IntArrayRef(v.sizes),
                " and got ", t.sizes());
    if (t.strides() == at::IntArrayRef(v.strides) && t.storage_offset() == v.offset) return t;
    const ScalarType dtype = t.scalar_type();
    const Tensor whole = at::detail::empty({std::max<int64_t>(reach, 1)}, dtype, plan_.device);
    Tensor made = at::detail::checked_tensor(whole.storage(), dtype, v.sizes, v.strides, v.offset);
    made.copy_(t);
    return made;
  }
  IValue argument(const CallArg& arg) const {
    switch (arg.kind) {
    case CallArg::Kind::Value:
      return arg.value;
    case CallArg::Kind::Tensor:
      return tensor(arg.views[0]);
    case CallArg::Kind::Tensors: {
      std::vector<Tensor> list;
      for (const int32_t v : arg.views) list.push_back(tensor(v));
      return list;
    }
    default: {
      std::vector<std::optional<Tensor>> list;
      for (const int32_t v : arg.views)
        list.push_back(v < 0 ? std::optional<Tensor>() : std::optional<Tensor>(tensor(v)));
      return list;
    }
    }
  }

  // ---- kernels
  // Whether nobody else has the tensor's memory.
  static bool is_own(const Tensor& t) {
    return t.use_count() == 1 && t.storage().use_count() == 1 && !t.is_view();
  }
  void allocate(const FusedOutput& out) {
    const View& v = view(out.view);
    Tensor& slot = buffers_[static_cast<size_t>(v.buffer)];
    if (out.donor >= 0) {
      const Tensor& donor = base(out.donor);
      if (is_own(donor)) {
        slot = looks_like(donor, v, 0)
                   ? donor
                   : at::detail::checked_tensor(donor.storage(), v.dtype, v.sizes, v.strides, 0);
        return;
      }
    }
    slot = at::detail::empty_strided(v.sizes, v.strides, v.dtype, plan_.device);
  }
  // Whether a call gave the buffer another dtype than on the meta device (statistics of a norm are
  // single precision on a GPU). Other calls take it as it is; kernels read what was planned.
  bool has_other_dtype(const View& v) const {
    const auto found = other_dtype_.find(v.buffer);
    return found != other_dtype_.end() && found->second == v.dtype;
  }
  void settle_dtypes(const Step& step) {
    if (C10_LIKELY(other_dtype_.empty())) return;
    for (const Pointer& p : step.pointers) {
      const auto found = other_dtype_.find(p.buffer);
      if (found == other_dtype_.end()) continue;
      Tensor& slot = buffers_[static_cast<size_t>(p.buffer)];
      slot = slot.to(found->second);
      other_dtype_.erase(found);
    }
  }
  using Addresses = c10::SmallVector<char*, 16>;
  Addresses addresses(const Step& step) const {
    Addresses found;
    for (const Pointer& p : step.pointers)
      found.push_back(p.buffer < 0 ? nullptr : address(p.buffer) + p.offset);
    return found;
  }

  void fused(const Step& step) {
    if (C10_UNLIKELY(step.may_be_joined) && base(view(step.outputs[0].view).buffer).defined())
      return;
    settle_dtypes(step);
    for (const FusedOutput& out : step.outputs) allocate(out);
    if (step.numel == 0) return;
    const Addresses where = addresses(step);
    if (step.kernel)
      step.kernel->launch(step.program, where.data(), step.numel);
    else
      step.program.run_all(where.data(), step.numel);
  }

  void chain(const Step& step) {
    for (const FusedOutput& out : step.outputs) allocate(out);
    std::vector<char*> where(buffers_.size());
    for (const Pointer& p : step.pointers) where[static_cast<size_t>(p.buffer)] = address(p.buffer);
    step.chain->run(where);
  }

  void reduce(const Step& step) {
    for (const FusedOutput& out : step.outputs) allocate(out);
    const Tensor& result = base(view(step.outputs[0].view).buffer);
    if (step.program.steps.empty()) {
      const Tensor& from = base(step.pointers[0].buffer);
      const Tensor in = at::detail::view_of(from, step.elements.sizes(), step.elements.strides(),
                                            start(step.pointers[0].buffer, from));
      at::native::reduce::run_reduce(step.reduction, in, step.mask, result);
      return;
    }
    const Addresses where = addresses(step);
    const auto compute = [&](char* to, int64_t begin, int64_t end) {
      Addresses here = where;
      here.back() = to - begin * step.element_size;
      step.program.run(here.data(), begin, end);
    };
    at::native::reduce::run_reduce_of(step.reduction, step.elements, step.mask, result, compute);
  }

  const Plan& plan_;
  std::vector<Tensor> buffers_;
  std::map<int32_t, ScalarType> other_dtype_; // by buffer: what was planned
};

} // namespace

bool same_number(const IValue& a, const IValue& b) {
  if (a.tag != b.tag) return false;
  return a.isDouble() ? a.bits.d[0] == b.bits.d[0] : a.bits.i == b.bits.i;
}

// A model has hundreds of inputs: each storage is put into a table once.
bool are_apart(c10::ArrayRef<IValue> inputs) {
  size_t size = 16;
  while (size < 2 * inputs.size()) size *= 2;
  c10::SmallVector<const void*, 256> table(size, nullptr);
  for (const IValue& value : inputs) {
    if (!value.isTensor()) continue;
    const auto& tensor = static_cast<const c10::TensorImpl&>(*value.ref);
    if (!tensor.has_storage()) continue;
    const void* const storage = tensor.storage().get();
    size_t place = (reinterpret_cast<uintptr_t>(storage) >> 4) * 0x9e3779b97f4a7c15u >> 20;
    for (place &= size - 1; table[place] != nullptr; place = (place + 1) & (size - 1))
      if (table[place] == storage) return false;
    table[place] = storage;
  }
  return true;
}

Plan::InputKey key_of(const IValue& value, bool uses_offsets) {
  Plan::InputKey key;
  key.is_tensor = value.isTensor();
  if (!key.is_tensor) {
    key.number = value;
    return key;
  }
  const Tensor t = value.toTensor();
  key.dtype = t.scalar_type();
  key.device = t.device();
  key.sizes = at::DimVector(t.sizes());
  key.strides = at::DimVector(t.strides());
  key.offset = uses_offsets ? t.storage_offset() : 0;
  return key;
}

bool Plan::matches(c10::ArrayRef<IValue> inputs) const {
  if (inputs.size() != keys.size()) return false;
  for (size_t i = 0; i < keys.size(); ++i) {
    const InputKey& key = keys[i];
    const IValue& value = inputs[i];
    if (value.isTensor() != key.is_tensor) return false;
    if (!key.is_tensor) {
      if (!same_number(value, key.number)) return false;
      continue;
    }
    const auto& t = static_cast<const c10::TensorImpl&>(*value.ref);
    if (t.dtype() != key.dtype || t.device() != key.device ||
        t.sizes() != at::IntArrayRef(key.sizes) || t.strides() != at::IntArrayRef(key.strides) ||
        (uses_offsets && t.storage_offset() != key.offset))
      return false;
  }
  return true;
}

std::vector<IValue> Plan::run(std::vector<IValue>& inputs,
                              const std::vector<Tensor>& constants) const {
  if (!device.is_cuda()) return run_steps(inputs, constants);
  const c10::cuda::CUDAGuard guard(device);
  if (C10_UNLIKELY(compilation != nullptr) && !compilation->is_done()) {
    const std::string failure = compilation->take_failure();
    if (!failure.empty())
      TORCH_WARN(
          "a kernel of a compiled graph could not be compiled, its operators run one by one: ",
          failure);
    return meanwhile->run_steps(inputs, constants);
  }
  return recordings ? recordings->run(*this, inputs, constants) : run_steps(inputs, constants);
}

std::vector<IValue> Plan::run_steps(std::vector<IValue>& inputs,
                                    const std::vector<Tensor>& constants) const {
  return Run(*this, inputs, constants)();
}

namespace {
std::vector<std::shared_ptr<CudaKernel>> add_cuda_kernels(Plan& plan) {
  std::vector<std::shared_ptr<CudaKernel>> made;
  for (Step& step : plan.steps) {
    if (step.kind != Step::Kind::Fused) continue;
    step.kernel = std::make_shared<CudaKernel>(step.program);
    made.push_back(step.kernel);
  }
  return made;
}

std::shared_ptr<const Plan> plan_of_calls(const Program& program, c10::ArrayRef<IValue> inputs,
                                          const Plan& plan) {
  auto calls = std::make_shared<Plan>();
  calls->uses_offsets = plan.uses_offsets;
  calls->device = plan.device;
  Lowered lowered = lower(program, inputs, /*fuse=*/false, plan.device);
  schedule(lowered, *calls);
  return calls;
}

at::Device device_of(const Program& program, c10::ArrayRef<IValue> inputs) {
  for (const IValue& value : inputs)
    if (value.isTensor() && !value.toTensor().is_meta()) return value.toTensor().device();
  for (const Tensor& constant : program.constants)
    if (!constant.is_meta()) return constant.device();
  return at::Device(at::kCPU);
}
} // namespace

std::shared_ptr<Plan> make_plan(const Program& program, c10::ArrayRef<IValue> inputs,
                                c10::ArrayRef<IValue> with_symbols) {
  auto plan = std::make_shared<Plan>();
  plan->uses_offsets = program.uses_offsets;
  plan->device = device_of(program, inputs);
  for (const IValue& value : inputs) plan->keys.push_back(key_of(value, plan->uses_offsets));
  // Where writes may be seen through another input the order of the program decides.
  plan->apart = !program.mutates || are_apart(inputs);
  Lowered lowered;
  try {
    lowered = lower(program, with_symbols, plan->apart, plan->device);
  } catch (const InnerWrite&) {
    lowered = lower(program, with_symbols, false, plan->device);
  }
  schedule(lowered, *plan);
  if (plan->device.is_cuda())
    plan->compilation =
        compile_kernels(add_cuda_kernels(*plan), plan->device, program.compile_in_background);
  return plan;
}

std::shared_ptr<Plan> make_plan(const Program& program, c10::ArrayRef<IValue> inputs) {
  std::shared_ptr<Plan> plan = make_plan(program, inputs, inputs);
  make_ready(*plan, program, inputs);
  return plan;
}

void make_ready(Plan& plan, const Program& program, c10::ArrayRef<IValue> inputs) {
  if (!plan.device.is_cuda()) return;
  if (plan.compilation && plan.compilation->is_done()) plan.compilation.reset();
  if (plan.compilation) plan.meanwhile = plan_of_calls(program, inputs, plan);
  plan.recordings = make_recordings(program, plan);
}

std::string Plan::text() const {
  std::ostringstream out;
  const auto shape = [&](int32_t v) {
    const View& w = views[static_cast<size_t>(v)];
    out << c10::str("b", w.buffer, ": ", w.dtype, at::IntArrayRef(w.sizes));
  };
  for (const Step& step : steps) {
    out << step.name << "(";
    if (step.kind == Step::Kind::Call) {
      for (const CallArg& arg : step.args)
        for (const int32_t v : arg.views)
          if (v >= 0) out << "b" << views[static_cast<size_t>(v)].buffer << " ";
    } else {
      for (const Pointer& p : step.pointers)
        if (p.buffer >= 0) out << "b" << p.buffer << " ";
    }
    out << ") -> ";
    for (const CallResult& result : step.results) shape(result.view), out << " ";
    for (const FusedOutput& result : step.outputs) {
      shape(result.view);
      if (result.donor >= 0) out << " in b" << result.donor;
      out << " ";
    }
    if (!step.program.steps.empty()) out << "; " << step.program.steps.size() << " loops";
    if (!step.frees.empty()) {
      out << "; frees";
      for (const int32_t b : step.frees) out << " b" << b;
    }
    out << "\n";
  }
  return out.str();
}

} // namespace torch::inductor
