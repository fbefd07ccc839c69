// Shape functions of the factorisations and solvers. Results are stored column after column, as
// LAPACK leaves them and as PyTorch's are.
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/Checks.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/Native.h>

namespace at::meta {
using namespace native::linalg;

namespace {

void set_columns(OutputBuilder& out, int i, const DimVector& sizes, ScalarType dtype) {
  out.set(i, sizes, dtype, OptionalIntArrayRef(IntArrayRef(column_strides(sizes))));
}

ScalarType complex_of(ScalarType t) {
  switch (t) {
  case kFloat:
    return kComplexFloat;
  case kDouble:
    return kComplexDouble;
  case kHalf:
    return kComplexHalf;
  default:
    TORCH_CHECK(c10::isComplexType(t), "Unknown Complex ScalarType for ", t);
    return t;
  }
}

void check_packed(const Tensor& a, const char* what) {
  TORCH_CHECK(a.dim() >= 2, what,
              ": Expected tensor with 2 or more dimensions. Got size: ", a.sizes(), " instead");
}

void check_old_system(const Tensor& b, const Tensor& a, const char* what) {
  const int64_t unknowns = a.size(-1);
  TORCH_CHECK(a.size(-2) == unknowns, "A must be batches of square matrices, but they are ",
              native::matrix_size(a, " by "), " matrices");
  TORCH_CHECK(b.size(-2) == unknowns, "Incompatible matrix sizes for ", what, ": each A matrix is ",
              native::matrix_size(a, " by "), " but each b matrix is ",
              native::matrix_size(b, " by "));
  const ScalarType types[2] = {b.scalar_type(), a.scalar_type()};
  TORCH_CHECK(types[0] == types[1], "Expected b and A to have the same dtype, but found b of type ",
              types[0], " and A of type ", types[1], " instead.");
}

} // namespace

// ---- LU ----------------------------------------------------------------------------------------
void meta_linalg_lu_factor_ex(OutputBuilder& out, const Tensor& A, bool pivot, bool check_errors) {
  check_packed(A, "torch.lu_factor");
  set_columns(out, 0, DimVector(A.sizes()), A.scalar_type());
  out.set(1, with_vector(batch_sizes(A), std::min(A.size(-2), A.size(-1))), kInt);
  out.set(2, batch_sizes(A), kInt);
}

void meta_linalg_lu(OutputBuilder& out, const Tensor& A, bool pivot) {
  check_packed(A, "linalg.lu");
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const IntArrayRef batch = batch_sizes(A);
  if (pivot)
    out.set(0, with_matrix(batch, m, m), A.scalar_type());
  else
    out.set(0, {0}, A.scalar_type());
  out.set(1, with_matrix(batch, m, k), A.scalar_type());
  out.set(2, with_matrix(batch, k, n), A.scalar_type());
}

void meta_lu_unpack(OutputBuilder& out, const Tensor& LU_data, const Tensor& LU_pivots,
                    bool unpack_data, bool unpack_pivots) {
  check_packed(LU_data, "torch.lu_unpack");
  TORCH_CHECK(!unpack_pivots || LU_pivots.scalar_type() == kInt,
              "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
              "dtype.\nNote: this function is intended to be used with the output produced by "
              "torch.linalg.lu_factor");
  const int64_t m = LU_data.size(-2), n = LU_data.size(-1), k = std::min(m, n);
  const IntArrayRef batch = batch_sizes(LU_data);
  const ScalarType t = LU_data.scalar_type();
  if (unpack_pivots) {
    TORCH_CHECK(LU_pivots.dim() == LU_data.dim() - 1 &&
                    LU_pivots.sizes().slice(0, LU_pivots.dim() - 1) == batch &&
                    LU_pivots.size(-1) <= m,
                "torch.lu_unpack: LU_pivots of shape ", LU_pivots.sizes(),
                " does not belong to LU_data of shape ", LU_data.sizes());
    out.set(0, with_matrix(batch, m, m), t);
  } else {
    out.set(0, {0}, t);
  }
  if (unpack_data) {
    out.set(1, with_matrix(batch, m, k), t);
    out.set(2, with_matrix(batch, k, n), t);
  } else {
    out.set(1, {0}, t);
    out.set(2, {0}, t);
  }
}

void meta_linalg_lu_solve(OutputBuilder& out, const Tensor& LU, const Tensor& pivots,
                          const Tensor& B, bool left, bool adjoint) {
  check_float(LU, "linalg.lu_solve");
  check_same_dtype(LU, B, "linalg.lu_solve", "LU", "B");
  TORCH_CHECK(pivots.scalar_type() == kInt,
              "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
  check_square(LU, "torch.linalg.lu_solve");
  check_system(LU, B, left, "linalg.lu_solve");
  TORCH_CHECK(pivots.dim() >= 1 && LU.size(-1) == pivots.size(-1),
              "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the "
              "matrix");
  TORCH_CHECK(LU.sizes().slice(0, LU.dim() - 1) == pivots.sizes(),
              "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got "
              "pivots with shape ",
              pivots.sizes(), " instead");
  const DimVector sizes = with_matrix(broadcast_batches(LU, B), B.size(-2), B.size(-1));
  if (left)
    set_columns(out, 0, sizes, B.scalar_type());
  else
    out.set(0, sizes, B.scalar_type());
}

void meta__linalg_det(OutputBuilder& out, const Tensor& A) {
  check_square(A, "linalg.det");
  check_float(A, "linalg.det");
  out.set(0, batch_sizes(A), A.scalar_type());
  set_columns(out, 1, DimVector(A.sizes()), A.scalar_type());
  out.set(2, A.sizes().slice(0, A.dim() - 1), kInt);
}

void meta__linalg_slogdet(OutputBuilder& out, const Tensor& A) {
  check_square(A, "linalg.slogdet");
  check_float(A, "linalg.slogdet", false);
  out.set(0, batch_sizes(A), A.scalar_type());
  out.set(1, batch_sizes(A), c10::toRealValueType(A.scalar_type()));
  set_columns(out, 2, DimVector(A.sizes()), A.scalar_type());
  out.set(3, A.sizes().slice(0, A.dim() - 1), kInt);
}

void meta__linalg_solve_ex(OutputBuilder& out, const Tensor& A, const Tensor& B, bool left,
                           bool check_errors) {
  check_float(A, "linalg.solve");
  check_same_dtype(A, B, "linalg.solve", "A", "B");
  check_square(A, "linalg.solve");
  const bool vector = is_vector_system(A, B);
  const Tensor columns = vector ? B.unsqueeze(-1) : B;
  check_system(A, columns, left, "linalg.solve");
  const DimVector batch = broadcast_batches(A, columns);
  const DimVector sizes =
      vector ? with_vector(batch, A.size(-1)) : with_matrix(batch, B.size(-2), B.size(-1));
  if (left)
    set_columns(out, 0, sizes, B.scalar_type());
  else
    out.set(0, sizes, B.scalar_type());
  set_columns(out, 1, DimVector(A.sizes()), A.scalar_type());
  out.set(2, A.sizes().slice(0, A.dim() - 1), kInt);
  out.set(3, batch_sizes(A), kInt);
}

void meta_linalg_inv_ex(OutputBuilder& out, const Tensor& A, bool check_errors) {
  check_square(A, "linalg.inv");
  check_float(A, "linalg.inv", false);
  set_columns(out, 0, DimVector(A.sizes()), A.scalar_type());
  out.set(1, batch_sizes(A), kInt);
}

// ---- Cholesky and LDL --------------------------------------------------------------------------
void meta_linalg_cholesky_ex(OutputBuilder& out, const Tensor& self, bool upper,
                             bool check_errors) {
  check_square(self, "linalg.cholesky");
  check_float(self, "linalg.cholesky");
  set_columns(out, 0, DimVector(self.sizes()), self.scalar_type());
  out.set(1, batch_sizes(self), kInt);
}

void meta_cholesky(OutputBuilder& out, const Tensor& self, bool upper) {
  check_square(self, "cholesky");
  set_columns(out, 0, DimVector(self.sizes()), self.scalar_type());
}

void meta_cholesky_inverse(OutputBuilder& out, const Tensor& self, bool upper) {
  check_square(self, "cholesky_inverse");
  set_columns(out, 0, DimVector(self.sizes()), self.scalar_type());
}

void meta_cholesky_solve(OutputBuilder& out, const Tensor& self, const Tensor& input2, bool upper) {
  TORCH_CHECK(self.dim() >= 2, "b should have at least 2 dimensions, but has ", self.dim(),
              " dimensions instead");
  TORCH_CHECK(input2.dim() >= 2, "u should have at least 2 dimensions, but has ", input2.dim(),
              " dimensions instead");
  check_old_system(self, input2, "cholesky_solve");
  set_columns(out, 0, with_matrix(broadcast_batches(self, input2), self.size(-2), self.size(-1)),
              self.scalar_type());
}

void meta_linalg_ldl_factor_ex(OutputBuilder& out, const Tensor& self, bool hermitian,
                               bool check_errors) {
  check_square(self, "torch.linalg.ldl_factor_ex");
  check_float(self, "torch.linalg.ldl_factor_ex");
  set_columns(out, 0, DimVector(self.sizes()), self.scalar_type());
  out.set(1, self.sizes().slice(0, self.dim() - 1), kInt);
  out.set(2, batch_sizes(self), kInt);
}

void meta_linalg_ldl_solve(OutputBuilder& out, const Tensor& LD, const Tensor& pivots,
                           const Tensor& B, bool hermitian) {
  check_square(LD, "torch.linalg.ldl_solve");
  check_float(LD, "torch.linalg.ldl_solve");
  TORCH_CHECK_INDEX(B.dim() >= 2, "Dimension out of range (expected to be in range of [", -B.dim(),
                    ", ", B.dim() - 1, "], but got -2)");
  check_old_system(B, LD, "torch.linalg.ldl_solve");
  TORCH_CHECK(c10::isIntegralType(pivots.scalar_type(), false),
              "torch.linalg.ldl_solve: Expected pivots to be integers. Got ", pivots.scalar_type());
  TORCH_CHECK(LD.sizes().slice(0, LD.dim() - 1) == pivots.sizes(),
              "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but "
              "got pivots with shape ",
              pivots.sizes(), " instead");
  set_columns(out, 0, with_matrix(broadcast_batches(B, LD), B.size(-2), B.size(-1)),
              B.scalar_type());
}

// ---- triangles ---------------------------------------------------------------------------------
void meta_linalg_solve_triangular(OutputBuilder& out, const Tensor& self, const Tensor& B,
                                  bool upper, bool left, bool unitriangular) {
  check_system(self, B, left, "linalg.solve_triangular");
  check_same_dtype(self, B, "linalg.solve_triangular", "A", "B");
  set_columns(out, 0, with_matrix(broadcast_batches(self, B), B.size(-2), B.size(-1)),
              B.scalar_type());
}

void meta_triangular_solve(OutputBuilder& out, const Tensor& self, const Tensor& A, bool upper,
                           bool transpose, bool unitriangular) {
  TORCH_CHECK(self.dim() >= 2, "torch.triangular_solve: Expected b to have at least 2 dimensions, ",
              "but it has ", self.dim(), " dimensions instead");
  TORCH_CHECK(A.dim() >= 2, "torch.triangular_solve: Expected A to have at least 2 dimensions, ",
              "but it has ", A.dim(), " dimensions instead");
  check_old_system(self, A, "triangular_solve");
  const DimVector batch = broadcast_batches(self, A);
  set_columns(out, 0, with_matrix(batch, self.size(-2), self.size(-1)), self.scalar_type());
  set_columns(out, 1, with_matrix(batch, A.size(-2), A.size(-1)), A.scalar_type());
}

// ---- QR ----------------------------------------------------------------------------------------
void meta_linalg_qr(OutputBuilder& out, const Tensor& A, std::string_view mode) {
  check_matrices(A, "linalg.qr");
  check_float(A, "linalg.qr");
  TORCH_CHECK(mode == "reduced" || mode == "complete" || mode == "r",
              "qr received unrecognized mode '", mode,
              "' but expected one of 'reduced' (default), 'r', or 'complete'");
  const int64_t m = A.size(-2), n = A.size(-1);
  const int64_t k = mode == "complete" ? m : std::min(m, n);
  const IntArrayRef batch = batch_sizes(A);
  if (mode == "r")
    out.set(0, {0}, A.scalar_type());
  else
    set_columns(out, 0, with_matrix(batch, m, k), A.scalar_type());
  set_columns(out, 1, with_matrix(batch, k, n), A.scalar_type());
}

void meta_geqrf(OutputBuilder& out, const Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  set_columns(out, 0, DimVector(self.sizes()), self.scalar_type());
  out.set(1, with_vector(batch_sizes(self), std::min(self.size(-2), self.size(-1))),
          self.scalar_type());
}

namespace {
void check_reflectors(const Tensor& input, const Tensor& tau, const char* what) {
  TORCH_CHECK(input.dim() - tau.dim() == 1, what,
              ": Expected tau to have one dimension less than input, but got tau.ndim equal to ",
              tau.dim(), " and input.ndim is equal to ", input.dim());
  TORCH_CHECK(tau.sizes().slice(0, tau.dim() - 1) == batch_sizes(input), what,
              ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ",
              tau.sizes().slice(0, tau.dim() - 1));
}
} // namespace

void meta_linalg_householder_product(OutputBuilder& out, const Tensor& input, const Tensor& tau) {
  constexpr const char* what = "torch.linalg.householder_product";
  TORCH_CHECK(input.dim() >= 2, what, ": input must have at least 2 dimensions.");
  TORCH_CHECK(input.size(-2) >= input.size(-1), what,
              ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  TORCH_CHECK(tau.dim() == 0 || input.size(-1) >= tau.size(-1), what,
              ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  check_reflectors(input, tau, what);
  TORCH_CHECK(input.scalar_type() == tau.scalar_type(), what, ": tau dtype ", tau.scalar_type(),
              " does not match input dtype ", input.scalar_type());
  set_columns(out, 0, DimVector(input.sizes()), input.scalar_type());
}

void meta_ormqr(OutputBuilder& out, const Tensor& self, const Tensor& input2, const Tensor& input3,
                bool left, bool transpose) {
  constexpr const char* what = "torch.ormqr";
  TORCH_CHECK(self.dim() >= 2, what, ": input must have at least 2 dimensions.");
  TORCH_CHECK(input3.dim() >= 2, what, ": other must have at least 2 dimensions.");
  const int64_t shared = left ? -2 : -1;
  TORCH_CHECK(input3.size(shared) == self.size(-2), what, ": other.shape[", shared,
              "] must be equal to input.shape[-2]");
  TORCH_CHECK(input2.dim() >= 1 && input2.size(-1) == std::min(input3.size(shared), self.size(-1)),
              what, ": tau.shape[-1] must be equal to min(other.shape[", shared,
              "], input.shape[-1])");
  check_reflectors(self, input2, what);
  TORCH_CHECK(self.dim() == input3.dim(), what,
              ": Expected other to have the same number of dimensions as input, but got other.ndim "
              "equal to ",
              input3.dim(), " and input.ndim is equal to ", self.dim());
  TORCH_CHECK(batch_sizes(self) == batch_sizes(input3), what,
              ": Expected batch dimensions of other to be equal to input.shape[:-2], but got ",
              batch_sizes(input3));
  TORCH_CHECK(self.scalar_type() == input2.scalar_type(), what,
              ": Expected input and tau to have the same dtype, but input has dtype ",
              self.scalar_type(), " and tau has dtype ", input2.scalar_type());
  TORCH_CHECK(self.scalar_type() == input3.scalar_type(), what,
              ": Expected input and other to have the same dtype, but input has dtype ",
              self.scalar_type(), " and other has dtype ", input3.scalar_type());
  set_columns(out, 0, DimVector(input3.sizes()), input3.scalar_type());
}

// ---- spectra -----------------------------------------------------------------------------------
void meta__linalg_eigh(OutputBuilder& out, const Tensor& A, std::string_view UPLO, bool compute_v) {
  check_square(A, "linalg.eigh");
  TORCH_CHECK(UPLO.size() == 1 && (UPLO == "L" || UPLO == "U" || UPLO == "l" || UPLO == "u"),
              "Expected UPLO argument to be 'L' or 'U', but got ", UPLO);
  out.set(0, A.sizes().slice(0, A.dim() - 1), c10::toRealValueType(A.scalar_type()));
  if (compute_v)
    set_columns(out, 1, DimVector(A.sizes()), A.scalar_type());
  else
    out.set(1, {0}, A.scalar_type());
}

void meta_linalg_eig(OutputBuilder& out, const Tensor& self) {
  check_square(self, "linalg.eig");
  const ScalarType t = complex_of(self.scalar_type());
  out.set(0, self.sizes().slice(0, self.dim() - 1), t);
  set_columns(out, 1, DimVector(self.sizes()), t);
}

void meta__linalg_eigvals(OutputBuilder& out, const Tensor& self) {
  check_square(self, "linalg.eigvals");
  out.set(0, self.sizes().slice(0, self.dim() - 1), complex_of(self.scalar_type()));
}

void meta__linalg_svd(OutputBuilder& out, const Tensor& A, bool full_matrices, bool compute_uv,
                      std::optional<std::string_view> driver) {
  check_matrices(A, "linalg.svd");
  check_float(A, "linalg.svd");
  TORCH_CHECK(!driver || A.is_cuda(), "torch.linalg.svd: keyword argument `driver=` is only "
                                      "supported on CUDA inputs with cuSOLVER backend.");
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const IntArrayRef batch = batch_sizes(A);
  if (compute_uv) {
    set_columns(out, 0, with_matrix(batch, m, full_matrices ? m : k), A.scalar_type());
    set_columns(out, 2, with_matrix(batch, full_matrices ? n : k, n), A.scalar_type());
  } else {
    out.set(0, {0}, A.scalar_type());
    out.set(2, {0}, A.scalar_type());
  }
  out.set(1, with_vector(batch, k), c10::toRealValueType(A.scalar_type()));
}

} // namespace at::meta
