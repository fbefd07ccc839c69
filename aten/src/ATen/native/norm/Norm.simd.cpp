// The loops of NormKernel.h. Everything is built from two walks over a row, `map` and `sum`, which
// call a generic lambda with a register's worth of elements at a time and with single elements at
// the end. Sums run in four registers over blocks that fit in the first-level cache and meet in
// double precision, in an order that depends on the length alone.
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/norm/NormKernel.h>
#include <ATen/vec/ValueMath.h>
#include <ATen/vec/VecIO.h>

namespace at::native::norm_loops {
namespace CRESSET_ISA {
namespace {
using vec::opmath_t;
using vec::Vec;

constexpr int64_t kBlock = 4096;

template <class V, class T> C10_ALWAYS_INLINE V load(const T* p, int64_t i) {
  if constexpr (vec::is_vec_v<V>)
    return vec::VecIO<T>::load(reinterpret_cast<const char*>(p + i));
  else
    return static_cast<V>(p[i]);
}
template <class V, class T> C10_ALWAYS_INLINE void store(T* p, int64_t i, V v) {
  if constexpr (vec::is_vec_v<V>)
    vec::VecIO<T>::store(reinterpret_cast<char*>(p + i), v);
  else
    p[i] = static_cast<T>(v);
}

// f(V(), i) for registers from i on, then for single elements.
template <class A, class F> C10_ALWAYS_INLINE void map(int64_t n, const F& f) {
  using V = Vec<A>;
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) f(V(A(0)), i);
  for (; i < n; ++i) f(A(0), i);
}

template <class A> C10_ALWAYS_INLINE A lanes_sum(Vec<A> v) {
  A lane[Vec<A>::kLanes];
  v.store(lane);
  for (int step = Vec<A>::kLanes / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) lane[i] += lane[i + step];
  return lane[0];
}

// out[k] += the sum over i of the k-th addend: f(V(), i, sums) adds to its sums. [begin, end) is at
// most one block.
template <class A, int kSums, class F>
C10_ALWAYS_INLINE void sum_block(int64_t begin, int64_t end, double* out, const F& f) {
  using V = Vec<A>;
  V acc[4][kSums];
  for (auto& row : acc)
    for (V& v : row) v = V(A(0));
  int64_t i = begin;
  for (; i + 4 * V::kLanes <= end; i += 4 * V::kLanes) {
    f(V(A(0)), i, acc[0]);
    f(V(A(0)), i + V::kLanes, acc[1]);
    f(V(A(0)), i + 2 * V::kLanes, acc[2]);
    f(V(A(0)), i + 3 * V::kLanes, acc[3]);
  }
  for (; i + V::kLanes <= end; i += V::kLanes) f(V(A(0)), i, acc[0]);
  A rest[kSums] = {};
  for (; i < end; ++i) f(A(0), i, rest);
  for (int k = 0; k < kSums; ++k)
    out[k] +=
        static_cast<double>(lanes_sum((acc[0][k] + acc[1][k]) + (acc[2][k] + acc[3][k])) + rest[k]);
}
template <class A, int kSums, class F>
C10_ALWAYS_INLINE void sum(int64_t n, double* out, const F& f) {
  for (int64_t b = 0; b < n; b += kBlock)
    sum_block<A, kSums>(b, b + kBlock < n ? b + kBlock : n, out, f);
}

template <class T> struct Loops {
  using A = opmath_t<T>;
  static const T* in(const void* p) { return static_cast<const T*>(p); }
  static T* out(void* p) { return static_cast<T*>(p); }
  static const A* values(const void* p) { return static_cast<const A*>(p); }
  static A* values(void* p) { return static_cast<A*>(p); }

  static void moments(const void* xp, int64_t n, Moments* into) {
    const T* x = in(xp);
    for (int64_t b = 0; b < n; b += kBlock) {
      const int64_t e = b + kBlock < n ? b + kBlock : n;
      const double count = static_cast<double>(e - b);
      double total = 0, deviation = 0;
      sum_block<A, 1>(b, e, &total,
                      [&](auto v, int64_t i, auto* s) { s[0] = s[0] + load<decltype(v)>(x, i); });
      const A mean = static_cast<A>(total / count);
      sum_block<A, 1>(b, e, &deviation, [&](auto v, int64_t i, auto* s) {
        using V = decltype(v);
        const V d = load<V>(x, i) - V(mean);
        s[0] = vm::fma(d, d, s[0]);
      });
      into->merge(count, static_cast<double>(mean), deviation);
    }
  }

  static double square_sum(const void* xp, int64_t n) {
    const T* x = in(xp);
    double total = 0;
    sum<A, 1>(n, &total, [&](auto v, int64_t i, auto* s) {
      const auto e = load<decltype(v)>(x, i);
      s[0] = vm::fma(e, e, s[0]);
    });
    return total;
  }

  static void scale_shift(const void* xp, void* yp, int64_t n, double scale, double shift) {
    const T* x = in(xp);
    T* y = out(yp);
    const A a = static_cast<A>(scale), b = static_cast<A>(shift);
    map<A>(n, [&](auto v, int64_t i) {
      using V = decltype(v);
      store<V>(y, i, vm::fma(load<V>(x, i), V(a), V(b)));
    });
  }

  template <bool kWeight, bool kBias>
  static void normalize_as(const T* x, T* y, int64_t n, A mean, A rstd, const A* w, const A* b) {
    map<A>(n, [&](auto v, int64_t i) {
      using V = decltype(v);
      V r = (load<V>(x, i) - V(mean)) * V(rstd);
      if constexpr (kWeight && kBias)
        r = vm::fma(r, load<V>(w, i), load<V>(b, i));
      else if constexpr (kWeight)
        r = r * load<V>(w, i);
      else if constexpr (kBias)
        r = r + load<V>(b, i);
      store<V>(y, i, r);
    });
  }
  static void normalize(const void* x, void* y, int64_t n, double mean, double rstd, const void* w,
                        const void* b) {
    const auto run = w ? (b ? &normalize_as<true, true> : &normalize_as<true, false>)
                       : (b ? &normalize_as<false, true> : &normalize_as<false, false>);
    run(in(x), out(y), n, static_cast<A>(mean), static_cast<A>(rstd), values(w), values(b));
  }

  static void grad_sums(const void* gp, const void* xp, int64_t n, double mean, double* sums) {
    const T *g = in(gp), *x = in(xp);
    const A m = static_cast<A>(mean);
    sum<A, 2>(n, sums, [&](auto v, int64_t i, auto* s) {
      using V = decltype(v);
      const V grad = load<V>(g, i);
      s[0] = s[0] + grad;
      s[1] = vm::fma(grad, load<V>(x, i) - V(m), s[1]);
    });
  }

  static void combine(const void* gp, const void* xp, void* op, int64_t n, double a, double b,
                      double c) {
    const T *g = in(gp), *x = in(xp);
    T* o = out(op);
    const A fa = static_cast<A>(a), fb = static_cast<A>(b), fc = static_cast<A>(c);
    map<A>(n, [&](auto v, int64_t i) {
      using V = decltype(v);
      store<V>(o, i, vm::fma(load<V>(g, i), V(fa), vm::fma(load<V>(x, i), V(fb), V(fc))));
    });
  }

  template <bool kWeight> static void row_gradient_as(const T* g, const T* x, T* o, int64_t n,
                                                      A mean, A rstd, const A* w, bool centred) {
    const auto weighted = [&](auto v, int64_t i) {
      using V = decltype(v);
      if constexpr (kWeight)
        return load<V>(g, i) * load<V>(w, i);
      else
        return load<V>(g, i);
    };
    double sums[2] = {0, 0};
    sum<A, 2>(n, sums, [&](auto v, int64_t i, auto* s) {
      using V = decltype(v);
      const V grad = weighted(v, i);
      s[0] = s[0] + grad;
      s[1] = vm::fma(grad, load<V>(x, i) - V(mean), s[1]);
    });
    const double count = static_cast<double>(n), r = static_cast<double>(rstd);
    // o = rstd g w - rstd^3 (x - mean) dot / n - rstd sum / n
    const A slope = static_cast<A>(-r * r * r * sums[1] / count);
    const A shift = centred ? static_cast<A>(-r * sums[0] / count) : A(0);
    map<A>(n, [&](auto v, int64_t i) {
      using V = decltype(v);
      const V rest = vm::fma(load<V>(x, i) - V(mean), V(slope), V(shift));
      store<V>(o, i, vm::fma(weighted(v, i), V(rstd), rest));
    });
  }
  static void row_gradient(const void* g, const void* x, void* o, int64_t n, double mean,
                           double rstd, const void* w, bool centred) {
    const auto run = w ? &row_gradient_as<true> : &row_gradient_as<false>;
    run(in(g), in(x), out(o), n, static_cast<A>(mean), static_cast<A>(rstd), values(w), centred);
  }

  static void row_parameters(const void* gp, const void* xp, int64_t n, double mean, double rstd,
                             void* wp, void* bp) {
    const T *g = in(gp), *x = in(xp);
    A *w = values(wp), *b = values(bp);
    const A m = static_cast<A>(mean), r = static_cast<A>(rstd);
    if (w && b) {
      map<A>(n, [&](auto v, int64_t i) {
        using V = decltype(v);
        const V grad = load<V>(g, i);
        store<V>(w, i, vm::fma(grad, (load<V>(x, i) - V(m)) * V(r), load<V>(w, i)));
        store<V>(b, i, load<V>(b, i) + grad);
      });
    } else if (w) {
      map<A>(n, [&](auto v, int64_t i) {
        using V = decltype(v);
        store<V>(w, i, vm::fma(load<V>(g, i), (load<V>(x, i) - V(m)) * V(r), load<V>(w, i)));
      });
    } else if (b) {
      map<A>(n, [&](auto v, int64_t i) {
        using V = decltype(v);
        store<V>(b, i, load<V>(b, i) + load<V>(g, i));
      });
    }
  }

  // ---- columns: for each register of columns, down the rows.
  template <class F> static void down(int64_t rows, int64_t columns, const F& f) {
    map<A>(columns, [&](auto v, int64_t c) { f(v, c, rows, columns); });
  }
  static void column_sums(const void* xp, int64_t rows, int64_t columns, void* sp) {
    const T* x = in(xp);
    A* s = values(sp);
    down(rows, columns, [&](auto v, int64_t c, int64_t count, int64_t width) {
      using V = decltype(v);
      V total = load<V>(s, c);
      for (int64_t r = 0; r < count; ++r) total = total + load<V>(x, r * width + c);
      store<V>(s, c, total);
    });
  }
  static void column_deviations(const void* xp, int64_t rows, int64_t columns, const void* mp,
                                void* sp) {
    const T* x = in(xp);
    const A* m = values(mp);
    A* s = values(sp);
    down(rows, columns, [&](auto v, int64_t c, int64_t count, int64_t width) {
      using V = decltype(v);
      const V mean = load<V>(m, c);
      V total = load<V>(s, c);
      for (int64_t r = 0; r < count; ++r) {
        const V d = load<V>(x, r * width + c) - mean;
        total = vm::fma(d, d, total);
      }
      store<V>(s, c, total);
    });
  }
  static void column_scale_shift(const void* xp, void* yp, int64_t rows, int64_t columns,
                                 const void* ap, const void* bp) {
    const A *a = values(ap), *b = values(bp);
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = in(xp) + r * columns;
      T* y = out(yp) + r * columns;
      map<A>(columns, [&](auto v, int64_t c) {
        using V = decltype(v);
        store<V>(y, c, vm::fma(load<V>(x, c), load<V>(a, c), load<V>(b, c)));
      });
    }
  }
  static void column_grad_sums(const void* gp, const void* xp, int64_t rows, int64_t columns,
                               const void* mp, void* sp, void* dp) {
    const T *g = in(gp), *x = in(xp);
    const A* m = values(mp);
    A *s = values(sp), *d = values(dp);
    down(rows, columns, [&](auto v, int64_t c, int64_t count, int64_t width) {
      using V = decltype(v);
      const V mean = load<V>(m, c);
      V total = load<V>(s, c), dot = load<V>(d, c);
      for (int64_t r = 0; r < count; ++r) {
        const V grad = load<V>(g, r * width + c);
        total = total + grad;
        dot = vm::fma(grad, load<V>(x, r * width + c) - mean, dot);
      }
      store<V>(s, c, total);
      store<V>(d, c, dot);
    });
  }
  static void column_combine(const void* gp, const void* xp, void* op, int64_t rows,
                             int64_t columns, const void* ap, const void* bp, const void* cp) {
    const A *a = values(ap), *b = values(bp), *k = values(cp);
    for (int64_t r = 0; r < rows; ++r) {
      const T *g = in(gp) + r * columns, *x = in(xp) + r * columns;
      T* o = out(op) + r * columns;
      map<A>(columns, [&](auto v, int64_t c) {
        using V = decltype(v);
        const V rest = vm::fma(load<V>(x, c), load<V>(b, c), load<V>(k, c));
        store<V>(o, c, vm::fma(load<V>(g, c), load<V>(a, c), rest));
      });
    }
  }

  static NormLoops all() {
    NormLoops loops;
    loops.moments = moments;
    loops.square_sum = square_sum;
    loops.scale_shift = scale_shift;
    loops.normalize = normalize;
    loops.grad_sums = grad_sums;
    loops.combine = combine;
    loops.row_gradient = row_gradient;
    loops.row_parameters = row_parameters;
    loops.column_sums = column_sums;
    loops.column_deviations = column_deviations;
    loops.column_scale_shift = column_scale_shift;
    loops.column_grad_sums = column_grad_sums;
    loops.column_combine = column_combine;
    return loops;
  }
};

template <class... Ts> void fill_types(NormTable& table, Types<Ts...>) {
  ((table.loops[static_cast<int>(c10::scalar_type_of<Ts>)] = Loops<Ts>::all()), ...);
}
} // namespace

void fill(NormTable& table) { fill_types(table, FloatingTypes{}); }

} // namespace CRESSET_ISA
} // namespace at::native::norm_loops
