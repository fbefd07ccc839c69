// Where extensions look for at::parallel_for, for the part of a range that is worth a thread, and
// for threads that take whole tasks.
#pragma once
#include <functional>

#include <ATen/parallel/Parallel.h>

namespace at {
namespace internal {
// Of elementwise work; what extensions divide by the cost of one element.
constexpr int64_t GRAIN_SIZE = 32768;
} // namespace internal

/// Runs `task` on a thread of the inter-op pool, with the gradient mode and dispatch keys of the
/// caller, and returns at once. What the task throws is lost, as there is nobody to catch it.
/// Defined in torch/csrc/jit/tasks.cpp, whose threads these are.
TORCH_API void launch(std::function<void()> task);

} // namespace at
