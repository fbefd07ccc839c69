// Tiles of the weight-only products. With AVX-512 a 4-bit weight becomes a float by one lookup in a
// register of 16 numbers, which reads the lowest four bits of each lane and so needs no mask, and a
// micro-kernel keeps 6 rows x 64 outputs of sums. Elsewhere a group of weights is unpacked into the
// first-level cache. See WeightOnly.h.
#include <ATen/native/quantized/WeightOnly.h>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace at::quantized::weight_only {
namespace CRESSET_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int64_t kWholeBlock = 64;
constexpr int kLanes = 16;

// ---- 4-bit weights
// (scale, zero) of 16 neighbouring outputs, apart.
inline void load_pairs(const float* p, __m512& scale, __m512& zero) {
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512 first = _mm512_loadu_ps(p), second = _mm512_loadu_ps(p + kLanes);
  scale = _mm512_permutex2var_ps(first, even, second);
  zero = _mm512_permutex2var_ps(first, _mm512_add_epi32(even, _mm512_set1_epi32(1)), second);
}
inline void load_pairs(const c10::BFloat16* p, __m512& scale, __m512& zero) {
  const __m512i both = _mm512_loadu_si512(p);
  scale = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
  zero =
      _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}
inline void load_pairs(const c10::Half* p, __m512& scale, __m512& zero) {
  const __m512i both = _mm512_loadu_si512(p);
  scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(both));
  zero = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(both, 16)));
}

// The weights of one inner index, less 8: 64 outputs of a whole block, or 16 of the rest.
inline void load_weights(const uint8_t* p, __m512 numbers, __m512 (&w)[4]) {
  const __m512i first = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512i second =
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16)));
  w[0] = _mm512_permutexvar_ps(first, numbers);
  w[1] = _mm512_permutexvar_ps(second, numbers);
  w[2] = _mm512_permutexvar_ps(_mm512_srli_epi32(first, 4), numbers);
  w[3] = _mm512_permutexvar_ps(_mm512_srli_epi32(second, 4), numbers);
}
inline void load_weights(const uint8_t* p, __m512 numbers, __m512 (&w)[1]) {
  const __m512i wide = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m512i both = _mm512_or_si512(wide, _mm512_slli_epi64(wide, 28));
  w[0] = _mm512_permutexvar_ps(both, numbers);
}

template <class S, int kRows, int kVectors>
void int4_kernel(const Int4Tile& t, int64_t row, int64_t column, int64_t bytes) {
  const __m512 numbers = _mm512_set_ps(7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8);
  const float* x = t.x + row * t.x_stride;
  const int64_t groups = t.k / t.group;
  const float* sums = t.sums + row * groups;
  const uint8_t* weights = t.weights + column / 2;
  const S* scales = static_cast<const S*>(t.scales) + 2 * column;
  float* out = t.out + row * t.out_stride + column;
  for (int64_t g = 0; g < groups; ++g) {
    __m512 sum[kRows][kVectors];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kVectors; ++c) sum[r][c] = _mm512_setzero_ps();
    for (int64_t k = g * t.group; k < (g + 1) * t.group; ++k) {
      __m512 w[kVectors];
      load_weights(weights + k * bytes, numbers, w);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const __m512 value = _mm512_set1_ps(x[r * t.x_stride + k]);
#pragma GCC unroll 4
        for (int c = 0; c < kVectors; ++c) sum[r][c] = _mm512_fmadd_ps(value, w[c], sum[r][c]);
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c) {
      __m512 scale, zero;
      load_pairs(scales + 2 * (g * t.scale_stride + c * kLanes), scale, zero);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        float* to = out + r * t.out_stride + c * kLanes;
        const __m512 before = g == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(to);
        const __m512 shift = _mm512_set1_ps(sums[r * groups + g]);
        _mm512_storeu_ps(to,
                         _mm512_fmadd_ps(sum[r][c], scale, _mm512_fmadd_ps(shift, zero, before)));
      }
    }
  }
}

template <class S, int kVectors> void int4_rows(const Int4Tile& t, int64_t column, int64_t bytes) {
  int64_t row = 0;
  for (; row + 6 <= t.rows; row += 6) int4_kernel<S, 6, kVectors>(t, row, column, bytes);
  switch (t.rows - row) {
  case 5:
    return int4_kernel<S, 5, kVectors>(t, row, column, bytes);
  case 4:
    return int4_kernel<S, 4, kVectors>(t, row, column, bytes);
  case 3:
    return int4_kernel<S, 3, kVectors>(t, row, column, bytes);
  case 2:
    return int4_kernel<S, 2, kVectors>(t, row, column, bytes);
  case 1:
    return int4_kernel<S, 1, kVectors>(t, row, column, bytes);
  default:
    return;
  }
}

template <class S> void int4_whole(const Int4Tile& t) { int4_rows<S, 4>(t, 0, kWholeBlock / 2); }
template <class S> void int4_rest(const Int4Tile& t) {
  for (int64_t column = 0; column < t.columns; column += kLanes)
    int4_rows<S, 1>(t, column, t.columns / 2);
}

// ---- 8-bit weights
inline __m128 sums_of(__m512 a, __m512 b, __m512 c, __m512 d) {
  const auto half = [](__m512 v) {
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  };
  const __m256 four =
      _mm256_hadd_ps(_mm256_hadd_ps(half(a), half(b)), _mm256_hadd_ps(half(c), half(d)));
  return _mm_add_ps(_mm256_castps256_ps128(four), _mm256_extractf128_ps(four, 1));
}

template <int kRows, int kColumns> inline void int8_step(const float* x, int64_t x_stride,
                                                         const int8_t* w, int64_t k, __mmask16 mask,
                                                         __m512 (&sum)[kRows][kColumns]) {
  __m512 columns[kColumns];
#pragma GCC unroll 4
  for (int c = 0; c < kColumns; ++c)
    columns[c] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, w + c * k)));
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const __m512 values = _mm512_maskz_loadu_ps(mask, x + r * x_stride);
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) sum[r][c] = _mm512_fmadd_ps(values, columns[c], sum[r][c]);
  }
}

template <int kRows, int kColumns>
void int8_kernel(const Int8Tile& t, int64_t row, int64_t column) {
  const float* x = t.x + row * t.x_stride;
  const int8_t* w = t.weights + column * t.k;
  __m512 sum[kRows][kColumns];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) sum[r][c] = _mm512_setzero_ps();
  int64_t k = 0;
  for (; k + kLanes <= t.k; k += kLanes)
    int8_step<kRows, kColumns>(x + k, t.x_stride, w + k, t.k, static_cast<__mmask16>(0xffff), sum);
  if (k < t.k) {
    const auto mask = static_cast<__mmask16>((1u << (t.k - k)) - 1);
    int8_step<kRows, kColumns>(x + k, t.x_stride, w + k, t.k, mask, sum);
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    float* out = t.out + (row + r) * t.out_stride + column;
    if constexpr (kColumns == 4) {
      const __m128 four = sums_of(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
      _mm_storeu_ps(out, _mm_mul_ps(four, _mm_loadu_ps(t.scales + column)));
    } else {
      out[0] = _mm512_reduce_add_ps(sum[r][0]) * t.scales[column];
    }
  }
}

template <int kRows> void int8_columns(const Int8Tile& t, int64_t row) {
  int64_t column = 0;
  for (; column + 4 <= t.columns; column += 4) int8_kernel<kRows, 4>(t, row, column);
  for (; column < t.columns; ++column) int8_kernel<kRows, 1>(t, row, column);
}

// A few rows of activations stay in the first-level cache while the weights pass by.
void int8_tile(const Int8Tile& t) {
  int64_t row = 0;
  for (; row + 6 <= t.rows; row += 6) int8_columns<6>(t, row);
  for (; row + 3 <= t.rows; row += 3) int8_columns<3>(t, row);
  for (; row < t.rows; ++row) int8_columns<1>(t, row);
}
#else
constexpr int64_t kWholeBlock = 32;

// Rows of activations times the unpacked weights of one group.
template <class S, int kWidth>
void add_group(const Int4Tile& t, int64_t g, const float (*w)[kWidth]) {
  const S* pairs = static_cast<const S*>(t.scales) + 2 * g * t.scale_stride;
  float scale[kWidth], zero[kWidth];
  for (int c = 0; c < kWidth; ++c) {
    scale[c] = static_cast<float>(pairs[2 * c]);
    zero[c] = static_cast<float>(pairs[2 * c + 1]);
  }
  for (int64_t row = 0; row < t.rows; ++row) {
    const float* x = t.x + row * t.x_stride + g * t.group;
    float sum[kWidth] = {};
    for (int64_t k = 0; k < t.group; ++k)
      for (int c = 0; c < kWidth; ++c) sum[c] += x[k] * w[k][c];
    const float shift = t.sums[row * (t.k / t.group) + g];
    float* out = t.out + row * t.out_stride;
    for (int c = 0; c < kWidth; ++c) {
      const float before = g == 0 ? 0.0f : out[c];
      out[c] = before + shift * zero[c] + sum[c] * scale[c];
    }
  }
}

// `kPaired`: neighbours share a byte, as in what is left after whole blocks.
template <class S, int kWidth, bool kPaired> void int4_block(const Int4Tile& t) {
  constexpr int kBytes = kWidth / 2;
  float w[256][kWidth]; // the largest group
  for (int64_t g = 0; g < t.k / t.group; ++g) {
    for (int64_t k = 0; k < t.group; ++k) {
      const uint8_t* bytes = t.weights + (g * t.group + k) * kBytes;
      for (int c = 0; c < kBytes; ++c) {
        w[k][kPaired ? 2 * c : c] = static_cast<float>((bytes[c] & 15) - 8);
        w[k][kPaired ? 2 * c + 1 : c + kBytes] = static_cast<float>((bytes[c] >> 4) - 8);
      }
    }
    add_group<S, kWidth>(t, g, w);
  }
}
template <class S> void int4_whole(const Int4Tile& t) { int4_block<S, 32, false>(t); }
template <class S> void int4_rest(const Int4Tile& t) { int4_block<S, 16, true>(t); }

void int8_tile(const Int8Tile& t) {
  constexpr int kLanes = 32;
  for (int64_t column = 0; column < t.columns; ++column) {
    const int8_t* w = t.weights + column * t.k;
    for (int64_t row = 0; row < t.rows; ++row) {
      const float* x = t.x + row * t.x_stride;
      float lanes[kLanes] = {};
      int64_t k = 0;
      for (; k + kLanes <= t.k; k += kLanes)
        for (int i = 0; i < kLanes; ++i) lanes[i] += x[k + i] * static_cast<float>(w[k + i]);
      float sum = 0;
      for (; k < t.k; ++k) sum += x[k] * static_cast<float>(w[k]);
      for (int i = 0; i < kLanes; ++i) sum += lanes[i];
      t.out[row * t.out_stride + column] = sum * t.scales[column];
    }
  }
}
#endif

// ---- 8-bit integers on both sides
void integers_plain(const IntTile& t) {
  for (int64_t row = 0; row < t.rows; ++row) {
    const uint8_t* a = t.a + row * t.k;
    for (int64_t column = 0; column < t.columns; ++column) {
      const int8_t* w = t.weights + column * t.weight_stride;
      int32_t sum = 0;
      for (int64_t k = 0; k < t.k; ++k) sum += (static_cast<int32_t>(a[k]) - 128) * w[k];
      t.out[row * t.out_stride + column] = sum;
    }
  }
}

#if defined(__AVX512F__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
inline __m128i sums_of(__m512i a, __m512i b, __m512i c, __m512i d) {
  const auto half = [](__m512i v) __attribute__((target("avx512f,avx512dq"))) {
    return _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
  };
  const __m256i four =
      _mm256_hadd_epi32(_mm256_hadd_epi32(half(a), half(b)), _mm256_hadd_epi32(half(c), half(d)));
  return _mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
}

// Four outputs of kRows rows; `columns` of the four exist. The 128 that levels are too large by is
// taken off as a fifth row of activations.
template <int kRows> void vnni_kernel(const IntTile& t, int64_t row, int64_t column, int columns) {
  const uint8_t* a = t.a + row * t.k;
  const int8_t* w[4];
  for (int c = 0; c < 4; ++c) w[c] = t.weights + (column + (c < columns ? c : 0)) * t.weight_stride;
  const __m512i middle = _mm512_set1_epi8(static_cast<char>(0x80));
  __m512i sum[kRows][4], excess[4];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    excess[c] = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sum[r][c] = _mm512_setzero_si512();
  }
  for (int64_t k = 0; k < t.k; k += 64) {
    const __mmask64 mask = t.k - k >= 64 ? ~0ull : (1ull << (t.k - k)) - 1;
    __m512i values[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) values[r] = _mm512_maskz_loadu_epi8(mask, a + r * t.k + k);
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const __m512i levels = _mm512_maskz_loadu_epi8(mask, w[c] + k);
      excess[c] = _mm512_dpbusd_epi32(excess[c], middle, levels);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sum[r][c] = _mm512_dpbusd_epi32(sum[r][c], values[r], levels);
    }
  }
  const __m128i over = sums_of(excess[0], excess[1], excess[2], excess[3]);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const __m128i four = _mm_sub_epi32(sums_of(sum[r][0], sum[r][1], sum[r][2], sum[r][3]), over);
    int32_t* out = t.out + (row + r) * t.out_stride + column;
    _mm_mask_storeu_epi32(out, static_cast<__mmask8>((1 << columns) - 1), four);
  }
}

void integers_vnni(const IntTile& t) {
  for (int64_t column = 0; column < t.columns; column += 4) {
    const int columns = t.columns - column >= 4 ? 4 : static_cast<int>(t.columns - column);
    int64_t row = 0;
    for (; row + 4 <= t.rows; row += 4) vnni_kernel<4>(t, row, column, columns);
    for (; row + 2 <= t.rows; row += 2) vnni_kernel<2>(t, row, column, columns);
    for (; row < t.rows; ++row) vnni_kernel<1>(t, row, column, columns);
  }
}
#pragma GCC pop_options
#endif

void group_sums(const float* x, int64_t n, int64_t group, float* out) {
  for (int64_t g = 0; g < n / group; ++g) {
    float lanes[16] = {};
    for (int64_t k = 0; k < group; k += 16)
      for (int i = 0; i < 16; ++i) lanes[i] += x[g * group + k + i];
    float sum = 0;
    for (int i = 0; i < 16; ++i) sum += lanes[i];
    out[g] = sum;
  }
}

template <class S> void fill_int4(Table& table, Scales dtype) {
  table.int4_whole[dtype] = &int4_whole<S>;
  table.int4_rest[dtype] = &int4_rest<S>;
}

} // namespace

void fill(Table& table) {
  table.int4_block = kWholeBlock;
  fill_int4<float>(table, kScalesFloat);
  fill_int4<c10::BFloat16>(table, kScalesBFloat16);
  fill_int4<c10::Half>(table, kScalesHalf);
  table.int8 = &int8_tile;
  table.integers = &integers_plain;
#if defined(__AVX512F__)
  if (__builtin_cpu_supports("avx512vnni")) table.integers = &integers_vnni;
#endif
  table.group_sums = &group_sums;
}

} // namespace CRESSET_ISA
} // namespace at::quantized::weight_only
