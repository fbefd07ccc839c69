// Products of matrices of 8-bit integers with 32-bit sums: unsigned activations times signed
// weights, which is what processors have instructions for. Weights are packed once, in blocks of 16
// output columns, four values of a column side by side; a product computes a tile of exact sums and
// hands it to a function that turns them into values, levels or integers while they are in the
// cache.
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/iter/IsaTable.h>

namespace at::quantized::int8 {

constexpr int64_t kBlock = 16; // columns of a block
constexpr int64_t kGroup = 4;  // values of a column that one instruction takes

// What becomes of the sum c of row i and column j, where a and w are levels:
//   sum of (a - za) * (w - zw) = c - offset[j] - weight_zero[j] * row_sum[i].
struct Epilogue {
  const int32_t* offset = nullptr;
  const int32_t* weight_zero = nullptr; // null: all zero
  const int32_t* row_sum = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr; // null: none
  int32_t zero_point = 0, low = 0, high = 0;
  void* out = nullptr;
  int64_t stride = 0; // of the rows of out
};
using Finish = void (*)(const Epilogue& e, const int32_t* sums, int64_t stride, int64_t first_row,
                        int64_t rows, int64_t first_column, int64_t columns);

struct Table {
  // sums[i * stride + j] of `rows` rows of a and `blocks` blocks of packed columns; `groups` is the
  // inner length over kGroup. Rows of a lie `lda` bytes apart and reach to the end of a group.
  void (*product)(const uint8_t* a, int64_t lda, int64_t rows, const int8_t* b, int64_t groups,
                  int64_t blocks, int32_t* sums, int64_t stride) = nullptr;
  // product and values in one, without sums in memory, where weights have no zero points; `rows`
  // rows from first_row and `blocks` blocks from first_column. Null where there is no such kernel.
  void (*product_values)(const uint8_t* a, int64_t lda, int64_t rows, const int8_t* b,
                         int64_t groups, int64_t blocks, const Epilogue& e, int64_t first_row,
                         int64_t first_column, int64_t columns) = nullptr;
  Finish values = nullptr;          // sum * scale[j] + bias[j], rounded once
  Finish relu_values = nullptr;     // not less than 0
  Finish integers = nullptr;        // the sum itself
  Finish unsigned_levels = nullptr; // round((sum + bias[j]) * scale[j]) + zero_point
  Finish signed_levels = nullptr;
  // out[i] = sum of n bytes of row i.
  void (*row_sums)(const uint8_t* a, int64_t lda, int64_t rows, int64_t n, int32_t* out) = nullptr;
};
CRESSET_ISA_TABLE(Table);

// Weights [n, k], packed.
class Weight {
 public:
  Weight() = default;
  // `weights` may have any strides.
  Weight(const int8_t* weights, int64_t n, int64_t k, int64_t row_stride, int64_t column_stride);
  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  int64_t groups() const { return (k_ + kGroup - 1) / kGroup; }
  int64_t blocks() const { return (n_ + kBlock - 1) / kBlock; }
  const int8_t* block(int64_t i) const { return data_.data() + i * groups() * kGroup * kBlock; }
  // The sum of each row of the weights.
  const std::vector<int32_t>& sums() const { return sums_; }

 private:
  // One block; of each row the first `moved` groups are neighbours in memory.
  void pack(const int8_t* weights, int64_t block, int64_t moved, int64_t row_stride,
            int64_t column_stride);
  int64_t n_ = 0, k_ = 0;
  std::vector<int8_t> data_;
  std::vector<int32_t> sums_;
};

// Bytes between rows of activations of inner length k: whole groups.
inline int64_t padded(int64_t k) { return (k + kGroup - 1) / kGroup * kGroup; }

// All rows, on all threads.
void multiply(const uint8_t* a, int64_t lda, int64_t rows, const Weight& w, const Epilogue& e,
              Finish finish);
// `rows` rows that are rows first_row... of the result, all columns, on this thread. `scratch` is
// resized as needed.
void multiply_tile(const uint8_t* a, int64_t lda, int64_t first_row, int64_t rows, const Weight& w,
                   const Epilogue& e, Finish finish, std::vector<int32_t>& scratch);

} // namespace at::quantized::int8
