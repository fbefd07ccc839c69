// The operators users call, made of the factorisations: they check the statuses and rearrange
// results. Composites, so their gradients are those of the parts.
#include <limits>

#include <ATen/core/HandlerKeys.h>
#include <ATen/core/TransformQueries.h>
#include <ATen/core/WarnOnce.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/Native.h>
#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/_linalg_det.h>
#include <ATen/ops/_linalg_eigh.h>
#include <ATen/ops/_linalg_eigvals.h>
#include <ATen/ops/_linalg_slogdet.h>
#include <ATen/ops/_linalg_solve_ex.h>
#include <ATen/ops/_linalg_svd.h>
#include <ATen/ops/add.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_eig.h>
#include <ATen/ops/linalg_householder_product.h>
#include <ATen/ops/linalg_inv.h>
#include <ATen/ops/linalg_inv_ex.h>
#include <ATen/ops/linalg_ldl_factor_ex.h>
#include <ATen/ops/linalg_lu_factor_ex.h>
#include <ATen/ops/linalg_lu_solve.h>
#include <ATen/ops/linalg_pinv.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/log.h>
#include <ATen/ops/movedim.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/triangular_solve.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace at::native {
using namespace linalg;

namespace {
// Whether vectors are wanted for a derivative though only values were asked for: the tensor
// requires grad or carries a tangent.
bool may_be_differentiated(const Tensor& t) {
  return t.requires_grad() || t.key_set().has_any({DispatchKey::ForwardGrad}) ||
         functorch::is_transformed(t);
}
} // namespace

void _linalg_check_errors(const Tensor& info, std::string_view api_name, bool is_matrix) {
  check_info(info, api_name, is_matrix);
}

// ---- factorisations that raise -----------------------------------------------------------------
namespace {
// A factor and its pivots, where the third tensor says that all matrices could be factored.
std::tuple<Tensor, Tensor> raising(const std::tuple<Tensor, Tensor, Tensor>& found, const char* api,
                                   const Tensor& matrices) {
  at::_linalg_check_errors(std::get<2>(found), api, matrices.dim() == 2);
  return {std::get<0>(found), std::get<1>(found)};
}
} // namespace

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  auto [factor, info] = at::linalg_cholesky_ex(self, upper, false);
  at::_linalg_check_errors(info, "linalg.cholesky", self.dim() == 2);
  return factor;
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot) {
  return raising(at::linalg_lu_factor_ex(A, pivot, false), "torch.linalg.lu_factor", A);
}

std::tuple<Tensor, Tensor, Tensor> _lu_with_info(const Tensor& self, bool pivot,
                                                 bool check_errors) {
  AT_WARN_ONCE(
      "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and "
      "will be removed in a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\n"
      "should be replaced with\nLU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
      "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
      "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)");
  return at::linalg_lu_factor_ex(self, pivot, false);
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian) {
  return raising(at::linalg_ldl_factor_ex(self, hermitian, false), "torch.linalg.ldl_factor", self);
}

// ---- inverses and systems ----------------------------------------------------------------------
Tensor linalg_inv(const Tensor& A) {
  auto [inverse, info] = at::linalg_inv_ex(A, false);
  at::_linalg_check_errors(info, "linalg.inv", A.dim() == 2);
  return inverse;
}
Tensor inverse(const Tensor& self) { return at::linalg_inv(self); }

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left,
                                           bool check_errors) {
  auto [result, lu, pivots, info] = at::_linalg_solve_ex(A, B, left, check_errors);
  return {result, info};
}

Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left) {
  auto [result, lu, pivots, info] = at::_linalg_solve_ex(A, B, left, false);
  at::_linalg_check_errors(info, "torch.linalg.solve", A.dim() == 2);
  return result;
}

Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots) {
  AT_WARN_ONCE(
      "torch.lu_solve is deprecated in favor of torch.linalg.lu_solve and will be removed in a "
      "future PyTorch release.\nNote that torch.linalg.lu_solve has its arguments reversed.\n"
      "X = torch.lu_solve(B, LU, pivots)\nshould be replaced with\n"
      "X = torch.linalg.lu_solve(LU, pivots, B)");
  return at::linalg_lu_solve(LU_data, LU_pivots, self);
}

std::tuple<Tensor&, Tensor&> triangular_solve_out(const Tensor& self, const Tensor& A, bool upper,
                                                  bool transpose, bool unitriangular, Tensor& X,
                                                  Tensor& M) {
  const auto [solution, coefficient] =
      at::triangular_solve(self, A, upper, transpose, unitriangular);
  generated::store_out(X, solution);
  generated::store_out(M, coefficient);
  return {X, M};
}

// ---- determinants ------------------------------------------------------------------------------
Tensor linalg_det(const Tensor& A) { return std::get<0>(at::_linalg_det(A)); }
Tensor det(const Tensor& self) { return linalg_det(self); }

std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) {
  auto [sign, logabsdet, lu, pivots] = at::_linalg_slogdet(A);
  return {sign, logabsdet};
}
std::tuple<Tensor, Tensor> slogdet(const Tensor& self) { return linalg_slogdet(self); }

Tensor logdet(const Tensor& self) {
  check_square(self, "logdet");
  check_float(self, "logdet", false);
  const auto [sign, logabsdet] = linalg_slogdet(self);
  if (self.is_complex()) return at::add(at::log(sign), logabsdet);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (handlers_active()) return at::where(at::eq(sign, -1), Scalar(kNaN), logabsdet);
  const Tensor nan = detail::scalar_tensor(kNaN, logabsdet.scalar_type());
  return at::where(at::eq(sign, -1), sign.key_set().has(DispatchKey::Meta) ? logabsdet : nan,
                   logabsdet);
}

// ---- spectra -----------------------------------------------------------------------------------
std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO) {
  return at::_linalg_eigh(self, UPLO, true);
}

std::tuple<Tensor&, Tensor&> linalg_eigh_out(const Tensor& self, std::string_view UPLO,
                                             Tensor& eigvals, Tensor& eigvecs) {
  const auto [values, vectors] = at::_linalg_eigh(self, UPLO, true);
  generated::store_out(eigvals, values);
  generated::store_out(eigvecs, vectors);
  return {eigvals, eigvecs};
}

Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO) {
  return std::get<0>(at::_linalg_eigh(self, UPLO, may_be_differentiated(self)));
}

Tensor linalg_eigvals(const Tensor& self) {
  if (may_be_differentiated(self)) return std::get<0>(at::linalg_eig(self));
  return at::_linalg_eigvals(self);
}

std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices,
                                              std::optional<std::string_view> driver) {
  return at::_linalg_svd(A, full_matrices, true, driver);
}

Tensor linalg_svdvals(const Tensor& A, std::optional<std::string_view> driver) {
  return std::get<1>(at::_linalg_svd(A, false, may_be_differentiated(A), driver));
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  TORCH_CHECK(self.dim() >= 2, "linalg.svd: input should have at least 2 dimensions, but has ",
              self.dim(), " dimensions instead");
  const auto adjoint = [](const Tensor& t) {
    return t.is_complex() ? at::conj(t.transpose(-2, -1)) : t.transpose(-2, -1);
  };
  if (compute_uv) {
    auto [u, s, vh] = at::linalg_svd(self, !some, std::nullopt);
    return {u, s, adjoint(vh)};
  }
  const Tensor s = linalg_svdvals(self, std::nullopt);
  const auto zeros = [&](int64_t n) {
    return at::zeros(with_matrix(batch_sizes(self), n, n), self.options());
  };
  return {zeros(self.size(-2)), s, adjoint(zeros(self.size(-1)))};
}

// ---- orthogonal factors ------------------------------------------------------------------------
std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some) {
  return at::linalg_qr(self, some ? "reduced" : "complete");
}
Tensor orgqr(const Tensor& self, const Tensor& input2) {
  return at::linalg_householder_product(self, input2);
}

Tensor linalg_diagonal(const Tensor& A, int64_t offset, int64_t dim1, int64_t dim2) {
  return at::diagonal(A, offset, dim1, dim2);
}

// ---- tensors as matrices -----------------------------------------------------------------------
Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  TORCH_CHECK(ind > 0, "Expected a strictly positive integer for 'ind', but got ", ind);
  const IntArrayRef sizes = self.sizes();
  const int64_t split = std::min<int64_t>(ind, self.dim());
  const IntArrayRef start = sizes.slice(0, split), end = sizes.slice(split, self.dim() - split);
  const int64_t rows = c10::checked_numel(start), cols = c10::checked_numel(end);
  TORCH_CHECK(rows == cols,
              "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
              "prod(self.shape[:ind]), but got ",
              cols, " != ", rows);
  const Tensor matrix = self.reshape({rows, cols});
  const auto [inverse, info] = at::linalg_inv_ex(matrix, false);
  at::_linalg_check_errors(info, "inv", true);
  DimVector shape(end);
  for (int64_t length : start) shape.push_back(length);
  return inverse.reshape(shape);
}

Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims) {
  Tensor a = self;
  const int64_t ndim = self.dim();
  if (dims) {
    DimVector to(dims->size());
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = ndim - static_cast<int64_t>(to.size()) + static_cast<int64_t>(i);
    a = at::movedim(self, *dims, to);
  }
  const int64_t split = std::min<int64_t>(other.dim(), ndim);
  const IntArrayRef left = a.sizes().slice(0, split), right = a.sizes().slice(split, ndim - split);
  const int64_t rows = c10::checked_numel(left), cols = c10::checked_numel(right);
  TORCH_CHECK(rows == cols,
              "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
              "prod(self.shape[:other.ndim]), but got ",
              cols, " != ", rows);
  TORCH_CHECK(other.numel() == rows,
              "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
              "prod(self.shape[:other.ndim]), but got ",
              rows, " != ", other.numel());
  const DimVector shape(right);
  return at::linalg_solve(a.reshape({rows, cols}), other.reshape({other.numel()})).reshape(shape);
}

} // namespace at::native
