// The contract between softmax's driver and its loops, which are compiled per element type and
// instruction set.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>
#include <c10/core/ScalarType.h>

namespace at::native::softmax_loops {

// One contiguous line of n elements. `scratch` holds n numbers of the accumulator's type.
using LineFn = void (*)(const char* in, char* out, int64_t n, char* scratch);
// Lines side by side that are computed together, at most.
constexpr int64_t kBundle = 64;
// `width` <= kBundle lines side by side: element i of line k is at (i * stride + k) elements.
using BundleFn = void (*)(const char* in, char* out, int64_t n, int64_t stride, int64_t width);
using LineBackwardFn = void (*)(const char* grad, const char* output, char* out, int64_t n);
using BundleBackwardFn = void (*)(const char* grad, const char* output, char* out, int64_t n,
                                  int64_t stride, int64_t width);

// A line too long for one thread, in parts: the largest element, the sum of the exponentials, the
// result from both; backward the sum of the products (of the gradients for log_softmax) and the
// result. Numbers of the accumulator's type fit in double.
struct LongLine {
  double (*top)(const char* in, int64_t n) = nullptr;
  double (*exp_sum)(const char* in, int64_t n, double top) = nullptr;
  void (*result)(const char* in, char* out, int64_t n, double top, double sum) = nullptr;
  double (*grad_sum)(const char* grad, const char* output, int64_t n) = nullptr;
  void (*gradient)(const char* grad, const char* output, char* out, int64_t n,
                   double sum) = nullptr;
};

struct SoftmaxKernel {
  LineFn line = nullptr;
  BundleFn bundle = nullptr;
  LineBackwardFn line_backward = nullptr;
  BundleBackwardFn bundle_backward = nullptr;
  int32_t scratch_size = 0; // bytes per element
  LongLine parts;
};

struct SoftmaxTable {
  SoftmaxKernel kernel[2][c10::NumScalarTypes]; // softmax, log_softmax
};

CRESSET_ISA_TABLE(SoftmaxTable);

} // namespace at::native::softmax_loops
