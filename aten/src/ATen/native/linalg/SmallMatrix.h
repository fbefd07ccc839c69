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

// A = P L U in place. Answers 0 or the number (from 1) of the first pivot that is zero.
template <class T> int small_lu(int m, int n, T* a, int lda, int* pivots) {
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
template <class T> void small_lu_solve(int n, const T* lu, int lda, const int* pivots, T* b) {
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
  const auto at = [&](int i, int j) {
    const T v = lu[i + static_cast<int64_t>(j) * lda];
    return conjugated ? conjugate(v) : v;
  };
  for (int j = 0; j < n; ++j) {
    T x = b[j];
    for (int i = 0; i < j; ++i) x = x - at(i, j) * b[i];
    b[j] = x / at(j, j);
  }
  for (int j = n - 1; j >= 0; --j) {
    T x = b[j];
    for (int i = j + 1; i < n; ++i) x = x - at(i, j) * b[i];
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

} // namespace at::native::linalg
