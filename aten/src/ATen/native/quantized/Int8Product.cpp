// Packing of weights, and the cut of a product into tiles. See Int8Product.h.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") // loops over bytes whose length is not known become vectors
#endif
#include <ATen/native/quantized/Int8Product.h>

#include <algorithm>
#include <cstring>

#include <ATen/parallel/Parallel.h>

namespace at::quantized::int8 {

CRESSET_DEFINE_ISA_TABLE(Table);

namespace {
// A tile of sums and the columns it needs stay in the second-level cache.
constexpr int64_t kTileRows = 48;
constexpr int64_t kTileBlocks = 16;
// Multiplications below which another thread costs more than it does.
constexpr int64_t kWork = 1 << 20;
// Weights that a thread packs at least.
constexpr int64_t kPacked = 1 << 16;
} // namespace

Weight::Weight(const int8_t* weights, int64_t n, int64_t k, int64_t row_stride,
               int64_t column_stride)
    : n_(n), k_(k) {
  data_.assign(static_cast<size_t>(blocks() * groups() * kGroup * kBlock), 0);
  sums_.assign(static_cast<size_t>(n), 0);
  // Where the values of a row are neighbours, whole groups of it are moved at once.
  const int64_t moved = column_stride == 1 ? k / kGroup : 0;
  parallel_for(0, blocks(), std::max<int64_t>(1, kPacked / std::max<int64_t>(k * kBlock, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block)
                   pack(weights, block, moved, row_stride, column_stride);
               });
}

void Weight::pack(const int8_t* weights, int64_t block, int64_t moved, int64_t row_stride,
                  int64_t column_stride) {
  int8_t* out = data_.data() + block * groups() * kGroup * kBlock;
  const int64_t first = block * kBlock, rows = std::min(kBlock, n_ - first);
  const int8_t* in = weights + first * row_stride;
  for (int64_t g = 0; g < moved; ++g)
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(out + (g * kBlock + row) * kGroup, in + row * row_stride + g * kGroup, kGroup);
  for (int64_t row = 0; row < rows; ++row) {
    int32_t sum = 0;
    const int8_t* values = in + row * row_stride;
    for (int64_t i = 0; i < moved * kGroup; ++i) sum += values[i];
    for (int64_t i = moved * kGroup; i < k_; ++i) {
      const int8_t value = values[i * column_stride];
      out[(i / kGroup) * kGroup * kBlock + row * kGroup + i % kGroup] = value;
      sum += value;
    }
    sums_[static_cast<size_t>(first + row)] = sum;
  }
}

namespace {
void run_tile(const uint8_t* a, int64_t lda, int64_t first_row, int64_t rows, const Weight& w,
              int64_t first_block, int64_t blocks, const Epilogue& e, Finish finish,
              std::vector<int32_t>& scratch) {
  const int64_t stride = blocks * kBlock;
  if (finish == table().values && table().product_values && e.weight_zero == nullptr) {
    const int64_t first = first_block * kBlock;
    table().product_values(a, lda, rows, w.block(first_block), w.groups(), blocks, e, first_row,
                           first, std::min(stride, w.n() - first));
    return;
  }
  if (static_cast<int64_t>(scratch.size()) < rows * stride)
    scratch.resize(static_cast<size_t>(rows * stride));
  table().product(a, lda, rows, w.block(first_block), w.groups(), blocks, scratch.data(), stride);
  const int64_t column = first_block * kBlock;
  finish(e, scratch.data(), stride, first_row, rows, column, std::min(stride, w.n() - column));
}
} // namespace

void multiply_tile(const uint8_t* a, int64_t lda, int64_t first_row, int64_t rows, const Weight& w,
                   const Epilogue& e, Finish finish, std::vector<int32_t>& scratch) {
  for (int64_t block = 0; block < w.blocks(); block += kTileBlocks)
    run_tile(a, lda, first_row, rows, w, block, std::min(kTileBlocks, w.blocks() - block), e,
             finish, scratch);
}

void multiply(const uint8_t* a, int64_t lda, int64_t rows, const Weight& w, const Epilogue& e,
              Finish finish) {
  if (rows == 0 || w.n() == 0) return;
  const int64_t row_tiles = (rows + kTileRows - 1) / kTileRows;
  const int64_t column_tiles = (w.blocks() + kTileBlocks - 1) / kTileBlocks;
  const int64_t work =
      std::min(rows, kTileRows) * kTileBlocks * kBlock * std::max<int64_t>(w.k(), 1);
  const int64_t grain = std::max<int64_t>(1, kWork / work);
  // Tiles of the same columns follow each other, so that packed columns stay in the cache.
  parallel_for(0, row_tiles * column_tiles, grain, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> scratch;
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t row = tile % row_tiles * kTileRows, block = tile / row_tiles * kTileBlocks;
      run_tile(a + row * lda, lda, row, std::min(kTileRows, rows - row), w, block,
               std::min(kTileBlocks, w.blocks() - block), e, finish, scratch);
    }
  });
}

} // namespace at::quantized::int8
