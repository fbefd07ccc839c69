// LU, Cholesky and LDL factorisations, and systems of equations, on CUDA by cuSOLVER and cuBLAS
// (ATen/cuda/Solver.h).
#include <ATen/cuda/KernelCall.h>
#include <ATen/cuda/Solver.h>
#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/Native.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/all.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/le.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sgn.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/triu.h>

namespace at::native {
using namespace linalg;

namespace {
namespace solver = cuda::solver;
using cuda::Kernel;

constexpr int64_t kLast = -1;

Tensor new_info(const Tensor& a) { return detail::empty(batch_sizes(a), kInt, a.device()); }
Tensor new_pivots(const Tensor& a) {
  return detail::empty(with_vector(batch_sizes(a), std::min(a.size(-2), a.size(-1))), kInt,
                       a.device());
}
Tensor diagonal_of(const Tensor& t) { return at::diagonal(t, 0, -2, -1); }
Tensor transposed(const Tensor& t) { return t.transpose(-2, -1); }
Tensor counted(int64_t n, const Tensor& like) {
  return at::arange(1, n + 1, 1, TensorOptions(kInt).device(like.device()));
}
void set_identities(const Tensor& t) {
  t.zero_();
  diagonal_of(t).fill_(1);
}

// Factors the matrices of LU in place. Nothing is computed, and no library needed, where they are
// empty.
void factor_all(const Tensor& LU, bool pivot, const Tensor& pivots, const Tensor& info) {
  if (LU.numel() == 0) {
    info.zero_();
    return;
  }
  solver::require();
  solver::lu(LU, pivot ? pivots : Tensor(), info);
  if (!pivot) pivots.copy_(counted(pivots.size(-1), pivots));
}

void solve_all(const Tensor& LU, const Tensor& pivots, char trans, const Tensor& X) {
  if (X.numel() == 0) return;
  solver::require();
  const IntArrayRef batch = batch_sizes(X);
  const Tensor swaps = pivots.expand(with_vector(batch, X.size(-2))).contiguous();
  solver::lu_solve(trans, contiguous_matrices(LU, batch), swaps, X);
}

// The libraries trust the rows that pivots name. Waits for the device.
bool are_rows(const Tensor& pivots, int64_t n) {
  if (pivots.numel() == 0) return true;
  const Tensor valid = at::logical_and(at::ge(pivots, 1), at::le(pivots, n));
  return at::_ops::all::call(valid).item<bool>();
}
void check_pivots(const Tensor& pivots, int64_t n) {
  TORCH_CHECK(are_rows(pivots, n),
              "Pivots given to lu_solve must all be greater or equal to 1 and smaller or equal to "
              "LU.size(-2). Did you properly pass the result of lu_factor?");
}

} // namespace

void linalg_lu_factor_ex_cuda(const Tensor& A, bool pivot, bool check_errors, const Tensor& LU,
                              const Tensor& pivots, const Tensor& info) {
  LU.copy_(A);
  factor_all(LU, pivot, pivots, info);
  if (check_errors) check_info(info, "torch.linalg.lu_factor_ex", A.dim() == 2);
}

void linalg_lu_solve_cuda(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left,
                          bool adjoint, const Tensor& out) {
  check_pivots(pivots, LU.size(-1));
  out.copy_(B);
  // X A = B is A^T X^T = B^T, and X A^H = B is conj(A) X^T = B^T.
  if (left)
    solve_all(LU, pivots, adjoint ? 'C' : 'N', out);
  else if (!adjoint)
    solve_all(LU, pivots, 'T', transposed(out));
  else
    solve_all(LU.is_complex() ? column_copy(at::conj(LU)) : LU, pivots, 'N', transposed(out));
}

void _linalg_solve_ex_cuda(const Tensor& A, const Tensor& B, bool left, bool check_errors,
                           const Tensor& result, const Tensor& LU, const Tensor& pivots,
                           const Tensor& info) {
  LU.copy_(A);
  factor_all(LU, true, pivots, info);
  if (check_errors) check_info(info, "torch.linalg.solve_ex", A.dim() == 2);
  const char trans = left ? 'N' : 'T';
  if (!is_vector_system(A, B)) {
    result.copy_(B);
    solve_all(LU, pivots, trans, left ? result : transposed(result));
    return;
  }
  const DimVector sizes(result.sizes());
  const Tensor columns = detail::empty(sizes, result.scalar_type(), result.device());
  columns.copy_(B);
  solve_all(LU, pivots, trans, columns.unsqueeze(-1));
  result.copy_(columns);
}

void linalg_inv_ex_cuda(const Tensor& A, bool check_errors, const Tensor& inverse,
                        const Tensor& info) {
  const Tensor lu = column_copy(A), pivots = new_pivots(A);
  factor_all(lu, true, pivots, info);
  if (check_errors) check_info(info, "linalg.inv_ex", A.dim() == 2);
  if (A.numel() == 0) return;
  set_identities(inverse);
  solve_all(lu, pivots, 'N', inverse);
}

// ---- determinants ------------------------------------------------------------------------------
namespace {
// 1, or -1 where an odd number of rows was exchanged.
Tensor sign_of(const Tensor& pivots, ScalarType dtype) {
  const Tensor swapped = at::ne(pivots, counted(pivots.size(-1), pivots)).to(kLong);
  const Tensor odd = at::remainder(at::sum(swapped, IntArrayRef(&kLast, 1)), 2);
  return at::rsub(at::mul(odd, 2), 1).to(dtype);
}
} // namespace

void _linalg_det_cuda(const Tensor& A, const Tensor& result, const Tensor& LU,
                      const Tensor& pivots) {
  LU.copy_(A);
  factor_all(LU, true, pivots, new_info(A));
  result.copy_(at::mul(at::prod(diagonal_of(LU), -1), sign_of(pivots, A.scalar_type())));
}

void _linalg_slogdet_cuda(const Tensor& A, const Tensor& sign, const Tensor& logabsdet,
                          const Tensor& LU, const Tensor& pivots) {
  LU.copy_(A);
  factor_all(LU, true, pivots, new_info(A));
  const Tensor diagonal = diagonal_of(LU);
  sign.copy_(at::mul(at::prod(at::sgn(diagonal), -1), sign_of(pivots, A.scalar_type())));
  logabsdet.copy_(at::sum(at::log(at::abs(diagonal)), IntArrayRef(&kLast, 1)));
}

// ---- unpacking ---------------------------------------------------------------------------------
namespace {

const Kernel kOrder("native/linalg/Pivots.cuh", "pivots_to_order");

// Row order[i] of A is row i of L U: P has a one at (order[i], i).
void unpack_pivots_into(const Tensor& pivots, const Tensor& P) {
  const int64_t m = P.size(-1), k = pivots.size(-1), batch = count_of(batch_sizes(P));
  if (P.numel() == 0) return;
  const Tensor flat = pivots.contiguous();
  TORCH_CHECK(are_rows(flat, m),
              "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
              "Did you properly pass the result of lu_factor?");
  const Tensor order = detail::empty(with_vector(batch_sizes(P), m), kInt, P.device());
  cuda::launch(kOrder, cuda::blocks_for(batch, 128), 128, 0, cuda::current_stream(),
               static_cast<const int*>(flat.const_data_ptr()),
               static_cast<int*>(order.mutable_data_ptr()), static_cast<long>(batch),
               static_cast<int>(m), static_cast<int>(k));
  const Tensor rows = at::arange(0, m, 1, TensorOptions(kInt).device(P.device()));
  P.copy_(at::eq(order.unsqueeze(-2), rows.unsqueeze(-1)));
}

void unpack_factors_into(const Tensor& LU, const Tensor& L, const Tensor& U) {
  const int64_t k = std::min(LU.size(-2), LU.size(-1));
  L.copy_(at::tril(LU.narrow(-1, 0, k), -1));
  diagonal_of(L).fill_(1);
  U.copy_(at::triu(LU.narrow(-2, 0, k)));
}

} // namespace

void lu_unpack_cuda(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data,
                    bool unpack_pivots, const Tensor& P, const Tensor& L, const Tensor& U) {
  cuda::check_same_device({&LU_data, &LU_pivots});
  if (unpack_pivots) unpack_pivots_into(LU_pivots, P);
  if (unpack_data) unpack_factors_into(LU_data, L, U);
}

void linalg_lu_cuda(const Tensor& A, bool pivot, const Tensor& P, const Tensor& L,
                    const Tensor& U) {
  const Tensor lu = column_copy(A), pivots = new_pivots(A);
  factor_all(lu, pivot, pivots, new_info(A));
  if (pivot) unpack_pivots_into(pivots, P);
  unpack_factors_into(lu, L, U);
}

// ---- Cholesky ----------------------------------------------------------------------------------
namespace {
// The factor's triangle in place, the other triangle zero.
void cholesky_all(const Tensor& L, bool upper, const Tensor& info) {
  if (L.numel() == 0) {
    info.zero_();
    return;
  }
  solver::require();
  solver::cholesky(upper, L, info);
  L.copy_(upper ? at::triu(L) : at::tril(L));
}

// X := A^-1 X by A = L L^H or U^H U.
void cholesky_solve_all(const Tensor& factor, bool upper, const Tensor& X) {
  if (X.numel() == 0) return;
  solver::require();
  solver::triangular_solve(factor, X, upper, upper ? 'C' : 'N', true, false);
  solver::triangular_solve(factor, X, upper, upper ? 'N' : 'C', true, false);
}
} // namespace

void linalg_cholesky_ex_cuda(const Tensor& self, bool upper, bool check_errors, const Tensor& L,
                             const Tensor& info) {
  L.copy_(self);
  cholesky_all(L, upper, info);
  if (check_errors) check_info(info, "linalg.cholesky_ex", self.dim() == 2);
}

void cholesky_cuda(const Tensor& self, bool upper, const Tensor& out) {
  const Tensor info = new_info(self), factor = column_copy(self);
  cholesky_all(factor, upper, info);
  check_info(info, "cholesky", self.dim() == 2);
  out.copy_(factor);
}

void cholesky_inverse_cuda(const Tensor& self, bool upper, const Tensor& out) {
  if (self.numel() == 0) return;
  const Tensor factor = column_copy(self);
  set_identities(out);
  cholesky_solve_all(factor, upper, out);
}

void cholesky_solve_cuda(const Tensor& self, const Tensor& input2, bool upper, const Tensor& out) {
  cuda::check_same_device({&self, &input2});
  const Tensor factor = column_copy(input2, batch_sizes(out));
  out.copy_(self);
  cholesky_solve_all(factor, upper, out);
}

// ---- LDL ---------------------------------------------------------------------------------------
void linalg_ldl_factor_ex_cuda(const Tensor& self, bool hermitian, bool check_errors,
                               const Tensor& LD, const Tensor& pivots, const Tensor& info) {
  TORCH_CHECK_NOT_IMPLEMENTED(!hermitian || !self.is_complex(),
                              "torch.linalg.ldl_factor: complex tensors with hermitian=True flag "
                              "are not supported on CUDA.");
  LD.copy_(self);
  if (self.numel() == 0) {
    info.zero_();
    return;
  }
  solver::require();
  solver::ldl(LD, pivots, info);
  LD.copy_(at::tril(LD));
  if (check_errors) check_info(info, "torch.linalg.ldl_factor_ex", self.dim() == 2);
}

void linalg_ldl_solve_cuda(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian,
                           const Tensor& out) {
  TORCH_CHECK_NOT_IMPLEMENTED(!hermitian || !LD.is_complex(),
                              "torch.linalg.ldl_solve: complex tensors with hermitian=True flag "
                              "are not supported on CUDA.");
  const IntArrayRef batch = batch_sizes(out);
  const int64_t n = out.size(-2);
  out.copy_(B);
  if (out.numel() == 0) return;
  const Tensor swaps = pivots.to(kInt).expand(with_vector(batch, n)).contiguous();
  TORCH_CHECK(are_rows(at::abs(swaps), n),
              "torch.linalg.ldl_solve: pivots are not those of ldl_factor: they name rows outside "
              "a matrix of order ",
              n);
  solver::require();
  solver::ldl_solve(column_copy(LD, batch), swaps, out);
}

// ---- triangular systems ------------------------------------------------------------------------
void linalg_solve_triangular_cuda(const Tensor& self, const Tensor& B, bool upper, bool left,
                                  bool unitriangular, const Tensor& out) {
  cuda::check_same_device({&self, &B});
  const Tensor a = column_copy(self, batch_sizes(out));
  out.copy_(B);
  if (out.numel() == 0) return;
  solver::require();
  solver::triangular_solve(a, out, upper, 'N', left, unitriangular);
}

void triangular_solve_cuda(const Tensor& self, const Tensor& A, bool upper, bool transpose,
                           bool unitriangular, const Tensor& solution,
                           const Tensor& cloned_coefficient) {
  cuda::check_same_device({&self, &A});
  cloned_coefficient.copy_(A);
  solution.copy_(self);
  if (solution.numel() == 0) return;
  solver::require();
  solver::triangular_solve(cloned_coefficient, solution, upper, transpose ? 'T' : 'N', true,
                           unitriangular);
}

} // namespace at::native
