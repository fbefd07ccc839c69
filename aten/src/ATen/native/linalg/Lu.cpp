// LU factorisation and what rests on it: solve, inverse, determinants.
#include <ATen/native/linalg/Lu.h>

#include <cmath>
#include <vector>

#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/Native.h>
#include <ATen/native/linalg/SmallMatrix.h>
#include <ATen/native/linalg/lapack/Lapack.h>
#include <ATen/native/matmul/gemm/Gemm.h>

namespace at::native::linalg {

namespace {

constexpr int kPanel = 64;    // columns factored at a time
constexpr int kBlocked = 192; // order from which blocks pay

template <class T> void swap_rows(int cols, T* a, int lda, const int* pivots, int from, int to) {
  for (int j = 0; j < cols; ++j, a += lda)
    for (int i = from; i < to; ++i)
      if (pivots[i] - 1 != i) std::swap(a[i], a[pivots[i] - 1]);
}

// Column panels by LAPACK, the rest of the matrix by our own threaded products. Blocks have fixed
// bounds, so the bits are the same for any number of threads.
template <class T> int blocked_lu(int m, int n, T* a, int lda, int* pivots) {
  int info = 0;
  const int steps = std::min(m, n);
  for (int j = 0; j < steps; j += kPanel) {
    const int width = std::min(kPanel, steps - j), below = m - j - width, right = n - j - width;
    T* panel = a + j + static_cast<int64_t>(j) * lda;
    const int status = lapack::getrf(m - j, width, panel, lda, pivots + j);
    if (status > 0 && info == 0) info = status + j;
    for (int i = j; i < j + width; ++i) pivots[i] += j;
    swap_rows(j, a, lda, pivots, j, j + width);
    if (right == 0) continue;
    T* next = a + static_cast<int64_t>(j + width) * lda;
    parallel_for(0, right, kPanel, [&](int64_t first, int64_t last) {
      const int cols = static_cast<int>(last - first);
      T* block = next + first * lda;
      swap_rows(cols, block, lda, pivots, j, j + width);
      lapack::trsm('L', 'L', 'N', 'U', width, cols, panel, lda, block + j, lda);
    });
    // As the transposed product of row-major matrices: its rows are contiguous.
    if (below > 0)
      gemm::gemm<T>(right, below, width, T(-1), next + j, lda, 1, panel + width, lda, 1, T(1),
                    next + j + width, lda, 1);
  }
  return info;
}

} // namespace

template <class T> int lu_factor(int m, int n, T* a, int* pivots) {
  if (m == n && n == 2) return small_lu<2>(m, n, a, m, pivots);
  if (m == n && n == 3) return small_lu<3>(m, n, a, m, pivots);
  if (m == n && n == 4) return small_lu<4>(m, n, a, m, pivots);
  if (m <= kSmall && n <= kSmall) return small_lu(m, n, a, std::max(m, 1), pivots);
  if (std::min(m, n) >= kBlocked) return blocked_lu(m, n, a, m, pivots);
  return lapack::getrf(m, n, a, m, pivots);
}

template <class T>
void lu_solve_columns(char trans, int n, int cols, const T* lu, const int* pivots, T* b) {
  if (n > kSmall) {
    lapack::getrs(trans, n, cols, lu, n, pivots, b, n);
    return;
  }
  for (int j = 0; j < cols; ++j, b += n) {
    if (trans == 'N' && n == 4)
      small_lu_solve<4>(n, lu, n, pivots, b);
    else if (trans == 'N' && n == 3)
      small_lu_solve<3>(n, lu, n, pivots, b);
    else if (trans == 'N' && n == 2)
      small_lu_solve<2>(n, lu, n, pivots, b);
    else if (trans == 'N')
      small_lu_solve(n, lu, n, pivots, b);
    else
      small_lu_solve_transposed(n, lu, n, pivots, b, trans == 'C');
  }
}

#define CRESSET_INSTANTIATE(T)                                                                     \
  template int lu_factor(int, int, T*, int*);                                                      \
  template void lu_solve_columns(char, int, int, const T*, const int*, T*)
CRESSET_INSTANTIATE(float);
CRESSET_INSTANTIATE(double);
CRESSET_INSTANTIATE(c10::complex<float>);
CRESSET_INSTANTIATE(c10::complex<double>);
#undef CRESSET_INSTANTIATE

} // namespace at::native::linalg

namespace at::native {
using namespace linalg;

namespace {

constexpr int64_t kColumns = 64; // right-hand sides solved at a time

// Factors the matrices of LU (column-major, in place).
void factor_all(const Tensor& LU, const Tensor& pivots, int32_t* info) {
  const int64_t batch = count_of(batch_sizes(LU));
  const int m = to_int(LU.size(-2)), n = to_int(LU.size(-1)), k = std::min(m, n);
  if (std::max(m, n) > kSmall && k > 0) lapack::require();
  switch_types(LU, "lu_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (batch == 0 || k == 0) {
      if (info) std::fill(info, info + batch, 0);
      return;
    }
    T* a = data_of<T>(LU);
    auto* p = data_of<int32_t>(pivots);
    const double cost = static_cast<double>(m) * n * k;
    for_batch(batch, cost, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int status = lu_factor(m, n, a + i * m * n, p + i * k);
        if (info) info[i] = status;
      }
    });
  });
}

void solve_all(const Tensor& LU, const Tensor& pivots, IntArrayRef batch_shape, char trans,
               const Tensor& X) {
  const int64_t batch = count_of(batch_shape);
  const int n = to_int(X.size(-2)), cols = to_int(X.size(-1));
  if (batch == 0 || n == 0 || cols == 0) return;
  if (n > kSmall) lapack::require();
  const Tensor lu = contiguous_matrices(LU, batch_shape);
  const Tensor piv = pivots.expand(with_vector(batch_shape, n)).contiguous();
  switch_types(X, "lu_solve_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* a = data_of<T>(lu);
    const auto* p = data_of<int32_t>(piv);
    T* x = data_of<T>(X);
    const int64_t nn = static_cast<int64_t>(n) * n;
    // Columns of one right-hand side are independent: blocks of them are shared out as matrices
    // are.
    const int64_t blocks = (cols + kColumns - 1) / kColumns;
    const double cost = static_cast<double>(nn) * std::min<int64_t>(cols, kColumns);
    for_batch(batch * blocks, cost, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t b = i / blocks, from = i % blocks * kColumns;
        const int width = static_cast<int>(std::min<int64_t>(kColumns, cols - from));
        lu_solve_columns(trans, n, width, a + b * nn, p + b * n, x + (b * cols + from) * n);
      }
    });
  });
}

// X A = B is A^T X^T = B^T: a row-major X is the transposed one stored column-major.
Tensor transposed(const Tensor& t) { return t.transpose(-2, -1); }

void check_pivots(const Tensor& pivots, int64_t n) {
  const Tensor flat = pivots.contiguous();
  const auto* p = data_of<int32_t>(flat);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    TORCH_CHECK(p[i] >= 1, "Pivots given to lu_solve must all be greater or equal to 1. Did you "
                           "properly pass the result of lu_factor?");
    TORCH_CHECK(p[i] <= n, "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). "
                           "Did you properly pass the result of lu_factor?");
  }
}

} // namespace

void linalg_lu_factor_ex_cpu(const Tensor& A, bool pivot, bool check_errors, const Tensor& LU,
                             const Tensor& pivots, const Tensor& info) {
  TORCH_CHECK(pivot || A.numel() == 0,
              "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  LU.copy_(A);
  factor_all(LU, pivots, data_of<int32_t>(info));
  if (check_errors) check_info(info, "torch.linalg.lu_factor_ex", A.dim() == 2);
}

void linalg_lu_solve_cpu(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left,
                         bool adjoint, const Tensor& out) {
  check_pivots(pivots, LU.size(-1));
  out.copy_(B);
  const IntArrayRef batch = batch_sizes(out);
  if (left) {
    solve_all(LU, pivots, batch, adjoint ? 'C' : 'N', out);
    return;
  }
  // X A = B with A^T = U^T L^T P^T, and X A^H = B is conj(A) X^T = B^T.
  const Tensor xt = transposed(out);
  if (!adjoint) {
    solve_all(LU, pivots, batch, 'T', xt);
  } else if (!LU.is_complex()) {
    solve_all(LU, pivots, batch, 'N', xt);
  } else {
    const Tensor conjugated = column_copy(LU);
    switch_types(LU, "lu_solve_cpu", [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* data = data_of<T>(conjugated);
      for (int64_t i = 0; i < conjugated.numel(); ++i) data[i] = conjugate(data[i]);
    });
    solve_all(conjugated, pivots, batch, 'N', xt);
  }
}

void _linalg_solve_ex_cpu(const Tensor& A, const Tensor& B, bool left, bool check_errors,
                          const Tensor& result, const Tensor& LU, const Tensor& pivots,
                          const Tensor& info) {
  LU.copy_(A);
  factor_all(LU, pivots, data_of<int32_t>(info));
  if (check_errors) check_info(info, "torch.linalg.solve_ex", A.dim() == 2);
  if (!is_vector_system(A, B)) {
    result.copy_(B);
    solve_all(LU, pivots, batch_sizes(result), left ? 'N' : 'T',
              left ? result : transposed(result));
    return;
  }
  const DimVector sizes(result.sizes());
  const Tensor columns = detail::empty(sizes, result.scalar_type());
  columns.copy_(B);
  const Tensor matrices = columns.unsqueeze(-1);
  solve_all(LU, pivots, batch_sizes(matrices), left ? 'N' : 'T', matrices);
  result.copy_(columns);
}

namespace {

// Small matrices in one pass: factors live on the stack, columns of the inverse where they belong.
template <class T> void small_inverses(const T* from, int n, int64_t batch, T* to, int32_t* info) {
  const int64_t size = static_cast<int64_t>(n) * n;
  for_batch(batch, 2 * cube(n), [&](int64_t first, int64_t last) {
    T lu[kSmall * kSmall];
    int pivots[kSmall];
    for (int64_t b = first; b < last; ++b) {
      const T* rows = from + b * size;
      T* out = to + b * size;
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) lu[i + j * n] = rows[i * n + j];
      info[b] = lu_factor(n, n, lu, pivots);
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) out[i + j * n] = T(i == j ? 1 : 0);
      lu_solve_columns('N', n, n, lu, pivots, out);
    }
  });
}

template <class T> void set_identities(int64_t n, int64_t batch, T* x) {
  std::fill(x, x + batch * n * n, T(0));
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t j = 0; j < n; ++j) x[i * n * n + j * n + j] = T(1);
}

} // namespace

void linalg_inv_ex_cpu(const Tensor& A, bool check_errors, const Tensor& inverse,
                       const Tensor& info) {
  const int64_t n = A.size(-1), batch = count_of(batch_sizes(A));
  auto* status = data_of<int32_t>(info);
  if (n <= kSmall) {
    const Tensor rows = A.contiguous();
    switch_types(A, "lu_cpu", [&](auto tag) {
      using T = typename decltype(tag)::type;
      small_inverses(data_of<T>(rows), static_cast<int>(n), batch, data_of<T>(inverse), status);
    });
    if (check_errors) check_info(info, "linalg.inv_ex", A.dim() == 2);
    return;
  }
  const Tensor lu = column_copy(A);
  const Tensor pivots = detail::empty(A.sizes().slice(0, A.dim() - 1), kInt);
  factor_all(lu, pivots, status);
  if (check_errors) check_info(info, "linalg.inv_ex", A.dim() == 2);
  switch_types(A, "lu_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    set_identities(n, batch, data_of<T>(inverse));
  });
  solve_all(lu, pivots, batch_sizes(A), 'N', inverse);
}

// ---- determinants ------------------------------------------------------------------------------
namespace {

template <class T> T root(T v) { return std::abs(v); }
template <class T> T root(c10::complex<T> v) { return std::hypot(v.real_, v.imag_); }

} // namespace

void _linalg_det_cpu(const Tensor& A, const Tensor& result, const Tensor& LU,
                     const Tensor& pivots) {
  LU.copy_(A);
  factor_all(LU, pivots, nullptr);
  const int64_t n = A.size(-1), batch = count_of(batch_sizes(A));
  switch_types(A, "lu_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* lu = data_of<T>(LU);
    const auto* p = data_of<int32_t>(pivots);
    T* out = data_of<T>(result);
    for (int64_t i = 0; i < batch; ++i) {
      T det = T(1);
      bool odd = false;
      for (int64_t j = 0; j < n; ++j) {
        det = det * lu[i * n * n + j * n + j];
        odd ^= p[i * n + j] != j + 1;
      }
      out[i] = odd ? -det : det;
    }
  });
}

void _linalg_slogdet_cpu(const Tensor& A, const Tensor& sign, const Tensor& logabsdet,
                         const Tensor& LU, const Tensor& pivots) {
  LU.copy_(A);
  factor_all(LU, pivots, nullptr);
  const int64_t n = A.size(-1), batch = count_of(batch_sizes(A));
  switch_types(A, "lu_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = c10::real_type_t<T>;
    const T* lu = data_of<T>(LU);
    const auto* p = data_of<int32_t>(pivots);
    T* signs = data_of<T>(sign);
    R* logs = data_of<R>(logabsdet);
    for (int64_t i = 0; i < batch; ++i) {
      T s = T(1);
      R total = 0;
      for (int64_t j = 0; j < n; ++j) {
        const T v = lu[i * n * n + j * n + j];
        const R size = root(v);
        s = s * (size == R(0) ? T(0) : v / T(size));
        total += std::log(size);
        if (p[i * n + j] != j + 1) s = -s;
      }
      signs[i] = s;
      logs[i] = total;
    }
  });
}

// ---- unpacking ---------------------------------------------------------------------------------
namespace {

// Row `order[i]` of A is row i of L U: P has a one at (order[i], i).
void unpack_pivots_into(const Tensor& pivots, const Tensor& P) {
  const int64_t m = P.size(-1), k = pivots.size(-1), batch = count_of(batch_sizes(P));
  const Tensor flat = pivots.contiguous();
  const auto* p = data_of<int32_t>(flat);
  for (int64_t i = 0; i < flat.numel(); ++i)
    TORCH_CHECK(p[i] >= 1 && p[i] <= m,
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                "Did you properly pass the result of lu_factor?");
  P.zero_();
  std::vector<int64_t> order(static_cast<size_t>(m));
  dtype_switch<AllTypesAndBool>(P.scalar_type(), "lu_unpack_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = data_of<T>(P);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < m; ++i) order[i] = i;
      for (int64_t i = 0; i < k; ++i) std::swap(order[i], order[p[b * k + i] - 1]);
      for (int64_t i = 0; i < m; ++i) out[b * m * m + order[i] * m + i] = T(1.0f);
    }
  });
}

void unpack_factors_into(const Tensor& LU, const Tensor& L, const Tensor& U) {
  const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n);
  const int64_t batch = count_of(batch_sizes(LU));
  const Tensor packed = contiguous_matrices(LU, batch_sizes(LU));
  dtype_switch<AllTypesAndBool>(LU.scalar_type(), "lu_unpack_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* lu = data_of<T>(packed);
    T* l = data_of<T>(L);
    T* u = data_of<T>(U);
    const T one(1.0f), zero(0.0f);
    for_batch(batch, static_cast<double>(m) * n, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        const T* from = lu + b * m * n;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < k; ++j)
            l[b * m * k + i * k + j] = i == j ? one : i > j ? from[i + j * m] : zero;
        for (int64_t i = 0; i < k; ++i)
          for (int64_t j = 0; j < n; ++j)
            u[b * k * n + i * n + j] = i <= j ? from[i + j * m] : zero;
      }
    });
  });
}

} // namespace

void lu_unpack_cpu(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data,
                   bool unpack_pivots, const Tensor& P, const Tensor& L, const Tensor& U) {
  if (unpack_pivots) unpack_pivots_into(LU_pivots, P);
  if (unpack_data) unpack_factors_into(LU_data, L, U);
}

void linalg_lu_cpu(const Tensor& A, bool pivot, const Tensor& P, const Tensor& L, const Tensor& U) {
  TORCH_CHECK(pivot || A.numel() == 0,
              "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  const Tensor lu = column_copy(A);
  const Tensor pivots =
      detail::empty(with_vector(batch_sizes(A), std::min(A.size(-2), A.size(-1))), kInt);
  factor_all(lu, pivots, nullptr);
  if (pivot) unpack_pivots_into(pivots, P);
  unpack_factors_into(lu, L, U);
}

} // namespace at::native
