// QR, eigenvalues, singular values and least squares on CUDA by cuSOLVER (ATen/cuda/Solver.h),
// which factors one matrix after the other; those that fit into shared memory have a kernel
// (SmallQr.cuh).
#include <ATen/cuda/KernelCall.h>
#include <ATen/cuda/Solver.h>
#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/LeastSquares.h>
#include <ATen/native/linalg/Native.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/any.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/triu.h>

namespace at::native {
using namespace linalg;

namespace {
namespace solver = cuda::solver;

Tensor new_info(IntArrayRef batch, const Tensor& a) {
  return detail::empty(batch, kInt, a.device());
}
Tensor new_columns(IntArrayRef batch, int64_t rows, int64_t cols, const Tensor& a) {
  const DimVector sizes = with_matrix(batch, rows, cols);
  return detail::empty_strided(sizes, column_strides(sizes), a.scalar_type(), a.device());
}
Tensor new_tau(const Tensor& a) {
  const int64_t k = std::min(a.size(-2), a.size(-1));
  return detail::empty(with_vector(batch_sizes(a), k), a.scalar_type(), a.device());
}
void set_identities(const Tensor& t) {
  t.zero_();
  at::diagonal(t, 0, -2, -1).fill_(1);
}
Tensor adjoint(const Tensor& t) {
  const Tensor turned = t.transpose(-2, -1);
  return t.is_complex() ? at::conj(turned) : turned;
}

constexpr const char* kSmallProgram = "native/linalg/SmallQr.cuh";
constexpr int kSmallThreads = 128;
// By type: float, double and their complex types.
const cuda::Kernel kSmallFactor[4] = {{kSmallProgram, "small_geqrf_f32"},
                                      {kSmallProgram, "small_geqrf_f64"},
                                      {kSmallProgram, "small_geqrf_c64"},
                                      {kSmallProgram, "small_geqrf_c128"}};
const cuda::Kernel kSmallForm[4] = {{kSmallProgram, "small_orgqr_f32"},
                                    {kSmallProgram, "small_orgqr_f64"},
                                    {kSmallProgram, "small_orgqr_c64"},
                                    {kSmallProgram, "small_orgqr_c128"}};
int small_slot(ScalarType dtype) {
  switch (dtype) {
  case kFloat:
    return 0;
  case kDouble:
    return 1;
  case kComplexFloat:
    return 2;
  default:
    return 3;
  }
}
// The shared memory of a block for one of the matrices, or 0 where they are too large.
unsigned small_bytes(const Tensor& a) {
  constexpr int64_t kMostBytes = 48 << 10, kMostColumns = 256;
  const ScalarType t = a.scalar_type();
  if (t != kFloat && t != kDouble && t != kComplexFloat && t != kComplexDouble) return 0;
  const int64_t bytes = (a.size(-2) | 1) * a.size(-1) * static_cast<int64_t>(a.itemsize());
  if (a.size(-1) > kMostColumns || a.size(-2) > kMostBytes || bytes > kMostBytes) return 0;
  return static_cast<unsigned>(bytes);
}

// In place, in LAPACK's packed form.
void factor_qr(const Tensor& a, const Tensor& tau) {
  if (a.numel() == 0) return;
  if (const unsigned bytes = small_bytes(a)) {
    cuda::launch(kSmallFactor[small_slot(a.scalar_type())],
                 static_cast<unsigned>(count_of(batch_sizes(a))), kSmallThreads, bytes,
                 cuda::current_stream(), a.mutable_data_ptr(), tau.mutable_data_ptr(),
                 static_cast<int>(a.size(-2)), static_cast<int>(a.size(-1)));
    return;
  }
  solver::require();
  solver::qr(a, tau);
}
void form_q(const Tensor& q, const Tensor& tau) {
  if (q.numel() == 0) return;
  if (tau.size(-1) == 0) {
    set_identities(q);
    return;
  }
  if (const unsigned bytes = small_bytes(q)) {
    cuda::launch(
        kSmallForm[small_slot(q.scalar_type())], static_cast<unsigned>(count_of(batch_sizes(q))),
        kSmallThreads, bytes, cuda::current_stream(), q.mutable_data_ptr(), tau.const_data_ptr(),
        static_cast<int>(q.size(-2)), static_cast<int>(q.size(-1)), static_cast<int>(tau.size(-1)));
    return;
  }
  solver::require();
  solver::form_q(q, tau);
}
char adjoint_of(const Tensor& t) { return t.is_complex() ? 'C' : 'T'; }

} // namespace

// ---- QR ----------------------------------------------------------------------------------------
void geqrf_cuda(const Tensor& self, const Tensor& a, const Tensor& tau) {
  a.copy_(self);
  factor_qr(a, tau);
}

void linalg_householder_product_cuda(const Tensor& input, const Tensor& tau, const Tensor& out) {
  cuda::check_same_device({&input, &tau});
  const Tensor taus = tau.contiguous();
  out.copy_(input);
  form_q(out, taus);
}

void linalg_qr_cuda(const Tensor& A, std::string_view mode, const Tensor& Q, const Tensor& R) {
  const int64_t k = std::min(A.size(-2), A.size(-1));
  const Tensor packed = column_copy(A), tau = new_tau(A);
  factor_qr(packed, tau);
  R.copy_(at::triu(packed.narrow(-2, 0, R.size(-2))));
  if (mode == "r" || Q.numel() == 0) return;
  if (Q.size(-1) > k) Q.zero_();
  Q.narrow(-1, 0, k).copy_(packed.narrow(-1, 0, k));
  form_q(Q, tau);
}

void ormqr_cuda(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left,
                bool transpose, const Tensor& out) {
  cuda::check_same_device({&self, &input2, &input3});
  const Tensor reflectors = column_copy(self), taus = input2.contiguous();
  out.copy_(input3);
  if (out.numel() == 0 || taus.size(-1) == 0) return;
  solver::require();
  solver::apply_q(reflectors, taus, out, left, transpose ? adjoint_of(self) : 'N');
}

// ---- eigenvalues -------------------------------------------------------------------------------
void _linalg_eigh_cuda(const Tensor& A, std::string_view UPLO, bool compute_v,
                       const Tensor& eigenvalues, const Tensor& eigenvectors) {
  const bool upper = UPLO[0] == 'u' || UPLO[0] == 'U';
  const Tensor vectors = compute_v ? eigenvectors.copy_(A) : column_copy(A);
  if (A.numel() == 0) return;
  solver::require();
  TORCH_CHECK_LINALG(all_finite(vectors),
                     "linalg.eigh: The algorithm failed to converge because the input matrix is "
                     "ill-conditioned or has too many repeated eigenvalues (error code: ",
                     A.size(-1), ").\n  the input contains infinities or NaNs");
  const Tensor info = new_info(batch_sizes(A), A);
  solver::eigh(vectors, eigenvalues, upper, compute_v, info);
  check_info(info, "linalg.eigh", A.dim() == 2);
}

namespace {
// Real matrices have complex values and vectors too: they are solved as complex ones.
void eig_all(const Tensor& A, const Tensor& values, const Tensor& vectors, const char* api) {
  if (A.numel() == 0) return;
  solver::require();
  TORCH_CHECK(all_finite(A), "torch.", api, ": input tensor should not contain infs or NaNs.");
  const Tensor info = new_info(batch_sizes(A), A);
  solver::eig(column_copy(A.to(values.scalar_type())), values, vectors, info);
  check_info(info, api, A.dim() == 2);
}
} // namespace

void linalg_eig_cuda(const Tensor& self, const Tensor& eigenvalues, const Tensor& eigenvectors) {
  eig_all(self, eigenvalues, eigenvectors, "linalg.eig");
}
void _linalg_eigvals_cuda(const Tensor& self, const Tensor& out) {
  eig_all(self, out, Tensor(), "linalg.eigvals");
}

// ---- singular values ---------------------------------------------------------------------------
namespace {

// Jacobi rotations that do not converge are followed by QR iterations.
void svd_tall(const Tensor& A, const Tensor& s, const Tensor& u, const Tensor& v, bool careful,
              bool is_matrix) {
  const Tensor info = new_info(batch_sizes(A), A);
  solver::svd(column_copy(A), s, u, v, careful, info);
  if (!careful && at::_ops::any::call(at::gt(info, 0)).item<bool>())
    solver::svd(column_copy(A), s, u, v, true, info);
  check_info(info, "linalg.svd", is_matrix);
}

} // namespace

void _linalg_svd_cuda(const Tensor& A, bool full_matrices, bool compute_uv,
                      std::optional<std::string_view> driver, const Tensor& U, const Tensor& S,
                      const Tensor& Vh) {
  TORCH_CHECK(!driver || *driver == "gesvd" || *driver == "gesvdj" || *driver == "gesvda",
              "torch.linalg.svd: unknown svd driver ", driver.value_or(""),
              " in svd_cusolver computation. Supported drivers are gesvd, gesvdj and gesvda");
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  if (S.numel() == 0) {
    if (compute_uv && U.numel() > 0) set_identities(U);
    if (compute_uv && Vh.numel() > 0) set_identities(Vh);
    return;
  }
  solver::require();
  TORCH_CHECK_LINALG(all_finite(A), "linalg.svd: The algorithm failed to converge because the "
                                    "input matrix contained non-finite values.");
  const bool careful = driver && *driver == "gesvd", tall = m >= n;
  const IntArrayRef batch = batch_sizes(A);
  // A wide matrix is decomposed as its adjoint, which exchanges the sides.
  const int64_t rows = std::max(m, n), columns = full_matrices ? rows : k;
  const Tensor first = compute_uv ? new_columns(batch, rows, columns, A) : Tensor();
  const Tensor second = compute_uv ? new_columns(batch, k, k, A) : Tensor();
  svd_tall(tall ? A : adjoint(A), S, first, second, careful, A.dim() == 2);
  if (!compute_uv) return;
  U.copy_(tall ? first : second);
  Vh.copy_(adjoint(tall ? second : first));
}

// ---- least squares -----------------------------------------------------------------------------
namespace linalg {

// Of full rank. With A = Q R: R^-1 (Q^H B), below which the residuals are left. With A^H = Q R,
// where A is wide: Q (R^-H B), the shortest of all solutions.
void solve_full_rank_cuda(const LeastSquares& p, const Tensor& a, const Tensor& raw) {
  solver::require();
  const bool tall = p.m >= p.n;
  const int64_t k = std::min(p.m, p.n);
  const Tensor packed = column_copy(tall ? a : adjoint(a), p.batch);
  const Tensor tau = new_tau(packed);
  factor_qr(packed, tau);
  const Tensor r = column_copy(packed.narrow(-2, 0, k));
  if (tall) solver::apply_q(packed, tau, raw, true, adjoint_of(a));
  const Tensor top = column_copy(raw.narrow(-2, 0, k));
  solver::triangular_solve(r, top, true, tall ? 'N' : 'C', true, false);
  raw.narrow(-2, 0, k).copy_(top);
  if (!tall) solver::apply_q(packed, tau, raw, true, 'N');
}

} // namespace linalg

} // namespace at::native
