// Guards with which the kernels of an extension call operators below autograd.
#pragma once
#include <c10/core/DispatchKeySet.h>
#include <c10/util/Exception.h>

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
// An older name, for which a warning says the newer ones. Its argument may only be true.
struct AutoNonVariableTypeMode {
  explicit AutoNonVariableTypeMode(bool = true) {
    TORCH_WARN_ONCE("AutoNonVariableTypeMode is deprecated: a kernel that stands below autograd "
                    "uses at::AutoDispatchBelowADInplaceOrView, one that computes without "
                    "gradients c10::InferenceMode.");
  }
  AutoDispatchBelowADInplaceOrView guard;
};

} // namespace at
