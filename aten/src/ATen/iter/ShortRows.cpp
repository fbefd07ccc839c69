// See ShortRows.h. Rows are joined along the second dimension; the outer ones are walked.
#include <ATen/iter/ShortRows.h>

#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/Spread.h>
#include <ATen/iter/TensorIterator.h>

#include <algorithm>
#include <cstring>

namespace at::iter {
namespace {

constexpr int64_t kBlockBytes = 8192; // of one operand that go to the loop together
constexpr int64_t kFewest = 4;        // rows that are worth joining
constexpr int64_t kLongest = 128;     // elements of a row that is worth copying

template <int kSize> void move_rows(char* to, int64_t to_step, int64_t to_row, const char* from,
                                    int64_t from_step, int64_t from_row, int64_t n, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(to + r * to_row + i * to_step, from + r * from_row + i * from_step, kSize);
}

void move_rows(int size, char* to, int64_t to_step, int64_t to_row, const char* from,
               int64_t from_step, int64_t from_row, int64_t n, int64_t rows) {
  const auto move = size == 1   ? &move_rows<1>
                    : size == 2 ? &move_rows<2>
                    : size == 4 ? &move_rows<4>
                    : size == 8 ? &move_rows<8>
                                : &move_rows<16>;
  move(to, to_step, to_row, from, from_step, from_row, n, rows);
}

// A buffer for one operand, and which pattern of repeated rows it holds.
struct Buffer {
  alignas(64) char bytes[kBlockBytes + native::kSpreadSlack];
  const char* pattern = nullptr;
  int64_t rows = 0;
};

struct Walk {
  native::Loop1d loop;
  const void* params;
  IntArrayRef shape;
  ArrayRef<RowOperand> operands;
  char* data[TensorIterator::kMaxOperands];
  Buffer* buffers;

  void advance(int d, int64_t steps) {
    for (size_t k = 0; k < operands.size(); ++k) data[k] += steps * operands[k].strides[d];
  }

  // A part of one row, without any joining.
  void part(int64_t n) {
    int64_t strides[TensorIterator::kMaxOperands];
    for (size_t k = 0; k < operands.size(); ++k) strides[k] = operands[k].strides[0];
    loop(data, strides, n, params);
  }

  // The rows of an input as one row; returns its stride.
  int64_t gather(size_t k, int64_t rows, char*& joined) {
    const RowOperand& op = operands[k];
    const int64_t n = shape[0], s0 = op.strides[0], s1 = op.strides[1], size = op.size;
    joined = data[k];
    if (s0 == 0 && s1 == 0) return 0;
    if (s1 == n * s0) return s0;
    Buffer& buffer = buffers[k];
    joined = buffer.bytes;
    if (s0 == 0) {
      static const native::SpreadFn spread = CRESSET_BY_ISA(native::, spread);
      spread(joined, n, data[k], s1, rows, op.size);
    } else if (s1 != 0) {
      move_rows(op.size, joined, size, n * size, data[k], s0, s1, n, rows);
    } else if (buffer.pattern != data[k] || buffer.rows < rows) {
      move_rows(op.size, joined, size, 0, data[k], s0, 0, n, 1);
      for (int64_t done = 1; done < rows; done *= 2)
        std::memcpy(joined + done * n * size, joined,
                    static_cast<size_t>(std::min(done, rows - done) * n * size));
      buffer.pattern = data[k];
      buffer.rows = rows;
    }
    return size;
  }

  // Whole rows from where `data` points.
  void rows(int64_t count) {
    const int64_t n = shape[0];
    char* joined[TensorIterator::kMaxOperands];
    int64_t strides[TensorIterator::kMaxOperands];
    for (size_t k = 0; k < operands.size(); ++k) {
      const RowOperand& op = operands[k];
      if (!op.is_output) {
        strides[k] = gather(k, count, joined[k]);
      } else if (op.strides[1] == n * op.strides[0]) {
        joined[k] = data[k];
        strides[k] = op.strides[0];
      } else {
        joined[k] = buffers[k].bytes;
        strides[k] = op.size;
      }
    }
    loop(joined, strides, count * n, params);
    for (size_t k = 0; k < operands.size() && operands[k].is_output; ++k) {
      const RowOperand& op = operands[k];
      if (joined[k] == data[k]) continue;
      move_rows(op.size, data[k], op.strides[0], op.strides[1], joined[k], op.size, n * op.size, n,
                count);
    }
  }
};

} // namespace

bool rows_are_short(IntArrayRef shape, ArrayRef<RowOperand> operands) {
  if (shape.size() < 2 || shape[1] < kFewest) return false;
  if (shape[0] <= kLongest) return true;
  // Longer rows only where nothing is copied for each of them.
  for (const RowOperand& op : operands) {
    const int64_t s0 = op.strides[0], s1 = op.strides[1];
    if (s1 == shape[0] * s0) continue;
    if (s1 != 0 || op.is_output || 2 * shape[0] * op.size > kBlockBytes) return false;
  }
  return true;
}

void run_short_rows(native::Loop1d loop, const void* params, IntArrayRef shape,
                    ArrayRef<RowOperand> operands, int64_t begin, int64_t end) {
  Buffer buffers[TensorIterator::kMaxOperands];
  Walk walk{loop, params, shape, operands, {}, buffers};
  const int dims = static_cast<int>(shape.size());
  DimVector position(dims);
  for (size_t k = 0; k < operands.size(); ++k) {
    walk.data[k] = operands[k].data;
  }
  int64_t rest = begin;
  for (int d = 0; d < dims; ++d) {
    position[d] = rest % shape[d];
    rest /= shape[d];
    walk.advance(d, position[d]);
  }
  int widest = 1;
  for (const RowOperand& op : operands) widest = std::max(widest, op.size);
  const int64_t most = std::max<int64_t>(1, kBlockBytes / (shape[0] * widest));
  for (int64_t left = end - begin; left > 0;) {
    int64_t rows = 1;
    if (position[0] != 0 || left < shape[0]) {
      const int64_t n = std::min(left, shape[0] - position[0]);
      walk.part(n);
      left -= n;
      walk.advance(0, -position[0]);
      position[0] = 0;
    } else {
      rows = std::min({most, shape[1] - position[1], left / shape[0]});
      walk.rows(rows);
      left -= rows * shape[0];
    }
    walk.advance(1, rows);
    position[1] += rows;
    for (int d = 1; d < dims && position[d] == shape[d]; ++d) {
      walk.advance(d, -position[d]);
      position[d] = 0;
      if (d + 1 == dims) break;
      walk.advance(d + 1, 1);
      ++position[d + 1];
    }
  }
}

} // namespace at::iter
