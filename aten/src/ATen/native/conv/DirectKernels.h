// The inner loops of direct convolutions, per instruction set. A register holds neighbouring output
// channels, and the elements of the image are broadcast: so any stride, dilation and padding costs
// the same, and no matrix of windows is written. Sums are kept as [position][channel] until the
// last source channel is in.
#pragma once
#include <cstdint>

#include <c10/core/ScalarType.h>

namespace at::native::direct {

// Output channels of one pass: at most this many registers.
constexpr int kVectors = 2;

// sums[row][col][:] += over source channels c and taps t of
//   source[c * channel_step + row * row_step + col * col_step + offsets[t]] * weight[c][t][:],
// all steps in elements. The weight is packed, `vectors` registers to a tap.
struct Sweep {
  const void* source;
  int64_t channels, channel_step;
  int64_t taps;
  const int64_t* offsets;
  int64_t rows, row_step, cols, col_step;
  const void* weight;
  int vectors;
  void* sums;
  int64_t sum_row, sum_col;
  const void* start; // what the sums begin with, `vectors` registers; null adds to them
};
using SweepFn = void (*)(const Sweep& sweep);

// One packed piece of the weight: dst[c][t][column] = weight[c * channel_step + column *
// column_step + taps[t]], zero in the columns from `columns` up to whole registers.
struct WeightPiece {
  const void* weight;
  int64_t channels, channel_step, columns, column_step;
  int64_t count; // of taps
  const int64_t* taps;
  void* dst;
  const void* end; // of the weight's memory: a register may be loaded up to here
};
using PackFn = void (*)(const WeightPiece& piece);

// rows x cols elements from rows of from_step to rows of to_step elements.
using CopyFn = void (*)(int64_t rows, int64_t cols, const void* from, int64_t from_step, void* to,
                        int64_t to_step);

struct Kernels {
  int64_t lanes; // of a register
  SweepFn sweep;
  PackFn pack;
  CopyFn copy;
  // The same, and zeros behind each row up to to_step, a multiple of `lanes`. At least a register
  // of columns, which for all rows but the last may be read beyond the end.
  CopyFn pad;
  // The same as copy, transposed: row r becomes column r of `to`.
  CopyFn transpose;
};

// A few neighbouring taps of a row of the kernel: `source` is the distance to the first one's
// element, `sum` to its sums.
struct Line {
  int64_t source, sum;
};
constexpr int kLongestRun = 3;

// sums[line + k] += over rows and columns of
//   source[row * row_step + col * col_step + line.source + k] * grad[row][col][:]
// for all lines and k < run; col_step is 1 or 2. The gradient and the sums have `vectors` registers
// to a position and to a tap.
struct LineSweep {
  const void* source;
  const Line* lines;
  int64_t count;
  int run; // 1..kLongestRun
  int64_t rows, row_step, cols, col_step;
  const void* grad;
  int vectors;
  void* sums;
};
using LineFn = void (*)(const LineSweep& sweep);

// Null for other types than float and double.
namespace base {
const Kernels* kernels(c10::ScalarType type);
LineFn lines(c10::ScalarType type);
} // namespace base
namespace avx2 {
const Kernels* kernels(c10::ScalarType type);
LineFn lines(c10::ScalarType type);
} // namespace avx2
namespace avx512 {
const Kernels* kernels(c10::ScalarType type);
LineFn lines(c10::ScalarType type);
} // namespace avx512

} // namespace at::native::direct
