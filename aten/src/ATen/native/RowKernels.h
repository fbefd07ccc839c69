// Kernels of operators whose rows know nothing of each other, for callers that take a tensor a few
// rows at a time: a compiler runs what comes before and after on the same rows while they are in
// the cache. The operators' own kernels run these functions too, so the bits are theirs.
#pragma once
#include <cstdint>

#include <c10/core/ScalarType.h>

namespace at::native {

struct RowKernel {
  // Pointers to the first of `rows` rows of `length` elements; null for what is not given or
  // wanted. Statistics are one number per row, of the type that the elements compute in.
  using Fn = void (*)(const RowKernel& kernel, const char* const* in, char* const* out,
                      int64_t rows);
  Fn run = nullptr; // null: not defined for the type
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  int64_t length = 0;
  double eps = 0;
  bool log = false;
};

// in: the elements; out: the result.
RowKernel softmax_rows(bool log, c10::ScalarType dtype, int64_t length);
// in: the gradient, the result; out: the gradient of the elements.
RowKernel softmax_backward_rows(bool log, c10::ScalarType dtype, int64_t length);
// in: the elements, weight, bias (both of the type elements compute in); out: result, mean, rstd.
RowKernel layer_norm_rows(c10::ScalarType dtype, int64_t length, double eps);
// in: the elements, weight; out: result, rstd.
RowKernel rms_norm_rows(c10::ScalarType dtype, int64_t length, double eps);
// The eps of rms_norm where none is given.
double default_rms_eps(c10::ScalarType dtype);

} // namespace at::native
