// The walk over strided operands. See TensorIterator.h.
#include <ATen/iter/TensorIterator.h>

#include <algorithm>
#include <cstring>

#include <ATen/iter/Cast.h>
#include <ATen/iter/DimensionOrder.h>
#include <ATen/iter/ShortRows.h>
#include <ATen/parallel/Stretches.h>

namespace at {

void TensorIterator::add(void* data, DimVector strides, ScalarType dtype, ScalarType compute,
                         bool is_output) {
  TORCH_INTERNAL_ASSERT(operands_.size() < kMaxOperands);
  const bool cast = dtype != compute;
  if (cast) {
    const native::Loop1d loop = is_output ? cast_loop(dtype, compute) : cast_loop(compute, dtype);
    TORCH_CHECK_NOT_IMPLEMENTED(loop != nullptr, "\"copy_\" not implemented from '",
                                is_output ? compute : dtype, "' to '", is_output ? dtype : compute,
                                "' on cpu");
  }
  needs_cast_ |= cast;
  operands_.push_back(
      {static_cast<char*>(data), std::move(strides), dtype, compute, is_output, cast});
}

void TensorIterator::add_tensor(const Tensor& tensor, ScalarType compute, bool is_output) {
  const int64_t ndim = static_cast<int64_t>(shape_.size());
  const int64_t missing = ndim - tensor.dim();
  const IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  const int64_t itemsize = tensor.itemsize();
  DimVector bytes(ndim);
  for (int64_t i = missing; i < ndim; ++i) {
    const bool repeat = sizes[i - missing] == 1 && shape_[i] != 1;
    bytes[i] = repeat ? 0 : strides[i - missing] * itemsize;
  }
  add(tensor.data_ptr(), std::move(bytes), tensor.scalar_type(), compute, is_output);
}

void TensorIterator::add_output(const Tensor& tensor, ScalarType compute) {
  add_tensor(tensor, compute, true);
}
void TensorIterator::add_input(const Tensor& tensor, ScalarType compute) {
  add_tensor(tensor, compute, false);
}
void TensorIterator::add_raw(void* data, IntArrayRef byte_strides, ScalarType dtype,
                             bool is_output) {
  add(data, DimVector(byte_strides), dtype, dtype, is_output);
}
void TensorIterator::add_constant(const void* data) {
  add(const_cast<void*>(data), DimVector(shape_.size()), kByte, kByte, false);
}

namespace {
// Whether dimension `a` should lie outside dimension `b`: 1 yes, -1 no, 0 undecided. The first
// operand with two non-zero strides that differ decides; equal strides are ordered by size.
int outer_than(int64_t a, int64_t b, IntArrayRef shape, ArrayRef<IntArrayRef> strides) {
  for (IntArrayRef s : strides) {
    if (s[a] == 0 || s[b] == 0) continue;
    if (s[a] < s[b]) return -1;
    if (s[a] > s[b]) return 1;
    if (shape[a] > shape[b]) return 1;
  }
  return 0;
}

} // namespace

// Starts from row-major order and moves a dimension only when an operand's strides ask for it.
DimVector dimension_order(IntArrayRef shape, ArrayRef<IntArrayRef> strides) {
  const int64_t n = static_cast<int64_t>(shape.size());
  DimVector order(n);
  for (int64_t i = 0; i < n; ++i) order[i] = n - 1 - i;
  for (int64_t i = 1; i < n; ++i) {
    int64_t slot = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      const int decision = outer_than(order[j], order[slot], shape, strides);
      if (decision > 0) {
        std::swap(order[j], order[slot]);
        slot = j;
      } else if (decision < 0) {
        break;
      }
    }
  }
  return order;
}

void TensorIterator::reorder() {
  c10::SmallVector<IntArrayRef, 4> strides;
  for (const OperandInfo& op : operands_) strides.push_back(op.strides);
  const DimVector order = dimension_order(shape_, strides);
  auto apply = [&](DimVector& list) {
    DimVector old = list;
    for (size_t i = 0; i < order.size(); ++i) list[i] = old[order[i]];
  };
  for (OperandInfo& op : operands_) apply(op.strides);
  apply(shape_);
}

void TensorIterator::merge() {
  size_t last = 0;
  for (size_t dim = 1; dim < shape_.size(); ++dim) {
    bool flush = true;
    if (shape_[last] != 1 && shape_[dim] != 1) {
      for (const OperandInfo& op : operands_)
        flush &= op.strides[dim] == op.strides[last] * shape_[last];
    }
    if (flush) {
      if (shape_[last] == 1)
        for (OperandInfo& op : operands_) op.strides[last] = op.strides[dim];
      shape_[last] *= shape_[dim];
    } else {
      ++last;
      shape_[last] = shape_[dim];
      for (OperandInfo& op : operands_) op.strides[last] = op.strides[dim];
    }
  }
  shape_.resize(last + 1);
  for (OperandInfo& op : operands_) op.strides.resize(last + 1);
}

void TensorIterator::build() {
  numel_ = c10::checked_numel(shape_);
  if (shape_.empty()) {
    shape_.push_back(1);
    for (OperandInfo& op : operands_) op.strides.push_back(0);
    return;
  }
  if (shape_.size() > 1) {
    reorder();
    merge();
  }
}

void TensorIterator::for_range(RowFn row, int64_t begin, int64_t end) const {
  const int count = static_cast<int>(operands_.size());
  const int dims = ndim();
  char* data[kMaxOperands];
  int64_t inner[kMaxOperands];
  DimVector coordinates(dims);
  int64_t rest = begin;
  for (int d = 0; d < dims; ++d) {
    coordinates[d] = rest % shape_[d];
    rest /= shape_[d];
  }
  for (int k = 0; k < count; ++k) {
    const OperandInfo& op = operands_[k];
    inner[k] = op.strides[0];
    data[k] = op.data;
    for (int d = 0; d < dims; ++d) data[k] += coordinates[d] * op.strides[d];
  }
  for (int64_t left = end - begin; left > 0;) {
    const int64_t n = std::min(left, shape_[0] - coordinates[0]);
    if (C10_UNLIKELY(needs_cast_)) {
      cast_row(row, data, inner, n);
    } else {
      row(data, inner, n);
    }
    left -= n;
    if (left == 0) break;
    // Step to the start of the next row.
    for (int k = 0; k < count; ++k) data[k] -= coordinates[0] * inner[k];
    coordinates[0] = 0;
    for (int d = 1; d < dims; ++d) {
      for (int k = 0; k < count; ++k) data[k] += operands_[k].strides[d];
      if (++coordinates[d] < shape_[d]) break;
      for (int k = 0; k < count; ++k) data[k] -= coordinates[d] * operands_[k].strides[d];
      coordinates[d] = 0;
    }
  }
}

void TensorIterator::cast_row(RowFn row, char* const* data, const int64_t* strides,
                              int64_t n) const {
  // 16-byte elements (complex128) are the largest: 256 of them and eight operands stay in L1.
  constexpr int64_t kBlock = 256;
  alignas(64) char buffer[kMaxOperands][kBlock * 16];
  char* block_data[kMaxOperands];
  int64_t block_strides[kMaxOperands];
  const int count = static_cast<int>(operands_.size());
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t m = std::min(kBlock, n - start);
    for (int k = 0; k < count; ++k) {
      const OperandInfo& op = operands_[k];
      block_data[k] = data[k] + start * strides[k];
      block_strides[k] = strides[k];
      if (!op.needs_cast) continue;
      const int64_t size = c10::elementSize(op.compute);
      if (!op.is_output) {
        char* pair[2] = {buffer[k], block_data[k]};
        const int64_t pair_strides[2] = {size, strides[k]};
        // A repeated element is converted once.
        const int64_t distinct = strides[k] == 0 ? 1 : m;
        cast_loop(op.compute, op.dtype)(pair, pair_strides, distinct, nullptr);
        block_strides[k] = strides[k] == 0 ? 0 : size;
      } else {
        block_strides[k] = size;
      }
      block_data[k] = buffer[k];
    }
    row(block_data, block_strides, m);
    for (int k = 0; k < count && operands_[k].is_output; ++k) {
      const OperandInfo& op = operands_[k];
      if (!op.needs_cast) continue;
      char* pair[2] = {data[k] + start * strides[k], buffer[k]};
      const int64_t pair_strides[2] = {strides[k], c10::elementSize(op.compute)};
      cast_loop(op.dtype, op.compute)(pair, pair_strides, m, nullptr);
    }
  }
}

void TensorIterator::for_each(RowFn row, int64_t grain) {
  if (numel_ == 0) return;
  if (numel_ <= grain) {
    for_range(row, 0, numel_);
    return;
  }
  BlockingRegion unlocked;
  // An expanded tensor may have any number of elements: also a chunk of them responds to Ctrl-C.
  parallel_for(0, numel_, grain, [&](int64_t begin, int64_t end) {
    serial_for(begin, end, 1, [&](int64_t b, int64_t e) { for_range(row, b, e); });
  });
}

namespace {
void run_together(native::Loop1d loop, const void* params, IntArrayRef shape, int64_t numel,
                  ArrayRef<iter::RowOperand> rows, int64_t grain) {
  const auto run = [&](int64_t begin, int64_t end) {
    iter::run_short_rows(loop, params, shape, rows, begin, end);
  };
  if (numel <= grain) return run(0, numel);
  const BlockingRegion unlocked;
  parallel_for(0, numel, grain,
               [&](int64_t begin, int64_t end) { serial_for(begin, end, 1, run); });
}
} // namespace

void TensorIterator::run(native::Loop1d loop, const void* params, int64_t grain) {
  if (shape_.size() > 1 && !needs_cast_ && numel_ > 0) {
    c10::SmallVector<iter::RowOperand, 4> rows;
    for (const OperandInfo& op : operands_)
      rows.push_back(
          {op.data, op.strides.data(), static_cast<int>(c10::elementSize(op.dtype)), op.is_output});
    if (iter::rows_are_short(shape_, rows))
      return run_together(loop, params, shape_, numel_, rows, grain);
  }
  for_each(
      [&](char* const* data, const int64_t* strides, int64_t n) { loop(data, strides, n, params); },
      grain);
}

// ---- shapes -----------------------------------------------------------------------------------
DimVector broadcast_shapes(IntArrayRef a, IntArrayRef b) {
  const size_t n = std::max(a.size(), b.size());
  DimVector out(n);
  // From the last dimension on, where a mistake is most often made: that one is reported.
  for (size_t back = 1; back <= n; ++back) {
    const size_t i = n - back;
    const int64_t x = back <= a.size() ? a[a.size() - back] : 1;
    const int64_t y = back <= b.size() ? b[b.size() - back] : 1;
    TORCH_CHECK(x == y || x == 1 || y == 1, "The size of tensor a (", x,
                ") must match the size of tensor b (", y, ") at non-singleton dimension ", i);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

DimVector broadcast_shapes(TensorList tensors) {
  DimVector out;
  for (const Tensor& t : tensors) out = broadcast_shapes(out, t.sizes());
  return out;
}

DimVector pointwise_output_strides(IntArrayRef shape, ArrayRef<const Tensor*> operands) {
  const int64_t ndim = static_cast<int64_t>(shape.size());
  bool contiguous = true;
  for (const Tensor* t : operands) contiguous &= t->sizes() == shape && t->is_contiguous();
  DimVector out(ndim);
  if (contiguous || ndim < 2) {
    c10::contiguous_strides(shape, out.data());
    return out;
  }
  c10::SmallVector<DimVector, 4> lists;
  bool same = true;
  for (const Tensor* t : operands) {
    DimVector strides(ndim);
    const int64_t missing = ndim - t->dim();
    for (int64_t i = missing; i < ndim; ++i)
      strides[i] = t->size(i - missing) == 1 && shape[i] != 1 ? 0 : t->stride(i - missing);
    same &= t->sizes() == shape && t->is_non_overlapping_and_dense() &&
            t->strides() == operands[0]->strides();
    lists.push_back(std::move(strides));
  }
  if (same && !operands.empty()) return DimVector(operands[0]->strides());
  c10::SmallVector<IntArrayRef, 4> refs;
  for (const DimVector& list : lists) refs.push_back(list);
  int64_t step = 1;
  for (int64_t dim : dimension_order(shape, refs)) {
    out[dim] = step;
    step *= std::max<int64_t>(shape[dim], 1);
  }
  return out;
}

} // namespace at
