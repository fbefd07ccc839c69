// The loops of TiledLoops.h. A product keeps a tile of C in registers, reads rows of B as they lie
// and single elements of A, so neither is packed first: for heads of 32 or 64 numbers packing costs
// as much as the product.
#include <limits>

#include <ATen/native/attention/TiledLoops.h>
#include <ATen/vec/ValueMath.h>

namespace at::native::attention_loops {
namespace CRESSET_ISA {
namespace {
using vec::Vec;

// AVX-512 has 32 registers, its elders 16.
constexpr int kRows = vec::kVecBytes == 64 ? 8 : 4;

template <class A, int R, int N> C10_ALWAYS_INLINE void tile(int64_t k, const A* a, int64_t a_rs,
                                                             int64_t a_cs, const A* b, int64_t b_rs,
                                                             A* c, int64_t c_rs, bool add) {
  using V = Vec<A>;
  V sums[R][N];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) sums[i][j] = add ? V::load(c + i * c_rs + j * V::kLanes) : V(A(0));
  for (int64_t p = 0; p < k; ++p) {
    V row[N];
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) row[j] = V::load(b + p * b_rs + j * V::kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const V factor(a[i * a_rs + p * a_cs]);
#pragma GCC unroll 2
      for (int j = 0; j < N; ++j) sums[i][j] = vm::fma(factor, row[j], sums[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) sums[i][j].store(c + i * c_rs + j * V::kLanes);
}

// All rows of N registers' columns, the last ones in tiles of half the height each.
template <class A, int R, int N> void columns(int64_t rows, int64_t k, const A* a, int64_t a_rs,
                                              int64_t a_cs, const A* b, int64_t b_rs, A* c,
                                              int64_t c_rs, bool add) {
  int64_t i = 0;
  for (; i + R <= rows; i += R)
    tile<A, R, N>(k, a + i * a_rs, a_rs, a_cs, b, b_rs, c + i * c_rs, c_rs, add);
  if constexpr (R > 1) {
    if (i < rows)
      columns<A, R / 2, N>(rows - i, k, a + i * a_rs, a_rs, a_cs, b, b_rs, c + i * c_rs, c_rs, add);
  }
}

template <class A> void product(int64_t rows, int64_t n, int64_t k, const A* a, int64_t a_rs,
                                int64_t a_cs, const A* b, int64_t b_rs, A* c, int64_t c_rs,
                                bool add) {
  constexpr int64_t kLanes = Vec<A>::kLanes;
  int64_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes)
    columns<A, kRows, 2>(rows, k, a, a_rs, a_cs, b + j, b_rs, c + j, c_rs, add);
  if (j < n) columns<A, kRows, 1>(rows, k, a, a_rs, a_cs, b + j, b_rs, c + j, c_rs, add);
}

template <class A>
void softmax(A* scores, int64_t keys, int64_t m, int64_t pitch, A* top, A* sum, A* factor) {
  using V = Vec<A>;
  const V lowest(-std::numeric_limits<A>::infinity()), zero(A(0));
  for (int64_t r = 0; r < m; r += V::kLanes) {
    A* const x = scores + r;
    const V before = V::load(top + r);
    V now = before, other = before;
    int64_t j = 0;
    for (; j + 2 <= keys; j += 2) {
      const V score = V::load(x + j * pitch), next = V::load(x + (j + 1) * pitch);
      now = vec::select(score > now, score, now);
      other = vec::select(next > other, next, other);
    }
    if (j < keys) {
      const V score = V::load(x + j * pitch);
      now = vec::select(score > now, score, now);
    }
    now = vec::select(other > now, other, now);
    // A query that has seen no key yet is shifted by nothing: its exponentials are zeros.
    const V shift = vec::select(now == lowest, zero, now);
    V even = zero, odd = zero;
    for (j = 0; j + 2 <= keys; j += 2) {
      const V e = vm::exp(V::load(x + j * pitch) - shift),
              f = vm::exp(V::load(x + (j + 1) * pitch) - shift);
      e.store(x + j * pitch);
      f.store(x + (j + 1) * pitch);
      even = even + e;
      odd = odd + f;
    }
    if (j < keys) {
      const V e = vm::exp(V::load(x + j * pitch) - shift);
      e.store(x + j * pitch);
      even = even + e;
    }
    (even + odd).store(sum + r);
    vm::exp(before - shift).store(factor + r);
    now.store(top + r);
  }
}

template <class A>
void exponentials(A* scores, int64_t keys, int64_t m, int64_t pitch, const A* shift) {
  using V = Vec<A>;
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t r = 0; r < m; r += V::kLanes) {
      A* const x = scores + j * pitch + r;
      vm::exp(V::load(x) - V::load(shift + r)).store(x);
    }
}

template <class A> void scaled_copy(const A* from, int64_t n, A factor, A* to) {
  using V = Vec<A>;
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) (V::load(from + i) * V(factor)).store(to + i);
  for (; i < n; ++i) to[i] = from[i] * factor;
}

template <class A> A dot(const A* a, const A* b, int64_t n) {
  using V = Vec<A>;
  V sum(A(0));
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) sum = vm::fma(V::load(a + i), V::load(b + i), sum);
  A lanes[V::kLanes];
  sum.store(lanes);
  for (int step = V::kLanes / 2; step > 0; step /= 2)
    for (int lane = 0; lane < step; ++lane) lanes[lane] += lanes[lane + step];
  A rest = 0;
  for (; i < n; ++i) rest += a[i] * b[i];
  return lanes[0] + rest;
}

template <class A>
void score_gradients(const A* p, A* grad, int64_t keys, int64_t m, int64_t pitch, const A* mean) {
  using V = Vec<A>;
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t r = 0; r < m; r += V::kLanes) {
      A* const g = grad + j * pitch + r;
      (V::load(p + j * pitch + r) * (V::load(g) - V::load(mean + r))).store(g);
    }
}

template <class A> constexpr TiledLoops<A> loops_of() {
  return {Vec<A>::kLanes,  &product<A>, &softmax<A>,        &exponentials<A>,
          &scaled_copy<A>, &dot<A>,     &score_gradients<A>};
}
} // namespace

const TiledTable tiled_table = {loops_of<float>(), loops_of<double>()};

} // namespace CRESSET_ISA
} // namespace at::native::attention_loops
