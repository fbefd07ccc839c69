// See IndexUtil.h.
#include <ATen/native/index/IndexUtil.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/index/RowLoops.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {

Tensor as_vector_if_scalar(const Tensor& t) {
  if (t.dim() > 0) return t;
  return detail::view_of(t, {1}, {1}, t.storage_offset());
}

Tensor long_contiguous(const Tensor& index) {
  if (index.scalar_type() == kLong && index.is_contiguous()) return index;
  return index.to(kLong).contiguous();
}

bool surely_disjoint(const Tensor& t) { return t.is_non_overlapping_and_dense(); }

void throw_index_out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  TORCH_CHECK_INDEX(false, "index ", index, " is out of bounds for dimension ", dim, " with size ",
                    size);
}

void throw_runtime_out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  TORCH_CHECK(false, "index ", index, " is out of bounds for dimension ", dim, " with size ", size);
}

void throw_out_of_range_in_self(int64_t, int64_t, int64_t) {
  TORCH_CHECK_INDEX(false, "index out of range in self");
}

void index_offsets(const int64_t* index, int64_t n, int64_t size, int64_t dim, int64_t stride,
                   bool wrap, OutOfRange fail, Offsets& offsets) {
  offsets.resize(static_cast<size_t>(n));
  int64_t* out = offsets.data();
  const int64_t low = wrap ? -size : 0;
  parallel_for(0, n, 32768, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t v = index[i];
      if (C10_UNLIKELY(v < low || v >= size)) fail(v, dim, size);
      out[i] = (v < 0 ? v + size : v) * stride;
    }
  });
}

RowWalk walk_along(const Tensor& indexed, const Tensor& linear, int64_t dim) {
  RowWalk walk;
  const int64_t itemsize = indexed.itemsize();
  const IntArrayRef sizes = indexed.sizes(), a = indexed.strides(), b = linear.strides();
  for (int64_t d = 0; d < indexed.dim(); ++d) {
    if (d == dim) continue;
    (d < dim ? walk.before : walk.after).add(sizes[d], a[d] * itemsize, b[d] * itemsize);
  }
  walk.count = linear.size(dim);
  walk.linear_stride = b[dim] * itemsize;
  walk.itemsize = itemsize;
  walk.disjoint = surely_disjoint(indexed);
  return walk;
}

RowLoops add_loops(ScalarType dtype, const char* name) {
  RowLoops loops{};
  dtype_switch<AllTypesAndBool>(
      dtype, name, [&](auto tag) { loops = combine_loops<typename decltype(tag)::type, AddOp>(); });
  return loops;
}

} // namespace at::native
