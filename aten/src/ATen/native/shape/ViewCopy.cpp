// The copying form of each view operator: the same view, then a contiguous copy. They exist so that
// functionalised programs have no aliasing; all are one line over `copied`.
#include <ATen/native/shape/Native.h>

namespace at::native {
namespace {

Tensor copied(const Tensor& view) { return view.clone(MemoryFormat::Contiguous); }

std::vector<Tensor> copied(std::vector<Tensor> views) {
  for (Tensor& view : views) view = copied(view);
  return views;
}

} // namespace

Tensor _conj_copy(const Tensor& self) { return copied(native::_conj(self)); }
Tensor _neg_view_copy(const Tensor& self) { return copied(native::_neg_view(self)); }
Tensor _reshape_alias_copy(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  return copied(native::_reshape_alias(self, size, stride));
}
Tensor alias_copy(const Tensor& self) { return copied(self); }
Tensor as_strided_copy(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                       std::optional<int64_t> storage_offset) {
  return copied(native::as_strided(self, size, stride, storage_offset));
}
Tensor detach_copy(const Tensor& self) { return copied(native::detach(self)); }
Tensor diagonal_copy(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return copied(native::diagonal(self, offset, dim1, dim2));
}
Tensor expand_copy(const Tensor& self, IntArrayRef size, bool implicit) {
  return copied(native::expand(self, size, implicit));
}
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  TORCH_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK(length >= 0, "start (", start, ") + length (", length, ") exceeds dimension size (",
              self.size(dim), ").");
  return copied(native::narrow(self, dim, start, length));
}
Tensor permute_copy(const Tensor& self, IntArrayRef dims) {
  return copied(native::permute(self, dims));
}
Tensor select_copy(const Tensor& self, int64_t dim, int64_t index) {
  return copied(native::select(self, dim, index));
}
Tensor slice_copy(const Tensor& self, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step) {
  return copied(native::slice(self, dim, start, end, step));
}
std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim) {
  return copied(native::split(self, split_size, dim));
}
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntArrayRef split_sizes,
                                          int64_t dim) {
  return copied(native::split_with_sizes(self, split_sizes, dim));
}
Tensor squeeze_copy(const Tensor& self) { return copied(native::squeeze(self)); }
Tensor squeeze_copy(const Tensor& self, int64_t dim) { return copied(native::squeeze(self, dim)); }
Tensor squeeze_copy(const Tensor& self, IntArrayRef dims) {
  return copied(native::squeeze(self, dims));
}
Tensor t_copy(const Tensor& self) { return copied(native::t(self)); }
Tensor transpose_copy(const Tensor& self, int64_t dim0, int64_t dim1) {
  return copied(native::transpose(self, dim0, dim1));
}
std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim) {
  return copied(native::unbind(self, dim));
}
Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return copied(native::unfold(self, dimension, size, step));
}
Tensor unsqueeze_copy(const Tensor& self, int64_t dim) {
  return copied(native::unsqueeze(self, dim));
}
Tensor view_as_complex_copy(const Tensor& self) { return copied(native::view_as_complex(self)); }
Tensor view_as_real_copy(const Tensor& self) { return copied(native::view_as_real(self)); }
Tensor view_copy(const Tensor& self, IntArrayRef size) { return copied(native::view(self, size)); }
Tensor view_copy(const Tensor& self, ScalarType dtype) {
  return copied(native::view_dtype(self, dtype));
}

} // namespace at::native
