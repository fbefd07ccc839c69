// See CPUFallback.h. A tensor that appears twice among the arguments is one tensor on the host too,
// so that an operator sees the same aliasing there. Nothing here is recorded for gradients: the
// kernel runs below autograd.
#undef CRESSET_KERNEL_TU
#include <ATen/native/CPUFallback.h>

#include <unordered_map>

#include <ATen/core/IValue.h>
#include <ATen/ops/_copy_from_and_resize.h>
#include <ATen/ops/_to_copy.h>

namespace at::native {
namespace {

Tensor moved(const Tensor& t, Device device) {
  return at::_to_copy(t, std::nullopt, std::nullopt, device, std::nullopt, false, std::nullopt);
}

class HostCall {
 public:
  IValue to_host(const IValue& value) {
    switch (value.tag) {
    case IValue::Tag::Tensor:
      return host_tensor(value.toTensor());
    case IValue::Tag::TensorList: {
      std::vector<Tensor> out;
      for (const Tensor& t : value.toTensorList()) out.push_back(host_tensor(t));
      return out;
    }
    case IValue::Tag::OptionalTensorList: {
      std::vector<std::optional<Tensor>> out = value.toOptionalTensorList();
      for (std::optional<Tensor>& t : out)
        if (t) t = host_tensor(*t);
      return out;
    }
    case IValue::Tag::Device:
      note_device(value.toDevice());
      return Device(kCPU);
    default:
      return value;
    }
  }

  // Copies what the call wrote to the host tensor of `argument`.
  void write_back(const IValue& argument) {
    if (argument.isTensor()) return write_tensor(argument.toTensor());
    if (argument.isTensorList())
      for (const Tensor& t : argument.toTensorList()) write_tensor(t);
  }

  IValue to_device(const IValue& value) const {
    if (!device_) return value;
    if (value.isTensor()) return device_tensor(value.toTensor());
    if (!value.isTensorList()) return value;
    std::vector<Tensor> out;
    for (const Tensor& t : value.toTensorList()) out.push_back(device_tensor(t));
    return out;
  }

 private:
  void note_device(Device device) {
    if (!device_ && !device.is_cpu()) device_ = device;
  }
  Tensor host_tensor(const Tensor& t) {
    if (!t.defined() || t.is_cpu()) return t;
    note_device(t.device());
    Tensor& host = hosts_[t.unsafeGetTensorImpl()];
    if (!host.defined()) host = moved(t, Device(kCPU));
    return host;
  }
  void write_tensor(const Tensor& t) {
    const auto found = t.defined() ? hosts_.find(t.unsafeGetTensorImpl()) : hosts_.end();
    if (found == hosts_.end()) return;
    Tensor target = t;
    if (target.sizes() == found->second.sizes())
      target.copy_(found->second);
    else
      at::_copy_from_and_resize(found->second, target);
  }
  Tensor device_tensor(const Tensor& t) const {
    return t.defined() && t.is_cpu() ? moved(t, *device_) : t;
  }

  std::optional<Device> device_;
  std::unordered_map<const c10::TensorImpl*, Tensor> hosts_;
};

// The argument that a result is: the one that is written and has its letter.
const IValue* written_argument(const FunctionSchema& schema, const SchemaArgument& result,
                               const IValue* arguments) {
  if (!result.alias || !result.alias->is_write) return nullptr;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const std::optional<AliasInfo>& alias = schema.arguments[i].alias;
    if (alias && alias->is_write && alias->before == result.alias->before) return &arguments[i];
  }
  return nullptr;
}

} // namespace

void cpu_fallback(const c10::OperatorHandle& op, Stack* stack, bool error_on_views,
                  c10::DispatchKey cpu_dispatch_key) {
  const OperatorEntry& entry = op.entry();
  const FunctionSchema& schema = entry.schema();
  TORCH_CHECK(stack->size() >= schema.arguments.size(), entry.full_name(), ": takes ",
              schema.arguments.size(), " arguments");
  const c10::ExcludeDispatchKeyGuard below(c10::kAutogradKeys |
                                           DispatchKeySet(DispatchKey::ADInplaceOrView));
  const Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(schema.arguments.size()),
                        stack->end());
  stack->resize(stack->size() - arguments.size());

  HostCall host;
  Stack call;
  for (const IValue& argument : arguments) call.push_back(host.to_host(argument));
  entry.redispatch_boxed(DispatchKeySet(cpu_dispatch_key), call);

  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::optional<AliasInfo>& alias = schema.arguments[i].alias;
    if (alias && alias->is_write) host.write_back(arguments[i]);
  }
  for (size_t i = 0; i < call.size(); ++i) {
    const SchemaArgument* result = i < schema.returns.size() ? &schema.returns[i] : nullptr;
    const IValue* same =
        result != nullptr ? written_argument(schema, *result, arguments.data()) : nullptr;
    TORCH_CHECK(same != nullptr || result == nullptr || !result->alias || !error_on_views,
                entry.full_name(),
                ": returns a view, which a kernel that runs on the CPU cannot make of memory of "
                "another device");
    stack->push_back(same != nullptr ? *same : host.to_device(call[i]));
  }
}

} // namespace at::native
