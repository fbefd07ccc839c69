// index_add and index_reduce: slices of the source are combined, in the order of the indices, into
// the slices of self that the indices name.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/Checks.h>
#include <ATen/native/index/IndexUtil.h>
#include <ATen/native/index/Native.h>
#include <ATen/native/index/Reduction.h>
#include <ATen/native/index/RowLoops.h>
#include <ATen/native/shape/Geometry.h>

namespace at {
namespace native {
namespace {

// The same of sizes that are not known: what cannot be told now is checked when the graph runs.
void expect_reduce_shapes(const char* name, const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& source) {
  const SymIntArrayRef sizes = self.sym_sizes(), parts = source.sym_sizes();
  const SymInt slices = parts.empty() ? SymInt(1) : parts[static_cast<size_t>(dim)];
  TORCH_CHECK(c10::expect_true(c10::sym_eq(index.sym_numel(), slices)), name,
              "(): Number of indices should be equal to source.size(dim): (", slices,
              "), for dim: ", dim);
  bool fits = sizes.size() == parts.size();
  for (size_t d = 0; fits && d < sizes.size(); ++d)
    fits = static_cast<int64_t>(d) == dim || c10::expect_true(c10::sym_eq(sizes[d], parts[d]));
  TORCH_CHECK(fits,
              "source tensor shape must match self tensor shape, excluding the specified "
              "dimension. Got self.shape = ",
              sizes, " source.shape = ", parts);
}

void check_reduce_shapes(const char* name, const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& source) {
  TORCH_CHECK_INDEX(index.dim() <= 1, name,
                    "(): Index is supposed to be a vector, but got dim: ", index.dim(),
                    " with type: ", index.scalar_type(), " and size: ", index.sizes());
  TORCH_CHECK(index.scalar_type() == kLong || index.scalar_type() == kInt, name,
              "(): Expected dtype int32/int64 for index but got: ", index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), name, "(): self (", self.scalar_type(),
              ") and source (", source.scalar_type(), ") must have the same scalar type");
  TORCH_CHECK_INDEX(source.dim() > 0 || dim == 0, name, "(): Indexing dim ", dim,
                    " is out of bounds of the source tensor with dim ", source.dim());
  TORCH_CHECK_INDEX(source.dim() > 0 || self.dim() == 0, "Dimension specified as ", dim,
                    " but tensor has no dimensions");
  check_one_device({{"self", self}, {"index", index}, {"source", source}});
  if (is_symbolic(self) || is_symbolic(index) || is_symbolic(source))
    return expect_reduce_shapes(name, self, dim, index, source);
  const int64_t slices = source.dim() == 0 ? 1 : source.size(wrap_dim(dim, source.dim()));
  TORCH_CHECK(index.numel() == slices, name, "(): Number of indices (", index.numel(),
              ") should be equal to source.size(dim): (", slices, "), for dim: ", dim);
  bool fits = self.dim() == source.dim();
  for (int64_t d = 0; fits && d < self.dim(); ++d)
    fits = d == dim || self.size(d) == source.size(d);
  TORCH_CHECK(fits,
              "source tensor shape must match self tensor shape, excluding the specified "
              "dimension. Got self.shape = ",
              self.sizes(), " source.shape = ", source.sizes());
}

void set_like_self(OutputBuilder& out, const Tensor& self, const Tensor& index,
                   const Tensor& source) {
  if (is_symbolic(self)) return out.set_symint(0, self.sym_sizes(), self.scalar_type());
  const Tensor& target = out.given(0);
  if (target.defined() && !is_symbolic(index) && !is_symbolic(source)) {
    assert_no_internal_overlap(target);
    assert_no_overlap(target, index);
    assert_no_overlap(target, source);
  }
  if (out.is_inplace())
    out.set_on(0, self.sizes(), self.scalar_type(), self.device(), self.strides());
  else
    out.set_on(0, self.sizes(), self.scalar_type(), self.device());
}

// The walk of a checked call.
struct Along {
  Tensor target;
  Tensor source;
  Offsets offsets;
  RowWalk walk;

  Along(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& from, OutOfRange fail)
      : target(as_vector_if_scalar(out)), source(as_vector_if_scalar(from)) {
    const int64_t d = wrap_dim(dim, out.dim());
    const Tensor positions = long_contiguous(index);
    index_offsets(positions.data_ptr<int64_t>(), positions.numel(), target.size(d), d,
                  target.stride(d) * target.itemsize(), false, fail, offsets);
    walk = walk_along(target, source, d);
    walk.offsets = offsets.data();
  }
  void run(const RowLoops& loops, const void* context = nullptr) const {
    run_ordered(walk, bytes_of(target), bytes_of(source), loops, context);
  }
};

} // namespace
} // namespace native

namespace meta {

void meta_index_add(OutputBuilder& out, const Tensor& self, int64_t dim, const Tensor& index,
                    const Tensor& source, const Scalar& alpha) {
  static_cast<void>(alpha);
  native::check_reduce_shapes("index_add_", self, native::wrap_dim(dim, self.dim()), index, source);
  native::set_like_self(out, self, index, source);
}

void meta_index_reduce(OutputBuilder& out, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& source, std::string_view reduce, bool include_self) {
  static_cast<void>(include_self);
  TORCH_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
              "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ",
              reduce, ".");
  native::check_reduce_shapes("index_reduce_", self, native::wrap_dim(dim, self.dim()), index,
                              source);
  native::set_like_self(out, self, index, source);
}

} // namespace meta

namespace native {

void index_add_cpu(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   const Scalar& alpha, const Tensor& out) {
  const Along along(out, dim, index, source,
                    self.dim() > 1 ? throw_runtime_out_of_bounds : throw_out_of_range_in_self);
  if (!out.is_same(self)) out.copy_(self);
  dtype_switch<AllTypesAndBool>(self.scalar_type(), "index_add_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = typename Computed<T>::type;
    const C factor = alpha.to<C>();
    if (factor == C(1))
      along.run(combine_loops<T, AddOp>());
    else
      along.run(combine_loops<T, AddOp, true>(), &factor);
  });
}

void index_reduce_cpu(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                      std::string_view reduce, bool include_self, const Tensor& out) {
  const Reduction kind = parse_reduction(reduce);
  const RowLoops loops = reduction_loops(kind, self.scalar_type(), "index_reduce_cpu");
  const Along along(out, dim, index, source, throw_out_of_range_in_self);
  if (!out.is_same(self)) out.copy_(self);
  if (!include_self) {
    const Tensor start = reduction_identity(kind, self.scalar_type());
    RowWalk fill = along.walk;
    // The same slices, all written from the one value.
    fill.linear_stride = 0;
    for (int64_t& s : fill.before.linear) s = 0;
    for (int64_t& s : fill.after.linear) s = 0;
    run_ordered(fill, bytes_of(along.target), bytes_of(start), move_loops<true>(self.itemsize()));
  }
  along.run(loops);
  if (kind != Reduction::Mean) return;
  // How many slices went into each.
  const int64_t d = wrap_dim(dim, out.dim());
  DimVector counts_shape(static_cast<size_t>(along.target.dim()), 1);
  counts_shape[d] = along.target.size(d);
  const Tensor counts = detail::empty(counts_shape, kLong);
  counts.fill_(include_self ? 1 : 0);
  int64_t* count = counts.data_ptr<int64_t>();
  const Tensor positions = long_contiguous(index);
  const int64_t* position = positions.data_ptr<int64_t>();
  const int64_t n = positions.numel(), size = counts_shape[d];
  for (int64_t i = 0; i < n; ++i) {
    // Checked above, but another thread may have written to the index since.
    const int64_t v = position[i];
    if (v >= 0 && v < size) ++count[v];
  }
  divide_by_counts(along.target, counts);
}

} // namespace native
} // namespace at
