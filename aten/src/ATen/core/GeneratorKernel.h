// Kernels for generators that programs define (c10::GeneratorImpl with the key CustomRNGKeyId).
// Keys of a call come from its tensors; an operator with such a kernel looks at its generator, too.
#pragma once
#include <ATen/core/Dispatcher.h>

namespace at {

struct TORCH_API GeneratorKernel final : BoxedKernel {
  // CustomRNGKeyId: see DispatchKey in c10/macros/UserMembers.h.
  static constexpr c10::DispatchKey kKey = c10::DispatchKey::Named;

  explicit GeneratorKernel(c10::intrusive_ptr<BoxedKernel> own) : own(std::move(own)) {}
  ~GeneratorKernel() override;
  // Calls `own` when the generator among the arguments has the key, else what comes below.
  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override;

  // `kernel`, wrapped where `op` takes a generator.
  static c10::intrusive_ptr<BoxedKernel> around(const OperatorEntry& op,
                                                c10::intrusive_ptr<BoxedKernel> kernel);
  static bool is(const BoxedKernel* kernel);

  c10::intrusive_ptr<BoxedKernel> own;
};

} // namespace at
