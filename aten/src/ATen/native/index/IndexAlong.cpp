// Operators with one index vector along one dimension that move slices: index_select, index_copy,
// index_fill. The sums and reductions of that kind stand in IndexReduce.cpp.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/Checks.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/index/IndexUtil.h>
#include <ATen/native/index/Native.h>
#include <ATen/native/index/RowLoops.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/ops/index_fill.h>

#include <string>

namespace at {
namespace native {
namespace {

bool is_index_dtype(const Tensor& t) { return t.scalar_type() == kLong || t.scalar_type() == kInt; }

// "3 4": the sizes without one dimension, as PyTorch prints slices.
std::string slice_text(const Tensor& t, int64_t dim) {
  std::string text;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d == dim) continue;
    if (!text.empty()) text += ' ';
    text += std::to_string(t.size(d));
  }
  return text;
}

void check_copy_shapes(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  TORCH_CHECK_INDEX(index.dim() < 2, "index_copy_(): Index should have dimension 1 or 0 (got ",
                    index.dim(), ")");
  const int64_t count = index.numel();
  TORCH_CHECK_INDEX(source.dim() > 0 || count == 1,
                    "index_copy_(): When source is scalar, index should have one element (got ",
                    count, ")");
  TORCH_CHECK_INDEX(source.dim() == self.dim() || source.dim() == 0 || self.dim() == 0,
                    "index_copy_(): When source and destination are not scalars, their "
                    "dimensionality must match. Source dimensionality (",
                    source.dim(), "), destination dimensionality (", self.dim(), ")");
  TORCH_CHECK(index.scalar_type() == kLong,
              "index_copy_(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "index_copy_(): self and source expected to have the same dtype, but got (self) ",
              self.scalar_type(), " and (source) ", source.scalar_type());
  const std::string own = slice_text(self, dim), other = slice_text(source, dim);
  TORCH_CHECK(own == other,
              "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
              "slice shape: ",
              own, " at dimension ", dim, " and source slice shape: ", other, " at dimension ", dim,
              ".");
  TORCH_CHECK_INDEX(
      source.dim() == 0 || count == source.size(dim), "index_copy_(): Number of indices (", count,
      ") should be equal to source.size(dim) (", source.dim() == 0 ? 1 : source.size(dim), ")");
}

[[noreturn]] void throw_copy_range(int64_t index, int64_t dim, int64_t size) {
  TORCH_CHECK_INDEX(false, "index_copy_(): index ", index, " is out of bounds for dimension ", dim,
                    " with size ", size);
}

} // namespace
} // namespace native

namespace meta {

void meta_index_select(OutputBuilder& out, const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t d = native::wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  const SymInt count = index.sym_numel();
  TORCH_CHECK(self.dim() > 0 || count == 1,
              "index_select(): Index to scalar can have only 1 value, got ", count, " value(s)");
  TORCH_CHECK(native::is_index_dtype(index),
              "index_select(): Expected dtype int32 or int64 for index");
  native::check_one_device({{"self", self}, {"index", index}});
  if (native::is_symbolic(self) || native::is_symbolic(index)) {
    native::SymDimVector sizes(self.sym_sizes());
    if (!sizes.empty()) sizes[d] = count;
    out.set_symint(0, sizes, self.scalar_type());
    return;
  }
  DimVector sizes(self.sizes());
  if (!sizes.empty()) sizes[d] = index.numel();
  TORCH_CHECK(sizes.empty() || index.numel() == 0 || self.size(d) > 0,
              "index_select(): self indexing axis dim should be positive");
  const Tensor& target = out.given(0);
  if (target.defined()) {
    TORCH_CHECK(target.scalar_type() == self.scalar_type(),
                "index_select(): self and result must have the same scalar type");
    native::check_writes_apart(target, self, index);
  }
  out.set_on(0, sizes, self.scalar_type(), self.device());
}

void meta_index_copy(OutputBuilder& out, const Tensor& self, int64_t dim, const Tensor& index,
                     const Tensor& source) {
  native::check_copy_shapes(self, native::wrap_dim(dim, self.dim()), index, source);
  native::check_one_device({{"self", self}, {"index", index}, {"source", source}});
  const Tensor& target = out.given(0);
  if (target.defined()) native::check_writes_apart(target, index, source);
  if (out.is_inplace())
    out.set_on(0, self.sizes(), self.scalar_type(), self.device(), self.strides());
  else
    out.set_on(0, self.sizes(), self.scalar_type(), self.device());
}

} // namespace meta

namespace native {

void index_select_cpu(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor source = as_vector_if_scalar(self), target = as_vector_if_scalar(out);
  const Tensor positions = long_contiguous(index);
  Offsets offsets;
  index_offsets(positions.data_ptr<int64_t>(), positions.numel(), source.size(d), d,
                source.stride(d) * source.itemsize(), false, throw_out_of_range_in_self, offsets);
  RowWalk walk = walk_along(source, target, d);
  walk.offsets = offsets.data();
  run_independent(walk, bytes_of(source), bytes_of(target), move_loops<false>(self.itemsize()));
}

void index_copy_cpu(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    const Tensor& out) {
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor target = as_vector_if_scalar(out), from = as_vector_if_scalar(source);
  const Tensor positions = long_contiguous(index);
  Offsets offsets;
  index_offsets(positions.data_ptr<int64_t>(), positions.numel(), target.size(d), d,
                target.stride(d) * target.itemsize(), false, throw_copy_range, offsets);
  if (!out.is_same(self)) out.copy_(self);
  RowWalk walk = walk_along(target, from, d);
  walk.offsets = offsets.data();
  run_ordered(walk, bytes_of(target), bytes_of(from), move_loops<true>(self.itemsize()));
}

namespace {

void check_fill(const Tensor& self, const Tensor& index) {
  TORCH_CHECK_INDEX(index.scalar_type() == kLong, "index_fill_(): Expected dtype int64 for index.");
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  native::check_one_device({{"self", self}, {"index", index}});
  assert_no_internal_overlap(self);
  assert_no_overlap(self, index);
}

void check_fill_value(const Tensor& self, const Scalar& value) {
  TORCH_CHECK(!value.isComplex() || self.is_complex(),
              "index_fill_(): Converting complex Scalar to non-complex type is not supported");
}

void check_zero_dim(const Tensor& value) {
  TORCH_CHECK(value.dim() == 0,
              "index_fill_ only supports a 0-dimensional value tensor, but got "
              "tensor with ",
              value.dim(), " dimension(s).");
}

} // namespace

Tensor& index_fill_scalar_cpu_(Tensor& self, int64_t dim, const Tensor& index,
                               const Scalar& value) {
  check_fill_value(self, value);
  check_fill(self, index);
  const int64_t d = wrap_dim(dim, self.dim());
  const Tensor target = as_vector_if_scalar(self);
  const Tensor fill = detail::scalar_tensor(value, self.scalar_type());
  const Tensor positions = long_contiguous(index);
  Offsets offsets;
  index_offsets(positions.data_ptr<int64_t>(), positions.numel(), target.size(d), d,
                target.stride(d) * target.itemsize(), true, throw_index_out_of_bounds, offsets);
  DimVector sizes(target.sizes());
  sizes[d] = positions.numel();
  const Tensor values = detail::view_of(fill, sizes, DimVector(sizes.size(), 0), 0);
  RowWalk walk = walk_along(target, values, d);
  walk.offsets = offsets.data();
  run_ordered(walk, bytes_of(target), bytes_of(values), move_loops<true>(self.itemsize()));
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor& index_fill_scalar_meta_(Tensor& self, int64_t dim, const Tensor& index,
                                const Scalar& value) {
  check_fill_value(self, value);
  check_fill(self, index);
  wrap_dim(dim, self.dim());
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor& index_fill_tensor_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  check_zero_dim(value);
  return at::_ops::index_fill__int_Scalar::call(self, dim, index,
                                                value.is_meta() ? Scalar(0) : value.item());
}

Tensor index_fill_scalar(const Tensor& self, int64_t dim, const Tensor& index,
                         const Scalar& value) {
  Tensor result = self.clone();
  return at::_ops::index_fill__int_Scalar::call(result, dim, index, value);
}

Tensor index_fill_tensor(const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& value) {
  check_zero_dim(value);
  Tensor result = self.clone();
  return at::_ops::index_fill__int_Tensor::call(result, dim, index, value);
}

} // namespace native
} // namespace at
