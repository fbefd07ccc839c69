// Whether handlers written in Python, or recorders, see the operators that run.
//
// Note [Definitions shown to handlers]
// A handler of __torch_dispatch__ meets the operators PyTorch's users know. An operator that is one
// kernel here and several operators there names, as `stands_for` in its yaml entry, the function
// that calls those; it is the operator's kernel for the key PythonTLSSnapshot. That key lies above
// autograd, so that the history is made of the same operators too, and is in the key set of a call
// only where Python is: plain calls never look for it.
#pragma once
#include <atomic>

#include <ATen/core/Tensor.h>

namespace at {

// The keys that lead a call to handlers, and to what operators stand for.
inline constexpr DispatchKeySet kHandlerKeys{DispatchKey::Python, DispatchKey::PythonTLSSnapshot};

// Whether a handler has ever appeared in this process. Where none has, a call asks nothing else.
TORCH_API extern std::atomic<bool> definitions_shown;
inline bool handlers_exist() noexcept { return definitions_shown.load(std::memory_order_relaxed); }

// A mode is active on this thread, below autograd or above it.
inline bool handlers_active() noexcept {
  constexpr DispatchKeySet kModes{DispatchKey::Python, DispatchKey::PreDispatch};
  const c10::LocalDispatchKeySet& keys = c10::tls_dispatch_keys;
  return (keys.included & ~keys.excluded & kModes.raw()) != 0;
}
// A call with this tensor is seen by a handler.
inline bool seen_by_handlers(const Tensor& t) noexcept {
  return t.key_set().has(DispatchKey::Python) || handlers_active();
}

// Whether what this thread records runs here again, so that operators which are one kernel stay
// whole and keep their bits and speed, where other handlers meet what they are made of.
TORCH_API bool records_whole_operators();
TORCH_API void record_whole_operators(bool on);

// Lets calls reach the kernels for PythonTLSSnapshot. Called when the first handler appears.
TORCH_API void show_definitions();

} // namespace at
