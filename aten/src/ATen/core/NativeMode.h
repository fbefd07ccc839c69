// A mode written in C++. The dispatch mode stack has three slots for infrastructure (FAKE, PROXY,
// FUNCTIONAL). Each holds the Python object that programs ask for; when that object carries a
// handler of this type, calls go to the handler and no Python runs.
#pragma once
#include <ATen/core/Dispatcher.h>
#include <ATen/core/IValue.h>

namespace at {

struct TORCH_API NativeModeHandler : c10::intrusive_ptr_target {
  // Runs `op` and replaces its arguments, the last values on `stack`, by its results; true. False
  // leaves the stack as it was, and the call goes on to the mode below. `keys` are those of the
  // call, Python included: redispatch with `keys.remove(DispatchKey::Python)`, or call the operator
  // again, which the mode below then sees. The slot is off while the handler runs. Called without
  // any lock, Python's held or not; it may throw.
  virtual bool handle(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) = 0;

  // Whether calls reach the handler by a dispatch key of its own. Such a slot only names the mode,
  // and handle() is never called.
  virtual bool has_own_key() const { return false; }

  // The slot on the calling thread was filled, or came back (true); was emptied, or is off for
  // the time of a call (false).
  virtual void set_active(bool) {}
};

} // namespace at
