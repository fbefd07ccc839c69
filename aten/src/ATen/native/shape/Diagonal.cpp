// Triangles and diagonals of matrices as new tensors.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>
#include <ATen/ops/diagonal_copy.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <cstring>

#include <ATen/ops/diag_embed.h>
#include <ATen/ops/diagonal.h>

namespace at {
namespace meta {

void meta_tril(OutputBuilder& out, const Tensor& self, int64_t) {
  TORCH_CHECK(self.dim() >= 2, "tril: input tensor must have at least 2 dimensions");
  native::set_like(out, 0, self, self.scalar_type());
}
void meta_triu(OutputBuilder& out, const Tensor& self, int64_t) {
  TORCH_CHECK(self.dim() >= 2, "triu: input tensor must have at least 2 dimensions");
  native::set_like(out, 0, self, self.scalar_type());
}

} // namespace meta

namespace native {
namespace {

// One row: columns [begin, end) are kept, the others become zero. In place when `to` is `from`.
template <class T> void triangle_row(char* to, const char* from, int64_t from_step, int64_t begin,
                                     int64_t end, int64_t columns) {
  constexpr int64_t size = sizeof(T);
  std::memset(to, 0, static_cast<size_t>(begin * size));
  std::memset(to + end * size, 0, static_cast<size_t>((columns - end) * size));
  if (to == from) return;
  to += begin * size;
  from += begin * from_step;
  if (from_step == size) {
    std::memcpy(to, from, static_cast<size_t>((end - begin) * size));
  } else {
    for (int64_t j = begin; j < end; ++j, to += size, from += from_step)
      std::memcpy(to, from, sizeof(T));
  }
}

// The first column above the diagonal in row i, kept inside the matrix.
int64_t edge(int64_t row, int64_t diagonal, int64_t columns) {
  return std::clamp<int64_t>(row + diagonal + 1, 0, columns);
}

// Elements begin .. end of the result, row by row.
template <class T> void triangle_part(const Tensor& self, int64_t diagonal, bool upper,
                                      const Tensor& out, int64_t begin, int64_t end) {
  constexpr int64_t kSize = sizeof(T);
  const IntArrayRef sizes = self.sizes(), strides = self.strides();
  const int64_t ndim = self.dim(), rows = sizes[ndim - 2], columns = sizes[ndim - 1];
  const int64_t from_step = strides[ndim - 1] * kSize;
  char* const to = static_cast<char*>(out.data_ptr());
  for (int64_t position = begin; position < end;) {
    const int64_t r = position / columns, column = position - r * columns;
    const int64_t count = std::min(columns - column, end - position);
    int64_t offset = 0;
    int64_t left = r;
    for (int64_t d = ndim - 2; d >= 0; --d) {
      offset += left % sizes[d] * strides[d];
      left /= sizes[d];
    }
    const char* from = static_cast<const char*>(self.const_data_ptr()) + offset * kSize;
    const int64_t row = r % rows;
    const int64_t first = upper ? edge(row, diagonal - 1, columns) : 0;
    const int64_t last = upper ? columns : edge(row, diagonal, columns);
    const auto within = [&](int64_t c) { return std::clamp<int64_t>(c - column, 0, count); };
    triangle_row<T>(to + position * kSize, from + column * from_step, from_step, within(first),
                    within(last), count);
    position += count;
  }
}

void triangle_cpu(const Tensor& self, int64_t diagonal, bool upper, const Tensor& out) {
  if (self.numel() == 0) return;
  const int64_t columns = self.size(-1);
  // Beyond the matrix every diagonal is the same; clamping keeps the arithmetic in range.
  const int64_t limit = self.size(-2) + columns + 1;
  diagonal = std::clamp(diagonal, -limit, limit);
  std::optional<BlockingRegion> unlocked;
  if (self.numel() > 32768) unlocked.emplace();
  itemsize_switch(self.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, self.numel(), 32768,
                 [&](int64_t b, int64_t e) { triangle_part<T>(self, diagonal, upper, out, b, e); });
  });
}

} // namespace

void tril_cpu(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle_cpu(self, diagonal, false, out);
}
void triu_cpu(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle_cpu(self, diagonal, true, out);
}

Tensor diag(const Tensor& self, int64_t diagonal) {
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "diag(): Supports 1D or 2D tensors. Got ",
              self.dim(), "D");
  if (self.dim() == 1) return at::diag_embed(self, diagonal);
  return at::diagonal_copy(self, diagonal);
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t ndim = self.dim() + 1;
  const int64_t a = wrap_dim(dim1, ndim), b = wrap_dim(dim2, ndim);
  TORCH_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  TORCH_CHECK(self.dim() > 0, "diag_embed: expected a tensor with at least one dimension");
  int64_t side = 0;
  TORCH_CHECK(offset > INT64_MIN && !c10::add_overflows(self.size(-1), std::abs(offset), &side),
              "diag_embed: the offset ", offset, " is too large");
  DimVector sizes(self.sizes().slice(0, static_cast<size_t>(ndim - 2)));
  sizes.insert(sizes.begin() + std::min(a, b), side);
  sizes.insert(sizes.begin() + std::max(a, b), side);
  const Tensor out = detail::empty(sizes, self.scalar_type(), self.device());
  out.zero_();
  native::diagonal(out, offset, a, b).copy_(self);
  return out;
}

Tensor diagflat(const Tensor& self, int64_t offset) {
  return at::diag_embed(self.contiguous().view({-1}), offset);
}

} // namespace native
} // namespace at
