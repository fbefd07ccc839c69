// LU of small matrices, by hand: LAPACK's set-up costs more than the arithmetic below about 16
// rows, and batches of small matrices are the common case. Column-major, pivots as LAPACK counts
// them.
#pragma once
#include <cmath>
#include <utility>

#include <c10/util/complex.h>

namespace at::native::linalg {

constexpr int kSmall = 16;

template <class T> inline T magnitude(T v) { return std::abs(v); }
// LAPACK's measure for pivots: cheaper than the modulus, and the same choice as its.
template <class T> inline T magnitude(c10::complex<T> v) {
  return std::abs(v.real_) + std::abs(v.imag_);
}
template <class T> inline T conjugate(T v) { return v; }
template <class T> inline c10::complex<T> conjugate(c10::complex<T> v) {
  return {v.real_, -v.imag_};
}

// A = P L U in place. Returns 0 or the number (from 1) of the first pivot that is zero. A square
// matrix of an order known to the compiler (Order > 0) is unrolled.
template <int Order = 0, class T> int small_lu(int m, int n, T* a, int lda, int* pivots) {
  if constexpr (Order > 0) m = n = lda = Order;
  int info = 0;
  const int steps = m < n ? m : n;
  for (int j = 0; j < steps; ++j) {
    T* column = a + static_cast<int64_t>(j) * lda;
    int best = j;
    for (int i = j + 1; i < m; ++i)
      if (magnitude(column[i]) > magnitude(column[best])) best = i;
    pivots[j] = best + 1;
    if (column[best] == T(0)) {
      if (info == 0) info = j + 1;
      continue;
    }
    if (best != j)
      for (int k = 0; k < n; ++k) {
        T* other = a + static_cast<int64_t>(k) * lda;
        std::swap(other[j], other[best]);
      }
    const T inverse = T(1) / column[j];
    for (int i = j + 1; i < m; ++i) column[i] = column[i] * inverse;
    for (int k = j + 1; k < n; ++k) {
      T* other = a + static_cast<int64_t>(k) * lda;
      const T factor = other[j];
      for (int i = j + 1; i < m; ++i) other[i] = other[i] - column[i] * factor;
    }
  }
  return info;
}

// b := A^-1 b for one column from the factors of small_lu.
template <int Order = 0, class T>
void small_lu_solve(int n, const T* lu, int lda, const int* pivots, T* b) {
  if constexpr (Order > 0) n = lda = Order;
  for (int i = 0; i < n; ++i)
    if (pivots[i] - 1 != i) std::swap(b[i], b[pivots[i] - 1]);
  for (int j = 0; j < n; ++j) {
    const T* column = lu + static_cast<int64_t>(j) * lda;
    const T x = b[j];
    for (int i = j + 1; i < n; ++i) b[i] = b[i] - column[i] * x;
  }
  for (int j = n - 1; j >= 0; --j) {
    const T* column = lu + static_cast<int64_t>(j) * lda;
    const T x = b[j] = b[j] / column[j];
    for (int i = 0; i < j; ++i) b[i] = b[i] - column[i] * x;
  }
}

// b := A^-H b (A^-T without `conjugated`).
template <class T> void small_lu_solve_transposed(int n, const T* lu, int lda, const int* pivots,
                                                  T* b, bool conjugated) {
  const auto entry = [&](int i, int j) {
    const T v = lu[i + static_cast<int64_t>(j) * lda];
    return conjugated ? conjugate(v) : v;
  };
  for (int j = 0; j < n; ++j) {
    T x = b[j];
    for (int i = 0; i < j; ++i) x = x - entry(i, j) * b[i];
    b[j] = x / entry(j, j);
  }
  for (int j = n - 1; j >= 0; --j) {
    T x = b[j];
    for (int i = j + 1; i < n; ++i) x = x - entry(i, j) * b[i];
    b[j] = x;
  }
  for (int i = n - 1; i >= 0; --i)
    if (pivots[i] - 1 != i) std::swap(b[i], b[pivots[i] - 1]);
}

// One column of a triangular system op(A) x = b in place.
template <class T>
void small_triangular_solve(bool upper, bool unit, int n, const T* a, int lda, T* b) {
  for (int step = 0; step < n; ++step) {
    const int j = upper ? n - 1 - step : step;
    const T* column = a + static_cast<int64_t>(j) * lda;
    if (!unit) b[j] = b[j] / column[j];
    const T x = b[j];
    const int from = upper ? 0 : j + 1, to = upper ? j : n;
    for (int i = from; i < to; ++i) b[i] = b[i] - column[i] * x;
  }
}

// ---- Householder QR of small matrices, as LAPACK packs it ---------------------------------------
inline float square_of(float v) { return v * v; }
inline double square_of(double v) { return v * v; }
template <class T> T square_of(c10::complex<T> v) { return v.real_ * v.real_ + v.imag_ * v.imag_; }
template <class T> c10::real_type_t<T> real_of(T v) {
  if constexpr (c10::is_complex_v<T>)
    return v.real_;
  else
    return v;
}
template <class T> c10::real_type_t<T> imag_of(T v) {
  if constexpr (c10::is_complex_v<T>)
    return v.imag_;
  else
    return T(0);
}

// C := (I - factor v v^H) C for `cols` columns; v has its unit first element left out.
template <class T> void small_reflect(int rows, int cols, const T* v, T factor, T* c, int ldc) {
  for (int j = 0; j < cols; ++j, c += ldc) {
    T sum = c[0];
    for (int i = 1; i < rows; ++i) sum = sum + conjugate(v[i]) * c[i];
    sum = sum * factor;
    c[0] = c[0] - sum;
    for (int i = 1; i < rows; ++i) c[i] = c[i] - v[i] * sum;
  }
}

template <class T> void small_geqrf(int m, int n, T* a, T* tau) {
  using R = c10::real_type_t<T>;
  const int steps = m < n ? m : n;
  for (int j = 0; j < steps; ++j) {
    T* column = a + j + static_cast<int64_t>(j) * m;
    const int rows = m - j;
    double rest = 0;
    for (int i = 1; i < rows; ++i) rest += square_of(column[i]);
    const T alpha = column[0];
    if (rest == 0 && imag_of(alpha) == R(0)) {
      tau[j] = T(0);
      continue;
    }
    const R length = static_cast<R>(std::sqrt(static_cast<double>(square_of(alpha)) + rest));
    const R beta = real_of(alpha) >= R(0) ? -length : length;
    if constexpr (c10::is_complex_v<T>)
      tau[j] = T((beta - alpha.real_) / beta, -alpha.imag_ / beta);
    else
      tau[j] = (beta - alpha) / beta;
    const T scale = T(1) / (alpha - T(beta));
    for (int i = 1; i < rows; ++i) column[i] = column[i] * scale;
    column[0] = T(beta);
    small_reflect(rows, n - j - 1, column, conjugate(tau[j]), column + m, m);
  }
}

template <class T> void small_orgqr(int m, int n, int k, T* a, const T* tau) {
  for (int j = k; j < n; ++j)
    for (int i = 0; i < m; ++i) a[i + static_cast<int64_t>(j) * m] = T(i == j ? 1 : 0);
  for (int j = k - 1; j >= 0; --j) {
    T* column = a + j + static_cast<int64_t>(j) * m;
    small_reflect(m - j, n - j - 1, column, tau[j], column + m, m);
    for (int i = 1; i < m - j; ++i) column[i] = -(tau[j] * column[i]);
    column[0] = T(1) - tau[j];
    for (int i = -j; i < 0; ++i) column[i] = T(0);
  }
}

// Whether squares of the values stay in range; LAPACK scales where they do not.
template <class T> bool squares_in_range(int64_t count, const T* a) {
  c10::real_type_t<T> largest = 0;
  bool ordinary = true;
  for (int64_t i = 0; i < count; ++i) {
    const auto size = magnitude(a[i]);
    ordinary = ordinary && size == size;
    if (size > largest) largest = size;
  }
  return ordinary && (largest == 0 || (largest < 1e15 && largest > 1e-15));
}

} // namespace at::native::linalg
