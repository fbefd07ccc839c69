// The loops of DistanceKernel.h. One walk serves every norm: a norm is how a difference joins the
// sum, how two sums meet, and what is done to the total. Four registers of sums keep the additions
// independent; their order depends on the length of the rows alone.
#include <cmath>

#include <ATen/native/distance/DistanceKernel.h>
#include <ATen/vec/ValueMath.h>
#include <ATen/vec/VecIO.h>

namespace at::native::distance {
namespace CRESSET_ISA {
namespace {
using vec::opmath_t;
using vec::Vec;

template <class V, class T> C10_ALWAYS_INLINE V load(const T* p, int64_t i) {
  if constexpr (vec::is_vec_v<V>)
    return vec::VecIO<T>::load(reinterpret_cast<const char*>(p + i));
  else
    return static_cast<V>(p[i]);
}

// d is the absolute difference.
struct Count {
  template <class V> static V join(V sum, V d, V) {
    using A = vec::element_t<V>;
    return vm::select(d != d, d, vm::select(d == V(A(0)), sum, sum + V(A(1))));
  }
  template <class V> static V meet(V a, V b) { return a + b; }
  static double total(double sum, double) { return sum; }
};
struct Sum {
  template <class V> static V join(V sum, V d, V) { return sum + d; }
  template <class V> static V meet(V a, V b) { return a + b; }
  static double total(double sum, double) { return sum; }
};
struct Squares {
  template <class V> static V join(V sum, V d, V) { return sum + d * d; }
  template <class V> static V meet(V a, V b) { return a + b; }
  static double total(double sum, double) { return std::sqrt(sum); }
};
struct Powers {
  template <class V> static V join(V sum, V d, V p) { return sum + vm::pow(d, p); }
  template <class V> static V meet(V a, V b) { return a + b; }
  static double total(double sum, double p) { return std::pow(sum, 1 / p); }
};
// A difference that is no number counts as none, as the system this follows has it.
struct Largest {
  template <class V> static V join(V sum, V d, V) { return vm::select(d > sum, d, sum); }
  template <class V> static V meet(V a, V b) { return vm::select(b > a, b, a); }
  static double total(double sum, double) { return sum; }
};

// Row k exchanges lanes that are 2^k apart. A table, because the compiler would build the numbers
// lane by lane at run time.
template <class A> struct Exchange {
  static constexpr int kLanes = Vec<A>::kLanes;
  alignas(64) vec::int_of<A> from[4][kLanes] = {};
  constexpr Exchange() {
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < kLanes; ++i) from[k][i] = (i ^ (1 << k)) % kLanes;
  }
};
template <class A> inline constexpr Exchange<A> kExchange{};

// The lanes of a register brought together.
template <class Norm, class A> C10_ALWAYS_INLINE A meet_lanes(Vec<A> v) {
#pragma GCC unroll 4
  for (int k = 0; (1 << k) < Vec<A>::kLanes; ++k) {
    typename vec::Mask<A>::Raw other;
    __builtin_memcpy(&other, kExchange<A>.from[k], sizeof(other));
    v = Norm::meet(v, Vec<A>(__builtin_shuffle(v.v, other)));
  }
  return v.v[0];
}

template <class Norm, class T>
C10_ALWAYS_INLINE double walk(const T* a, const T* b, int64_t n, double p) {
  using A = opmath_t<T>;
  using V = Vec<A>;
  constexpr int kLanes = V::kLanes;
  const V power = V(static_cast<A>(p));
  V sums[4] = {V(A(0)), V(A(0)), V(A(0)), V(A(0))};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const int64_t position = i + k * kLanes;
      sums[k] = Norm::join(sums[k], vm::abs(load<V>(a, position) - load<V>(b, position)), power);
    }
  }
  for (; i + kLanes <= n; i += kLanes)
    sums[0] = Norm::join(sums[0], vm::abs(load<V>(a, i) - load<V>(b, i)), power);
  const V all = Norm::meet(Norm::meet(sums[0], sums[1]), Norm::meet(sums[2], sums[3]));
  A total = meet_lanes<Norm>(all);
  for (; i < n; ++i)
    total = Norm::join(total, vm::abs(load<A>(a, i) - load<A>(b, i)), static_cast<A>(p));
  return Norm::total(total, p);
}

template <class Norm, class T>
void walk_rows(const T* a, const T* b, int64_t count, int64_t n, double p, T* out) {
  for (int64_t k = 0; k < count; ++k)
    out[k] = static_cast<T>(static_cast<opmath_t<T>>(walk<Norm>(a, b + k * n, n, p)));
}

template <class T>
void rows(const void* a_, const void* b_, int64_t count, int64_t n, double p, void* out_) {
  const T* a = static_cast<const T*>(a_);
  const T* b = static_cast<const T*>(b_);
  T* out = static_cast<T*>(out_);
  if (p == 2)
    walk_rows<Squares>(a, b, count, n, p, out);
  else if (p == 1)
    walk_rows<Sum>(a, b, count, n, p, out);
  else if (p == 0)
    walk_rows<Count>(a, b, count, n, p, out);
  else if (std::isinf(p))
    walk_rows<Largest>(a, b, count, n, p, out);
  else
    walk_rows<Powers>(a, b, count, n, p, out);
}

template <class V> C10_ALWAYS_INLINE V sign(V d) {
  using A = vec::element_t<V>;
  const V zero = V(A(0));
  return vm::select(d > zero, V(A(1)), vm::select(d < zero, V(A(-1)), zero));
}

template <class T, class F> C10_ALWAYS_INLINE void
add_slopes(void* sum_, const void* a_, const void* b_, int64_t n, const F& f) {
  using A = opmath_t<T>;
  using V = Vec<A>;
  A* sum = static_cast<A*>(sum_);
  const T* a = static_cast<const T*>(a_);
  const T* b = static_cast<const T*>(b_);
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes)
    (V::load(sum + i) + f(load<V>(a, i) - load<V>(b, i))).store(sum + i);
  for (; i < n; ++i) sum[i] += f(load<A>(a, i) - load<A>(b, i));
}

// Where the norm has no slope (equal rows, equal elements for p below 2) the gradient is zero.
template <class T> void slope(void* sum, const void* a, const void* b, int64_t n, double p,
                              double grad, double distance) {
  using A = opmath_t<T>;
  if (p == 0) return;
  const A g = static_cast<A>(grad);
  if (p == 1) {
    add_slopes<T>(sum, a, b, n, [&](auto d) { return sign(d) * decltype(d)(g); });
    return;
  }
  if (distance == 0) return;
  if (p == 2) {
    const A ratio = static_cast<A>(grad / distance);
    add_slopes<T>(sum, a, b, n, [&](auto d) { return d * decltype(d)(ratio); });
  } else if (std::isinf(p)) {
    const A top = static_cast<A>(distance);
    add_slopes<T>(sum, a, b, n, [&](auto d) {
      using V = decltype(d);
      return vm::select(vm::abs(d) == V(top), sign(d) * V(g), V(A(0)));
    });
  } else {
    const A ratio = static_cast<A>(grad / std::pow(distance, p - 1));
    const A power = static_cast<A>(p - 1);
    add_slopes<T>(sum, a, b, n, [&](auto d) {
      using V = decltype(d);
      const V value = sign(d) * vm::pow(vm::abs(d), V(power)) * V(ratio);
      return vm::select(d == V(A(0)), V(A(0)), value);
    });
  }
}

template <class T> void add(Table& table) {
  using A = opmath_t<T>;
  Loops& loops = table.loops[static_cast<int>(c10::scalar_type_of<T>)];
  loops.rows = &rows<T>;
  loops.slope = &slope<T>;
  loops.load = [](const void* from, int64_t i) {
    return static_cast<double>(static_cast<A>(static_cast<const T*>(from)[i]));
  };
  loops.store_row = [](void* to, const void* sum, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<T*>(to)[i] = static_cast<T>(static_cast<const A*>(sum)[i]);
  };
  loops.sum_size = sizeof(A);
}
} // namespace

void fill(Table& table) {
  add<float>(table);
  add<double>(table);
  add<c10::Half>(table);
  add<c10::BFloat16>(table);
}
} // namespace CRESSET_ISA
} // namespace at::native::distance
