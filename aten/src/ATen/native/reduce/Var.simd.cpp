// Variance and mean. A block is summed as deviations from a pivot, in double, and blocks are merged
// by the parallel-variance formula; the pivot makes the subtraction of squares harmless. The pivot
// is the block's first element: the spread of a block is never small against the distance of one of
// its elements from the mean, so at most the bits of the block's length are lost, which double has
// to spare for narrower types, and a constant block has variance zero. Rows of double, which have
// none to spare, take their mean, from a first pass in the cache. Complex numbers are two real
// series whose squares add.
#include <ATen/native/reduce/Fold.h>

namespace at::native::reduce {
namespace CRESSET_ISA {
namespace {

struct PlainSum {
  template <class T> using acc = vec::opmath_t<T>;
  template <class A> CRESSET_FN A identity() { return A(0); }
  template <class V> CRESSET_FN V map(V x, V) { return x; }
  template <class V> CRESSET_FN V fold(V a, V b) { return a + b; }
};

struct Moments {
  double mean, mean_imag, m2, count;
};

// Sums of deviations d and of their squares, relative to a pivot.
struct Deviations {
  double sum = 0, square = 0;
};

C10_ALWAYS_INLINE void merge(Moments& a, const Moments& b) {
  const double count = a.count + b.count;
  if (b.count == 0) return;
  if (a.count == 0) {
    a = b;
    return;
  }
  const double share = b.count / count;
  const double d = b.mean - a.mean, e = b.mean_imag - a.mean_imag;
  a.mean += d * share;
  a.mean_imag += e * share;
  a.m2 += b.m2 + (d * d + e * e) * (a.count * share);
  a.count = count;
}

template <class T> struct Var {
  using A = vec::opmath_t<T>;
  using D = vec::Vec<double>;

  C10_ALWAYS_INLINE static void add(D x, D pivot, D& sum, D& square) {
    const D d = x - pivot;
    sum = sum + d;
    square = vm::fma(d, d, square);
  }
  template <class F> C10_ALWAYS_INLINE static void each(const char* p, F f) {
    if constexpr (std::is_same_v<A, double>) {
      f(0, D::load(p));
    } else {
      const auto pair = vec::widen(vec::VecIO<T>::load(p));
      f(0, pair.lo);
      f(1, pair.hi);
    }
  }
  static Deviations row(const char* in, int64_t n, double pivot) {
    constexpr int64_t lanes = vec::Vec<A>::kLanes;
    const D p(pivot);
    D sum[4] = {D(0.0), D(0.0), D(0.0), D(0.0)}, square[4] = {D(0.0), D(0.0), D(0.0), D(0.0)};
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const char* cursor = in + i * static_cast<int64_t>(sizeof(T));
      each(
          cursor, [&](int k, D x) __attribute__((always_inline)) { add(x, p, sum[k], square[k]); });
      each(
          cursor + lanes * sizeof(T), [&](int k, D x) __attribute__((always_inline)) {
            add(x, p, sum[2 + k], square[2 + k]);
          });
    }
    const D s = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    const D q = (square[0] + square[1]) + (square[2] + square[3]);
    Deviations r;
    for (int k = 0; k < D::kLanes; ++k) r.sum += s.v[k], r.square += q.v[k];
    for (; i < n; ++i) {
      const double d =
          static_cast<double>(load_as<T, A>(in + i * static_cast<int64_t>(sizeof(T)))) - pivot;
      r.sum += d;
      r.square += d * d;
    }
    return r;
  }
  static Deviations strided(const char* in, int64_t stride, int64_t n, double pivot) {
    Deviations r;
    for (int64_t i = 0; i < n; ++i) {
      const double d = static_cast<double>(load_as<T, A>(in + i * stride)) - pivot;
      r.sum += d;
      r.square += d * d;
    }
    return r;
  }
  C10_ALWAYS_INLINE static Moments moments(Deviations v, double pivot, int64_t n) {
    const double count = static_cast<double>(n);
    const double shift = v.sum / count, m2 = v.square - v.sum * shift;
    return {pivot + shift, 0.0, m2 < 0 ? 0.0 : m2, count};
  }
  static double pivot_of(const char* in, int64_t stride, int64_t n) {
    if constexpr (!std::is_same_v<A, double>) {
      return static_cast<double>(load_as<T, A>(in));
    } else {
      const bool contiguous = stride == static_cast<int64_t>(sizeof(T));
      const double sum = contiguous ? Fold<PlainSum, T>::row(in, n, 0.0)
                                    : Fold<PlainSum, T>::strided(in, stride, n, 0.0);
      return sum / static_cast<double>(n);
    }
  }
  static Moments one(const char* in, int64_t stride, int64_t n) {
    if (n == 0) return {};
    const double pivot = pivot_of(in, stride, n);
    const bool contiguous = stride == static_cast<int64_t>(sizeof(T));
    return moments(contiguous ? row(in, n, pivot) : strided(in, stride, n, pivot), pivot, n);
  }

  // A register of columns over all rows.
  static void column_vector(Moments* acc, const char* in, const LeafArgs& a) {
    constexpr int kParts = std::is_same_v<A, double> ? 1 : 2;
    D pivot[2], sum[2] = {D(0.0), D(0.0)}, square[2] = {D(0.0), D(0.0)};
    each(
        in, [&](int k, D x) __attribute__((always_inline)) { pivot[k] = x; });
    for (int64_t r = 1; r < a.count; ++r)
      each(
          in + r * a.stride, [&](int k, D x) __attribute__((always_inline)) {
            add(x, pivot[k], sum[k], square[k]);
          });
    for (int k = 0; k < kParts; ++k) {
      for (int j = 0; j < D::kLanes; ++j)
        acc[k * D::kLanes + j] = moments({sum[k].v[j], square[k].v[j]}, pivot[k].v[j], a.count);
    }
  }
  static void leaf(char* out, const LeafArgs& a) {
    Moments* acc = reinterpret_cast<Moments*>(out);
    int64_t c = 0;
    if (a.stride != static_cast<int64_t>(sizeof(T)) && a.count > 0 &&
        a.output_stride == static_cast<int64_t>(sizeof(T))) {
      constexpr int64_t lanes = vec::Vec<A>::kLanes;
      for (; c + lanes <= a.outputs; c += lanes)
        column_vector(acc + c, a.in + c * static_cast<int64_t>(sizeof(T)), a);
    }
    for (; c < a.outputs; ++c) acc[c] = one(a.in + c * a.output_stride, a.stride, a.count);
  }
};

template <class R> struct Var<c10::complex<R>> {
  static void leaf(char* out, const LeafArgs& a) {
    Moments* acc = reinterpret_cast<Moments*>(out);
    for (int64_t c = 0; c < a.outputs; ++c) {
      const char* in = a.in + c * a.output_stride;
      acc[c] = Var<R>::one(in, a.stride, a.count);
      const Moments imag = Var<R>::one(in + sizeof(R), a.stride, a.count);
      acc[c].mean_imag = imag.mean;
      acc[c].m2 += imag.m2;
    }
  }
};

void combine(char* a, const char* b, int64_t outputs) {
  Moments* x = reinterpret_cast<Moments*>(a);
  const Moments* y = reinterpret_cast<const Moments*>(b);
  for (int64_t i = 0; i < outputs; ++i) merge(x[i], y[i]);
}

// Values: the variance (param = correction), then the mean.
template <bool kComplex>
void finish(char* const* value, const char* acc, int64_t outputs, const FinishArgs& args) {
  const Moments* m = reinterpret_cast<const Moments*>(acc);
  double* var = reinterpret_cast<double*>(value[0]);
  double* mean = reinterpret_cast<double*>(value[1]);
  const double nan = c10::numeric_limits<double>::quiet_NaN();
  const double left = static_cast<double>(args.count) - args.param;
  for (int64_t i = 0; i < outputs; ++i) {
    var[i] = args.count == 0 ? nan : m[i].m2 / (left > 0 ? left : 0.0);
    mean[kComplex ? 2 * i : i] = args.count == 0 ? nan : m[i].mean;
    if (kComplex) mean[2 * i + 1] = args.count == 0 ? nan : m[i].mean_imag;
  }
}

template <class... Ts> void fill_types(ReduceTable& table, Types<Ts...>) {
  ((table.kernel[static_cast<int>(ReduceOp::Var)][static_cast<int>(c10::scalar_type_of<Ts>)] =
        ReduceKernel{&Var<Ts>::leaf,
                     &combine,
                     &finish<c10::is_complex_v<Ts>>,
                     sizeof(Moments),
                     2,
                     {c10::kDouble, c10::is_complex_v<Ts> ? c10::kComplexDouble : c10::kDouble}}),
   ...);
}
} // namespace

void fill_var(ReduceTable& table) {
  fill_types(table, Concat<FloatingTypes, AllComplexTypes>::type{});
}

} // namespace CRESSET_ISA
} // namespace at::native::reduce
