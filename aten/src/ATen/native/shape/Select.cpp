// Views of a part of a tensor: one index, a slice, a diagonal, windows.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>

#include <algorithm>

namespace at::native {

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  const int64_t ndim = self.dim();
  TORCH_CHECK_INDEX(ndim > 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, ndim);
  const IntArrayRef old_sizes = self.sizes(), old_strides = self.strides();
  const int64_t size = old_sizes[d];
  TORCH_CHECK_INDEX(index >= -size && index < size, "select(): index ", index,
                    " out of range for tensor of size ", old_sizes, " at dimension ", d);
  DimVector sizes, strides;
  for (int64_t i = 0; i < ndim; ++i) {
    if (i == d) continue;
    sizes.push_back(old_sizes[i]);
    strides.push_back(old_strides[i]);
  }
  const int64_t offset =
      self.storage_offset() + (index < 0 ? index + size : index) * old_strides[d];
  return detail::view_of(self, sizes, strides, offset);
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  const int64_t ndim = self.dim();
  TORCH_CHECK_INDEX(ndim > 0, "slice() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, ndim);
  DimVector sizes(self.sizes()), strides(self.strides());
  const SliceRange range = slice_range(sizes[d], start, end, step);
  const int64_t offset = self.storage_offset() + range.start * strides[d];
  sizes[d] = range.length;
  // A step so large that the stride overflows leaves one element at most, whose stride is not used.
  int64_t stride;
  if (!c10::mul_overflows(strides[d], step, &stride)) strides[d] = stride;
  return detail::view_of(self, sizes, strides, offset);
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  TORCH_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK(length >= 0, "narrow(): length must be non-negative.");
  const int64_t size = self.size(dim);
  TORCH_CHECK_INDEX(start >= -size && start <= size,
                    "start out of range (expected to be in range of [", -size, ", ", size,
                    "], but got ", start, ")");
  const int64_t first = start < 0 ? start + size : start;
  TORCH_CHECK(length <= size - first, "start (", first, ") + length (", length,
              ") exceeds dimension size (", size, ").");
  return self.slice(dim, first, first + length, 1);
}

Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  TORCH_CHECK(start.dim() == 0 && c10::isIntegralType(start.scalar_type(), false),
              "start must be an 0-dim integral Tensor.");
  return self.narrow(dim, start.item<int64_t>(), length);
}

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t ndim = self.dim();
  const int64_t a = wrap_dim(dim1, ndim), b = wrap_dim(dim2, ndim);
  TORCH_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const IntArrayRef old_sizes = self.sizes(), old_strides = self.strides();
  const int64_t rows = old_sizes[a], columns = old_sizes[b];
  // Offsets beyond either edge give an empty diagonal; the differences cannot overflow.
  int64_t length = 0;
  int64_t first = self.storage_offset();
  if (offset >= 0 && offset < columns) length = std::min(rows, columns - offset);
  if (offset < 0 && offset > -rows) length = std::min(rows + offset, columns);
  if (length > 0) first += offset >= 0 ? offset * old_strides[b] : -offset * old_strides[a];
  DimVector sizes, strides;
  for (int64_t d = 0; d < ndim; ++d) {
    if (d == a || d == b) continue;
    sizes.push_back(old_sizes[d]);
    strides.push_back(old_strides[d]);
  }
  sizes.push_back(length);
  strides.push_back(old_strides[a] + old_strides[b]);
  return detail::view_of(self, sizes, strides, first);
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t ndim = self.dim();
  const int64_t d = wrap_dim(dimension, ndim);
  const int64_t limit = ndim == 0 ? 1 : self.size(d);
  TORCH_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  TORCH_CHECK(size <= limit, "maximum size for tensor at dimension ", d, " is ", limit,
              " but size is ", size);
  TORCH_CHECK(step > 0, "step is ", step, " but must be > 0");
  DimVector sizes(self.sizes()), strides(self.strides());
  sizes.push_back(size);
  strides.push_back(ndim == 0 ? 1 : strides[d]);
  if (ndim > 0) {
    sizes[d] = (limit - size) / step + 1;
    int64_t stride;
    if (!c10::mul_overflows(strides[d], step, &stride)) strides[d] = stride;
  }
  return detail::view_of(self, sizes, strides, self.storage_offset());
}

} // namespace at::native
