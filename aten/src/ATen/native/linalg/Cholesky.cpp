// Cholesky and LDL factorisations with their solvers, and triangular systems.
#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/Native.h>
#include <ATen/native/linalg/SmallMatrix.h>
#include <ATen/native/linalg/lapack/Lapack.h>

namespace at::native {
using namespace linalg;

namespace {

// Sets the triangle that LAPACK left alone to zero.
template <class T> void clear_triangle(bool lower, int64_t n, T* a) {
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = lower ? j + 1 : 0, to = lower ? n : j;
    for (int64_t i = from; i < to; ++i) a[i + j * n] = T(0);
  }
}

// L L^H of a small matrix in place (lower triangle). Returns LAPACK's info.
template <class T> int small_cholesky(int n, T* a) {
  using R = c10::real_type_t<T>;
  const auto real = [](T v) {
    if constexpr (c10::is_complex_v<T>)
      return v.real_;
    else
      return v;
  };
  for (int j = 0; j < n; ++j) {
    R d = real(a[j + static_cast<int64_t>(j) * n]);
    for (int k = 0; k < j; ++k) {
      const T v = a[j + static_cast<int64_t>(k) * n];
      d -= real(v * conjugate(v));
    }
    if (!(d > R(0))) {
      a[j + static_cast<int64_t>(j) * n] = T(d);
      return j + 1;
    }
    d = std::sqrt(d);
    a[j + static_cast<int64_t>(j) * n] = T(d);
    for (int i = j + 1; i < n; ++i) {
      T v = a[i + static_cast<int64_t>(j) * n];
      for (int k = 0; k < j; ++k)
        v = v - a[i + static_cast<int64_t>(k) * n] * conjugate(a[j + static_cast<int64_t>(k) * n]);
      a[i + static_cast<int64_t>(j) * n] = v / T(d);
    }
  }
  return 0;
}

// The factor's triangle of each matrix in place, the other triangle zero.
void cholesky_all(const Tensor& L, bool upper, int32_t* info) {
  const int64_t batch = count_of(batch_sizes(L));
  const int n = to_int(L.size(-1));
  if (n > kSmall) lapack::require();
  switch_types(L, "cholesky_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = data_of<T>(L);
    const int64_t nn = static_cast<int64_t>(n) * n;
    for_batch(batch, cube(n) / 3, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        T* a = data + b * nn;
        if (n > kSmall || (upper && n > 0)) {
          info[b] = n == 0 ? 0 : lapack::potrf(upper ? 'U' : 'L', n, a, n);
        } else {
          info[b] = small_cholesky(n, a);
        }
        clear_triangle(upper, n, a);
      }
    });
  });
}

} // namespace

void linalg_cholesky_ex_cpu(const Tensor& self, bool upper, bool check_errors, const Tensor& L,
                            const Tensor& info) {
  L.copy_(self);
  cholesky_all(L, upper, data_of<int32_t>(info));
  if (check_errors) check_info(info, "linalg.cholesky_ex", self.dim() == 2);
}

void cholesky_cpu(const Tensor& self, bool upper, const Tensor& out) {
  const Tensor info = detail::empty(batch_sizes(self), kInt);
  const Tensor factor = column_copy(self);
  cholesky_all(factor, upper, data_of<int32_t>(info));
  check_info(info, "cholesky", self.dim() == 2);
  out.copy_(factor);
}

void cholesky_inverse_cpu(const Tensor& self, bool upper, const Tensor& out) {
  const int64_t batch = count_of(batch_sizes(self));
  const int n = to_int(self.size(-1));
  const Tensor info = detail::empty(batch_sizes(self), kInt);
  out.copy_(self);
  switch_types(self, "cholesky_inverse_out_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (batch == 0) return;
    if (n > 0) lapack::require();
    T* data = data_of<T>(out);
    auto* status = data_of<int32_t>(info);
    const int64_t nn = static_cast<int64_t>(n) * n;
    for_batch(batch, cube(n), [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        T* a = data + b * nn;
        status[b] = n == 0 ? 0 : lapack::potri(upper ? 'U' : 'L', n, a, n);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t i = 0; i < j; ++i) {
            if (upper)
              a[j + i * n] = conjugate(a[i + j * n]);
            else
              a[i + j * n] = conjugate(a[j + i * n]);
          }
      }
    });
  });
  check_info(info, "cholesky_inverse", self.dim() == 2);
}

void cholesky_solve_cpu(const Tensor& self, const Tensor& input2, bool upper, const Tensor& out) {
  const IntArrayRef batch_shape = batch_sizes(out);
  const int64_t batch = count_of(batch_shape);
  const int n = to_int(out.size(-2)), cols = to_int(out.size(-1));
  const Tensor factor = column_copy(input2, batch_shape);
  out.copy_(self);
  switch_types(self, "cholesky_solve_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (batch == 0 || n == 0 || cols == 0) return;
    lapack::require();
    const T* a = data_of<T>(factor);
    T* x = data_of<T>(out);
    const int64_t nn = static_cast<int64_t>(n) * n, nc = static_cast<int64_t>(n) * cols;
    for_batch(batch, static_cast<double>(nn) * cols, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b)
        lapack::potrs(upper ? 'U' : 'L', n, cols, a + b * nn, n, x + b * nc, n);
    });
  });
}

// ---- LDL ---------------------------------------------------------------------------------------
void linalg_ldl_factor_ex_cpu(const Tensor& self, bool hermitian, bool check_errors,
                              const Tensor& LD, const Tensor& pivots, const Tensor& info) {
  const int64_t batch = count_of(batch_sizes(self));
  const int n = to_int(self.size(-1));
  LD.copy_(self);
  switch_types(self, "ldl_factor_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (n > 0 && batch > 0) lapack::require();
    T* data = data_of<T>(LD);
    auto* p = data_of<int32_t>(pivots);
    auto* status = data_of<int32_t>(info);
    const int64_t nn = static_cast<int64_t>(n) * n;
    for_batch(batch, cube(n) / 3, [&](int64_t first, int64_t last) {
      lapack::Work<T> work;
      for (int64_t b = first; b < last; ++b) {
        T* a = data + b * nn;
        status[b] = n == 0 ? 0 : lapack::sytrf(hermitian, 'L', n, a, n, p + b * n, work);
        clear_triangle(false, n, a);
      }
    });
  });
  if (check_errors) check_info(info, "torch.linalg.ldl_factor_ex", self.dim() == 2);
}

namespace {
// A block of two rows has two equal negative pivots; LAPACK trusts them as indices.
void check_ldl_pivots(const int32_t* p, int n) {
  for (int k = 0; k < n;) {
    const bool pair = p[k] < 0;
    const bool valid =
        pair ? k + 1 < n && p[k + 1] < 0 && p[k] >= -n && p[k + 1] >= -n : p[k] >= 1 && p[k] <= n;
    TORCH_CHECK(valid, "torch.linalg.ldl_solve: pivots are not those of ldl_factor (", p[k],
                " at position ", k, " of a matrix of order ", n, ")");
    k += pair ? 2 : 1;
  }
}
} // namespace

void linalg_ldl_solve_cpu(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian,
                          const Tensor& out) {
  const IntArrayRef batch_shape = batch_sizes(out);
  const int64_t batch = count_of(batch_shape);
  const int n = to_int(out.size(-2)), cols = to_int(out.size(-1));
  const Tensor factor = column_copy(LD, batch_shape);
  const Tensor piv = pivots.to(kInt).expand(with_vector(batch_shape, n)).contiguous();
  const auto* p = data_of<int32_t>(piv);
  for (int64_t b = 0; b < batch; ++b) check_ldl_pivots(p + b * n, n);
  out.copy_(B);
  switch_types(LD, "ldl_solve_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (batch == 0 || n == 0 || cols == 0) return;
    lapack::require();
    const T* a = data_of<T>(factor);
    T* x = data_of<T>(out);
    const int64_t nn = static_cast<int64_t>(n) * n, nc = static_cast<int64_t>(n) * cols;
    for_batch(batch, static_cast<double>(nn) * cols, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b)
        lapack::sytrs(hermitian, 'L', n, cols, a + b * nn, n, p + b * n, x + b * nc, n);
    });
  });
}

// ---- triangular systems ------------------------------------------------------------------------
namespace {

constexpr int64_t kLines = 64;

// X := op(A)^-1 X or X op(A)^-1 for column-major matrices of equal batch.
void triangular_all(const Tensor& A, const Tensor& X, bool upper, char trans, bool left,
                    bool unit) {
  const int64_t batch = count_of(batch_sizes(X));
  const int m = to_int(X.size(-2)), n = to_int(X.size(-1)), order = left ? m : n;
  switch_types(X, "triangular_solve_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (batch == 0 || m == 0 || n == 0) return;
    const bool small = order <= kSmall && left && trans == 'N';
    if (!small) lapack::require();
    const T* a = data_of<T>(A);
    T* x = data_of<T>(X);
    const int64_t size_a = static_cast<int64_t>(order) * order;
    const int64_t size_x = static_cast<int64_t>(m) * n;
    // Columns (rows, for a system from the right) are independent: blocks of them are shared out.
    const int64_t lines = left ? n : m, blocks = (lines + kLines - 1) / kLines;
    const double cost = static_cast<double>(size_a) * std::min(lines, kLines);
    for_batch(batch * blocks, cost, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t b = i / blocks, from = i % blocks * kLines;
        const int count = static_cast<int>(std::min(kLines, lines - from));
        const T* matrix = a + b * size_a;
        T* block = x + b * size_x + from * (left ? m : 1);
        if (small) {
          for (int64_t j = 0; j < count; ++j)
            small_triangular_solve(upper, unit, m, matrix, m, block + j * m);
        } else {
          lapack::trsm(left ? 'L' : 'R', upper ? 'U' : 'L', trans, unit ? 'U' : 'N',
                       left ? m : count, left ? count : n, matrix, order, block, m);
        }
      }
    });
  });
}

} // namespace

void linalg_solve_triangular_cpu(const Tensor& self, const Tensor& B, bool upper, bool left,
                                 bool unitriangular, const Tensor& out) {
  const Tensor a = column_copy(self, batch_sizes(out));
  out.copy_(B);
  triangular_all(a, out, upper, 'N', left, unitriangular);
}

void triangular_solve_cpu(const Tensor& self, const Tensor& A, bool upper, bool transpose,
                          bool unitriangular, const Tensor& solution,
                          const Tensor& cloned_coefficient) {
  cloned_coefficient.copy_(A);
  solution.copy_(self);
  triangular_all(cloned_coefficient, solution, upper, transpose ? 'T' : 'N', true, unitriangular);
}

} // namespace at::native
