// LU of one matrix and solutions with its factors, whatever its size. Column-major.
#pragma once

namespace at::native::linalg {
template <class T> int lu_factor(int m, int n, T* a, int* pivots);
// B := op(A)^-1 B; trans is 'N', 'T' or 'C'. B has n rows, `cols` columns and leading dimension n.
template <class T>
void lu_solve_columns(char trans, int n, int cols, const T* lu, const int* pivots, T* b);
} // namespace at::native::linalg
