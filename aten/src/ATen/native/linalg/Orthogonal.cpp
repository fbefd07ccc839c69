// QR factorisations and products with Householder reflections.
#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/Native.h>
#include <ATen/native/linalg/SmallMatrix.h>
#include <ATen/native/linalg/lapack/Lapack.h>

namespace at::native {
using namespace linalg;

void geqrf_cpu(const Tensor& self, const Tensor& a, const Tensor& tau) {
  const int64_t batch = count_of(batch_sizes(self));
  const int m = to_int(self.size(-2)), n = to_int(self.size(-1)), k = std::min(m, n);
  if (!a.is_same(self)) a.copy_(self);
  switch_types(self, "geqrf_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (batch == 0 || k == 0) return;
    lapack::require();
    T* data = data_of<T>(a);
    T* taus = data_of<T>(tau);
    const int64_t size = static_cast<int64_t>(m) * n;
    const bool small = m <= kSmall && n <= kSmall;
    for_batch(batch, static_cast<double>(size) * k, [&](int64_t first, int64_t last) {
      lapack::Work<T> work;
      for (int64_t b = first; b < last; ++b) {
        if (small && squares_in_range(size, data + b * size))
          small_geqrf(m, n, data + b * size, taus + b * k);
        else
          lapack::geqrf(m, n, data + b * size, m, taus + b * k, work);
      }
    });
  });
}

namespace {
// The first columns of the product of k reflections, in place.
void form_q(const Tensor& q, const Tensor& tau, const char* name) {
  const int64_t batch = count_of(batch_sizes(q));
  const int m = to_int(q.size(-2)), n = to_int(q.size(-1)), k = to_int(tau.size(-1));
  switch_types(q, name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (batch == 0 || m == 0 || n == 0) return;
    lapack::require();
    T* data = data_of<T>(q);
    const T* taus = data_of<T>(tau);
    const int64_t size = static_cast<int64_t>(m) * n;
    for_batch(batch, static_cast<double>(size) * std::max(k, 1), [&](int64_t first, int64_t last) {
      lapack::Work<T> work;
      for (int64_t b = first; b < last; ++b) {
        if (m <= kSmall)
          small_orgqr(m, n, k, data + b * size, taus + b * k);
        else
          lapack::orgqr(m, n, k, data + b * size, m, taus + b * k, work);
      }
    });
  });
}
} // namespace

void linalg_householder_product_cpu(const Tensor& input, const Tensor& tau, const Tensor& out) {
  const Tensor taus = tau.contiguous();
  out.copy_(input);
  form_q(out, taus, "orgqr_cpu");
}

void linalg_qr_cpu(const Tensor& A, std::string_view mode, const Tensor& Q, const Tensor& R) {
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  const IntArrayRef batch_shape = batch_sizes(A);
  const int64_t batch = count_of(batch_shape);
  const Tensor packed = column_copy(A);
  const Tensor tau = detail::empty(with_vector(batch_shape, k), A.scalar_type());
  geqrf_cpu(packed, packed, tau);
  const int64_t rows = R.size(-2);
  switch_types(A, "geqrf_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = data_of<T>(packed);
    T* r = data_of<T>(R);
    T* q = mode == "r" ? nullptr : data_of<T>(Q);
    const int64_t q_cols = q ? Q.size(-1) : 0;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < rows; ++i)
          r[b * rows * n + i + j * rows] = i <= j && i < m ? from[b * m * n + i + j * m] : T(0);
      if (!q) continue;
      for (int64_t j = 0; j < q_cols; ++j)
        for (int64_t i = 0; i < m; ++i)
          q[b * m * q_cols + i + j * m] = j < k ? from[b * m * n + i + j * m] : T(i == j ? 1 : 0);
    }
  });
  if (mode != "r") form_q(Q, tau, "orgqr_cpu");
}

void ormqr_cpu(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left,
               bool transpose, const Tensor& out) {
  const int64_t batch = count_of(batch_sizes(out));
  const int m = to_int(out.size(-2)), n = to_int(out.size(-1)), k = to_int(input2.size(-1));
  const int order = left ? m : n;
  const int cols = to_int(self.size(-1));
  const Tensor reflectors = column_copy(self);
  const Tensor taus = input2.contiguous();
  out.copy_(input3);
  switch_types(self, "ormqr_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (batch == 0 || m == 0 || n == 0 || k == 0) return;
    lapack::require();
    const T* a = data_of<T>(reflectors);
    const T* t = data_of<T>(taus);
    T* c = data_of<T>(out);
    const int64_t size = static_cast<int64_t>(m) * n, size_a = static_cast<int64_t>(order) * cols;
    const char trans = transpose ? (self.is_complex() ? 'C' : 'T') : 'N';
    for_batch(batch, static_cast<double>(size) * k, [&](int64_t first, int64_t last) {
      lapack::Work<T> work;
      for (int64_t b = first; b < last; ++b)
        lapack::ormqr(left ? 'L' : 'R', trans, m, n, k, a + b * size_a, order, t + b * k,
                      c + b * size, m, work);
    });
  });
}

} // namespace at::native
