// See OutVariant.h.
#undef CRESSET_KERNEL_TU // factories with options
#include <ATen/core/OutVariant.h>

#include <algorithm>

#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

namespace at::detail {

namespace {

Tensor on_meta(const Tensor& t) {
  if (!t.defined()) return t;
  return at::empty_strided(t.sizes(), t.strides(), t.options().device(kMeta));
}

IValue on_meta(const IValue& value) {
  if (value.isTensor()) return on_meta(value.toTensor());
  if (value.isTensorList()) {
    std::vector<Tensor> out;
    for (const Tensor& t : value.toTensorList()) out.push_back(on_meta(t));
    return out;
  }
  if (value.tag == IValue::Tag::Device) return Device(kMeta);
  return value;
}

std::optional<Device> device_among(const Stack& arguments) {
  for (const IValue& value : arguments) {
    if (value.isTensor() && !value.toTensor().is_cpu()) return value.toTensor().device();
    if (value.isTensorList())
      for (const Tensor& t : value.toTensorList())
        if (t.defined() && !t.is_cpu()) return t.device();
  }
  return std::nullopt;
}

struct OutVariantKernel final : BoxedKernel {
  explicit OutVariantKernel(const OperatorEntry& out) : out(out) {}

  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    const auto count = static_cast<std::ptrdiff_t>(op.schema().arguments.size());
    TORCH_CHECK(static_cast<std::ptrdiff_t>(stack.size()) >= count, op.full_name(), ": takes ",
                count, " arguments");
    Stack arguments(stack.end() - count, stack.end());
    stack.resize(stack.size() - static_cast<size_t>(count));
    const std::optional<Device> device = device_among(arguments);
    const c10::ExcludeDispatchKeyGuard below(c10::kAutogradKeys |
                                             DispatchKeySet(DispatchKey::ADInplaceOrView));
    Stack meta;
    for (const IValue& argument : arguments) meta.push_back(on_meta(argument));
    op.redispatch_boxed(DispatchKeySet(DispatchKey::Meta), meta);
    const Tensor shape = meta.back().toTensor();
    const Tensor result =
        at::empty(shape.sizes(), shape.options().device(device.value_or(Device(kCPU))));
    arguments.emplace_back(result);
    out.redispatch_boxed(DispatchKeySet(keys.highest()), arguments);
    stack.emplace_back(result);
  }

  const OperatorEntry& out;
};

bool takes_result_besides(const FunctionSchema& op, const FunctionSchema& out) {
  if (out.arguments.size() != op.arguments.size() + 1 || out.returns.size() != 1) return false;
  const SchemaArgument& last = out.arguments.back();
  if (!last.alias || !last.alias->is_write || last.type.is_list) return false;
  return std::equal(op.arguments.begin(), op.arguments.end(), out.arguments.begin(),
                    [](const SchemaArgument& a, const SchemaArgument& b) {
                      return a.name == b.name && a.type.str() == b.type.str();
                    });
}

} // namespace

const OperatorEntry* find_out_variant(const OperatorEntry& op) {
  const FunctionSchema& schema = op.schema();
  const bool makes_one_tensor = schema.returns.size() == 1 && !schema.returns[0].alias &&
                                schema.returns[0].type.kind == SchemaType::Kind::Tensor &&
                                !schema.returns[0].type.is_list && !schema.is_mutable();
  if (!makes_one_tensor) return nullptr;
  const ArrayRef<const OperatorEntry*> all = builtin_operators();
  const auto first = std::lower_bound(
      all.begin(), all.end(), std::string_view(op.name),
      [](const OperatorEntry* a, std::string_view name) { return a->name < name; });
  for (auto it = first; it != all.end() && std::string_view((*it)->name) == op.name; ++it)
    if (takes_result_besides(schema, (*it)->schema())) return *it;
  return nullptr;
}

c10::intrusive_ptr<BoxedKernel> kernel_by_out_variant(const OperatorEntry& out) {
  return c10::make_intrusive<OutVariantKernel>(out);
}

} // namespace at::detail
