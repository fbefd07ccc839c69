// Views of a part of a tensor: one index, a slice, a diagonal, windows.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>

#include <ATen/ops/slice.h>

#include <algorithm>

namespace at::native {

namespace {

using c10::expect_true;
using c10::guard_or_false;

template <class Int> Tensor selected(const Tensor& self, int64_t dim, Int index) {
  const int64_t ndim = self.dim();
  TORCH_CHECK_INDEX(ndim > 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, ndim);
  const ArrayRef<Int> old_sizes = sizes_of<Int>(self), old_strides = strides_of<Int>(self);
  const Int size = old_sizes[d];
  TORCH_CHECK_INDEX(expect_true(c10::sym_ge(index, -size)) && expect_true(c10::sym_lt(index, size)),
                    "select(): index ", index, " out of range for tensor of size ", old_sizes,
                    " at dimension ", d);
  Ints<Int> sizes, strides;
  for (int64_t i = 0; i < ndim; ++i) {
    if (i == d) continue;
    sizes.push_back(old_sizes[i]);
    strides.push_back(old_strides[i]);
  }
  const bool from_end = guard_or_false(c10::sym_lt(index, 0));
  const Int offset = offset_of<Int>(self) + (from_end ? index + size : index) * old_strides[d];
  return view_with<Int>(self, sizes, strides, offset);
}

// A step so large that the stride overflows leaves one element at most, whose stride is not used.
void step_stride(int64_t& stride, int64_t step) {
  int64_t product;
  if (!c10::mul_overflows(stride, step, &product)) stride = product;
}
void step_stride(SymInt& stride, SymInt step) { stride = stride * step; }

template <class Int> Tensor sliced(const Tensor& self, int64_t dim, std::optional<Int> start,
                                   std::optional<Int> end, Int step) {
  const int64_t ndim = self.dim();
  TORCH_CHECK_INDEX(ndim > 0, "slice() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrap_dim(dim, ndim);
  Ints<Int> sizes(sizes_of<Int>(self)), strides(strides_of<Int>(self));
  const auto range = slice_range(sizes[d], start, end, step);
  const Int offset = offset_of<Int>(self) + range.start * strides[d];
  sizes[d] = range.length;
  step_stride(strides[d], step);
  return view_with<Int>(self, sizes, strides, offset);
}

template <class Int> Tensor narrowed(const Tensor& self, int64_t dim, Int start, Int length) {
  TORCH_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK(expect_true(c10::sym_ge(length, 0)), "narrow(): length must be non-negative.");
  const Int size = length_of<Int>(self, dim);
  TORCH_CHECK_INDEX(expect_true(c10::sym_ge(start, -size)) && expect_true(c10::sym_le(start, size)),
                    "start out of range (expected to be in range of [", -size, ", ", size,
                    "], but got ", start, ")");
  const Int first = guard_or_false(c10::sym_lt(start, 0)) ? start + size : start;
  TORCH_CHECK(expect_true(c10::sym_le(length, size - first)), "start (", first, ") + length (",
              length, ") exceeds dimension size (", size, ").");
  return at::_ops::slice_Tensor::call(self, dim, SymInt(first), SymInt(first + length), 1);
}

} // namespace

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  return selected<int64_t>(self, dim, index);
}
Tensor select_symbolic(const Tensor& self, int64_t dim, SymInt index) {
  return selected<SymInt>(self, dim, index);
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  return sliced<int64_t>(self, dim, start, end, step);
}
Tensor slice_symbolic(const Tensor& self, int64_t dim, std::optional<SymInt> start,
                      std::optional<SymInt> end, SymInt step) {
  return sliced<SymInt>(self, dim, start, end, step);
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return narrowed<int64_t>(self, dim, start, length);
}
Tensor narrow_symbolic(const Tensor& self, int64_t dim, SymInt start, SymInt length) {
  return narrowed<SymInt>(self, dim, start, length);
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
