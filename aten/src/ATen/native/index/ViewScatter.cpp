// select_scatter and its relatives: a copy of self in which the part that the view operator of that
// name would show is replaced by src.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/index/Native.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/select.h>
#include <ATen/ops/slice.h>
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

// The strides that copy_keeping_strides gives, in the traced run.
SymDimVector symbolic_copy_strides(const Tensor& self) {
  const SymIntArrayRef sizes = self.sym_sizes(), strides = self.sym_strides();
  const auto hint = [](const SymInt& n) { return n.hint().value_or(0); };
  DimVector order;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (hint(sizes[d]) != 1) order.push_back(d);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return hint(strides[a]) < hint(strides[b]); });
  int64_t span = 1;
  for (int64_t d : order) {
    if (hint(strides[d]) < span) return symbolic_dense_strides(self);
    span += hint(strides[d]) * (hint(sizes[d]) - 1);
  }
  return SymDimVector(strides);
}

// A copy of self without values, for a part as large as src.
Tensor symbolic_scatter(const Tensor& self, const Tensor& part, const Tensor& src) {
  bool fits = part.dim() == src.dim();
  for (int64_t d = 0; fits && d < part.dim(); ++d)
    fits = c10::expect_true(c10::sym_eq(part.sym_size(d), src.sym_size(d)));
  TORCH_CHECK(fits,
              "expected src to have a size equal to the slice of self. "
              "src size = ",
              src.sym_sizes(), ", slice size = ", part.sym_sizes());
  const SymDimVector strides = symbolic_copy_strides(self);
  return at::_ops::empty_strided::call(self.sym_sizes(), strides, self.scalar_type(), kStrided,
                                       self.device(), std::nullopt);
}

} // namespace

Tensor select_scatter_symbolic(const Tensor& self, const Tensor& src, int64_t dim, SymInt index) {
  return symbolic_scatter(self, at::_ops::select_int::call(self, dim, index), src);
}
Tensor slice_scatter_symbolic(const Tensor& self, const Tensor& src, int64_t dim,
                              std::optional<SymInt> start, std::optional<SymInt> end, SymInt step) {
  return symbolic_scatter(self, at::_ops::slice_Tensor::call(self, dim, start, end, step), src);
}
Tensor diagonal_scatter_symbolic(const Tensor& self, const Tensor& src, int64_t offset,
                                 int64_t dim1, int64_t dim2) {
  return symbolic_scatter(self, at::_ops::diagonal::call(self, offset, dim1, dim2), src);
}
Tensor as_strided_scatter_symbolic(const Tensor& self, const Tensor& src, SymIntArrayRef size,
                                   SymIntArrayRef stride, std::optional<SymInt> storage_offset) {
  return symbolic_scatter(self, at::_ops::as_strided::call(self, size, stride, storage_offset),
                          src);
}

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
