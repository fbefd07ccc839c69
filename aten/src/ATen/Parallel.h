// Where extensions look for at::parallel_for, and for the part of a range that is worth a thread.
#pragma once
#include <ATen/parallel/Parallel.h>

namespace at::internal {
// Of elementwise work; what extensions divide by the cost of one element.
constexpr int64_t GRAIN_SIZE = 32768;
} // namespace at::internal
