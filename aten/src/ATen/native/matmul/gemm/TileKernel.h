// From register blocks to a tile of C: the loop over k blocks, rows and panels, and the last stage
// that turns accumulators into stored elements. The k blocks have a length fixed per element type,
// so an element's sum has the same order wherever tile boundaries fall.
#pragma once

#include <ATen/native/matmul/gemm/KernelSet.h>
#include <ATen/native/matmul/gemm/MicroKernel.h>

namespace at::native::gemm::CRESSET_ISA {

template <class Step, int MR, int NV> const MicroTable<Step, MR, NV> micro_table{};

// Storage is real: one accumulator per element. NV vectors make a panel.
template <class Step_, class T_, int MR_, int NV_> struct RealKind {
  using Step = Step_;
  using CT = typename Step::Compute;
  using T = T_;
  using Scale = CT;
  static constexpr int MR = MR_;
  static constexpr int NV = NV_;
  static constexpr int vl = lanes<CT>;
  static constexpr int reals = 1;

  static void finish_row(const Tile& t, const CT* acc, T* c, const T* bias) {
    const CT alpha = *static_cast<const CT*>(t.alpha);
    const CT beta = *static_cast<const CT*>(t.beta);
    int64_t j = 0;
    if (t.c_cs == 1) {
      for (; j + vl <= t.n; j += vl) {
        Vec<CT> v = load<CT>(acc + j) * alpha;
        if (!t.beta_zero) {
          v += load_wide<CT>(c + j) * beta;
        }
        if (bias != nullptr) {
          v += load_wide<CT>(bias + j);
        }
        store_narrow<CT>(c + j, v);
      }
    }
    for (; j < t.n; ++j) {
      CT v = acc[j] * alpha;
      if (!t.beta_zero) {
        v += widen(c[j * t.c_cs]) * beta;
      }
      if (bias != nullptr) {
        v += widen(bias[j]);
      }
      narrow(v, c + j * t.c_cs);
    }
  }
};

template <class CT> struct ComplexPair { CT re, im; };

template <class CT_> struct ComplexKind {
  using CT = CT_;
  using Step = FmaStep<CT>;
  using T = ComplexPair<CT>;
  static constexpr int MR = kBlockRows;
  static constexpr int NV = kBlockVecs;
  static constexpr int vl = lanes<CT>;
  static constexpr int reals = 2;

  static GEMM_INLINE T times(T x, T y) {
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  }

  template <int... I>
  static GEMM_INLINE void put_interleaved(const CT* acc, T* c, std::integer_sequence<int, I...>) {
    const Vec<CT> re = load<CT>(acc);
    const Vec<CT> im = load<CT>(acc + vl);
    store<CT>(c, __builtin_shufflevector(re, im, (I / 2 + I % 2 * vl)...));
    store<CT>(c + vl / 2, __builtin_shufflevector(re, im, ((I + vl) / 2 + I % 2 * vl)...));
  }

  static void finish_row(const Tile& t, const CT* acc, T* c, const T* bias) {
    const T alpha = *static_cast<const T*>(t.alpha);
    const T beta = *static_cast<const T*>(t.beta);
    // alpha == 1 must leave an infinity alone: inf * (1 + 0i) has a NaN part.
    const bool scale = alpha.re != CT(1) || alpha.im != CT(0);
    int64_t start = 0;
    if (t.c_cs == 1 && !scale && t.beta_zero && bias == nullptr) {
      for (; start + vl <= t.n; start += vl) {
        put_interleaved(acc + 2 * start, c + start, std::make_integer_sequence<int, vl>());
      }
    }
    for (int64_t j = start; j < t.n; ++j) {
      const CT* from = acc + j / vl * 2 * vl + j % vl;
      T v{from[0], from[vl]};
      if (scale) {
        v = times(v, alpha);
      }
      if (!t.beta_zero) {
        const T old = t.beta_one ? c[j * t.c_cs] : times(c[j * t.c_cs], beta);
        v = {v.re + old.re, v.im + old.im};
      }
      if (bias != nullptr) {
        v = {v.re + bias[j].re, v.im + bias[j].im};
      }
      c[j * t.c_cs] = v;
    }
  }
};

template <class Kind> void finish_tile(const Tile& t) {
  using T = typename Kind::T;
  for (int64_t i = 0; i < t.m; ++i) {
    Kind::finish_row(t, reinterpret_cast<const typename Kind::CT*>(t.acc + i * t.acc_row),
                     reinterpret_cast<T*>(t.c) + i * t.c_rs, reinterpret_cast<const T*>(t.bias));
  }
}

template <class Kind> void scale_in_place(const Tile& t) {
  using CT = typename Kind::CT;
  const CT beta = *static_cast<const CT*>(t.beta);
  for (int64_t i = 0; i < t.m; ++i) {
    CT* row = reinterpret_cast<CT*>(t.c) + i * t.c_rs;
    for (int64_t j = 0; j < t.n; ++j) {
      row[j] *= beta;
    }
  }
}

// All register blocks of one k block.
template <class Kind> void tile_block(const Tile& t, int64_t from, int64_t steps,
                                      MicroArgs<typename Kind::CT> g, bool fresh) {
  using CT = typename Kind::CT;
  using Step = typename Kind::Step;
  constexpr int MR = Kind::MR;
  constexpr int NV = Kind::NV;
  constexpr int64_t nr = NV * lanes<CT>; // real columns
  const int64_t columns = t.n * Kind::reals;
  const int64_t padded = (t.n + Kind::vl - 1) / Kind::vl * Kind::vl * Kind::reals;
  const CT* bias = t.acc == nullptr ? reinterpret_cast<const CT*>(t.bias) : nullptr;
  CT* const c = g.c;
  g.steps = steps;
  for (int64_t i = 0; i < t.m; i += MR) {
    const int rows = static_cast<int>(min_of(MR, t.m - i));
    g.a = t.a + i * t.a_row + from * Step::a_bytes;
    for (int64_t j = 0; j < columns; j += nr) {
      const int64_t width = min_of(nr, padded - j);
      const int vectors = static_cast<int>(width / lanes<CT>);
      if (t.b_step == 0) {
        g.b_step = vectors * kVecBytes;
        g.b = t.b + j / nr * t.b_panel + from * g.b_step;
      } else if (t.b_edge != nullptr && j + nr > t.n) {
        g.b_step = vectors * kVecBytes;
        g.b = t.b_edge + from * g.b_step;
      } else {
        g.b_step = t.b_step;
        g.b = t.b + j * static_cast<int64_t>(sizeof(CT)) + from * t.b_step;
      }
      g.c = c + i * g.c_row + j;
      g.columns = static_cast<int>(t.acc != nullptr ? width : min_of(nr, columns - j));
      if (fresh) {
        g.add = bias == nullptr ? nullptr : bias + j;
        g.add_row = 0;
      } else {
        g.add = g.c;
        g.add_row = g.c_row;
      }
      micro_table<Step, MR, NV>.fn[rows - 1][vectors - 1](g);
    }
  }
}

template <class Kind> void compute_tile(const Tile& t) {
  using CT = typename Kind::CT;
  MicroArgs<CT> g{};
  g.a_row = t.a_row;
  bool fresh = t.first;
  if (t.acc != nullptr) {
    g.c = reinterpret_cast<CT*>(t.acc);
    g.c_row = t.acc_row / static_cast<int64_t>(sizeof(CT));
    g.alpha = CT(1);
  } else {
    g.c = reinterpret_cast<CT*>(t.c);
    g.c_row = t.c_rs;
    g.alpha = *static_cast<const CT*>(t.alpha);
    if (t.first && !t.beta_zero) {
      fresh = false;
      if (!t.beta_one) {
        scale_in_place<Kind>(t);
      }
    }
  }
  for (int64_t s = 0; s < t.steps; s += kBlockSteps) {
    tile_block<Kind>(t, s, min_of(kBlockSteps, t.steps - s), g, fresh);
    fresh = false;
  }
  if (t.acc != nullptr && t.last) {
    finish_tile<Kind>(t);
  }
}

template <class CT> void add_reals(char* total, const char* part, int64_t bytes) {
  for (int64_t offset = 0; offset < bytes; offset += kVecBytes) {
    store<CT>(total + offset, load<CT>(total + offset) + load<CT>(part + offset));
  }
}

} // namespace at::native::gemm::CRESSET_ISA
