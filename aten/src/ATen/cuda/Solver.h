// Linear algebra by the vendor's cuSOLVER and cuBLAS, reached through a table of function pointers
// that is filled by dlopen on first use. The declarations are our own, written from the public
// documentation, of exactly what is called.
//
// Operands are batches of matrices stored column after column, one matrix after the other, of
// float, double or their complex types, on one device; statuses are int32, one per matrix, 0 where
// all went well. Everything is queued on the current stream. Without the libraries the first call
// raises NotImplementedError.
#pragma once

#include <ATen/core/Tensor.h>

namespace at::cuda::solver {

// Raises NotImplementedError, naming what is missing, where the libraries cannot be loaded.
void require();

// In place: A = P L U. `pivots` (int32, from 1 on) are what rows were exchanged with; an undefined
// one asks for no exchanges.
void lu(const Tensor& a, const Tensor& pivots, const Tensor& info);
// X := op(A)^-1 X by the factors; trans is 'N', 'T' or 'C'.
void lu_solve(char trans, const Tensor& lu, const Tensor& pivots, const Tensor& x);

// In place, in one triangle; the other is not touched.
void cholesky(bool upper, const Tensor& a, const Tensor& info);
// X := op(A)^-1 X or X op(A)^-1 for triangular A.
void triangular_solve(const Tensor& a, const Tensor& x, bool upper, char trans, bool left,
                      bool unit);

// In place: R above the diagonal, reflections below it and in tau.
void qr(const Tensor& a, const Tensor& tau);
// In place: the first columns of the product of the reflections.
void form_q(const Tensor& a, const Tensor& tau);
// X := op(Q) X or X op(Q); trans is 'N', 'T' or 'C'.
void apply_q(const Tensor& a, const Tensor& tau, const Tensor& x, bool left, char trans);

// Eigenvalues in ascending order; with `vectors` their vectors replace A.
void eigh(const Tensor& a, const Tensor& values, bool upper, bool vectors, const Tensor& info);
// Of a general complex A, which is overwritten; v may be undefined.
void eig(const Tensor& a, const Tensor& values, const Tensor& v, const Tensor& info);

// A = U S V^H with m >= n, A is overwritten. u has m or n columns and v, which holds V itself, n;
// both undefined where only the values are wanted. By Jacobi rotations, or by QR iterations where
// `careful`.
void svd(const Tensor& a, const Tensor& s, const Tensor& u, const Tensor& v, bool careful,
         const Tensor& info);

// Symmetric (not Hermitian) A = L D L^T in the lower triangle, with LAPACK's pivots.
void ldl(const Tensor& a, const Tensor& pivots, const Tensor& info);
void ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& x);

} // namespace at::cuda::solver
