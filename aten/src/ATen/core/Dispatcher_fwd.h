// What generated operator headers need of the dispatcher: names only.
#pragma once
#include <c10/core/DispatchKeySet.h>

namespace at {
struct OperatorEntry;
// The first argument of every typed kernel: which operator was called and with which keys (already
// without those dispatched before this kernel's key).
struct KernelContext {
  const OperatorEntry* op;
  c10::DispatchKeySet keys;
};
} // namespace at
