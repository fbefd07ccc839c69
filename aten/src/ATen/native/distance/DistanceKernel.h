// The inner loops of distances between rows of contiguous elements, by element type. Sums and
// gradients have the type elements compute in, written A below: float for half types and float,
// double for double.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>
#include <c10/core/ScalarType.h>

namespace at::native::distance {

struct Loops {
  // out[k] = the p-norm of a - b for each of `count` rows b that follow one another.
  void (*rows)(const void* a, const void* b, int64_t count, int64_t n, double p, void* out);
  // sum[i] (of A) += grad times the slope of the p-norm of a - b at a[i]; `distance` is that norm.
  void (*slope)(void* sum, const void* a, const void* b, int64_t n, double p, double grad,
                double distance);
  double (*load)(const void* from, int64_t i);
  // to[i] = sum[i] of A.
  void (*store_row)(void* to, const void* sum, int64_t n);
  int64_t sum_size; // bytes of A
};

struct Table {
  Loops loops[c10::NumScalarTypes] = {};
};
CRESSET_ISA_TABLE(Table);

} // namespace at::native::distance
