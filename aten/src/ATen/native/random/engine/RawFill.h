#pragma once

// Fills of contiguous memory with random numbers, bit-equal with PyTorch's CPU kernels for the same
// state of the engine. `out` points at n elements of `dtype`, in memory order; parameters have been
// checked by the operator. A dtype a distribution does not have raises NotImplementedError with
// PyTorch's kernel name. Where a draw's transformation is expensive it runs in parallel, after the
// draws, which are always taken in order: the number of threads changes nothing.

#include <ATen/native/random/engine/Mt19937.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

namespace at::native::random {

using c10::ScalarType;

/// Floating types. [from, to).
TORCH_API void fill_uniform(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double from,
                            double to);

/// Floating types. Below 16 elements one by one, from 16 on in blocks: other draws, other numbers.
TORCH_API void fill_normal(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double mean,
                           double std);
/// One by one whatever the size, as PyTorch fills tensors that are not contiguous.
TORCH_API void fill_normal_one_by_one(Mt19937& engine, ScalarType dtype, void* out, int64_t n,
                                      double mean, double std);
/// Floating types.
TORCH_API void fill_log_normal(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double mean,
                               double std);
TORCH_API void fill_exponential(Mt19937& engine, ScalarType dtype, void* out, int64_t n,
                                double lambda);
TORCH_API void fill_cauchy(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double median,
                           double sigma);
/// Floating and integer types, the number of trials until the first success: 1, 2, ...
TORCH_API void fill_geometric(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double p);

/// All real types and bool: 1 with probability p.
TORCH_API void fill_bernoulli(Mt19937& engine, ScalarType dtype, void* out, int64_t n, double p);
/// With a probability for each element, of a floating type; throws c10::Error when one is not in
/// [0, 1].
TORCH_API void fill_bernoulli_tensor(Mt19937& engine, ScalarType dtype, void* out, int64_t n,
                                     ScalarType p_dtype, const void* p);

/// What random_(from, to) draws from: base + (draw mod range), range 0 standing for 2^64.
struct IntRange {
  uint64_t range;
  int64_t base;
};
/// Checks the bounds as PyTorch does (c10::Error) and adjusts them to what a floating dtype can
/// represent.
TORCH_API IntRange int_range(ScalarType dtype, int64_t from, int64_t to);
/// random_(from, None): up to the largest value of the dtype, or 2^digits for a floating one.
TORCH_API IntRange int_range_from(ScalarType dtype, int64_t from);
/// All real types and bool; also randint.
TORCH_API void fill_int_range(Mt19937& engine, ScalarType dtype, void* out, int64_t n,
                              IntRange range);
/// random_(): 0 up to the largest value of an integer type, or to 2^digits of a floating one.
TORCH_API void fill_random(Mt19937& engine, ScalarType dtype, void* out, int64_t n);

/// 0 to n - 1 in random order; the caller has checked that dtype can hold n - 1. Not for bool.
TORCH_API void fill_randperm(Mt19937& engine, ScalarType dtype, void* out, int64_t n);

/// `weights`: rows x categories of a floating type; `out`: rows x samples indices. Throws
/// c10::Error for weights that are no distribution. Without replacement samples <= categories.
/// `by_column`: numbers are drawn for one category of all rows after the other, as for weights that
/// lie so in memory.
TORCH_API void fill_multinomial(Mt19937& engine, ScalarType dtype, const void* weights,
                                int64_t rows, int64_t categories, int64_t samples, bool replacement,
                                int64_t* out, bool by_column = false);

} // namespace at::native::random
