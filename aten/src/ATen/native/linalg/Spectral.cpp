// Eigenvalues and singular values.
#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/Native.h>
#include <ATen/native/linalg/lapack/Lapack.h>

namespace at::native {
using namespace linalg;

void _linalg_eigh_cpu(const Tensor& A, std::string_view UPLO, bool compute_v,
                      const Tensor& eigenvalues, const Tensor& eigenvectors) {
  const int64_t batch = count_of(batch_sizes(A));
  const int n = to_int(A.size(-1));
  const char uplo = UPLO[0] == 'u' || UPLO[0] == 'U' ? 'U' : 'L';
  const Tensor vectors = compute_v ? eigenvectors.copy_(A) : column_copy(A);
  const Tensor info = detail::empty(batch_sizes(A), kInt);
  switch_types(A, "linalg_eigh_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = c10::real_type_t<T>;
    auto* status = data_of<int32_t>(info);
    if (batch == 0 || n == 0) {
      std::fill(status, status + batch, 0);
      return;
    }
    lapack::require();
    // Values that are not finite make the iteration wander: say so instead.
    TORCH_CHECK_LINALG(all_finite(vectors),
                       "linalg.eigh: The algorithm failed to converge because the input matrix is "
                       "ill-conditioned or has too many repeated eigenvalues (error code: ",
                       n, ").\n  the input contains infinities or NaNs");
    T* a = data_of<T>(vectors);
    R* w = data_of<R>(eigenvalues);
    const int64_t nn = static_cast<int64_t>(n) * n;
    for_batch(batch, 4 * cube(n), [&](int64_t first, int64_t last) {
      lapack::EigenWork<T> work;
      for (int64_t b = first; b < last; ++b)
        status[b] = lapack::syevd(compute_v ? 'V' : 'N', uplo, n, a + b * nn, n, w + b * n, work);
    });
  });
  check_info(info, "linalg.eigh", A.dim() == 2);
}

// ---- general matrices --------------------------------------------------------------------------
namespace {

// Pairs of real columns (v, w) of a complex eigenvalue stand for v + iw and v - iw.
template <class R>
void unpack_vectors(int n, const R* imag, const R* packed, c10::complex<R>* out) {
  for (int64_t j = 0; j < n; ++j) {
    const R* re = packed + j * n;
    if (imag[j] == R(0) || j + 1 == n) {
      for (int64_t i = 0; i < n; ++i) out[j * n + i] = {re[i], R(0)};
      continue;
    }
    const R* im = re + n;
    for (int64_t i = 0; i < n; ++i) {
      out[j * n + i] = {re[i], im[i]};
      out[(j + 1) * n + i] = {re[i], -im[i]};
    }
    ++j;
  }
}

// One matrix: eigenvalues to w, and eigenvectors to v unless null.
template <class T> struct Eigen {
  using R = c10::real_type_t<T>;
  using C = c10::complex<R>;
  lapack::EigenWork<T> work;
  lapack::Work<T> values, vectors;

  int run(int n, T* a, C* w, C* v) {
    const char job = v ? 'V' : 'N';
    if constexpr (c10::is_complex_v<T>) {
      return lapack::geev(job, n, a, n, w, v, n, work);
    } else {
      values.reserve(int64_t(2) * n);
      if (v) vectors.reserve(static_cast<int64_t>(n) * n);
      T unused{};
      const int info =
          lapack::geev(job, n, a, n, values.data(), v ? vectors.data() : &unused, n, work);
      for (int i = 0; i < n; ++i) w[i] = {values.data()[i], values.data()[n + i]};
      if (v) unpack_vectors(n, values.data() + n, vectors.data(), v);
      return info;
    }
  }
};

void eig_all(const Tensor& A, const Tensor& values, const Tensor& vectors, const char* api) {
  const int64_t batch = count_of(batch_sizes(A));
  const int n = to_int(A.size(-1));
  const Tensor info = detail::empty(batch_sizes(A), kInt);
  switch_types(A, "linalg_eig_out_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = typename Eigen<T>::C;
    auto* status = data_of<int32_t>(info);
    if (batch == 0 || n == 0) {
      std::fill(status, status + batch, 0);
      return;
    }
    lapack::require();
    TORCH_CHECK(all_finite(A), "torch.", api, ": input tensor should not contain infs or NaNs.");
    const Tensor scratch = column_copy(A);
    T* a = data_of<T>(scratch);
    C* w = data_of<C>(values);
    C* v = vectors.defined() ? data_of<C>(vectors) : nullptr;
    const int64_t nn = static_cast<int64_t>(n) * n;
    for_batch(batch, 10 * cube(n), [&](int64_t first, int64_t last) {
      Eigen<T> eigen;
      for (int64_t b = first; b < last; ++b)
        status[b] = eigen.run(n, a + b * nn, w + b * n, v ? v + b * nn : nullptr);
    });
  });
  check_info(info, api, A.dim() == 2);
}

} // namespace

void linalg_eig_cpu(const Tensor& self, const Tensor& eigenvalues, const Tensor& eigenvectors) {
  eig_all(self, eigenvalues, eigenvectors, "linalg.eig");
}
void _linalg_eigvals_cpu(const Tensor& self, const Tensor& out) {
  eig_all(self, out, Tensor(), "linalg.eigvals");
}

// ---- singular values ---------------------------------------------------------------------------
namespace {

template <class T> void identity_columns(int64_t n, T* a) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) a[i + j * n] = T(i == j ? 1 : 0);
}

template <class T> struct Svd {
  using R = c10::real_type_t<T>;
  char job;
  int m, n, u_cols, v_rows;
  lapack::EigenWork<T> work, careful;
  lapack::Work<T> saved;

  // Divide and conquer; by QR iteration where that does not converge.
  int run(T* a, R* s, T* u, T* vh) {
    const int64_t size = static_cast<int64_t>(m) * n;
    saved.reserve(size);
    std::copy(a, a + size, saved.data());
    T unused{};
    T* const us = u ? u : &unused;
    T* const vs = vh ? vh : &unused;
    const int ldv = vh ? v_rows : 1, ldu = u ? m : 1;
    const int info = lapack::gesdd(job, m, n, a, m, s, us, ldu, vs, ldv, work);
    if (info <= 0) return info;
    std::copy(saved.data(), saved.data() + size, a);
    return lapack::gesvd(job, m, n, a, m, s, us, ldu, vs, ldv, careful);
  }
};

} // namespace

void _linalg_svd_cpu(const Tensor& A, bool full_matrices, bool compute_uv,
                     std::optional<std::string_view> driver, const Tensor& U, const Tensor& S,
                     const Tensor& Vh) {
  const int64_t batch = count_of(batch_sizes(A));
  const int m = to_int(A.size(-2)), n = to_int(A.size(-1)), k = std::min(m, n);
  const int u_cols = full_matrices ? m : k, v_rows = full_matrices ? n : k;
  const Tensor info = detail::empty(batch_sizes(A), kInt);
  const Tensor scratch = column_copy(A);
  switch_types(A, "linalg_svd_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = c10::real_type_t<T>;
    auto* status = data_of<int32_t>(info);
    T* u = compute_uv ? data_of<T>(U) : nullptr;
    T* v = compute_uv ? data_of<T>(Vh) : nullptr;
    const int64_t size_u = static_cast<int64_t>(m) * u_cols;
    const int64_t size_v = static_cast<int64_t>(v_rows) * n;
    if (batch == 0 || k == 0) {
      std::fill(status, status + batch, 0);
      if (!compute_uv || !full_matrices) return;
      for (int64_t b = 0; b < batch; ++b) {
        if (size_u) identity_columns(m, u + b * size_u);
        if (size_v) identity_columns(n, v + b * size_v);
      }
      return;
    }
    lapack::require();
    T* a = data_of<T>(scratch);
    R* s = data_of<R>(S);
    const int64_t size = static_cast<int64_t>(m) * n;
    const char job = !compute_uv ? 'N' : full_matrices ? 'A' : 'S';
    for_batch(batch, 8.0 * static_cast<double>(size) * k, [&](int64_t first, int64_t last) {
      Svd<T> one{job, m, n, u_cols, v_rows, {}, {}, {}};
      for (int64_t b = first; b < last; ++b) {
        T* from = a + b * size;
        bool finite = true;
        for (int64_t i = 0; i < size && finite; ++i) finite = from[i] - from[i] == T(0);
        status[b] = !finite ? -4
                            : one.run(from, s + b * k, u ? u + b * size_u : nullptr,
                                      v ? v + b * size_v : nullptr);
      }
    });
  });
  check_info(info, "linalg.svd", A.dim() == 2);
}

} // namespace at::native
