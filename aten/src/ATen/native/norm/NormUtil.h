// What the normalisations share: parameters in the type the loops compute in, statistics on their
// way to the caller's type, and PyTorch's rules for mixed types.
#pragma once
#include <ATen/parallel/Stretches.h>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/native/norm/NormKernel.h>

namespace at::native {

// The type elements of `dtype` compute in.
inline ScalarType compute_type(ScalarType dtype) { return dtype == kDouble ? kDouble : kFloat; }
inline bool has(const std::optional<Tensor>& t) { return t.has_value() && t->defined(); }

// A parameter as contiguous values of the compute type; an undefined tensor when it was not given.
Tensor parameter_values(const std::optional<Tensor>& t, ScalarType compute);
// A single value of such a tensor, or `otherwise`.
inline double value_at(const Tensor& values, int64_t i, double otherwise) {
  if (!values.defined()) return otherwise;
  return values.scalar_type() == kDouble ? static_cast<const double*>(values.const_data_ptr())[i]
                                         : static_cast<const float*>(values.const_data_ptr())[i];
}
inline const void* data_or_null(const Tensor& t) {
  return t.defined() ? t.const_data_ptr() : nullptr;
}
inline const char* advance(const void* p, int64_t elements, int64_t itemsize) {
  return static_cast<const char*>(p) + elements * itemsize;
}
inline char* advance(void* p, int64_t elements, int64_t itemsize) {
  return static_cast<char*>(p) + elements * itemsize;
}

// Writes statistics to a tensor of any floating type with that many elements.
void store_values(const Tensor& out, const double* values, int64_t count);
// The elements of a contiguous or strided floating tensor as doubles.
std::vector<double> load_values(const Tensor& t);

// Half types may come with float parameters; every other mixture is an error. The type of the
// statistics.
ScalarType statistics_type(const Tensor& input,
                           std::initializer_list<const std::optional<Tensor>*> parameters);

// ---- rows longer than kLongRow: their parts are shared between threads and respond to Ctrl-C. How
// a sum is cut depends on the length alone.
constexpr int64_t kLongRow = int64_t(1) << 18;
void row_moments(const norm_loops::NormLoops& loops, const char* x, int64_t n, int64_t item,
                 norm_loops::Moments* into);
double row_square_sum(const norm_loops::NormLoops& loops, const char* x, int64_t n, int64_t item);
void row_grad_sums(const norm_loops::NormLoops& loops, const char* g, const char* x, int64_t n,
                   int64_t item, double mean, double* sums);
// f(begin, end) for the parts of a row whose elements are independent of each other.
template <class F> void for_row_parts(int64_t n, const F& f) { parallel_for(0, n, kLongRow, f); }

// Elements one task processes at least.
constexpr int64_t kNormGrain = 16384;
inline int64_t row_grain(int64_t row_length) {
  return row_length >= kNormGrain ? 1 : kNormGrain / (row_length > 0 ? row_length : 1);
}

} // namespace at::native
