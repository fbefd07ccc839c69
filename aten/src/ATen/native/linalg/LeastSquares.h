// A least squares problem, as the kernels of both devices see it.
#pragma once

#include <ATen/core/Tensor.h>

namespace at::native::linalg {

enum class LeastSquaresDriver { Gels, Gelsy, Gelsd, Gelss };

struct LeastSquares {
  LeastSquaresDriver driver;
  bool vector;     // b holds one vector per matrix
  DimVector batch; // broadcast
  int64_t m, n, cols;
  double rcond;
};

// `raw` has max(m, n) rows, in column-major order; its first m hold B, the rest is zero. The first
// n become the solution; the sums of squares of what follows are the residuals.
void solve_full_rank_cuda(const LeastSquares& p, const Tensor& a, const Tensor& raw);

} // namespace at::native::linalg
