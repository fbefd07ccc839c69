// The loops of FftKernel.h. A buffer holds, for each element of the lines, a register of real parts
// and a register of imaginary parts. Passes go from one buffer to the other and leave the results
// in order. An inverse transform is a forward one with real and imaginary parts exchanged on the
// way in and on the way out.
#include <ATen/native/fft/FftKernel.h>
#include <ATen/vec/Vec.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace at::native::fft {
namespace CRESSET_ISA {
namespace {
using vec::Vec;

template <class T> struct Lanes {
  using V = Vec<T>;
  static constexpr int W = V::kLanes;
  struct C {
    V re, im;
  };

  static C10_ALWAYS_INLINE C get(const T* p, int64_t i) {
    return {V::load(p + 2 * W * i), V::load(p + 2 * W * i + W)};
  }
  static C10_ALWAYS_INLINE void put(T* p, int64_t i, C c) {
    c.re.store(p + 2 * W * i);
    c.im.store(p + 2 * W * i + W);
  }
  static C10_ALWAYS_INLINE C add(C a, C b) { return {a.re + b.re, a.im + b.im}; }
  static C10_ALWAYS_INLINE C sub(C a, C b) { return {a.re - b.re, a.im - b.im}; }
  static C10_ALWAYS_INLINE C mul(C a, V re, V im) {
    return {a.re * re - a.im * im, a.re * im + a.im * re};
  }
  // a times -i.
  static C10_ALWAYS_INLINE C turn(C a) { return {a.im, -a.re}; }

  // ---- interleaved pairs to separate registers and back
  template <size_t... I> static C10_ALWAYS_INLINE C apart(V x, V y, std::index_sequence<I...>) {
    return {V(__builtin_shufflevector(x.v, y.v, static_cast<int>(2 * I)...)),
            V(__builtin_shufflevector(x.v, y.v, static_cast<int>(2 * I + 1)...))};
  }
  static C10_ALWAYS_INLINE C apart(const T* p) {
    return apart(V::load(p), V::load(p + W), std::make_index_sequence<W>());
  }
  template <size_t... I>
  static C10_ALWAYS_INLINE void together(C c, T* p, std::index_sequence<I...>) {
    V(__builtin_shufflevector(c.re.v, c.im.v, static_cast<int>(I / 2 + (I % 2) * W)...)).store(p);
    V(__builtin_shufflevector(c.re.v, c.im.v, static_cast<int>(W / 2 + I / 2 + (I % 2) * W)...))
        .store(p + W);
  }
  static C10_ALWAYS_INLINE void together(C c, T* p) {
    together(c, p, std::make_index_sequence<W>());
  }
  static C10_ALWAYS_INLINE C exchanged(C c, bool swap) { return swap ? C{c.im, c.re} : c; }
};

// ---- butterflies: the transform of R values in registers -------------------------------------

template <class T> C10_ALWAYS_INLINE void four(typename Lanes<T>::C* a) {
  using L = Lanes<T>;
  const auto s = L::add(a[0], a[2]), d = L::sub(a[0], a[2]);
  const auto t = L::add(a[1], a[3]), e = L::turn(L::sub(a[1], a[3]));
  a[0] = L::add(s, t);
  a[1] = L::add(d, e);
  a[2] = L::sub(s, t);
  a[3] = L::sub(d, e);
}

template <class T> C10_ALWAYS_INLINE void eight(typename Lanes<T>::C* a) {
  using L = Lanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  C even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
  four<T>(even);
  four<T>(odd);
  const V h(static_cast<T>(0.70710678118654752440));
  const C w1{(odd[1].re + odd[1].im) * h, (odd[1].im - odd[1].re) * h};
  const C w2 = L::turn(odd[2]);
  const C w3{(odd[3].im - odd[3].re) * h, -(odd[3].re + odd[3].im) * h};
  const C w[4] = {odd[0], w1, w2, w3};
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    a[k] = L::add(even[k], w[k]);
    a[k + 4] = L::sub(even[k], w[k]);
  }
}

// Odd lengths: elements j and R - j share their factors up to a sign.
template <class T, int R> C10_ALWAYS_INLINE void odd(typename Lanes<T>::C* a, const T* roots) {
  using L = Lanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  constexpr int H = (R - 1) / 2;
  C sum[H], difference[H], total = a[0];
#pragma GCC unroll 8
  for (int j = 0; j < H; ++j) {
    sum[j] = L::add(a[j + 1], a[R - 1 - j]);
    difference[j] = L::sub(a[j + 1], a[R - 1 - j]);
    total = L::add(total, sum[j]);
  }
  const C first = a[0];
#pragma GCC unroll 8
  for (int k = 1; k <= H; ++k) {
    C c = first, s{V(T(0)), V(T(0))};
#pragma GCC unroll 8
    for (int j = 0; j < H; ++j) {
      const int turn = (j + 1) * k % R;
      const V cosine(roots[2 * turn]), sine(-roots[2 * turn + 1]);
      c = {c.re + sum[j].re * cosine, c.im + sum[j].im * cosine};
      s = {s.re + difference[j].re * sine, s.im + difference[j].im * sine};
    }
    a[k] = {c.re + s.im, c.im - s.re};
    a[R - k] = {c.re - s.im, c.im + s.re};
  }
  a[0] = total;
}

template <class T, int R>
C10_ALWAYS_INLINE void butterfly(typename Lanes<T>::C* a, const T* roots) {
  using L = Lanes<T>;
  if constexpr (R == 2) {
    const auto d = L::sub(a[0], a[1]);
    a[0] = L::add(a[0], a[1]);
    a[1] = d;
  } else if constexpr (R == 4) {
    four<T>(a);
  } else if constexpr (R == 8) {
    eight<T>(a);
  } else {
    odd<T, R>(a, roots);
  }
}

template <class T, int R> void pass(const FftStep<T>& step, const T* in, T* out) {
  using L = Lanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  const int64_t m = step.m, s = step.s;
  const T *w = step.twiddles.data(), *roots = step.roots.data();
  for (int64_t p = 0; p < m; ++p, w += 2 * (R - 1)) {
    for (int64_t q = 0; q < s; ++q) {
      C a[R];
#pragma GCC unroll 16
      for (int j = 0; j < R; ++j) a[j] = L::get(in, q + s * (p + j * m));
      butterfly<T, R>(a, roots);
      L::put(out, q + s * R * p, a[0]);
#pragma GCC unroll 16
      for (int k = 1; k < R; ++k) {
        const C b = p == 0 ? a[k] : L::mul(a[k], V(w[2 * k - 2]), V(w[2 * k - 1]));
        L::put(out, q + s * (R * p + k), b);
      }
    }
  }
}

// The same for the odd radices that have no code of their own.
template <class T> void pass_of(const FftStep<T>& step, const T* in, T* out) {
  using L = Lanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  const int R = step.radix, H = (R - 1) / 2;
  const T *w = step.twiddles.data(), *roots = step.roots.data();
  C sum[kLargestRadix / 2 + 1], difference[kLargestRadix / 2 + 1];
  for (int64_t p = 0; p < step.m; ++p, w += 2 * (R - 1)) {
    for (int64_t q = 0; q < step.s; ++q) {
      const C first = L::get(in, q + step.s * p);
      C total = first;
      for (int j = 0; j < H; ++j) {
        const C x = L::get(in, q + step.s * (p + (j + 1) * step.m));
        const C y = L::get(in, q + step.s * (p + (R - 1 - j) * step.m));
        sum[j] = L::add(x, y);
        difference[j] = L::sub(x, y);
        total = L::add(total, sum[j]);
      }
      const int64_t position = q + step.s * R * p;
      L::put(out, position, total);
      for (int k = 1; k <= H; ++k) {
        C c = first, d{V(T(0)), V(T(0))};
        for (int j = 0, turn = k; j < H; ++j, turn = turn + k >= R ? turn + k - R : turn + k) {
          const V cosine(roots[2 * turn]), sine(-roots[2 * turn + 1]);
          c = {c.re + sum[j].re * cosine, c.im + sum[j].im * cosine};
          d = {d.re + difference[j].re * sine, d.im + difference[j].im * sine};
        }
        const C low{c.re + d.im, c.im - d.re}, high{c.re - d.im, c.im + d.re};
        const int o = R - k;
        L::put(out, position + step.s * k, L::mul(low, V(w[2 * k - 2]), V(w[2 * k - 1])));
        L::put(out, position + step.s * o, L::mul(high, V(w[2 * o - 2]), V(w[2 * o - 1])));
      }
    }
  }
}

template <class T> void run_step(const FftStep<T>& step, const T* in, T* out) {
  switch (step.radix) {
  case 2:
    return pass<T, 2>(step, in, out);
  case 3:
    return pass<T, 3>(step, in, out);
  case 4:
    return pass<T, 4>(step, in, out);
  case 5:
    return pass<T, 5>(step, in, out);
  case 7:
    return pass<T, 7>(step, in, out);
  case 8:
    return pass<T, 8>(step, in, out);
  default:
    return pass_of<T>(step, in, out);
  }
}

// Transforms the lines in `a` with `b` as room; returns which of the two holds the result.
template <class T> T* transform(const FftPlan<T>& plan, T* a, T* b) {
  using L = Lanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  for (const FftStep<T>& step : plan.steps) {
    run_step(step, a, b);
    std::swap(a, b);
  }
  if (!plan.inner) return a;
  const T *chirp = plan.chirp.data(), *spectrum = plan.spectrum.data();
  const int64_t n = plan.n, length = plan.inner->n;
  for (int64_t i = 0; i < n; ++i)
    L::put(a, i, L::mul(L::get(a, i), V(chirp[2 * i]), V(chirp[2 * i + 1])));
  std::fill(a + 2 * L::W * n, a + 2 * L::W * length, T(0));
  T* x = transform(*plan.inner, a, b);
  T* rest = x == a ? b : a;
  for (int64_t i = 0; i < length; ++i) {
    const C c = L::mul(L::get(x, i), V(spectrum[2 * i]), V(spectrum[2 * i + 1]));
    L::put(x, i, L::exchanged(c, true));
  }
  T* y = transform(*plan.inner, x, rest);
  for (int64_t i = 0; i < n; ++i) {
    const C c = L::exchanged(L::get(y, i), true);
    L::put(y, i, L::mul(c, V(chirp[2 * i]), V(chirp[2 * i + 1])));
  }
  return y;
}

// ---- between memory and buffers ---------------------------------------------------------------

// Rows are turned into lanes four by four elements. Pairs of floats travel as one element of eight
// bytes and are taken apart afterwards; doubles go to their places at once, a line of n pairs being
// 2 n doubles.
template <class T> constexpr bool kPairs = sizeof(T) == 4;

struct TwiceAt {
  int64_t offsets[2 * Vec<float>::kLanes];
  TwiceAt(const int64_t* from, int lanes) {
    for (int l = 0; l < lanes; ++l) offsets[l] = 2 * from[l];
  }
};

template <class E> struct TileOf { typedef E type __attribute__((vector_size(4 * sizeof(E)))); };

// Four by four elements exchanged: row r goes to column r.
template <class E> C10_ALWAYS_INLINE void transpose4(const E* const* from, E* const* to) {
  using R = typename TileOf<E>::type;
  R r[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) std::memcpy(&r[i], from[i], sizeof(R));
  const R a = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6);
  const R b = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7);
  const R c = __builtin_shufflevector(r[2], r[3], 0, 4, 2, 6);
  const R d = __builtin_shufflevector(r[2], r[3], 1, 5, 3, 7);
  const R out[4] = {
      __builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(b, d, 0, 1, 4, 5),
      __builtin_shufflevector(a, c, 2, 3, 6, 7), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) std::memcpy(to[i], &out[i], sizeof(R));
}

// buffer[i * lanes + l] = in[at[l] + i]
template <class E>
void gather_rows(const E* in, const int64_t* offsets, int lanes, int64_t n, E* buffer) {
  int64_t i = 0;
  if (lanes % 4 == 0) {
    for (; i + 4 <= n; i += 4) {
      for (int l = 0; l < lanes; l += 4) {
        const E* from[4] = {in + offsets[l] + i, in + offsets[l + 1] + i, in + offsets[l + 2] + i,
                            in + offsets[l + 3] + i};
        E* to = buffer + i * lanes + l;
        E* const rows[4] = {to, to + lanes, to + 2 * lanes, to + 3 * lanes};
        transpose4<E>(from, rows);
      }
    }
  }
  for (; i < n; ++i)
    for (int l = 0; l < lanes; ++l)
      std::memcpy(buffer + i * lanes + l, in + offsets[l] + i, sizeof(E));
}

// out[at[l] + i] = buffer[i * lanes + l] for the first `count` lanes.
template <class E> void scatter_rows(const E* buffer, int lanes, int count, int64_t n, E* out,
                                     const int64_t* offsets) {
  const int tiled = lanes % 4 == 0 ? count / 4 * 4 : 0;
  const int64_t whole = n / 4 * 4;
  for (int64_t i = 0; i < whole; i += 4) {
    for (int l = 0; l < tiled; l += 4) {
      const E* from = buffer + i * lanes + l;
      const E* rows[4] = {from, from + lanes, from + 2 * lanes, from + 3 * lanes};
      E* const to[4] = {out + offsets[l] + i, out + offsets[l + 1] + i, out + offsets[l + 2] + i,
                        out + offsets[l + 3] + i};
      transpose4<E>(rows, to);
    }
  }
  for (int l = 0; l < count; ++l)
    for (int64_t i = l < tiled ? whole : 0; i < n; ++i)
      std::memcpy(out + offsets[l] + i, buffer + i * lanes + l, sizeof(E));
}

bool side_by_side(const int64_t* offsets, int lanes) {
  for (int l = 1; l < lanes; ++l)
    if (offsets[l] != offsets[0] + l) return false;
  return true;
}

// n complex elements of W lines into `buffer`.
template <class T> void load_complex(const T* in, int64_t step, const int64_t* offsets, int64_t n,
                                     bool swap, T* buffer) {
  using L = Lanes<T>;
  constexpr int W = L::W;
  if (side_by_side(offsets, W)) {
    for (int64_t i = 0; i < n; ++i)
      L::put(buffer, i, L::exchanged(L::apart(in + 2 * (offsets[0] + i * step)), swap));
  } else if (step == 1 && kPairs<T>) {
    gather_rows<double>(reinterpret_cast<const double*>(in), offsets, W, n,
                        reinterpret_cast<double*>(buffer));
    for (int64_t i = 0; i < n; ++i)
      L::put(buffer, i, L::exchanged(L::apart(buffer + 2 * W * i), swap));
  } else if (step == 1) {
    gather_rows<T>(in, TwiceAt(offsets, W).offsets, W, 2 * n, buffer);
    for (int64_t i = 0; swap && i < n; ++i)
      L::put(buffer, i, L::exchanged(L::get(buffer, i), true));
  } else {
    T *re = buffer + (swap ? W : 0), *im = buffer + (swap ? 0 : W);
    for (int64_t i = 0; i < n; ++i) {
      for (int l = 0; l < W; ++l) {
        const T* x = in + 2 * (offsets[l] + i * step);
        re[2 * W * i + l] = x[0];
        im[2 * W * i + l] = x[1];
      }
    }
  }
}

// The first n elements of `buffer` to `count` lines; the buffer is used up.
template <class T> void store_complex(const FftBlock<T>& block, T* buffer, int64_t n, int count,
                                      const int64_t* offsets, bool swap) {
  using L = Lanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  constexpr int W = L::W;
  const bool direct = count == W && side_by_side(offsets, W), rows = block.out_step == 1;
  const V scale(block.scale);
  for (int64_t i = 0; i < n; ++i) {
    C c = L::exchanged(L::get(buffer, i), swap);
    if (block.factor_re) {
      const V re = V::load(block.factor_re + i * block.pitch);
      V im = V::load(block.factor_im + i * block.pitch);
      if (block.inverse) im = -im;
      c = {c.re * re - c.im * im, c.re * im + c.im * re};
    }
    c = {c.re * scale, c.im * scale};
    if (!direct && rows && !kPairs<T>) {
      L::put(buffer, i, c);
    } else {
      L::together(c,
                  direct ? block.out + 2 * (offsets[0] + i * block.out_step) : buffer + 2 * W * i);
    }
  }
  if (direct) return;
  if (rows && kPairs<T>) {
    scatter_rows<double>(reinterpret_cast<const double*>(buffer), W, count, n,
                         reinterpret_cast<double*>(block.out), offsets);
    return;
  }
  if (rows) {
    scatter_rows<T>(buffer, W, count, 2 * n, block.out, TwiceAt(offsets, count).offsets);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    for (int l = 0; l < count; ++l)
      std::memcpy(block.out + 2 * (offsets[l] + i * block.out_step), buffer + 2 * (W * i + l),
                  2 * sizeof(T));
}

// ---- the three kinds --------------------------------------------------------------------------

template <class T> void c2c(const FftBlock<T>& block) {
  const int64_t n = block.plan->n;
  load_complex(block.in, block.in_step, block.in_at, n, block.inverse, block.a);
  T* x = transform(*block.plan, block.a, block.b);
  store_complex(block, x, n, block.count, block.out_at, block.inverse);
}

// Two real lines travel as the real and the imaginary part of one complex line. Their spectra are
// the parts of the common one that are symmetric and antisymmetric under k -> n - k.
template <class T> void r2c(const FftBlock<T>& block) {
  using L = Lanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  constexpr int W = L::W;
  const int64_t n = block.plan->n;
  if (block.in_step == 1) {
    gather_rows<T>(block.in, block.in_at, 2 * W, n, block.a);
  } else if (side_by_side(block.in_at, 2 * W)) {
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(block.a + 2 * W * i, block.in + block.in_at[0] + i * block.in_step,
                  2 * W * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i)
      for (int l = 0; l < 2 * W; ++l)
        block.a[2 * W * i + l] = block.in[block.in_at[l] + i * block.in_step];
  }
  const T* z = transform(*block.plan, block.a, block.b);
  T* spare = z == block.a ? block.b : block.a;
  const V half(static_cast<T>(0.5));
  for (int part = 0; part < 2 && part * W < block.count; ++part) {
    for (int64_t k = 0; k <= n / 2; ++k) {
      const C low = L::get(z, k), high = L::get(z, k == 0 ? 0 : n - k);
      const C c =
          part == 0 ? C{low.re + high.re, low.im - high.im} : C{low.im + high.im, high.re - low.re};
      L::put(spare, k, C{c.re * half, c.im * half});
    }
    store_complex(block, spare, n / 2 + 1, std::min(block.count - part * W, W),
                  block.out_at + part * W, false);
  }
}

template <class T> void c2r(const FftBlock<T>& block) {
  using L = Lanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  constexpr int W = L::W;
  const int64_t n = block.plan->n, most = n / 2;
  T *first = block.b, *second = block.b + 2 * W * (most + 1);
  load_complex(block.in, block.in_step, block.in_at, most + 1, false, first);
  const V zero(T(0));
  for (const int64_t k : {int64_t(0), most}) {
    if (k != 0 && n % 2 == 1) continue;
    L::put(first, k, C{L::get(first, k).re, zero});
  }
  if (block.count > W) {
    load_complex(block.in, block.in_step, block.in_at + W, most + 1, false, second);
    for (const int64_t k : {int64_t(0), most}) {
      if (k != 0 && n % 2 == 1) continue;
      L::put(second, k, C{L::get(second, k).re, zero});
    }
  } else {
    std::fill(second, second + 2 * W * (most + 1), T(0));
  }
  for (int64_t k = 0; k <= most; ++k) {
    const C a = L::get(first, k), b = L::get(second, k);
    // a + i b, exchanged; and the conjugates' at n - k.
    L::put(block.a, k, C{a.im + b.re, a.re - b.im});
    if (k != 0 && k != n - k) L::put(block.a, n - k, C{b.re - a.im, a.re + b.im});
  }
  T* x = transform(*block.plan, block.a, block.b);
  const V scale(block.scale);
  const bool direct = block.count == 2 * W && side_by_side(block.out_at, 2 * W);
  for (int64_t i = 0; i < n; ++i) {
    const C c = L::get(x, i);
    T* to = direct ? block.out + block.out_at[0] + i * block.out_step : x + 2 * W * i;
    (c.im * scale).store(to);
    (c.re * scale).store(to + W);
  }
  if (direct) return;
  if (block.out_step == 1) {
    scatter_rows<T>(x, 2 * W, block.count, n, block.out, block.out_at);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    for (int l = 0; l < block.count; ++l)
      block.out[block.out_at[l] + i * block.out_step] = x[2 * W * i + l];
}

} // namespace

FftLoops<float> float_loops() {
  return {Vec<float>::kLanes, &c2c<float>, &r2c<float>, &c2r<float>};
}
FftLoops<double> double_loops() {
  return {Vec<double>::kLanes, &c2c<double>, &r2c<double>, &c2r<double>};
}

} // namespace CRESSET_ISA
} // namespace at::native::fft
