// select_scatter and its relatives: a copy of self in which the part that the view operator of that
// name would show is replaced by src.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/index/Native.h>
#include <ATen/ops/diagonal.h>
#include <c10/util/SafeArithmetic.h>

#include <algorithm>

namespace at::native {
namespace {

// A copy with self's own strides where these have no overlap (as_strided needs the same layout),
// else a dense one.
Tensor copy_keeping_strides(const Tensor& self) {
  const IntArrayRef sizes = self.sizes(), strides = self.strides();
  // Strictly nested strides: sorted by stride, each one spans all before it.
  DimVector order;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (sizes[d] != 1) order.push_back(d);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t span = 1;
  for (int64_t d : order) {
    if (strides[d] < span) return self.clone();
    span += strides[d] * (sizes[d] - 1);
  }
  if (self.numel() == 0) return self.clone();
  const Tensor result = detail::empty_strided(sizes, strides, self.scalar_type(), self.device());
  result.copy_(self);
  return result;
}

void put_part(const Tensor& part, const Tensor& src) {
  TORCH_CHECK(part.sizes() == src.sizes(),
              "expected src to have a size equal to the slice of self. "
              "src size = ",
              src.sizes(), ", slice size = ", part.sizes());
  part.copy_(src);
}

} // namespace

Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  Tensor result = copy_keeping_strides(self);
  put_part(result.select(dim, index), src);
  return result;
}

Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim,
                     std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  Tensor result = copy_keeping_strides(self);
  put_part(result.slice(dim, start, end, step), src);
  return result;
}

Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  Tensor result = copy_keeping_strides(self);
  put_part(at::diagonal(result, offset, dim1, dim2), src);
  return result;
}

namespace {
// Whether an element stands for several, which could not take different values.
bool repeats(const Tensor& t) {
  if (t.numel() == 0) return false;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.stride(d) == 0 && t.size(d) > 1) return true;
  return false;
}
} // namespace
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntArrayRef size,
                          IntArrayRef stride, std::optional<int64_t> storage_offset) {
  if (repeats(self))
    return as_strided_scatter(self.contiguous(), src, size, stride, storage_offset);
  // The copy has the bytes of self's whole storage from its own offset on, so that the numbers mean
  // the same elements.
  const int64_t offset = self.storage_offset();
  const int64_t bytes = self.has_storage() ? static_cast<int64_t>(self.storage()->nbytes()) : 0;
  const int64_t elements = bytes / std::max<int64_t>(self.itemsize(), 1);
  const Tensor whole = detail::empty({elements}, self.scalar_type(), self.device());
  whole.copy_(detail::checked_view(self, {elements}, {1}, 0));
  Tensor result = detail::checked_tensor(whole.storage(), self.scalar_type(), self.sizes(),
                                         self.strides(), offset);
  put_part(detail::checked_view(whole, size, stride, storage_offset.value_or(offset)), src);
  return result;
}

} // namespace at::native
