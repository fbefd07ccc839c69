// Matrix products of a warp on the tensor cores: 16-bit operands, float sums. The instructions
// (mma.sync, ldmatrix, cp.async; compute capability 8.0 and up) are wrapped once here; the tests'
// emulator computes the same layouts from the lanes' values, so it runs the very kernels that use
// them. Above them are the two shapes of product that attention is made of, and the moves of tiles
// between memory, shared memory and a warp's sums.
//
// A tile in shared memory has rows of kWidth elements and eight more, so that the eight rows that
// ldmatrix reads at a time lie in different banks at any column, and every address is the lane's
// own plus a constant.
#pragma once

#include <ATen/cuda/device/Block.cuh>

namespace at::device {

// ---- instructions -------------------------------------------------------------------------------
// Two values of T in a word, the first in the low half.
template <class T> CRESSET_DEVICE_FN unsigned pack_pair(float low, float high) {
#if defined(CRESSET_EMULATOR)
  const T pair[2] = {convert<T>(low), convert<T>(high)};
  unsigned word;
  __builtin_memcpy(&word, pair, sizeof(word));
  return word;
#else
  unsigned word;
  if constexpr (std::is_same_v<T, BFloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#endif
}

// 2^x; 0 for -inf.
CRESSET_DEVICE_FN float fast_exp2(float x) {
#if defined(CRESSET_EMULATOR)
  return exp2f(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

#if defined(CRESSET_EMULATOR)
// The product of two pairs, added to sum.
template <class T> inline float add_pairs(float sum, unsigned a, unsigned b) {
  T x[2], y[2];
  __builtin_memcpy(x, &a, sizeof(a));
  __builtin_memcpy(y, &b, sizeof(b));
  for (int i = 0; i < 2; ++i) sum += static_cast<float>(x[i]) * static_cast<float>(y[i]);
  return sum;
}
#endif

// c += a b for 16x16 a, 16x8 b and 16x8 c. With g = lane / 4 and t = lane % 4, a lane holds rows g
// and g + 8 of c at columns 2t and 2t + 1; of a, the pairs (g, 2t), (g + 8, 2t), (g, 2t + 8) and
// (g + 8, 2t + 8) along the row; of b, the pairs (2t, g) and (2t + 8, g) down the column.
template <class T>
CRESSET_DEVICE_FN void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if defined(CRESSET_EMULATOR)
  const unsigned row = lane_id() & ~3, column = lane_id() % 4 * 8;
  uint4 left[4];
  {
    const cresset_emulator_detail::Exchange<uint4> all(kAllLanes, {a[0], a[1], a[2], a[3]});
    for (unsigned t = 0; t < 4; ++t) left[t] = all.at(row + t);
  }
  const cresset_emulator_detail::Exchange<uint2> right(kAllLanes, {b0, b1});
  for (unsigned t = 0; t < 4; ++t) {
    const uint4 x = left[t];
    const uint2 y = right.at(column + t), z = right.at(column + 4 + t);
    c[0] = add_pairs<T>(add_pairs<T>(c[0], x.x, y.x), x.z, y.y);
    c[1] = add_pairs<T>(add_pairs<T>(c[1], x.x, z.x), x.z, z.y);
    c[2] = add_pairs<T>(add_pairs<T>(c[2], x.y, y.x), x.w, y.y);
    c[3] = add_pairs<T>(add_pairs<T>(c[3], x.y, z.x), x.w, z.y);
  }
#else
  if constexpr (std::is_same_v<T, BFloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Four 8x8 matrices from shared memory; lanes 8i to 8i + 7 give the addresses of the rows of matrix
// i, 16 bytes each. r[i] is then the pair of matrix i at row lane / 4, columns 2 (lane % 4) and
// next; transposed, at rows 2 (lane % 4) and next, column lane / 4.
template <bool kTransposed, class T>
CRESSET_DEVICE_FN void load_matrices(unsigned (&r)[4], const T* row) {
#if defined(CRESSET_EMULATOR)
  const unsigned g = lane_id() / 4, t = lane_id() % 4 * 2;
  const cresset_emulator_detail::Exchange<const T*> rows(kAllLanes, row);
  for (unsigned i = 0; i < 4; ++i) {
    T pair[2];
    for (unsigned e = 0; e < 2; ++e)
      pair[e] = kTransposed ? rows.at(i * 8 + t + e)[g] : rows.at(i * 8 + g)[t + e];
    __builtin_memcpy(&r[i], pair, sizeof(pair));
  }
#else
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
#endif
}

// 16 bytes from memory to shared memory, or zeros where !valid (`from` is then not read). They are
// there for the calling thread after copies_wait, for others after a barrier that follows it.
CRESSET_DEVICE_FN void copy_async(void* shared, const void* from, bool valid) {
#if defined(CRESSET_EMULATOR)
  const uint4 zero = {0, 0, 0, 0};
  *static_cast<uint4*>(shared) = valid ? *static_cast<const uint4*>(from) : zero;
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(from), "r"(valid ? 16 : 0)
               : "memory");
#endif
}
CRESSET_DEVICE_FN void copies_wait() {
#if !defined(CRESSET_EMULATOR)
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// ---- tiles --------------------------------------------------------------------------------------
template <int kWidth> constexpr int kTileRow = kWidth + 8; // elements between rows of a tile

// Begins to copy rows [0, kRows) of a matrix with `row` elements between rows to a tile, by all
// kThreads threads of the block; rows from `rows` and columns from `columns` (a multiple of 8) on
// become zeros.
template <int kRows, int kWidth, int kThreads, class T>
CRESSET_DEVICE_FN void load_tile(T* tile, const T* from, long row, int rows, int columns) {
  constexpr int kPieces = kWidth / 8, kStep = kThreads / kPieces;
  static_assert(kThreads % kPieces == 0 && kRows % kStep == 0, "the threads do not divide a tile");
  const int column = threadIdx.x % kPieces * 8, first = threadIdx.x / kPieces;
  const int end = column < columns ? rows - first : 0;
  const T* next = from + first * row + column;
  T* const to = tile + first * kTileRow<kWidth> + column;
  CRESSET_UNROLL
  for (int i = 0; i < kRows; i += kStep) {
    copy_async(to + i * kTileRow<kWidth>, next, i < end);
    next += kStep * row;
  }
}

// Sums of a warp over kRows x 16 rows and kColumns x 8 columns.
template <int kRows, int kColumns> struct Sums {
  float v[kRows][kColumns][4];
  CRESSET_DEVICE_FN void clear() {
    CRESSET_UNROLL
    for (int i = 0; i < kRows * kColumns * 4; ++i) v[i / 4 / kColumns][i / 4 % kColumns][i % 4] = 0;
  }
  // The row or column, among all, of the lane's element e.
  CRESSET_DEVICE_FN static int row(int i, int e) { return i * 16 + lane_id() / 4 + (e / 2) * 8; }
  CRESSET_DEVICE_FN static int column(int n, int e) { return n * 8 + lane_id() % 4 * 2 + e % 2; }
};

// -inf in columns from `end` on, or from `edge` + row on where that is less.
template <int kRows, int kColumns>
CRESSET_DEVICE_FN void hide_after(Sums<kRows, kColumns>& s, int edge, int end) {
  CRESSET_UNROLL
  for (int i = 0; i < kRows; ++i) {
    CRESSET_UNROLL
    for (int e = 0; e < 4; ++e) {
      // Counted from the lane's own first column, so that columns are constants.
      const int limit = min(edge + s.row(i, e), end) - s.column(0, 0);
      CRESSET_UNROLL
      for (int n = 0; n < kColumns; ++n)
        if (n * 8 + e % 2 >= limit) s.v[i][n][e] = -__builtin_huge_valf();
    }
  }
}
// -inf in columns before `edge` + row.
template <int kRows, int kColumns>
CRESSET_DEVICE_FN void hide_before(Sums<kRows, kColumns>& s, int edge) {
  CRESSET_UNROLL
  for (int i = 0; i < kRows; ++i) {
    CRESSET_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int limit = edge + s.row(i, e) - s.column(0, 0);
      CRESSET_UNROLL
      for (int n = 0; n < kColumns; ++n)
        if (n * 8 + e % 2 < limit) s.v[i][n][e] = -__builtin_huge_valf();
    }
  }
}

// Sums rounded to T and arranged as the left operand of a product over their columns.
template <int kRows, int kSteps> struct LeftOperand { unsigned v[kRows][kSteps][4]; };
template <class T, int kRows, int kColumns>
CRESSET_DEVICE_FN LeftOperand<kRows, kColumns / 2> rounded(const Sums<kRows, kColumns>& s) {
  LeftOperand<kRows, kColumns / 2> out;
  CRESSET_UNROLL
  for (int i = 0; i < kRows; ++i) {
    CRESSET_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      out.v[i][n / 2][n % 2 * 2] = pack_pair<T>(s.v[i][n][0], s.v[i][n][1]);
      out.v[i][n / 2][n % 2 * 2 + 1] = pack_pair<T>(s.v[i][n][2], s.v[i][n][3]);
    }
  }
  return out;
}

// out += left right^T over kWidth columns; both are tiles, of which left's first 16 kRows and
// right's first 8 kColumns rows are used.
template <int kWidth, class T, int kRows, int kColumns> CRESSET_DEVICE_FN void
add_product_of_rows(Sums<kRows, kColumns>& out, const T* left, const T* right) {
  constexpr int kRow = kTileRow<kWidth>;
  const int lane = lane_id();
  left += (lane & 15) * kRow + (lane >> 4) * 8;
  right += ((lane & 7) + (lane >> 4) * 8) * kRow + (lane >> 3 & 1) * 8;
  CRESSET_UNROLL
  for (int k = 0; k < kWidth; k += 16) {
    unsigned a[kRows][4];
    CRESSET_UNROLL
    for (int i = 0; i < kRows; ++i) load_matrices<false>(a[i], left + i * 16 * kRow + k);
    CRESSET_UNROLL
    for (int n = 0; n < kColumns; n += 2) {
      unsigned b[4];
      load_matrices<false>(b, right + n * 8 * kRow + k);
      CRESSET_UNROLL
      for (int i = 0; i < kRows; ++i) {
        mma<T>(out.v[i][n], a[i], b[0], b[1]);
        mma<T>(out.v[i][n + 1], a[i], b[2], b[3]);
      }
    }
  }
}

// out += left right, with the rows of the tile `right` as the summed index.
template <class T, int kRows, int kSteps, int kColumns> CRESSET_DEVICE_FN void
add_product(Sums<kRows, kColumns>& out, const LeftOperand<kRows, kSteps>& left, const T* right) {
  constexpr int kRow = kTileRow<kColumns * 8>;
  const int lane = lane_id();
  right += (lane & 15) * kRow + (lane >> 4) * 8;
  CRESSET_UNROLL
  for (int k = 0; k < kSteps; ++k) {
    CRESSET_UNROLL
    for (int n = 0; n < kColumns; n += 2) {
      unsigned b[4];
      load_matrices<true>(b, right + k * 16 * kRow + n * 8);
      CRESSET_UNROLL
      for (int i = 0; i < kRows; ++i) {
        mma<T>(out.v[i][n], left.v[i][k], b[0], b[1]);
        mma<T>(out.v[i][n + 1], left.v[i][k], b[2], b[3]);
      }
    }
  }
}

// Writes a warp's sums, each row times factor[i][half], to rows [0, rows) and columns [0, columns)
// of a matrix, through the rows of a tile that only this warp uses, for accesses of 16 bytes.
template <class T, int kRows, int kColumns>
CRESSET_DEVICE_FN void store_rows(const Sums<kRows, kColumns>& s, const float (&factor)[kRows][2],
                                  T* tile, T* to, long row, int rows, int columns) {
  constexpr int kRow = kTileRow<kColumns * 8>;
  const int lane = lane_id();
  __syncwarp();
  CRESSET_UNROLL
  for (int i = 0; i < kRows; ++i) {
    CRESSET_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      CRESSET_UNROLL
      for (int half = 0; half < 2; ++half) {
        T* target = tile + s.row(i, half * 2) * kRow + s.column(n, 0);
        *reinterpret_cast<unsigned*>(target) = pack_pair<T>(
            s.v[i][n][half * 2] * factor[i][half], s.v[i][n][half * 2 + 1] * factor[i][half]);
      }
    }
  }
  __syncwarp();
  CRESSET_UNROLL
  for (int piece = 0; piece < kRows * 16 * kColumns; piece += 32) {
    const int r = (piece + lane) / kColumns, c = (piece + lane) % kColumns * 8;
    if (r < rows && c < columns) store_pack(to + r * row + c, load_pack<8>(tile + r * kRow + c));
  }
}

} // namespace at::device
