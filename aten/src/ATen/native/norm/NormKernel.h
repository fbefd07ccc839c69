// The inner loops of the normalisations, by element type: rows of contiguous elements (layer, group
// and instance norm, batch norm of planes) and columns of a row-major matrix (batch norm of
// channels-last data). Element pointers are untyped; parameters and sums have the type elements
// compute in, float for half types and float, double for double, written A below.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>
#include <c10/core/ScalarType.h>
#include <c10/macros/Macros.h>

namespace at::native::norm_loops {

// Count, mean and sum of squared deviations of a set of numbers. Sets are merged pairwise, so that
// data is read once and nothing cancels.
struct Moments {
  double count = 0, mean = 0, deviation = 0;
  void merge(double n, double m, double d) {
    if (n == 0) return;
    const double total = count + n, delta = m - mean;
    mean += delta * (n / total);
    deviation += d + delta * delta * (count * n / total);
    count = total;
  }
  void merge(const Moments& o) { merge(o.count, o.mean, o.deviation); }
  double variance() const { return deviation / count; }
};

struct NormLoops {
  // ---- rows of n contiguous elements
  void (*moments)(const void* x, int64_t n, Moments* into);
  double (*square_sum)(const void* x, int64_t n);
  // y = x scale + shift
  void (*scale_shift)(const void* x, void* y, int64_t n, double scale, double shift);
  // y = (x - mean) rstd w + b; w and b hold n values of A or are null.
  void (*normalize)(const void* x, void* y, int64_t n, double mean, double rstd, const void* w,
                    const void* b);
  // Adds sum(g) and sum(g (x - mean)) to sums[0] and sums[1].
  void (*grad_sums)(const void* g, const void* x, int64_t n, double mean, double* sums);
  // out = a g + b x + c
  void (*combine)(const void* g, const void* x, void* out, int64_t n, double a, double b, double c);
  // Gradient of normalize for x; `centred` when the mean was subtracted in the forward.
  void (*row_gradient)(const void* g, const void* x, void* out, int64_t n, double mean, double rstd,
                       const void* w, bool centred);
  // Adds the row's share to the gradients of w and b (n values of A each; b may be null).
  void (*row_parameters)(const void* g, const void* x, int64_t n, double mean, double rstd, void* w,
                         void* b);
  // ---- columns of a row-major matrix
  // sum[c] += sum over rows of x, and the same of (x - mean[c])^2; A everywhere.
  void (*column_sums)(const void* x, int64_t rows, int64_t columns, void* sum);
  void (*column_deviations)(const void* x, int64_t rows, int64_t columns, const void* mean,
                            void* sum);
  void (*column_scale_shift)(const void* x, void* y, int64_t rows, int64_t columns,
                             const void* scale, const void* shift);
  void (*column_grad_sums)(const void* g, const void* x, int64_t rows, int64_t columns,
                           const void* mean, void* sum, void* dot);
  void (*column_combine)(const void* g, const void* x, void* out, int64_t rows, int64_t columns,
                         const void* a, const void* b, const void* c);
};

struct NormTable {
  NormLoops loops[c10::NumScalarTypes];
};
CRESSET_ISA_TABLE(NormTable);

// The loops of this machine; NotImplementedError `"name" not implemented for 'Long'`.
const NormLoops& loops_for(c10::ScalarType dtype, const char* name);

} // namespace at::native::norm_loops
