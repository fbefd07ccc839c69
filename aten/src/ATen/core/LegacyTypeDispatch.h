// Guards with which the kernels of an extension call operators below autograd.
#pragma once
#include <c10/core/DispatchKeySet.h>

namespace at {

// Operators under this guard record no gradients and make plain results; views and versions are
// still tracked.
struct AutoDispatchBelowAutograd {
  AutoDispatchBelowAutograd() : guard(c10::kAutogradKeys) {}
  c10::ExcludeDispatchKeyGuard guard;
};
// The same, and nothing registered for views and in-place writes runs either.
struct AutoDispatchBelowADInplaceOrView {
  AutoDispatchBelowADInplaceOrView()
      : guard(c10::kAutogradKeys.add(c10::DispatchKey::ADInplaceOrView)) {}
  c10::ExcludeDispatchKeyGuard guard;
};
// An older name. Its argument may only be true.
struct AutoNonVariableTypeMode {
  explicit AutoNonVariableTypeMode(bool = true) {}
  AutoDispatchBelowADInplaceOrView guard;
};

} // namespace at
