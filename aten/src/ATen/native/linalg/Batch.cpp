// Geometry and checks of batches of matrices. The phrases of the errors are PyTorch's.
#include <ATen/core/TransformQueries.h>
#include <ATen/native/linalg/Batch.h>

#include <ATen/iter/TensorIterator.h>
#include <ATen/native/Checks.h>
#include <ATen/ops/all.h>
#include <ATen/ops/isfinite.h>
#include <c10/util/SafeArithmetic.h>

namespace at::native::linalg {

DimVector column_strides(IntArrayRef sizes) {
  DimVector strides = row_strides(sizes);
  const size_t n = sizes.size();
  if (n >= 2) {
    strides[n - 2] = 1;
    strides[n - 1] = std::max<int64_t>(sizes[n - 2], 1);
  }
  return strides;
}

DimVector row_strides(IntArrayRef sizes) {
  DimVector strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  return strides;
}

DimVector with_matrix(IntArrayRef batch, int64_t rows, int64_t cols) {
  DimVector sizes(batch);
  sizes.push_back(rows);
  sizes.push_back(cols);
  return sizes;
}

DimVector with_vector(IntArrayRef batch, int64_t length) {
  DimVector sizes(batch);
  sizes.push_back(length);
  return sizes;
}

int64_t count_of(IntArrayRef batch) { return c10::checked_numel(batch); }

int to_int(int64_t size) {
  TORCH_CHECK(size <= INT32_MAX,
              "matrices of more than 2^31 - 1 rows or columns are not supported ", "(got ", size,
              ")");
  return static_cast<int>(size);
}

Tensor column_copy(const Tensor& t, IntArrayRef batch) {
  const DimVector sizes = with_matrix(batch, t.size(-2), t.size(-1));
  const Tensor out =
      detail::empty_strided(sizes, column_strides(sizes), t.scalar_type(), t.device());
  out.copy_(t);
  return out;
}
Tensor column_copy(const Tensor& t) { return column_copy(t, batch_sizes(t)); }

Tensor contiguous_matrices(const Tensor& t, IntArrayRef batch) {
  const DimVector sizes = with_matrix(batch, t.size(-2), t.size(-1));
  if (t.sizes() == IntArrayRef(sizes) && t.strides() == IntArrayRef(column_strides(sizes)))
    return t;
  return column_copy(t, batch);
}

// ---- checks ------------------------------------------------------------------------------------
void check_matrices(const Tensor& a, const char* what, const char* name) {
  TORCH_CHECK(a.dim() >= 2, what, ": The input tensor ", name, " must have at least 2 dimensions.");
}

void check_square(const Tensor& a, const char* what, const char* name) {
  check_matrices(a, what, name);
  TORCH_CHECK(a.size(-1) == a.size(-2), what, ": ", name,
              " must be batches of square matrices, but they are ", matrix_size(a, " by "),
              " matrices");
}

void check_float(const Tensor& a, const char* what, bool low_precision) {
  TORCH_CHECK(a.is_floating_point() || a.is_complex(), what,
              ": Expected a floating point or complex tensor as input. Got ", a.scalar_type());
  const ScalarType t = a.scalar_type();
  TORCH_CHECK(low_precision || t == kFloat || t == kDouble || t == kComplexFloat ||
                  t == kComplexDouble,
              what, ": Low precision dtypes not supported. Got ", t);
}

void check_same_dtype(const Tensor& a, const Tensor& b, const char* what, const char* a_name,
                      const char* b_name) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), what, ": Expected ", a_name, " and ", b_name,
              " to have the same dtype, but found ", a_name, " of type ", a.scalar_type(), " and ",
              b_name, " of type ", b.scalar_type(), " instead");
}

void check_system(const Tensor& a, const Tensor& b, bool left, const char* what) {
  check_square(a, what);
  check_matrices(b, what, "B");
  const int64_t shared = left ? -2 : -1;
  TORCH_CHECK(a.size(shared) == b.size(shared), what,
              ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B",
              " (", matrix_size(a), " and ", matrix_size(b), ")");
}

bool all_finite(const Tensor& t) {
  if (t.numel() == 0 || functorch::varies_by_sample(t)) return true;
  return at::_ops::all::call(at::isfinite(t)).item<bool>();
}

DimVector broadcast_batches(const Tensor& a, const Tensor& b) {
  return broadcast_shapes(batch_sizes(a), batch_sizes(b));
}

bool is_vector_system(const Tensor& a, const Tensor& b) {
  const IntArrayRef vectors = a.sizes().slice(0, a.dim() - 1);
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && b.sizes() == vectors);
}

// ---- statuses ----------------------------------------------------------------------------------
namespace {

[[noreturn]] void raise(int32_t info, std::string_view api, const std::string& where) {
  const auto begins = [&](std::string_view name) { return api.find(name) != api.npos; };
  const std::string head = c10::str(api, where, ": ");
  TORCH_CHECK(info >= 0 || begins("svd"), head, "Argument ", -info,
              " has illegal value: the matrix may contain values that are not finite");
  TORCH_CHECK_LINALG(!begins("inv"), head, "The diagonal element ", info,
                     " is zero, the inversion could not be completed because the input matrix is "
                     "singular.");
  TORCH_CHECK_LINALG(!begins("cholesky"), head,
                     "The factorization could not be completed because the input is not "
                     "positive-definite (the leading minor of order ",
                     info, " is not positive-definite).");
  TORCH_CHECK(!begins("lu_factor"), head, "U[", info, ",", info,
              "] is zero and using it on lu_solve would result in a division by zero. If you still "
              "want to perform the factorization, consider calling linalg.lu(A, pivot) or "
              "linalg.lu_factor_ex(A, pivot)");
  TORCH_CHECK_LINALG(!begins("solve"), head,
                     "The solver failed because the input matrix is singular.");
  TORCH_CHECK_LINALG(!begins("eig"), head,
                     "The algorithm failed to converge because the input matrix is ill-conditioned "
                     "or has too many repeated eigenvalues (error code: ",
                     info, ").");
  TORCH_CHECK_LINALG(info >= 0, head,
                     "The algorithm failed to converge because the input matrix contained "
                     "non-finite values.");
  TORCH_CHECK_LINALG(!begins("svd"), head,
                     "The algorithm failed to converge because the input matrix is ill-conditioned "
                     "or has too many repeated singular values (error code: ",
                     info, ").");
  TORCH_CHECK_LINALG(!begins("lstsq"), head,
                     "The least squares solution could not be computed because the input matrix "
                     "does not have full rank (error code: ",
                     info, ").");
  TORCH_CHECK_LINALG(!begins("ldl"), head, "D[", info, ",", info,
                     "] is zero: the factorization is complete, but the matrix is singular.");
  TORCH_CHECK_LINALG(false, head, "The algorithm failed (error code: ", info, ").");
}

} // namespace

void check_info(const Tensor& info, std::string_view api, bool is_matrix) {
  TORCH_CHECK(info.scalar_type() == kInt,
              "_linalg_check_errors: expected info to have dtype Int, got ", info.scalar_type());
  if (info.is_meta()) return;
  Tensor flat = info.contiguous();
  if (!info.is_cpu()) {
    flat = detail::empty(info.sizes(), kInt);
    flat.copy_(info);
  }
  const auto* status = static_cast<const int32_t*>(flat.data_ptr());
  for (int64_t i = 0; i < flat.numel(); ++i)
    if (status[i] != 0)
      raise(status[i], api, is_matrix ? std::string() : c10::str(": (Batch element ", i, ")"));
}

} // namespace at::native::linalg
