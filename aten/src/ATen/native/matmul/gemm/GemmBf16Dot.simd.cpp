// BFloat16 by the AVX-512 dot-product instruction: two k per step into float accumulators, twice
// the rate of widening to float. The instruction treats subnormal numbers as zero. This file needs
// more than the AVX-512 level's flags, hence its own namespace for the shared templates: code
// compiled for the instruction must never be the copy another file links to.
#include <ATen/native/matmul/gemm/KernelSet.h>

#if defined(__AVX512F__)

#pragma GCC target("avx512bf16")
#undef CRESSET_ISA
#define CRESSET_ISA avx512_bf16

#include <ATen/native/matmul/gemm/TileKernel.h>

namespace at::native::gemm::avx512_bf16 {
namespace {

struct DotStep {
  using Compute = float;
  static constexpr int a_bytes = 4;
  using Operand = Vec<int32_t>;
  static GEMM_INLINE Operand load_b(const char* p) { return load<int32_t>(p); }
  static GEMM_INLINE Operand splat_a(const char* p) {
    typedef int32_t Loose __attribute__((aligned(1), may_alias));
    return splat<int32_t>(*reinterpret_cast<const Loose*>(p));
  }
  static GEMM_INLINE Vec<float> mul_add(Operand a, Operand b, Vec<float> acc) {
    return _mm512_dpbf16_ps(reinterpret_cast<__m512>(acc), reinterpret_cast<__m512bh>(a),
                            reinterpret_cast<__m512bh>(b));
  }
};

using Kind = RealKind<DotStep, BFloat16Bits, kBlockRows, kBlockVecs>;
constexpr int kLanes = lanes<uint32_t>;

GEMM_INLINE uint32_t pair_of(const uint16_t* p, int64_t stride, int64_t left) {
  return p[0] | (left > 1 ? uint32_t(p[stride]) << 16 : 0);
}

GEMM_INLINE Vec<uint32_t> interleaved(const uint16_t* even, const uint16_t* odd) {
  Narrow lo;
  Narrow hi;
  std::memcpy(&lo, even, sizeof(lo));
  std::memcpy(&hi, odd, sizeof(hi));
  return __builtin_convertvector(lo, Vec<uint32_t>) |
         (__builtin_convertvector(hi, Vec<uint32_t>) << 16);
}

// dst[pair][line] for `lines` lines of k contiguous elements each.
void pairs_across(int64_t lines, int64_t k, const uint16_t* src, int64_t ls, uint32_t* dst,
                  int64_t ld) {
  const int64_t whole = k / 2 / kLanes * kLanes; // pairs
  int64_t r = 0;
  for (; r + kLanes <= lines; r += kLanes) {
    for (int64_t c = 0; c < whole; c += kLanes) {
      Vec<uint32_t> square[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        square[i] = load<uint32_t>(src + (r + i) * ls + 2 * c);
      }
      transpose_square<uint32_t>(square);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        store<uint32_t>(dst + (c + i) * ld + r, square[i]);
      }
    }
  }
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t c = line < r ? whole : 0; 2 * c < k; ++c) {
      dst[c * ld + line] = pair_of(src + line * ls + 2 * c, 1, k - 2 * c);
    }
  }
}

// dst[line][pair] for lines that are contiguous at each k.
void pairs_along(int64_t lines, int64_t k, const uint16_t* src, int64_t ks, uint32_t* dst,
                 int64_t ld) {
  const int64_t whole = k / 2 / kLanes * kLanes;
  int64_t r = 0;
  for (; r + kLanes <= lines; r += kLanes) {
    for (int64_t c = 0; c < whole; c += kLanes) {
      Vec<uint32_t> square[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        const uint16_t* even = src + 2 * (c + i) * ks + r;
        square[i] = interleaved(even, even + ks);
      }
      transpose_square<uint32_t>(square);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        store<uint32_t>(dst + (r + i) * ld + c, square[i]);
      }
    }
  }
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t c = line < r ? whole : 0; 2 * c < k; ++c) {
      dst[line * ld + c] = pair_of(src + line + 2 * c * ks, ks, k - 2 * c);
    }
  }
}

void pack_a(int64_t rows, int64_t k, const char* a, int64_t rs, int64_t cs, char* dst,
            int64_t row) {
  const uint16_t* src = reinterpret_cast<const uint16_t*>(a);
  uint32_t* to = reinterpret_cast<uint32_t*>(dst);
  const int64_t ld = row / 4;
  if (rs == 1) {
    pairs_along(rows, k, src, cs, to, ld);
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t p = 0; p < k; p += 2) {
      to[i * ld + p / 2] = pair_of(src + i * rs + p * cs, cs, k - p);
    }
  }
}

void pack_b(int64_t k, int64_t cols, const char* b, int64_t rs, int64_t cs, char* dst) {
  const uint16_t* src = reinterpret_cast<const uint16_t*>(b);
  uint32_t* to = reinterpret_cast<uint32_t*>(dst);
  const int64_t width = (cols + kLanes - 1) / kLanes * kLanes;
  const int64_t steps = (k + 1) / 2;
  if (rs == 1) {
    pairs_across(cols, k, src, cs, to, width);
  } else {
    for (int64_t s = 0; s < steps; ++s) {
      const uint16_t* even = src + 2 * s * rs;
      int64_t j = 0;
      if (cs == 1 && 2 * s + 1 < k) {
        for (; j + kLanes <= cols; j += kLanes) {
          store<uint32_t>(to + s * width + j, interleaved(even + j, even + rs + j));
        }
      }
      for (; j < cols; ++j) {
        to[s * width + j] = pair_of(even + j * cs, rs, k - 2 * s);
      }
    }
  }
  for (int64_t s = 0; s < steps; ++s) {
    for (int64_t j = cols; j < width; ++j) {
      to[s * width + j] = 0;
    }
  }
}

constexpr KernelSet make_set() {
  KernelSet set{};
  set.elem_size = 2;
  set.acc_size = 4;
  set.mr = kBlockRows;
  set.nr = kBlockVecs * kLanes;
  set.vl = kLanes;
  set.a_step = 4;
  set.b_vec_step = kVecBytes;
  set.k_per_step = 2;
  set.steps_per_k = 1;
  set.a_in_place = true;
  set.pack_a = &pack_a;
  set.pack_b = &pack_b;
  set.tile = &compute_tile<Kind>;
  set.finish = &finish_tile<Kind>;
  set.add = &add_reals<float>;
  return set;
}

} // namespace

const KernelSet* bf16_dot_set() {
  static constexpr KernelSet set = make_set();
  return &set;
}

} // namespace at::native::gemm::avx512_bf16

#endif
