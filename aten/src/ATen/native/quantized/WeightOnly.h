// Products of floating-point activations with 8-bit or 4-bit weights that carry scales. Activations
// are float32 here (16-bit ones are widened beforehand) and so are the sums; weights become numbers
// in registers, so that memory is read at the width they are stored with.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>

namespace at::quantized::weight_only {

// How 4-bit weights [n, k] lie in memory. Whole blocks of `block` outputs come first: for each
// inner index block / 2 bytes, of which byte j holds output j in its low half and output
// j + block / 2 in its high half. The outputs that are left lie together after them, byte j of an
// inner index holding outputs 2j and 2j + 1. Checkpoints with weights in this form exist, written
// by PyTorch on machines of the same instruction set, which is why `block` depends on it.
struct Int4Layout {
  int64_t n, k, block;
  int64_t whole() const { return n / block * block; }
  // The byte of weight (row, inner), and whether it is the high half.
  int64_t byte(int64_t row, int64_t inner) const {
    const int64_t first = row < whole() ? row / block * block : whole();
    const int64_t width = row < whole() ? block : n - whole(), local = row - first;
    const int64_t place = row < whole() ? local % (block / 2) : local / 2;
    return first * k / 2 + inner * (width / 2) + place;
  }
  bool high(int64_t row) const {
    return row < whole() ? row % block >= block / 2 : (row - whole()) % 2 == 1;
  }
};

// dtype of scales: one of these.
enum Scales { kScalesFloat, kScalesBFloat16, kScalesHalf, kScaleKinds };

// A tile of outputs: `rows` rows of activations, `columns` outputs.
struct Int4Tile {
  const float* x;    // rows, x_stride apart
  const float* sums; // sums of x over each group: rows, k / group apart
  int64_t x_stride, rows;
  const uint8_t* weights; // of these outputs, in the layout above
  const void* scales;     // (scale, zero) of the first output; groups lie scale_stride pairs apart
  int64_t scale_stride, k, group, columns;
  float* out;
  int64_t out_stride;
};

struct Int8Tile {
  const float* x;
  int64_t x_stride, rows;
  const int8_t* weights; // rows of k, one for each output
  int64_t k, columns;
  const float* scales;
  float* out;
  int64_t out_stride;
};

// a[rows, k] of unsigned levels times weights [columns, k]: out = sums of (a - 128) * w.
struct IntTile {
  const uint8_t* a;
  int64_t rows, k;
  const int8_t* weights;
  int64_t weight_stride, columns;
  int32_t* out;
  int64_t out_stride;
};

struct Table {
  int64_t int4_block = 0;
  // out[i][j] = sum over groups g of scale[g][j] * sum of x * (w - 8) + zero[g][j] * sums[i][g].
  void (*int4_whole[kScaleKinds])(const Int4Tile& tile) = {}; // one whole block
  void (*int4_rest[kScaleKinds])(const Int4Tile& tile) = {};  // the outputs after whole blocks
  void (*int8)(const Int8Tile& tile) = nullptr;               // out[i][j] = scale[j] * sum of x * w
  void (*integers)(const IntTile& tile) = nullptr;
  void (*group_sums)(const float* x, int64_t n, int64_t group, float* out) = nullptr;
};
CRESSET_ISA_TABLE(Table);

} // namespace at::quantized::weight_only
