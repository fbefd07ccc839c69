// Tiles of sums. With AVX-512 VNNI one instruction adds four products to each of 16 columns; a
// micro-kernel keeps 6 rows x 64 columns of sums in registers. AVX2 widens to 16 bits first, which
// is exact where the instruction for bytes would saturate. See Int8Product.h.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("vect-cost-model=dynamic") // for loops whose length is not known
#endif
#include <ATen/native/quantized/Int8Product.h>

#include <cmath>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace at::quantized::int8 {
namespace CRESSET_ISA {
namespace {

using Product = void (*)(const uint8_t*, int64_t, int64_t, const int8_t*, int64_t, int64_t,
                         int32_t*, int64_t);

#if defined(__AVX512F__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512vnni")
template <int kRows, int kBlocks> void vnni_kernel(const uint8_t* a, int64_t lda, const int8_t* b,
                                                   int64_t groups, int32_t* sums, int64_t stride) {
  const int64_t block = groups * kGroup * kBlock;
  __m512i sum[kRows][kBlocks];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kBlocks; ++c) sum[r][c] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; ++g) {
    __m512i columns[kBlocks];
#pragma GCC unroll 4
    for (int c = 0; c < kBlocks; ++c)
      columns[c] = _mm512_loadu_si512(b + c * block + g * kGroup * kBlock);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      int32_t four;
      std::memcpy(&four, a + r * lda + g * kGroup, sizeof four);
      const __m512i row = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int c = 0; c < kBlocks; ++c) sum[r][c] = _mm512_dpbusd_epi32(sum[r][c], row, columns[c]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kBlocks; ++c)
      _mm512_storeu_si512(sums + r * stride + c * kBlock, sum[r][c]);
}

template <int kBlocks> void vnni_rows(const uint8_t* a, int64_t lda, int64_t rows, const int8_t* b,
                                      int64_t groups, int32_t* sums, int64_t stride) {
  for (; rows >= 6; rows -= 6, a += 6 * lda, sums += 6 * stride)
    vnni_kernel<6, kBlocks>(a, lda, b, groups, sums, stride);
  switch (rows) {
  case 5:
    return vnni_kernel<5, kBlocks>(a, lda, b, groups, sums, stride);
  case 4:
    return vnni_kernel<4, kBlocks>(a, lda, b, groups, sums, stride);
  case 3:
    return vnni_kernel<3, kBlocks>(a, lda, b, groups, sums, stride);
  case 2:
    return vnni_kernel<2, kBlocks>(a, lda, b, groups, sums, stride);
  case 1:
    return vnni_kernel<1, kBlocks>(a, lda, b, groups, sums, stride);
  default:
    return;
  }
}

void vnni_product(const uint8_t* a, int64_t lda, int64_t rows, const int8_t* b, int64_t groups,
                  int64_t blocks, int32_t* sums, int64_t stride) {
  const int64_t block = groups * kGroup * kBlock;
  for (; blocks >= 4; blocks -= 4, b += 4 * block, sums += 4 * kBlock)
    vnni_rows<4>(a, lda, rows, b, groups, sums, stride);
  for (; blocks > 0; --blocks, b += block, sums += kBlock)
    vnni_rows<1>(a, lda, rows, b, groups, sums, stride);
}

// Values of a block of columns from `rows` rows of sums; columns from `end` on do not exist. What
// belongs to the columns stays in registers.
void store_values(const Epilogue& e, int64_t first_row, int64_t rows, int64_t column, int64_t end,
                  const int32_t* sums, int64_t stride) {
  const int64_t left = end - column;
  const __mmask16 mask = left >= kBlock ? 0xffff : static_cast<__mmask16>((1u << left) - 1);
  const __m512i offset = _mm512_maskz_loadu_epi32(mask, e.offset + column);
  const __m512 scale = _mm512_maskz_loadu_ps(mask, e.scale + column);
  const __m512 bias =
      e.bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, e.bias + column);
  const int64_t step = e.stride;
  float* out = static_cast<float*>(e.out) + first_row * step + column;
  for (int64_t row = 0; row < rows; ++row, out += step, sums += stride) {
    const __m512i corrected = _mm512_sub_epi32(_mm512_load_si512(sums), offset);
    const __m512 value = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(mask, corrected), scale, bias);
    _mm512_mask_storeu_ps(out, mask, value);
  }
}

// The sums of a micro-kernel pass through a buffer in the first-level cache. Finishing them in its
// registers took twice the time: the compiler then keeps them in memory from the start.
void vnni_values(const uint8_t* a, int64_t lda, int64_t rows, const int8_t* b, int64_t groups,
                 int64_t blocks, const Epilogue& e, int64_t first_row, int64_t first_column,
                 int64_t columns) {
  constexpr int64_t kRows = 6, kWide = 4;
  alignas(64) int32_t sums[kRows * kWide * kBlock];
  const int64_t end = first_column + columns;
  for (int64_t block = 0; block < blocks; block += kWide) {
    const int64_t width = blocks - block < kWide ? blocks - block : kWide;
    for (int64_t row = 0; row < rows; row += kRows) {
      const int64_t height = rows - row < kRows ? rows - row : kRows;
      vnni_product(a + row * lda, lda, height, b + block * groups * kGroup * kBlock, groups, width,
                   sums, kWide * kBlock);
      for (int64_t c = 0; c < width; ++c)
        store_values(e, first_row + row, height, first_column + (block + c) * kBlock, end,
                     sums + c * kBlock, kWide * kBlock);
    }
  }
}
#pragma GCC pop_options
#endif

#if defined(__AVX2__)
// Two rows x 16 columns: a register holds four columns of 16-bit values, and its sums are pairs.
template <int kRows> void wide_kernel(const uint8_t* a, int64_t lda, const int8_t* b,
                                      int64_t groups, int32_t* sums, int64_t stride) {
  __m256i sum[kRows][4];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < 4; ++c) sum[r][c] = _mm256_setzero_si256();
  for (int64_t g = 0; g < groups; ++g) {
    __m256i columns[4];
    for (int c = 0; c < 4; ++c)
      columns[c] = _mm256_cvtepi8_epi16(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + g * kGroup * kBlock + c * 16)));
    for (int r = 0; r < kRows; ++r) {
      int32_t four;
      std::memcpy(&four, a + r * lda + g * kGroup, sizeof four);
      const __m256i row = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
      for (int c = 0; c < 4; ++c)
        sum[r][c] = _mm256_add_epi32(sum[r][c], _mm256_madd_epi16(row, columns[c]));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < 4; ++c) {
      // Pairs of neighbours: columns 0 1 | 2 3 of the two halves.
      const __m256i pairs = _mm256_hadd_epi32(sum[r][c], sum[r][c]);
      const __m256i four = _mm256_permute4x64_epi64(pairs, 0x08);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + r * stride + c * 4),
                       _mm256_castsi256_si128(four));
    }
  }
}

void wide_product(const uint8_t* a, int64_t lda, int64_t rows, const int8_t* b, int64_t groups,
                  int64_t blocks, int32_t* sums, int64_t stride) {
  for (int64_t block = 0; block < blocks; ++block) {
    const int8_t* columns = b + block * groups * kGroup * kBlock;
    int32_t* out = sums + block * kBlock;
    int64_t row = 0;
    for (; row + 2 <= rows; row += 2)
      wide_kernel<2>(a + row * lda, lda, columns, groups, out + row * stride, stride);
    if (row < rows) wide_kernel<1>(a + row * lda, lda, columns, groups, out + row * stride, stride);
  }
}
#endif

[[maybe_unused]] void plain_product(const uint8_t* a, int64_t lda, int64_t rows, const int8_t* b,
                                    int64_t groups, int64_t blocks, int32_t* sums, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t block = 0; block < blocks; ++block) {
      int32_t sum[kBlock] = {};
      const int8_t* columns = b + block * groups * kGroup * kBlock;
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t c = 0; c < kBlock; ++c)
          for (int64_t i = 0; i < kGroup; ++i)
            sum[c] += static_cast<int32_t>(a[row * lda + g * kGroup + i]) *
                      columns[(g * kBlock + c) * kGroup + i];
      std::memcpy(sums + row * stride + block * kBlock, sum, sizeof sum);
    }
  }
}

Product best_product() {
#if defined(__AVX512F__)
  if (__builtin_cpu_supports("avx512vnni")) return &vnni_product;
#endif
#if defined(__AVX2__)
  return &wide_product;
#else
  return &plain_product;
#endif
}

// ---- what becomes of the sums
inline int32_t corrected(const Epilogue& e, int32_t sum, int64_t column, int32_t row_sum) {
  sum -= e.offset[column];
  return e.weight_zero == nullptr ? sum : sum - e.weight_zero[column] * row_sum;
}

template <bool kRelu> void values(const Epilogue& e, const int32_t* sums, int64_t stride,
                                  int64_t first_row, int64_t rows, int64_t first, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    const int32_t row_sum = e.weight_zero == nullptr ? 0 : e.row_sum[first_row + i];
    float* out = static_cast<float*>(e.out) + (first_row + i) * e.stride + first;
    const int32_t* sum = sums + i * stride;
    if (e.weight_zero == nullptr && e.bias != nullptr) {
      const int32_t* offset = e.offset + first;
      const float *scale = e.scale + first, *bias = e.bias + first;
      for (int64_t j = 0; j < columns; ++j) {
        const float value =
            __builtin_fmaf(static_cast<float>(sum[j] - offset[j]), scale[j], bias[j]);
        out[j] = kRelu && value < 0 ? 0 : value;
      }
      continue;
    }
    for (int64_t j = 0; j < columns; ++j) {
      const float bias = e.bias == nullptr ? 0.0f : e.bias[first + j];
      const float value = __builtin_fmaf(
          static_cast<float>(corrected(e, sum[j], first + j, row_sum)), e.scale[first + j], bias);
      out[j] = kRelu && value < 0 ? 0 : value;
    }
  }
}

void integers(const Epilogue& e, const int32_t* sums, int64_t stride, int64_t first_row,
              int64_t rows, int64_t first, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    const int32_t row_sum = e.weight_zero == nullptr ? 0 : e.row_sum[first_row + i];
    int32_t* out = static_cast<int32_t*>(e.out) + (first_row + i) * e.stride + first;
    for (int64_t j = 0; j < columns; ++j)
      out[j] = corrected(e, sums[i * stride + j], first + j, row_sum);
  }
}

template <class T> void levels(const Epilogue& e, const int32_t* sums, int64_t stride,
                               int64_t first_row, int64_t rows, int64_t first, int64_t columns) {
  // The bounds of a level without its zero point are small integers, exact as floats.
  const float low = static_cast<float>(e.low - e.zero_point);
  const float high = static_cast<float>(e.high - e.zero_point);
  for (int64_t i = 0; i < rows; ++i) {
    const int32_t row_sum = e.weight_zero == nullptr ? 0 : e.row_sum[first_row + i];
    T* out = static_cast<T*>(e.out) + (first_row + i) * e.stride + first;
    for (int64_t j = 0; j < columns; ++j) {
      float sum = static_cast<float>(corrected(e, sums[i * stride + j], first + j, row_sum));
      if (e.bias != nullptr) sum += e.bias[first + j];
      float level = __builtin_rintf(sum * e.scale[first + j]);
      level = level < low ? low : level;
      level = level < high ? level : high;
      out[j] = static_cast<T>(static_cast<int32_t>(level) + e.zero_point);
    }
  }
}

void row_sums(const uint8_t* a, int64_t lda, int64_t rows, int64_t n, int32_t* out) {
  for (int64_t i = 0; i < rows; ++i) {
    int32_t sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += a[i * lda + j];
    out[i] = sum;
  }
}

} // namespace

void fill(Table& table) {
  table.product = best_product();
#if defined(__AVX512F__)
  if (__builtin_cpu_supports("avx512vnni")) table.product_values = &vnni_values;
#endif
  table.values = &values<false>;
  table.relu_values = &values<true>;
  table.integers = &integers;
  table.unsigned_levels = &levels<uint8_t>;
  table.signed_levels = &levels<int8_t>;
  table.row_sums = &row_sums;
}

} // namespace CRESSET_ISA
} // namespace at::quantized::int8
