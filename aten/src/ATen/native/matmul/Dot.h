// The sum of products of two contiguous vectors, per instruction set.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>
#include <c10/core/ScalarType.h>

namespace at::native::dot {

// *sum (of the vectors' type) = a[0] b[0] + ... + a[n - 1] b[n - 1]; `conjugate`: of a's conjugate.
using DotFn = void (*)(const void* a, const void* b, int64_t n, bool conjugate, void* sum);

struct Table {
  DotFn dot[c10::NumScalarTypes] = {};
};

// For float32, float64, int64 and the complex types of two of these.
CRESSET_ISA_TABLE(Table);

// Elements summed at a time: vectors are cut here, so that sums are the same on any number of
// threads.
constexpr int64_t kBlock = 1 << 15;

} // namespace at::native::dot
