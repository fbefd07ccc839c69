// nonzero and its relatives. Two passes: count the true elements of each chunk, then let every
// chunk write its coordinates. A result's columns are contiguous (strides (1, n)), as PyTorch's
// are, so that the coordinate vectors of indexing by mask are ready-made.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/index/IndexUtil.h>
#include <ATen/native/index/MaskLoops.h>
#include <ATen/native/index/Native.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/nonzero_numpy.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <vector>

namespace at::native {
namespace {

// Coordinates of the true elements of [begin, end), column d starting at columns + d * step.
void write_coordinates(const uint8_t* mask, IntArrayRef sizes, int64_t begin, int64_t end,
                       int64_t* columns, int64_t step) {
  const int64_t outer = static_cast<int64_t>(sizes.size()) - 1;
  const int64_t row = sizes[outer];
  DimVector coordinates(static_cast<size_t>(outer), 0);
  int64_t rest = begin / row;
  for (int64_t d = outer - 1; d >= 0; --d) {
    coordinates[d] = rest % sizes[d];
    rest /= sizes[d];
  }
  int64_t column = begin % row;
  while (begin < end) {
    const int64_t stop = std::min(row, column + (end - begin));
    int64_t* const start = columns;
    const uint8_t* const line = mask + begin - column;
    int64_t* last = start + outer * step;
    for (int64_t j = column; j < stop; ++j)
      if (line[j]) *last++ = j;
    const int64_t found = last - (start + outer * step);
    for (int64_t d = 0; d < outer; ++d) std::fill_n(start + d * step, found, coordinates[d]);
    columns += found;
    begin += stop - column;
    column = 0;
    for (int64_t d = outer - 1; d >= 0; --d) {
      if (++coordinates[d] < sizes[d]) break;
      coordinates[d] = 0;
    }
  }
}

} // namespace

Tensor nonzero_cpu(const Tensor& self) {
  const Tensor truth = true_bytes(self);
  const uint8_t* mask = static_cast<const uint8_t*>(truth.data_ptr());
  const int64_t n = truth.numel();
  const TrueCounts counts(mask, n);
  const int64_t total = counts.total();
  Tensor result = detail::empty_strided({total, truth.dim()}, {1, total}, kLong);
  if (total == 0 || truth.dim() == 0) return result;
  int64_t* columns = result.data_ptr<int64_t>();
  parallel_for(0, n, TrueCounts::kGrain, [&](int64_t begin, int64_t end) {
    write_coordinates(mask, truth.sizes(), begin, end,
                      columns + counts.before[static_cast<size_t>(begin / counts.chunk)], total);
  });
  return result;
}

Tensor& nonzero_out_cpu(const Tensor& self, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type",
              out.scalar_type());
  generated::store_out(out, nonzero_cpu(self));
  return out;
}

namespace {

Tensor static_result(const Tensor& self, int64_t size) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  return detail::empty({size, self.dim()}, kLong, self.device());
}

} // namespace

Tensor nonzero_static_cpu(const Tensor& self, int64_t size, int64_t fill_value) {
  Tensor result = static_result(self, size);
  result.fill_(fill_value);
  const Tensor found = nonzero_cpu(self);
  const int64_t kept = std::min(size, found.size(0));
  if (kept > 0 && self.dim() > 0) result.narrow(0, 0, kept).copy_(found.narrow(0, 0, kept));
  return result;
}

Tensor nonzero_static_meta(const Tensor& self, int64_t size, int64_t fill_value) {
  static_cast<void>(fill_value);
  return static_result(self, size);
}

std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  // A number counts as a vector of one.
  const Tensor found = at::nonzero(self.dim() == 0 ? self.unsqueeze(0) : self);
  std::vector<Tensor> columns;
  for (int64_t d = 0; d < found.size(1); ++d) columns.push_back(found.select(1, d));
  return columns;
}

Tensor argwhere(const Tensor& self) { return at::nonzero(self); }

} // namespace at::native
