// LAPACK as the kernels of this family call it: one C++ function per routine, the same for the four
// element types, with sizes as int (the library's integers are 32 bits) and the work arrays kept by
// the caller. The library, OpenBLAS from the scipy-openblas32 package, is opened on first use;
// where it is missing the first call raises an error that says what to install. Its own threads are
// switched off: parallelism is over the matrices of a batch and belongs to at::parallel_for.
//
// Matrices are column-major: element (i, j) of A is a[i + j * lda]. Every function returns LAPACK's
// info: 0 for success, -i for a bad i-th argument, otherwise what the routine's manual says.
#pragma once
#include <memory>
#include <string>

#include <c10/macros/Macros.h>
#include <c10/util/complex.h>

namespace at::native::lapack {

// Where to look for the library beyond the folder beside ours: returns a path or an empty string.
// The Python layer knows where packages are installed.
using Finder = std::string (*)();
TORCH_API void set_finder(Finder finder);

// Opens the library now. Throws c10::Error with what to install when it cannot be had.
TORCH_API void require();

// Work memory of one thread: the first call of a routine asks how much it needs.
template <class T> class Work {
 public:
  T* data() const { return data_.get(); }
  int size() const { return size_; }
  bool ready() const { return data_ != nullptr; }
  void reserve(int64_t count);

 private:
  std::unique_ptr<T[]> data_;
  int size_ = 0;
};

template <class T> using real_t = c10::real_type_t<T>;

// ---- factorisations
template <class T> int getrf(int m, int n, T* a, int lda, int* ipiv);
template <class T> int potrf(char uplo, int n, T* a, int lda);
// A = L D L^T, or L D L^H with `hermitian` (complex only).
template <class T>
int sytrf(bool hermitian, char uplo, int n, T* a, int lda, int* ipiv, Work<T>& work);
template <class T> int geqrf(int m, int n, T* a, int lda, T* tau, Work<T>& work);

// ---- with factors
template <class T>
int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* ipiv, T* b, int ldb);
template <class T> int potri(char uplo, int n, T* a, int lda);
template <class T> int potrs(char uplo, int n, int nrhs, const T* a, int lda, T* b, int ldb);
template <class T> int sytrs(bool hermitian, char uplo, int n, int nrhs, const T* a, int lda,
                             const int* ipiv, T* b, int ldb);
template <class T> int orgqr(int m, int n, int k, T* a, int lda, const T* tau, Work<T>& work);
template <class T> int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda,
                             const T* tau, T* c, int ldc, Work<T>& work);
// B := op(A)^-1 B ('L') or B op(A)^-1 ('R'). A triangular, of order m or n.
template <class T> void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a,
                             int lda, T* b, int ldb);

// ---- spectra
template <class T> struct EigenWork {
  Work<T> work;
  Work<real_t<T>> rwork;
  Work<int> iwork;
};
// Ascending eigenvalues of the triangle `uplo`; eigenvectors into A when jobz is 'V'.
template <class T>
int syevd(char jobz, char uplo, int n, T* a, int lda, real_t<T>* w, EigenWork<T>& work);
// Eigenvalues into w (real types: real parts w, imaginary parts w + n), right eigenvectors into vr
// (real types: packed pairs) when jobvr is 'V'. A is destroyed.
template <class T>
int geev(char jobvr, int n, T* a, int lda, T* w, T* vr, int ldvr, EigenWork<T>& work);
// A = U diag(s) Vh. jobz: 'A' all columns, 'S' the first min(m, n), 'N' values only.
template <class T> int gesdd(char jobz, int m, int n, T* a, int lda, real_t<T>* s, T* u, int ldu,
                             T* vt, int ldvt, EigenWork<T>& work);
// The same by QR iteration: slower, converges where gesdd does not.
template <class T> int gesvd(char job, int m, int n, T* a, int lda, real_t<T>* s, T* u, int ldu,
                             T* vt, int ldvt, EigenWork<T>& work);

// ---- least squares; A is destroyed, B (max(m, n) rows) becomes the solution
template <class T>
int gels(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, EigenWork<T>& work);
template <class T> int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, int* jpvt,
                             real_t<T> rcond, int* rank, EigenWork<T>& work);
template <class T> int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_t<T>* s,
                             real_t<T> rcond, int* rank, EigenWork<T>& work);
template <class T> int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_t<T>* s,
                             real_t<T> rcond, int* rank, EigenWork<T>& work);

} // namespace at::native::lapack
