// The register block: MR rows by NV vectors of C held in registers through all steps of a k block.
// Six rows by four vectors reach 99 % of the multiply-add peak on AVX-512 (measured, B streaming
// from the second-level cache), so this is the only inner loop of the library; edges are the same
// template with fewer rows or vectors, not a padded full block.
#pragma once

#include <ATen/native/matmul/gemm/Vector.h>

namespace at::native::gemm::CRESSET_ISA {

template <class CT> struct MicroArgs {
  int64_t steps;
  const char* a;
  int64_t a_row;
  const char* b;
  int64_t b_step;
  CT* c;
  int64_t c_row; // elements of CT
  CT alpha;
  const CT* add;   // C = alpha * sum + add: nullptr, C itself, or the bias with add_row 0
  int64_t add_row; // elements of CT
  int columns;     // real columns to write: NV vectors, or fewer in the last one
};

// Multiply-add of one step in the compute type itself.
template <class CT> struct FmaStep {
  using Compute = CT;
  static constexpr int a_bytes = sizeof(CT);
  using Operand = Vec<CT>;
  static GEMM_INLINE Operand load_b(const char* p) { return load<CT>(p); }
  static GEMM_INLINE Operand splat_a(const char* p) {
    typedef CT Loose __attribute__((aligned(1), may_alias));
    return splat<CT>(*reinterpret_cast<const Loose*>(p));
  }
  static GEMM_INLINE Vec<CT> mul_add(Operand a, Operand b, Vec<CT> acc) { return acc + a * b; }
};

template <class CT>
GEMM_INLINE void put_partial(const MicroArgs<CT>& g, int row, int column, Vec<CT> v) {
  CT lane[lanes<CT>] = {};
  const int count = g.columns - column;
  if (g.add != nullptr) {
    for (int j = 0; j < count; ++j) {
      lane[j] = g.add[row * g.add_row + column + j];
    }
    v += load<CT>(lane);
  }
  store<CT>(lane, v);
  for (int j = 0; j < count; ++j) {
    g.c[row * g.c_row + column + j] = lane[j];
  }
}

// Vectors below `whole` are written in full.
template <bool Add, class CT, int MR, int NV>
GEMM_INLINE void put_whole(const MicroArgs<CT>& g, const Vec<CT> (&acc)[MR][NV], int whole) {
  constexpr int n = lanes<CT>;
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) {
      if (j == NV - 1 && whole < NV) {
        put_partial<CT>(g, i, j * n, acc[i][j]);
        continue;
      }
      Vec<CT> v = acc[i][j];
      if constexpr (Add) {
        v += load<CT>(g.add + i * g.add_row + j * n);
      }
      store<CT>(g.c + i * g.c_row + j * n, v);
    }
  }
}

template <class CT, int MR, int NV>
GEMM_INLINE void put_block(const MicroArgs<CT>& g, Vec<CT> (&acc)[MR][NV]) {
  // A stage of its own: fused with the addition below in some lanes and not in others, it would
  // make an element depend on its place in the block.
  if (g.alpha != CT(1)) {
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < NV; ++j) {
        acc[i][j] *= g.alpha;
      }
    }
  }
  const int whole = g.columns / lanes<CT>;
  if (g.add != nullptr) {
    put_whole<true>(g, acc, whole);
  } else {
    put_whole<false>(g, acc, whole);
  }
}

template <class Step, int MR, int NV>
void micro_kernel(const MicroArgs<typename Step::Compute>& args) {
  using CT = typename Step::Compute;
  const MicroArgs<CT> g = args; // a copy: stores to C cannot change it
  using Operand = typename Step::Operand;
  constexpr int prefetch_steps = 8;
  Vec<CT> acc[MR][NV];
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) {
      acc[i][j] = Vec<CT>{};
    }
  }
  const char* a = g.a;
  const char* b = g.b;
  const int64_t a_row = g.a_row;
  const int64_t b_step = g.b_step;
  const int64_t steps = g.steps;
  for (int64_t p = 0; p < steps; ++p) {
    Operand bv[NV];
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) {
      bv[j] = Step::load_b(b + j * kVecBytes);
      __builtin_prefetch(b + b_step * prefetch_steps + j * kVecBytes);
    }
    b += b_step;
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i) {
      const Operand av = Step::splat_a(a + i * a_row + p * Step::a_bytes);
#pragma GCC unroll 16
      for (int j = 0; j < NV; ++j) {
        acc[i][j] = Step::mul_add(av, bv[j], acc[i][j]);
      }
    }
  }
  put_block(g, acc);
}

// micro_table<Step, MR, NV>[rows - 1][vectors - 1]
template <class Step> using MicroFn = void (*)(const MicroArgs<typename Step::Compute>&);

template <class Step, int MR, int NV> struct MicroTable {
  MicroFn<Step> fn[MR][NV];
  constexpr MicroTable() : fn() { fill_rows(std::make_integer_sequence<int, MR>()); }

 private:
  template <int... I> constexpr void fill_rows(std::integer_sequence<int, I...>) {
    (fill_row<I>(std::make_integer_sequence<int, NV>()), ...);
  }
  template <int I, int... J> constexpr void fill_row(std::integer_sequence<int, J...>) {
    ((fn[I][J] = &micro_kernel<Step, I + 1, J + 1>), ...);
  }
};

} // namespace at::native::gemm::CRESSET_ISA
