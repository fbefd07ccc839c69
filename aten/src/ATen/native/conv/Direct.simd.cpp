// See DirectKernels.h. The register block is as many positions of a row as leave room for the
// weight and one broadcast; shorter rows and ends take the same template with fewer positions. A
// position's sum has the same order in every block.
#include <ATen/native/conv/DirectKernels.h>
#include <ATen/native/matmul/gemm/Pack.h>

namespace at::native::direct {
namespace CRESSET_ISA {
namespace {

using gemm::CRESSET_ISA::copy_strided;
using gemm::CRESSET_ISA::copy_transposed;
using gemm::CRESSET_ISA::lanes;
using gemm::CRESSET_ISA::load;
using gemm::CRESSET_ISA::min_of;
using gemm::CRESSET_ISA::splat;
using gemm::CRESSET_ISA::store;
using gemm::CRESSET_ISA::transpose_square;
using gemm::CRESSET_ISA::Vec;

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kPositions = 14; // of 32 registers, with two of the weight
#else
constexpr int kPositions = 6; // of 16
#endif

// STEP 0: as the sweep says.
template <class T, int POSITIONS, int VECTORS, int STEP>
void block(const Sweep& s, const T* source, T* sums) {
  constexpr int n = lanes<T>;
  const int64_t step = STEP == 0 ? s.col_step : STEP, taps = s.taps, sum_col = s.sum_col;
  const T* weight = static_cast<const T*>(s.weight);
  const T* start = static_cast<const T*>(s.start);
  const int64_t* const offsets = s.offsets;
  Vec<T> sum[POSITIONS][VECTORS];
#pragma GCC unroll 16
  for (int i = 0; i < POSITIONS; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < VECTORS; ++j)
      sum[i][j] = load<T>(start != nullptr ? start + j * n : sums + i * sum_col + j * n);
  }
  for (int64_t c = s.channels; c > 0; --c) {
    for (int64_t t = 0; t < taps; ++t) {
      const T* from = source + offsets[t];
      Vec<T> w[VECTORS];
#pragma GCC unroll 2
      for (int j = 0; j < VECTORS; ++j) w[j] = load<T>(weight + j * n);
      weight += VECTORS * n;
#pragma GCC unroll 16
      for (int i = 0; i < POSITIONS; ++i) {
        const Vec<T> x = splat<T>(from[i * step]);
#pragma GCC unroll 2
        for (int j = 0; j < VECTORS; ++j) sum[i][j] = sum[i][j] + x * w[j];
      }
    }
    source += s.channel_step;
  }
#pragma GCC unroll 16
  for (int i = 0; i < POSITIONS; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < VECTORS; ++j) store<T>(sums + i * sum_col + j * n, sum[i][j]);
  }
}

template <class T> using BlockFn = void (*)(const Sweep&, const T*, T*);

template <class T> struct Blocks {
  BlockFn<T> fn[3][kVectors][kPositions];
  constexpr Blocks() : fn() { fill(std::make_integer_sequence<int, kPositions>()); }

 private:
  template <int... I> constexpr void fill(std::integer_sequence<int, I...>) {
    ((fn[0][0][I] = &block<T, I + 1, 1, 0>), ...);
    ((fn[0][1][I] = &block<T, I + 1, 2, 0>), ...);
    ((fn[1][0][I] = &block<T, I + 1, 1, 1>), ...);
    ((fn[1][1][I] = &block<T, I + 1, 2, 1>), ...);
    ((fn[2][0][I] = &block<T, I + 1, 1, 2>), ...);
    ((fn[2][1][I] = &block<T, I + 1, 2, 2>), ...);
  }
};
template <class T> constexpr Blocks<T> kBlocks{};

template <class T> void sweep(const Sweep& s) {
  const auto& table = kBlocks<T>.fn[s.col_step <= 2 ? s.col_step : 0][s.vectors - 1];
  const int64_t blocks = (s.cols + kPositions - 1) / kPositions;
  for (int64_t row = 0; row < s.rows; ++row) {
    const T* source = static_cast<const T*>(s.source) + row * s.row_step;
    T* sums = static_cast<T*>(s.sums) + row * s.sum_row;
    int64_t begin = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t end = s.cols * (b + 1) / blocks;
      table[end - begin - 1](s, source + begin * s.col_step, sums + begin * s.sum_col);
      begin = end;
    }
  }
}

template <class T> void clear_columns(const WeightPiece& p, int64_t width, T* dst) {
  for (int64_t r = 0; r < p.channels * p.count; ++r)
    for (int64_t column = p.columns; column < width; ++column) dst[r * width + column] = T(0);
}

// Squares of columns by taps, where all taps lie within one register of each column.
template <class T>
void pack_squares(const WeightPiece& p, int64_t c, int64_t first, T* dst, int64_t width) {
  constexpr int n = lanes<T>;
  const T* from = static_cast<const T*>(p.weight) + c * p.channel_step + first * p.column_step;
  Vec<T> square[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) square[i] = load<T>(from + i * p.column_step);
  transpose_square<T>(square);
  T rows[n][n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) store<T>(rows[i], square[i]);
  for (int64_t t = 0; t < p.count; ++t)
    store<T>(dst + (c * p.count + t) * width + first, load<T>(rows[p.taps[t]]));
}

template <class T> void pack(const WeightPiece& p) {
  constexpr int n = lanes<T>;
  const T* weight = static_cast<const T*>(p.weight);
  T* dst = static_cast<T*>(p.dst);
  const int64_t width = (p.columns + n - 1) / n * n;
  bool in_order = p.channel_step == p.count, within = true;
  for (int64_t t = 0; t < p.count; ++t) {
    in_order = in_order && p.taps[t] == t;
    within = within && p.taps[t] < n;
  }
  if (in_order) {
    copy_transposed<T>(p.columns, p.channels * p.count, weight, p.column_step, dst, width);
    clear_columns(p, width, dst);
    return;
  }
  for (int64_t c = 0; c < p.channels; ++c) {
    int64_t done = 0;
    for (; within && done + n <= p.columns; done += n) {
      const T* last = weight + c * p.channel_step + (done + n - 1) * p.column_step;
      if (last + n > static_cast<const T*>(p.end)) break;
      pack_squares<T>(p, c, done, dst, width);
    }
    for (int64_t t = 0; t < p.count; ++t)
      for (int64_t column = done; column < p.columns; ++column)
        dst[(c * p.count + t) * width + column] =
            weight[c * p.channel_step + column * p.column_step + p.taps[t]];
  }
  clear_columns(p, width, dst);
}

// `bytes` between one and two pieces of BYTES, which overlap.
template <int BYTES> inline void copy_twice(const char* from, char* to, int64_t bytes) {
  char head[BYTES], tail[BYTES];
  std::memcpy(head, from, BYTES);
  std::memcpy(tail, from + bytes - BYTES, BYTES);
  std::memcpy(to, head, BYTES);
  std::memcpy(to + bytes - BYTES, tail, BYTES);
}
inline void copy_short(const char* from, char* to, int64_t bytes) {
  if (bytes >= 32)
    copy_twice<32>(from, to, bytes);
  else if (bytes >= 16)
    copy_twice<16>(from, to, bytes);
  else if (bytes >= 8)
    copy_twice<8>(from, to, bytes);
  else if (bytes >= 4)
    copy_twice<4>(from, to, bytes);
}

template <class T> void copy(int64_t rows, int64_t cols, const void* from_, int64_t from_step,
                             void* to_, int64_t to_step) {
  constexpr int n = lanes<T>;
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = static_cast<const T*>(from_) + r * from_step;
    T* to = static_cast<T*>(to_) + r * to_step;
    if (cols < n) {
      copy_short(reinterpret_cast<const char*>(from), reinterpret_cast<char*>(to),
                 cols * static_cast<int64_t>(sizeof(T)));
      continue;
    }
    // The last register overlaps the one before it.
    for (int64_t i = 0; i < cols; i += n) {
      const int64_t start = min_of(i, cols - n);
      store<T>(to + start, load<T>(from + start));
    }
  }
}

template <class T> struct Bits { using type = int32_t; };
template <> struct Bits<double> { using type = int64_t; };

template <class T> void pad(int64_t rows, int64_t cols, const void* from_, int64_t from_step,
                            void* to_, int64_t to_step) {
  using B = typename Bits<T>::type;
  constexpr int n = lanes<T>;
  const int64_t whole = cols / n * n;
  B lane[n] = {};
  for (int64_t i = whole; i < cols; ++i) lane[i - whole] = B(-1);
  const Vec<B> inside = load<B>(lane);
  const T* from = static_cast<const T*>(from_);
  T* to = static_cast<T*>(to_);
  for (int64_t r = 0; r < rows; ++r, from += from_step, to += to_step) {
    for (int64_t i = 0; i < whole; i += n) store<T>(to + i, load<T>(from + i));
    if (whole == to_step) continue;
    if (r + 1 < rows) {
      store<B>(to + whole, load<B>(from + whole) & inside);
    } else {
      store<T>(to + whole, Vec<T>{});
      for (int64_t i = whole; i < cols; ++i) to[i] = from[i];
    }
    for (int64_t i = whole + n; i < to_step; i += n) store<T>(to + i, Vec<T>{});
  }
}

template <class T> void transpose(int64_t rows, int64_t cols, const void* from, int64_t from_step,
                                  void* to, int64_t to_step) {
  copy_transposed<T>(rows, cols, static_cast<const T*>(from), from_step, static_cast<T*>(to),
                     to_step);
}

template <class T>
constexpr Kernels kKernels{lanes<T>, &sweep<T>, &pack<T>, &copy<T>, &pad<T>, &transpose<T>};

} // namespace

const Kernels* kernels(c10::ScalarType type) {
  if (type == c10::ScalarType::Float) return &kKernels<float>;
  if (type == c10::ScalarType::Double) return &kKernels<double>;
  return nullptr;
}
} // namespace CRESSET_ISA
} // namespace at::native::direct
