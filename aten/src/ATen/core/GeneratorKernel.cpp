// See GeneratorKernel.h.
#undef CRESSET_KERNEL_TU // keys of generators
#include <ATen/core/GeneratorKernel.h>

#include <algorithm>

#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>

namespace at {

namespace {
bool takes_generator(const OperatorEntry& op) {
  const auto& arguments = op.schema().arguments;
  return std::any_of(arguments.begin(), arguments.end(), [](const SchemaArgument& argument) {
    return argument.type.kind == SchemaType::Kind::Generator;
  });
}
} // namespace

GeneratorKernel::~GeneratorKernel() = default;

void GeneratorKernel::call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) {
  const size_t count = std::min(op.schema().arguments.size(), stack.size());
  const bool wanted = std::any_of(stack.end() - count, stack.end(), [](const IValue& value) {
    return value.tag == IValue::Tag::Generator && value.toGenerator()->key_set().has(kKey);
  });
  if (wanted)
    own->call(op, keys, stack);
  else
    op.redispatch_boxed(keys & DispatchKeySet::below(kKey), stack);
}

c10::intrusive_ptr<BoxedKernel> GeneratorKernel::around(const OperatorEntry& op,
                                                        c10::intrusive_ptr<BoxedKernel> kernel) {
  if (kernel->is_fallthrough() || !takes_generator(op)) return kernel;
  return c10::make_intrusive<GeneratorKernel>(std::move(kernel));
}

bool GeneratorKernel::is(const BoxedKernel* kernel) {
  return dynamic_cast<const GeneratorKernel*>(kernel) != nullptr;
}

} // namespace at
