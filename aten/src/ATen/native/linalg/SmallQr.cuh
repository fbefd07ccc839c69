// QR factorisations of matrices that fit into shared memory, a block for each, in LAPACK's packed
// form: R above the diagonal, the vectors of the reflections below it (their first element, 1, is
// not stored), and tau. A thread changes one column at a time.
#include <ATen/cuda/device/Block.cuh>

namespace at::device {

// The real and imaginary parts of a number of either kind.
template <class T> struct QrNumber {
  using Real = T;
  CRESSET_DEVICE_FN static T conj(T x) { return x; }
  CRESSET_DEVICE_FN static T real(T x) { return x; }
  CRESSET_DEVICE_FN static T imag(T) { return T(0); }
  CRESSET_DEVICE_FN static T make(T re, T) { return re; }
};
template <class R> struct QrNumber<complex<R>> {
  using Real = R;
  CRESSET_DEVICE_FN static complex<R> conj(complex<R> x) { return {x.real_, -x.imag_}; }
  CRESSET_DEVICE_FN static R real(complex<R> x) { return x.real_; }
  CRESSET_DEVICE_FN static R imag(complex<R> x) { return x.imag_; }
  CRESSET_DEVICE_FN static complex<R> make(R re, R im) { return {re, im}; }
};

// The matrix of this block, between global memory (columns of m elements) and shared memory, whose
// columns are of odd length, so that threads at neighbouring columns use different banks.
template <class T> struct QrTile {
  T* s;
  int m, n, lead;
  CRESSET_DEVICE_FN QrTile(T* s, int m, int n) : s(s), m(m), n(n), lead(m | 1) {}
  CRESSET_DEVICE_FN T& at(int i, int j) const { return s[j * lead + i]; }
  CRESSET_DEVICE_FN void load(const T* a) const {
    for (int e = threadIdx.x; e < m * n; e += blockDim.x) at(e % m, e / m) = a[e];
    __syncthreads();
  }
  CRESSET_DEVICE_FN void store(T* a) const {
    __syncthreads();
    for (int e = threadIdx.x; e < m * n; e += blockDim.x) a[e] = at(e % m, e / m);
  }
  // Columns from `first` on become (1 - tau v v^H) times themselves, v being column j.
  CRESSET_DEVICE_FN void reflect(int j, T tau, int first) const {
    for (int c = first + static_cast<int>(threadIdx.x); c < n; c += blockDim.x) {
      T w = at(j, c);
      for (int i = j + 1; i < m; ++i) w = w + QrNumber<T>::conj(at(i, j)) * at(i, c);
      w = w * tau;
      at(j, c) = at(j, c) - w;
      for (int i = j + 1; i < m; ++i) at(i, c) = at(i, c) - at(i, j) * w;
    }
    __syncthreads();
  }
};

template <class T> CRESSET_DEVICE_FN void small_geqrf(T* all, T* taus, int m, int n) {
  using N = QrNumber<T>;
  using R = typename N::Real;
  CRESSET_DYNAMIC_SHARED(T, shared);
  CRESSET_SHARED R scratch[32];
  const int steps = m < n ? m : n;
  T* const a = all + static_cast<long>(blockIdx.x) * m * n;
  T* const tau = taus + static_cast<long>(blockIdx.x) * steps;
  const QrTile<T> tile(shared, m, n);
  tile.load(a);
  for (int j = 0; j < steps; ++j) {
    // The length of what is below the diagonal, as a multiple of its largest part: squares of these
    // neither overflow nor vanish.
    R top = 0;
    for (int i = j + 1 + static_cast<int>(threadIdx.x); i < m; i += blockDim.x) {
      const R re = fabs(N::real(tile.at(i, j))), im = fabs(N::imag(tile.at(i, j)));
      top = re > top ? re : top;
      top = im > top ? im : top;
    }
    top = block_fold(top, Larger(), R(0), scratch);
    const T alpha = tile.at(j, j);
    const R re = N::real(alpha), im = N::imag(alpha);
    const R unit = top > R(0) ? top : R(1);
    R sum = 0;
    for (int i = j + 1 + static_cast<int>(threadIdx.x); i < m; i += blockDim.x) {
      const R x = N::real(tile.at(i, j)) / unit, y = N::imag(tile.at(i, j)) / unit;
      sum += x * x + y * y;
    }
    sum = block_sum(sum, scratch);
    if (sum == R(0) && im == R(0)) { // nothing to do away with
      if (threadIdx.x == 0) tau[j] = N::make(R(0), R(0));
      __syncthreads();
      continue;
    }
    const R length = hypot(hypot(re, im), unit * sqrt(sum)), beta = re < R(0) ? length : -length;
    const T factor = N::make(R(1), R(0)) / N::make(re - beta, im);
    const T own = N::make((beta - re) / beta, -im / beta);
    for (int i = j + 1 + static_cast<int>(threadIdx.x); i < m; i += blockDim.x)
      tile.at(i, j) = tile.at(i, j) * factor;
    __syncthreads();
    tile.reflect(j, N::conj(own), j + 1);
    if (threadIdx.x == 0) {
      tile.at(j, j) = N::make(beta, R(0));
      tau[j] = own;
    }
    __syncthreads();
  }
  tile.store(a);
}

// In place: the first n columns of the product of k reflections.
template <class T> CRESSET_DEVICE_FN void small_orgqr(T* all, const T* taus, int m, int n, int k) {
  using N = QrNumber<T>;
  using R = typename N::Real;
  CRESSET_DYNAMIC_SHARED(T, shared);
  T* const a = all + static_cast<long>(blockIdx.x) * m * n;
  const T* const tau = taus + static_cast<long>(blockIdx.x) * k;
  const QrTile<T> tile(shared, m, n);
  tile.load(a);
  const T zero = N::make(R(0), R(0)), one = N::make(R(1), R(0));
  for (int e = k * m + static_cast<int>(threadIdx.x); e < n * m; e += blockDim.x)
    tile.at(e % m, e / m) = e % m == e / m ? one : zero;
  __syncthreads();
  for (int j = k - 1; j >= 0; --j) {
    const T own = tau[j];
    tile.reflect(j, own, j + 1);
    for (int i = threadIdx.x; i < m; i += blockDim.x)
      tile.at(i, j) = i < j ? zero : i == j ? one - own : zero - own * tile.at(i, j);
    __syncthreads();
  }
  tile.store(a);
}

} // namespace at::device

#define CRESSET_SMALL_QR(T)                                                                        \
  CRESSET_KERNEL(128) small_geqrf_##T(cresset_##T* a, cresset_##T* tau, int m, int n) {            \
    at::device::small_geqrf(a, tau, m, n);                                                         \
  }                                                                                                \
  CRESSET_KERNEL(128)                                                                              \
  small_orgqr_##T(cresset_##T* a, const cresset_##T* tau, int m, int n, int k) {                   \
    at::device::small_orgqr(a, tau, m, n, k);                                                      \
  }
CRESSET_SMALL_QR(f32)
CRESSET_SMALL_QR(f64)
CRESSET_SMALL_QR(c64)
CRESSET_SMALL_QR(c128)
