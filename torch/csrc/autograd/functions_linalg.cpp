// Gradients of systems, determinants and triangular factors. Written from the differentials: for a
// real loss, dloss = Re tr(G^H dA) defines the gradient G of A, so a term tr(M dA) gives M^H.
#include <torch/csrc/autograd/functions_linalg.h>

#include <ATen/core/HandlerKeys.h>
#include <ATen/functorch/Level.h>
#include <ATen/ops/any.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cholesky_solve.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/diag_embed.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/linalg_det.h>
#include <ATen/ops/linalg_ldl_solve.h>
#include <ATen/ops/linalg_lu_solve.h>
#include <ATen/ops/linalg_pinv.h>
#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/linalg_solve_ex.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/lu_unpack.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/real.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace torch::autograd::generated {

namespace {

Tensor mm(const Tensor& a, const Tensor& b) { return at::matmul(a, b); }
// The adjoint of matrices in a batch.
Tensor h(const Tensor& t) { return cj(t.transpose(-2, -1)); }

Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

// A^-H B from saved factors; from A itself where the result may be differentiated again, because
// the factors are outputs without a history.
Tensor solve_adjoint(const Tensor& A, const Tensor& LU, const Tensor& pivots, const Tensor& B,
                     bool left) {
  if (compute_requires_grad() && (A.requires_grad() || B.requires_grad()))
    return std::get<0>(at::linalg_solve_ex(h(A), B, left));
  return at::linalg_lu_solve(LU, pivots, B, left, true);
}

// Ones on and below the diagonal kept, as a triangular matrix with a unit diagonal would need.
Tensor triangle(const Tensor& t, bool upper, bool unit) {
  return upper ? at::triu(t, unit ? 1 : 0) : at::tril(t, unit ? -1 : 0);
}

} // namespace

// ---- systems -----------------------------------------------------------------------------------
TensorPair solve_grad(const Tensor& grad, const Tensor& A, const Tensor& B, bool left,
                      const Tensor& X, const Tensor& LU, const Tensor& pivots, PairMask mask) {
  if (!grad.defined()) return {};
  const bool vector =
      B.dim() == 1 || (A.dim() - 1 == B.dim() && B.sizes() == A.sizes().slice(0, A.dim() - 1));
  const auto column = [&](const Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
  const Tensor gB = solve_adjoint(A, LU, pivots, column(grad), left);
  Tensor gA;
  if (mask[0]) gA = left ? -mm(gB, h(column(X))) : -mm(h(column(X)), gB);
  return {gA, vector ? gB.squeeze(-1) : gB};
}

TensorPair solve_triangular_grad(const Tensor& grad, const Tensor& A, const Tensor& X, bool upper,
                                 bool left, bool unit, PairMask mask) {
  if (!grad.defined()) return {};
  const Tensor gB = at::linalg_solve_triangular(h(A), grad, !upper, left, unit);
  Tensor gA;
  if (mask[0]) gA = triangle(left ? -mm(gB, h(X)) : -mm(h(X), gB), upper, unit);
  return {gA, gB};
}

TensorPair triangular_solve_grad(const Tensor& grad_x, const Tensor& grad_m, const Tensor& A,
                                 const Tensor& X, bool upper, bool transpose, bool unit,
                                 PairMask mask) {
  Tensor gA, gB;
  if (grad_x.defined()) {
    // (A^T)^-H is conj(A)^-1.
    gB = transpose ? at::linalg_solve_triangular(cj(A), grad_x, upper, true, unit)
                   : at::linalg_solve_triangular(h(A), grad_x, !upper, true, unit);
    if (mask[1]) {
      const Tensor product = transpose ? -mm(cj(X), gB.transpose(-2, -1)) : -mm(gB, h(X));
      gA = triangle(product, upper, unit);
    }
  }
  return {gB, plus(gA, grad_m)};
}

Tensor ldl_solve_grad(const Tensor& grad, const Tensor& LD, const Tensor& pivots, bool hermitian) {
  if (hermitian || !LD.is_complex()) return at::linalg_ldl_solve(LD, pivots, grad, hermitian);
  return cj(at::linalg_ldl_solve(LD, pivots, cj(grad), false));
}

TensorPair lstsq_grad(const Tensor& grad, const Tensor& grad_residuals, const Tensor& A,
                      const Tensor& B, const Tensor& X, std::optional<double> rcond,
                      PairMask mask) {
  const bool vector = B.dim() + 1 == A.dim();
  const auto column = [&](const Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
  const Tensor b = column(B);
  Tensor gA, gB;
  if (grad.defined()) {
    const Tensor inverse = at::_ops::linalg_pinv_atol_rtol_float::call(A, 0.0, rcond, false);
    const Tensor g = column(grad);
    if (mask[0]) gA = pinv_grad(mm(g, h(b)), inverse, A);
    if (mask[1]) gB = mm(h(inverse), g);
  }
  if (grad_residuals.defined() && grad_residuals.numel() > 0) {
    // At the minimum the residual R = AX - B is orthogonal to A dX.
    const Tensor x = column(X);
    const Tensor weighted = (mm(A, x) - b) * grad_residuals.unsqueeze(-2) * 2;
    if (mask[0]) gA = plus(gA, mm(weighted, h(x)));
    if (mask[1]) gB = plus(gB, -weighted);
  }
  return {gA, vector && gB.defined() ? gB.squeeze(-1) : gB};
}

Tensor pinv_grad(const Tensor& grad, const Tensor& P, const Tensor& A) {
  if (A.numel() == 0) return at::zeros_like(A);
  const Tensor gh = h(grad), ph = h(P);
  const Tensor first = mm(ph, mm(grad, ph));
  const Tensor left = mm(gh, mm(P, ph)), right = mm(mm(ph, P), gh);
  return (left - mm(A, mm(P, left))) + (right - mm(mm(right, P), A)) - first;
}

// ---- determinants ------------------------------------------------------------------------------
namespace {
// The gradient at singular matrices: the adjugate from singular values, where each entry of the
// diagonal is the product of all others.
Tensor adjugate_grad(const Tensor& grad, const Tensor& A) {
  const auto [u, s, vh] = at::linalg_svd(A, false);
  const int64_t n = s.size(-1);
  const Tensor grid = s.unsqueeze(-2).expand(A.sizes());
  const Tensor on_diagonal = at::eq(at::eye(n, s.options()), 1);
  const Tensor others = at::prod(at::where(on_diagonal, at::ones_like(grid), grid), -1);
  const Tensor phase = cj(at::linalg_det(u) * at::linalg_det(vh)) * grad;
  return mm(u * others.unsqueeze(-2), vh) * phase.unsqueeze(-1).unsqueeze(-1);
}
} // namespace

Tensor det_grad(const Tensor& grad, const Tensor& A, const Tensor& det, const Tensor& LU,
                const Tensor& pivots) {
  if (A.numel() == 0) return at::zeros_like(A);
  const Tensor d = (grad * cj(det)).unsqueeze(-1);
  const bool singular =
      at::functorch::varies_by_sample(det) || (!det.is_meta() && !at::seen_by_handlers(det) &&
                                               at::_ops::any::call(at::eq(det, 0)).item<bool>());
  if (singular) return adjugate_grad(grad, A);
  DimVector shape(A.sizes());
  const Tensor scaled_identity =
      at::diag_embed(d.expand(IntArrayRef(shape).slice(0, shape.size() - 1)));
  return solve_adjoint(A, LU, pivots, scaled_identity, true);
}

Tensor slogdet_grad(const Tensor& grad_sign, const Tensor& grad_log, const Tensor& A,
                    const Tensor& sign, const Tensor& LU, const Tensor& pivots) {
  // d(log|det|) = Re tr(A^-1 dA), and for complex A d(sign) = i sign Im tr(A^-1 dA).
  Tensor factor = grad_log;
  if (A.is_complex() && grad_sign.defined()) {
    const Tensor turn = -at::imag(cj(grad_sign) * sign);
    factor = at::complex(grad_log.defined() ? grad_log : at::zeros_like(turn), turn);
  } else if (!factor.defined()) {
    return at::zeros_like(A);
  }
  if (A.numel() == 0) return at::zeros_like(A);
  if (A.is_complex() && !factor.is_complex()) factor = factor.to(A.scalar_type());
  DimVector vectors(A.sizes());
  vectors.pop_back();
  return solve_adjoint(A, LU, pivots, at::diag_embed(factor.unsqueeze(-1).expand(vectors)), true);
}

// ---- LU ----------------------------------------------------------------------------------------
namespace {

// The gradient of L U for a square leading block, where dL = L tril(M, -1) and dU = triu(M) U with
// M = L^-1 dA U^-1.
Tensor square_lu_grad(const Tensor& gL, const Tensor& gU, const Tensor& L, const Tensor& U) {
  Tensor inner;
  if (gL.defined()) inner = at::tril(mm(h(L), gL), -1);
  if (gU.defined()) inner = plus(inner, at::triu(mm(gU, h(U))));
  const Tensor left = at::linalg_solve_triangular(h(L), inner, true, true, true);
  return at::linalg_solve_triangular(h(U), left, false, false, false);
}

// The gradient of the product before the rows are permuted.
Tensor factors_grad(const Tensor& gL, const Tensor& gU, const Tensor& L, const Tensor& U) {
  const int64_t m = L.size(-2), n = U.size(-1), k = std::min(m, n);
  if (m == n) return square_lu_grad(gL, gU, L, U);
  if (m > n) {
    if (!gL.defined()) {
      const Tensor top = square_lu_grad(gL, gU, L.narrow(-2, 0, k), U);
      DimVector rest(top.sizes());
      rest[rest.size() - 2] = m - k;
      return at::cat({top, at::zeros(rest, top.options())}, -2);
    }
    const Tensor low = at::linalg_solve_triangular(h(U), gL.narrow(-2, k, m - k), false, false);
    const Tensor to_u = plus(gU, -mm(h(L.narrow(-2, k, m - k)), low));
    const Tensor top = square_lu_grad(gL.narrow(-2, 0, k), to_u, L.narrow(-2, 0, k), U);
    return at::cat({top, low}, -2);
  }
  const Tensor u1 = U.narrow(-1, 0, k), u2 = U.narrow(-1, k, n - k);
  if (!gU.defined()) {
    const Tensor first = square_lu_grad(gL, gU, L, u1);
    DimVector rest(first.sizes());
    rest[rest.size() - 1] = n - k;
    return at::cat({first, at::zeros(rest, first.options())}, -1);
  }
  const Tensor right = at::linalg_solve_triangular(h(L), gU.narrow(-1, k, n - k), true, true, true);
  const Tensor to_l = plus(gL, -mm(right, h(u2)));
  return at::cat({square_lu_grad(to_l, gU.narrow(-1, 0, k), L, u1), right}, -1);
}

} // namespace

Tensor lu_grad(const Tensor& gL, const Tensor& gU, const Tensor& P, const Tensor& L,
               const Tensor& U) {
  const Tensor product = factors_grad(gL, gU, L, U);
  return P.dim() == 1 ? product : mm(P, product);
}

Tensor lu_factor_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots) {
  const auto [P, L, U] = at::lu_unpack(LU, pivots);
  const int64_t k = std::min(LU.size(-2), LU.size(-1));
  return lu_grad(grad.narrow(-1, 0, k), grad.narrow(-2, 0, k), P, L, U);
}

Tensor lu_unpack_grad(const Tensor& gL, const Tensor& gU, IntArrayRef sizes) {
  const int64_t dims = static_cast<int64_t>(sizes.size());
  const int64_t m = sizes[dims - 2], n = sizes[dims - 1], k = std::min(m, n);
  const auto padded = [&](const Tensor& t, int64_t dim, int64_t length) {
    if (length == 0) return t;
    DimVector rest(t.sizes());
    rest[static_cast<size_t>(dims + dim)] = length;
    return at::cat({t, at::zeros(rest, t.options())}, dim);
  };
  Tensor out;
  if (gL.defined()) out = padded(at::tril(gL, -1), -1, n - k);
  if (gU.defined()) out = plus(out, padded(at::triu(gU), -2, m - k));
  return out;
}

TensorPair lu_solve_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots,
                         const Tensor& X, bool left, bool adjoint, PairMask mask) {
  const Tensor gB = at::linalg_lu_solve(LU, pivots, grad, left, !adjoint);
  Tensor gLU;
  if (mask[0]) {
    Tensor gA;
    if (left)
      gA = adjoint ? -mm(X, h(gB)) : -mm(gB, h(X));
    else
      gA = adjoint ? -mm(h(gB), X) : -mm(h(X), gB);
    const auto [P, L, U] = at::lu_unpack(LU, pivots);
    const Tensor rows = mm(P.transpose(-2, -1), gA);
    gLU = at::tril(mm(rows, h(U)), -1) + at::triu(mm(h(L), rows));
  }
  return {gLU, gB};
}

// ---- Cholesky ----------------------------------------------------------------------------------
Tensor cholesky_grad(const Tensor& grad, bool upper, const Tensor& factor) {
  const Tensor L = upper ? h(factor) : factor, gL = upper ? h(grad) : grad;
  // Only the Hermitian part of A is looked at: the other part of the gradient is free.
  const Tensor product = at::tril(mm(h(L), gL));
  const Tensor symmetric = (product + h(at::tril(product, -1))) * 0.5;
  const Tensor left = at::linalg_solve_triangular(h(L), symmetric, true, true);
  return at::linalg_solve_triangular(L, left, false, false);
}

Tensor cholesky_inverse_grad(const Tensor& grad, const Tensor& factor, bool upper,
                             const Tensor& inverse) {
  const Tensor gA = -mm(inverse, mm(grad, inverse));
  const Tensor both = gA + h(gA);
  return upper ? mm(factor, both) : mm(both, factor);
}

TensorPair cholesky_solve_grad(const Tensor& grad, const Tensor& factor, const Tensor& X,
                               bool upper, PairMask mask) {
  const Tensor gB = at::cholesky_solve(grad, factor, upper);
  Tensor gF;
  if (mask[1]) {
    const Tensor product = mm(gB, h(X));
    const Tensor both = product + h(product);
    gF = upper ? -mm(factor, both) : -mm(both, factor);
  }
  return {gB, gF};
}

} // namespace torch::autograd::generated
