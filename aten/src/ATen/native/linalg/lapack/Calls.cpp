// The Fortran calling convention: everything by address, the lengths of character arguments by
// value at the end. Names of complex routines differ where a transpose becomes an adjoint (orgqr,
// ungqr).
#include <atomic>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <ATen/native/linalg/lapack/Lapack.h>
#include <ATen/native/linalg/lapack/Library.h>
#include <ATen/native/linalg/lapack/LongCall.h>
#include <c10/util/Exception.h>

namespace at::native::lapack {
namespace {

using c64 = c10::complex<float>;
using c128 = c10::complex<double>;
template <class T> constexpr int kKind = 0;
template <> constexpr int kKind<float> = 0;
template <> constexpr int kKind<double> = 1;
template <> constexpr int kKind<c64> = 2;
template <> constexpr int kKind<c128> = 3;
template <class T> constexpr bool kComplex = c10::is_complex_v<T>;

// One routine in its four types. Its address is looked up once; no guarded static, because a thread
// that waits for a guard with the interpreter's lock could be waited for by the one inside.
struct Routine {
  const char* names[4];
  std::atomic<void*> found[4] = {};
  constexpr Routine(const char* s, const char* d, const char* c, const char* z)
      : names{s, d, c, z} {}

  template <class T, class... Args> void call(Args... args) {
    void* address = found[kKind<T>].load(std::memory_order_acquire);
    if (!address) {
      address = symbol(names[kKind<T>]);
      found[kKind<T>].store(address, std::memory_order_release);
    }
    reinterpret_cast<void (*)(Args...)>(address)(args...);
  }
};

constexpr size_t kOne = 1; // the length of a character argument

double real_part(float v) { return v; }
double real_part(double v) { return v; }
double real_part(c64 v) { return v.real_; }
double real_part(c128 v) { return v.real_; }

// Array `i` of a long call.
template <class T> T* array_of(void* const* arrays, int i) { return static_cast<T*>(arrays[i]); }
double product(double a, double b, double c) { return a * b * c; }
int64_t elements(int ld, int columns) { return static_cast<int64_t>(ld) * columns; }

// What a query returned, rounded up where float could not hold it.
template <class T> int64_t answered(T value) {
  const double v = real_part(value);
  return static_cast<int64_t>(v) + (v > 16777215.0 ? static_cast<int64_t>(v / 4194304.0) : 0);
}

} // namespace

template <class T> void Work<T>::reserve(int64_t count) {
  if (count < 1) count = 1;
  TORCH_CHECK(count < (int64_t(1) << 31), "the matrix is too large for LAPACK's 32-bit integers");
  if (data_ && count <= size_) return;
  data_.reset(new T[static_cast<size_t>(count)]);
  size_ = static_cast<int>(count);
}
template class Work<float>;
template class Work<double>;
template class Work<c64>;
template class Work<c128>;
template class Work<int>;

namespace {
// run(memory, length) with work memory of the length that the routine answered when it was asked
// with -1 for it, which the first call does.
template <class T, class Run> void with_work(Work<T>& work, const Run& run) {
  if (!work.ready()) {
    T size{};
    run(&size, -1);
    work.reserve(answered(size));
  }
  run(work.data(), work.size());
}
} // namespace

// ---- factorisations ----------------------------------------------------------------------------
template <class T> int getrf(int m, int n, T* a, int lda, int* ipiv) {
  static Routine routine("sgetrf", "dgetrf", "cgetrf", "zgetrf");
  int info = 0;
  routine.call<T>(&m, &n, a, &lda, ipiv, &info);
  return info;
}

template <class T> int potrf(char uplo, int n, T* a, int lda) {
  if (is_long(product(n, n, n) / 3))
    return long_call({changed_array(a, elements(lda, n))},
                     [=](void* const* p) { return potrf(uplo, n, array_of<T>(p, 0), lda); });
  static Routine routine("spotrf", "dpotrf", "cpotrf", "zpotrf");
  int info = 0;
  routine.call<T>(&uplo, &n, a, &lda, &info, kOne);
  return info;
}

template <class T>
int sytrf(bool hermitian, char uplo, int n, T* a, int lda, int* ipiv, Work<T>& work) {
  if (is_long(product(n, n, n) / 3))
    return long_call(
        {changed_array(a, elements(lda, n)), written_array(ipiv, n)}, [=](void* const* p) {
          Work<T> own;
          return sytrf(hermitian, uplo, n, array_of<T>(p, 0), lda, array_of<int>(p, 1), own);
        });
  static Routine symmetric("ssytrf", "dsytrf", "csytrf", "zsytrf");
  static Routine adjoint("ssytrf", "dsytrf", "chetrf", "zhetrf");
  Routine& routine = hermitian ? adjoint : symmetric;
  int info = 0;
  with_work(work, [&](T* memory, int length) {
    routine.call<T>(&uplo, &n, a, &lda, ipiv, memory, &length, &info, kOne);
  });
  return info;
}

template <class T> int geqrf(int m, int n, T* a, int lda, T* tau, Work<T>& work) {
  const int low = m < n ? m : n;
  if (is_long(2 * product(m, n, low)))
    return long_call({changed_array(a, elements(lda, n)), written_array(tau, low)},
                     [=](void* const* p) {
                       Work<T> own;
                       return geqrf(m, n, array_of<T>(p, 0), lda, array_of<T>(p, 1), own);
                     });
  static Routine routine("sgeqrf", "dgeqrf", "cgeqrf", "zgeqrf");
  int info = 0;
  with_work(work, [&](T* memory, int length) {
    routine.call<T>(&m, &n, a, &lda, tau, memory, &length, &info);
  });
  return info;
}

// ---- with factors ------------------------------------------------------------------------------
template <class T>
int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* ipiv, T* b, int ldb) {
  static Routine routine("sgetrs", "dgetrs", "cgetrs", "zgetrs");
  int info = 0;
  routine.call<T>(&trans, &n, &nrhs, a, &lda, ipiv, b, &ldb, &info, kOne);
  return info;
}

template <class T> int potri(char uplo, int n, T* a, int lda) {
  if (is_long(product(n, n, n)))
    return long_call({changed_array(a, elements(lda, n))},
                     [=](void* const* p) { return potri(uplo, n, array_of<T>(p, 0), lda); });
  static Routine routine("spotri", "dpotri", "cpotri", "zpotri");
  int info = 0;
  routine.call<T>(&uplo, &n, a, &lda, &info, kOne);
  return info;
}

template <class T> int potrs(char uplo, int n, int nrhs, const T* a, int lda, T* b, int ldb) {
  if (is_long(2 * product(n, n, nrhs)))
    return long_call({read_array(a, elements(lda, n)), changed_array(b, elements(ldb, nrhs))},
                     [=](void* const* p) {
                       return potrs(uplo, n, nrhs, array_of<T>(p, 0), lda, array_of<T>(p, 1), ldb);
                     });
  static Routine routine("spotrs", "dpotrs", "cpotrs", "zpotrs");
  int info = 0;
  routine.call<T>(&uplo, &n, &nrhs, a, &lda, b, &ldb, &info, kOne);
  return info;
}

template <class T> int sytrs(bool hermitian, char uplo, int n, int nrhs, const T* a, int lda,
                             const int* ipiv, T* b, int ldb) {
  static Routine symmetric("ssytrs", "dsytrs", "csytrs", "zsytrs");
  static Routine adjoint("ssytrs", "dsytrs", "chetrs", "zhetrs");
  int info = 0;
  (hermitian ? adjoint : symmetric).call<T>(&uplo, &n, &nrhs, a, &lda, ipiv, b, &ldb, &info, kOne);
  return info;
}

template <class T> int orgqr(int m, int n, int k, T* a, int lda, const T* tau, Work<T>& work) {
  if (is_long(2 * product(m, n, k)))
    return long_call({changed_array(a, elements(lda, n)), read_array(tau, k)}, [=](void* const* p) {
      Work<T> own;
      return orgqr(m, n, k, array_of<T>(p, 0), lda, array_of<T>(p, 1), own);
    });
  static Routine routine("sorgqr", "dorgqr", "cungqr", "zungqr");
  int info = 0;
  with_work(work, [&](T* memory, int length) {
    routine.call<T>(&m, &n, &k, a, &lda, tau, memory, &length, &info);
  });
  return info;
}

template <class T> int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda,
                             const T* tau, T* c, int ldc, Work<T>& work) {
  if (is_long(2 * product(m, n, k)))
    return long_call(
        {read_array(a, elements(lda, k)), read_array(tau, k), changed_array(c, elements(ldc, n))},
        [=](void* const* p) {
          Work<T> own;
          return ormqr(side, trans, m, n, k, array_of<T>(p, 0), lda, array_of<T>(p, 1),
                       array_of<T>(p, 2), ldc, own);
        });
  static Routine routine("sormqr", "dormqr", "cunmqr", "zunmqr");
  int info = 0;
  with_work(work, [&](T* memory, int length) {
    routine.call<T>(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, memory, &length, &info, kOne,
                    kOne);
  });
  return info;
}

template <class T> void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a,
                             int lda, T* b, int ldb) {
  static Routine routine("strsm", "dtrsm", "ctrsm", "ztrsm");
  const T one = T(real_t<T>(1));
  routine.call<T>(&side, &uplo, &trans, &diag, &m, &n, &one, a, &lda, b, &ldb, kOne, kOne, kOne,
                  kOne);
}

// ---- spectra -----------------------------------------------------------------------------------
template <class T>
int syevd(char jobz, char uplo, int n, T* a, int lda, real_t<T>* w, EigenWork<T>& k) {
  if (is_long(3 * product(n, n, n)))
    return long_call(
        {changed_array(a, elements(lda, n)), written_array(w, n)}, [=](void* const* p) {
          EigenWork<T> own;
          return syevd(jobz, uplo, n, array_of<T>(p, 0), lda, array_of<real_t<T>>(p, 1), own);
        });
  static Routine routine("ssyevd", "dsyevd", "cheevd", "zheevd");
  int info = 0;
  const auto run = [&](T* work, int lwork, real_t<T>* rwork, int lrwork, int* iwork, int liwork) {
    if constexpr (kComplex<T>)
      routine.call<T>(&jobz, &uplo, &n, a, &lda, w, work, &lwork, rwork, &lrwork, iwork, &liwork,
                      &info, kOne, kOne);
    else
      routine.call<T>(&jobz, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, &info, kOne,
                      kOne);
  };
  if (!k.work.ready()) {
    T size{};
    real_t<T> rsize{};
    int isize = 0;
    run(&size, -1, &rsize, -1, &isize, -1);
    k.rwork.reserve(answered(rsize));
    k.iwork.reserve(isize);
    k.work.reserve(answered(size));
  }
  run(k.work.data(), k.work.size(), k.rwork.data(), k.rwork.size(), k.iwork.data(), k.iwork.size());
  return info;
}

template <class T>
int geev(char jobvr, int n, T* a, int lda, T* w, T* vr, int ldvr, EigenWork<T>& k) {
  if (is_long(10 * product(n, n, n)))
    return long_call({changed_array(a, elements(lda, n)), written_array(w, kComplex<T> ? n : 2 * n),
                      written_array(vr, jobvr == 'V' ? elements(ldvr, n) : 0)},
                     [=](void* const* p) {
                       EigenWork<T> own;
                       return geev(jobvr, n, array_of<T>(p, 0), lda, array_of<T>(p, 1),
                                   array_of<T>(p, 2), ldvr, own);
                     });
  static Routine routine("sgeev", "dgeev", "cgeev", "zgeev");
  int info = 0, one = 1;
  char none = 'N';
  T unused{};
  k.rwork.reserve(int64_t(2) * n);
  with_work(k.work, [&](T* work, int lwork) {
    if constexpr (kComplex<T>)
      routine.call<T>(&none, &jobvr, &n, a, &lda, w, &unused, &one, vr, &ldvr, work, &lwork,
                      k.rwork.data(), &info, kOne, kOne);
    else
      routine.call<T>(&none, &jobvr, &n, a, &lda, w, w + n, &unused, &one, vr, &ldvr, work, &lwork,
                      &info, kOne, kOne);
  });
  return info;
}

namespace {
template <class T> std::vector<CallArray> svd_arrays(char job, int m, int n, T* a, int lda,
                                                     real_t<T>* s, T* u, int ldu, T* vt, int ldvt) {
  const int low = m < n ? m : n;
  return {changed_array(a, elements(lda, n)), written_array(s, low),
          written_array(u, job == 'N' ? 0 : elements(ldu, job == 'A' ? m : low)),
          written_array(vt, job == 'N' ? 0 : elements(ldvt, n))};
}
} // namespace

template <class T> int gesdd(char jobz, int m, int n, T* a, int lda, real_t<T>* s, T* u, int ldu,
                             T* vt, int ldvt, EigenWork<T>& k) {
  if (is_long(4 * product(m, n, m < n ? m : n)))
    return long_call(svd_arrays(jobz, m, n, a, lda, s, u, ldu, vt, ldvt), [=](void* const* p) {
      EigenWork<T> own;
      return gesdd(jobz, m, n, array_of<T>(p, 0), lda, array_of<real_t<T>>(p, 1), array_of<T>(p, 2),
                   ldu, array_of<T>(p, 3), ldvt, own);
    });
  static Routine routine("sgesdd", "dgesdd", "cgesdd", "zgesdd");
  int info = 0;
  const int64_t low = m < n ? m : n, high = m < n ? n : m;
  k.iwork.reserve(8 * low);
  if (kComplex<T>) {
    const int64_t a1 = 5 * low + 7, a2 = 2 * high + 2 * low + 1;
    k.rwork.reserve(jobz == 'N' ? 7 * low : low * (a1 > a2 ? a1 : a2));
  }
  with_work(k.work, [&](T* work, int lwork) {
    if constexpr (kComplex<T>)
      routine.call<T>(&jobz, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, k.rwork.data(),
                      k.iwork.data(), &info, kOne);
    else
      routine.call<T>(&jobz, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, k.iwork.data(),
                      &info, kOne);
  });
  return info;
}

template <class T> int gesvd(char job, int m, int n, T* a, int lda, real_t<T>* s, T* u, int ldu,
                             T* vt, int ldvt, EigenWork<T>& k) {
  if (is_long(4 * product(m, n, m < n ? m : n)))
    return long_call(svd_arrays(job, m, n, a, lda, s, u, ldu, vt, ldvt), [=](void* const* p) {
      EigenWork<T> own;
      return gesvd(job, m, n, array_of<T>(p, 0), lda, array_of<real_t<T>>(p, 1), array_of<T>(p, 2),
                   ldu, array_of<T>(p, 3), ldvt, own);
    });
  static Routine routine("sgesvd", "dgesvd", "cgesvd", "zgesvd");
  int info = 0;
  k.rwork.reserve(int64_t(5) * (m < n ? m : n));
  with_work(k.work, [&](T* work, int lwork) {
    if constexpr (kComplex<T>)
      routine.call<T>(&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork,
                      k.rwork.data(), &info, kOne, kOne);
    else
      routine.call<T>(&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, &info, kOne,
                      kOne);
  });
  return info;
}

// ---- least squares -----------------------------------------------------------------------------
template <class T> int gels(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, EigenWork<T>& k) {
  if (is_long(2 * product(m, n, m < n ? m : n)))
    return long_call({changed_array(a, elements(lda, n)), changed_array(b, elements(ldb, nrhs))},
                     [=](void* const* p) {
                       EigenWork<T> own;
                       return gels(m, n, nrhs, array_of<T>(p, 0), lda, array_of<T>(p, 1), ldb, own);
                     });
  static Routine routine("sgels", "dgels", "cgels", "zgels");
  int info = 0;
  char trans = 'N';
  with_work(k.work, [&](T* work, int lwork) {
    routine.call<T>(&trans, &m, &n, &nrhs, a, &lda, b, &ldb, work, &lwork, &info, kOne);
  });
  return info;
}

template <class T> int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, int* jpvt,
                             real_t<T> rcond, int* rank, EigenWork<T>& k) {
  if (is_long(3 * product(m, n, m < n ? m : n)))
    return long_call({changed_array(a, elements(lda, n)), changed_array(b, elements(ldb, nrhs)),
                      changed_array(jpvt, n), written_array(rank, 1)},
                     [=](void* const* p) {
                       EigenWork<T> own;
                       return gelsy(m, n, nrhs, array_of<T>(p, 0), lda, array_of<T>(p, 1), ldb,
                                    array_of<int>(p, 2), rcond, array_of<int>(p, 3), own);
                     });
  static Routine routine("sgelsy", "dgelsy", "cgelsy", "zgelsy");
  int info = 0;
  k.rwork.reserve(int64_t(2) * n);
  with_work(k.work, [&](T* work, int lwork) {
    if constexpr (kComplex<T>)
      routine.call<T>(&m, &n, &nrhs, a, &lda, b, &ldb, jpvt, &rcond, rank, work, &lwork,
                      k.rwork.data(), &info);
    else
      routine.call<T>(&m, &n, &nrhs, a, &lda, b, &ldb, jpvt, &rcond, rank, work, &lwork, &info);
  });
  return info;
}

template <class T> int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_t<T>* s,
                             real_t<T> rcond, int* rank, EigenWork<T>& k) {
  if (is_long(4 * product(m, n, m < n ? m : n)))
    return long_call({changed_array(a, elements(lda, n)), changed_array(b, elements(ldb, nrhs)),
                      written_array(s, m < n ? m : n), written_array(rank, 1)},
                     [=](void* const* p) {
                       EigenWork<T> own;
                       return gelsd(m, n, nrhs, array_of<T>(p, 0), lda, array_of<T>(p, 1), ldb,
                                    array_of<real_t<T>>(p, 2), rcond, array_of<int>(p, 3), own);
                     });
  static Routine routine("sgelsd", "dgelsd", "cgelsd", "zgelsd");
  int info = 0;
  const auto run = [&](T* work, int lwork, real_t<T>* rwork, int* iwork) {
    if constexpr (kComplex<T>)
      routine.call<T>(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, rwork, iwork,
                      &info);
    else
      routine.call<T>(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, iwork, &info);
  };
  if (!k.work.ready()) {
    T size{};
    real_t<T> rsize{};
    int isize = 0;
    run(&size, -1, &rsize, &isize);
    k.rwork.reserve(answered(rsize));
    k.iwork.reserve(isize);
    k.work.reserve(answered(size));
  }
  run(k.work.data(), k.work.size(), k.rwork.data(), k.iwork.data());
  return info;
}

template <class T> int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_t<T>* s,
                             real_t<T> rcond, int* rank, EigenWork<T>& k) {
  if (is_long(4 * product(m, n, m < n ? m : n)))
    return long_call({changed_array(a, elements(lda, n)), changed_array(b, elements(ldb, nrhs)),
                      written_array(s, m < n ? m : n), written_array(rank, 1)},
                     [=](void* const* p) {
                       EigenWork<T> own;
                       return gelss(m, n, nrhs, array_of<T>(p, 0), lda, array_of<T>(p, 1), ldb,
                                    array_of<real_t<T>>(p, 2), rcond, array_of<int>(p, 3), own);
                     });
  static Routine routine("sgelss", "dgelss", "cgelss", "zgelss");
  int info = 0;
  k.rwork.reserve(int64_t(5) * (m < n ? m : n));
  with_work(k.work, [&](T* work, int lwork) {
    if constexpr (kComplex<T>)
      routine.call<T>(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork,
                      k.rwork.data(), &info);
    else
      routine.call<T>(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work, &lwork, &info);
  });
  return info;
}

#define CRESSET_INSTANTIATE(T)                                                                     \
  template int getrf(int, int, T*, int, int*);                                                     \
  template int potrf(char, int, T*, int);                                                          \
  template int sytrf(bool, char, int, T*, int, int*, Work<T>&);                                    \
  template int geqrf(int, int, T*, int, T*, Work<T>&);                                             \
  template int getrs(char, int, int, const T*, int, const int*, T*, int);                          \
  template int potri(char, int, T*, int);                                                          \
  template int potrs(char, int, int, const T*, int, T*, int);                                      \
  template int sytrs(bool, char, int, int, const T*, int, const int*, T*, int);                    \
  template int orgqr(int, int, int, T*, int, const T*, Work<T>&);                                  \
  template int ormqr(char, char, int, int, int, const T*, int, const T*, T*, int, Work<T>&);       \
  template void trsm(char, char, char, char, int, int, const T*, int, T*, int);                    \
  template int syevd(char, char, int, T*, int, real_t<T>*, EigenWork<T>&);                         \
  template int geev(char, int, T*, int, T*, T*, int, EigenWork<T>&);                               \
  template int gesdd(char, int, int, T*, int, real_t<T>*, T*, int, T*, int, EigenWork<T>&);        \
  template int gesvd(char, int, int, T*, int, real_t<T>*, T*, int, T*, int, EigenWork<T>&);        \
  template int gels(int, int, int, T*, int, T*, int, EigenWork<T>&);                               \
  template int gelsy(int, int, int, T*, int, T*, int, int*, real_t<T>, int*, EigenWork<T>&);       \
  template int gelsd(int, int, int, T*, int, T*, int, real_t<T>*, real_t<T>, int*, EigenWork<T>&); \
  template int gelss(int, int, int, T*, int, T*, int, real_t<T>*, real_t<T>, int*, EigenWork<T>&)
CRESSET_INSTANTIATE(float);
CRESSET_INSTANTIATE(double);
CRESSET_INSTANTIATE(c64);
CRESSET_INSTANTIATE(c128);
#undef CRESSET_INSTANTIATE

} // namespace at::native::lapack
