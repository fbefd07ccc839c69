// See Geometry.h.
#include <ATen/native/CTypeName.h>
#include <ATen/native/shape/Geometry.h>

#include <cstdint>

namespace at::native {

void throw_dim_range(int64_t dim, int64_t n) {
  throw c10::IndexError(c10::str("Dimension out of range (expected to be in range of [", -n, ", ",
                                 n - 1, "], but got ", dim, ")"));
}

namespace {

using c10::expect_true;
using c10::guard_or_false;

// out *= factor; whether that left 64 bits. Expressions check that themselves.
bool multiply(int64_t& out, int64_t factor) { return c10::mul_overflows(out, factor, &out); }
bool multiply(SymInt& out, SymInt factor) {
  out = out * factor;
  return false;
}

template <class Int> Ints<Int> inferred_shape(ArrayRef<Int> shape, Int numel) {
  Ints<Int> out(shape);
  Int known = 1;
  int64_t unknown = -1;
  bool overflow = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (guard_or_false(c10::sym_eq(shape[i], -1))) {
      TORCH_CHECK(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<int64_t>(i);
      continue;
    }
    TORCH_CHECK(expect_true(c10::sym_ge(shape[i], 0)), "invalid shape dimension ", shape[i],
                " at index ", i, " of shape ", shape);
    overflow |= multiply(known, shape[i]);
  }
  if (overflow) known = product_of<Int>(out);
  if (unknown < 0) {
    TORCH_CHECK(expect_true(c10::sym_eq(known, numel)), "shape '", shape,
                "' is invalid for input of size ", numel);
    return out;
  }
  const bool no_room = guard_or_false(c10::sym_eq(known, 0));
  TORCH_CHECK(!no_room || guard_or_false(c10::sym_ne(numel, 0)),
              "cannot reshape tensor of 0 elements into shape ", shape,
              " because the unspecified dimension size -1 can be any value and is ambiguous");
  TORCH_CHECK(!no_room && expect_true(c10::sym_eq(numel % known, 0)), "shape '", shape,
              "' is invalid for input of size ", numel);
  out[unknown] = numel / known;
  return out;
}

template <class Int> bool strides_of_view(ArrayRef<Int> sizes, ArrayRef<Int> strides,
                                          ArrayRef<Int> shape, Ints<Int>& out) {
  out.resize(shape.size());
  if (guard_or_false(c10::sym_eq(product_of(sizes), 0))) {
    out = sizes == shape ? Ints<Int>(strides) : contiguous_strides_of(shape);
    return true;
  }
  size_t d = sizes.size();
  size_t v = shape.size();
  if (d == 0) {
    for (Int& s : out) s = 1;
    return true;
  }
  while (d > 0) {
    // A run: neighbouring dimensions that lie flush in memory.
    --d;
    const Int step = strides[d];
    Int count = sizes[d];
    while (d > 0 && (sizes[d - 1] == 1 || strides[d - 1] == count * step))
      count = count * sizes[--d];
    // The dimensions of the new shape that cover exactly this run.
    Int covered = 1;
    while (v > 0 && (covered < count || shape[v - 1] == 1)) {
      --v;
      out[v] = covered * step;
      covered = covered * shape[v];
    }
    if (covered != count) return false;
  }
  return v == 0;
}

template <class Int> void geometry_of_expand(const Tensor& self, ArrayRef<Int> size,
                                             Ints<Int>& sizes, Ints<Int>& strides) {
  const int64_t ndim = self.dim();
  const int64_t wanted = static_cast<int64_t>(size.size());
  const ArrayRef<Int> old_sizes = sizes_of<Int>(self), old_strides = strides_of<Int>(self);
  TORCH_CHECK(wanted >= ndim, "expand(", tensor_type_name(self.scalar_type(), self.device()), "{",
              old_sizes, "}, size=", size, "): the number of sizes provided (", wanted,
              ") must be greater or equal to the number of dimensions in the tensor (", ndim, ")");
  sizes = size;
  strides.resize(size.size());
  for (int64_t i = wanted - 1; i >= 0; --i) {
    const int64_t d = i - (wanted - ndim);
    const bool kept = guard_or_false(c10::sym_eq(size[i], -1));
    if (d < 0) {
      TORCH_CHECK(!kept, "The expanded size of the tensor (", size[i],
                  ") isn't allowed in a leading, non-existing dimension ", i);
      TORCH_CHECK(expect_true(c10::sym_ge(size[i], 0)),
                  "Trying to create tensor with negative dimension ", size[i], ": ", size);
      // A new dimension of size 1 gets the stride it would have if it were not expanded.
      const bool one = guard_or_false(c10::sym_eq(size[i], 1));
      strides[i] = one && ndim > 0 ? sizes[i + 1] * strides[i + 1] : Int(0);
      continue;
    }
    const Int target = kept ? old_sizes[d] : size[i];
    sizes[i] = target;
    strides[i] = old_strides[d];
    if (!guard_or_false(c10::sym_eq(old_sizes[d], 1))) {
      TORCH_CHECK(expect_true(c10::sym_eq(target, old_sizes[d])),
                  "The expanded size of the tensor (", target, ") must match the existing size (",
                  old_sizes[d], ") at non-singleton dimension ", i, ".  Target sizes: ", size,
                  ".  Tensor sizes: ", old_sizes);
      continue;
    }
    if (guard_or_false(c10::sym_eq(target, 1))) continue;
    TORCH_CHECK(expect_true(c10::sym_ge(target, 0)),
                "Trying to create tensor with negative dimension ", target, ": ", size);
    strides[i] = 0;
  }
}

// Python's slices to the end, which no size exceeds.
bool is_open_end(int64_t bound) { return bound == INT64_MAX; }
bool is_open_end(SymInt bound) { return bound.raw() == INT64_MAX; }

// A bound of a slice as a place from 0 to size.
template <class Int> Int place_in(Int bound, Int size) {
  if (is_open_end(bound)) return size;
  if (guard_or_false(c10::sym_lt(bound, 0))) bound = bound + size;
  if (guard_or_false(c10::sym_lt(bound, 0))) return 0;
  return guard_or_false(c10::sym_gt(bound, size)) ? size : bound;
}

template <class Int> SliceRange<Int> range_of_slice(Int size, std::optional<Int> start,
                                                    std::optional<Int> end, Int step) {
  TORCH_CHECK(expect_true(c10::sym_gt(step, 0)), "slice step must be positive");
  const Int first = start ? place_in<Int>(*start, size) : Int(0);
  const Int last = end ? place_in<Int>(*end, size) : size;
  const Int span = last - first;
  if (guard_or_false(c10::sym_le(span, 0))) return {first, 0};
  return {first, (span - 1) / step + 1};
}

} // namespace

DimVector infer_shape(IntArrayRef shape, int64_t numel) {
  return inferred_shape<int64_t>(shape, numel);
}
SymDimVector infer_shape(SymIntArrayRef shape, SymInt numel) {
  return inferred_shape<SymInt>(shape, numel);
}

bool view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape, DimVector& out) {
  return strides_of_view<int64_t>(sizes, strides, shape, out);
}
bool view_strides(SymIntArrayRef sizes, SymIntArrayRef strides, SymIntArrayRef shape,
                  SymDimVector& out) {
  return strides_of_view<SymInt>(sizes, strides, shape, out);
}

void expand_geometry(const Tensor& self, IntArrayRef size, DimVector& sizes, DimVector& strides) {
  geometry_of_expand<int64_t>(self, size, sizes, strides);
}
void expand_geometry(const Tensor& self, SymIntArrayRef size, SymDimVector& sizes,
                     SymDimVector& strides) {
  geometry_of_expand<SymInt>(self, size, sizes, strides);
}

DimFlags dim_flags(IntArrayRef dims, int64_t ndim) {
  DimFlags seen(static_cast<size_t>(ndim == 0 ? 1 : ndim), false);
  for (int64_t dim : dims) {
    const int64_t d = wrap_dim(dim, ndim);
    TORCH_CHECK(!seen[d], "dim ", d, " appears multiple times in the list of dims");
    seen[d] = true;
  }
  return seen;
}

DimVector permutation(IntArrayRef dims, int64_t ndim) {
  TORCH_CHECK(static_cast<int64_t>(dims.size()) == ndim,
              "permute(sparse_coo): number of dimensions in the tensor input does not match the "
              "length of the "
              "desired ordering of dimensions i.e. input.dim() = ",
              ndim, " is not equal to len(dims) = ", dims.size());
  DimVector out(dims.size());
  DimFlags seen(dims.size(), false);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], ndim);
    TORCH_CHECK(!seen[d], "permute(): duplicate dims are not allowed.");
    seen[d] = true;
    out[i] = d;
  }
  return out;
}

DimVector moved_dims(IntArrayRef source, IntArrayRef destination, int64_t ndim) {
  TORCH_CHECK(source.size() == destination.size(),
              "movedim: Invalid source or destination dims: source (", source,
              " dims) should contain the same number of dims as destination (", destination,
              " dims)");
  const size_t n = static_cast<size_t>(ndim);
  DimVector order(n, -1);
  DimFlags taken(n ? n : 1, false);
  for (size_t i = 0; i < source.size(); ++i) {
    const int64_t from = wrap_dim(source[i], ndim), to = wrap_dim(destination[i], ndim);
    TORCH_CHECK(!taken[from], "movedim: repeated dim in `source` (", source, ")");
    taken[from] = true;
    if (ndim == 0) continue;
    TORCH_CHECK(order[to] == -1, "movedim: repeated dim in `destination` (", destination, ")");
    order[to] = from;
  }
  size_t next = 0;
  for (size_t i = 0; i < n; ++i) {
    if (order[i] != -1) continue;
    while (taken[next]) ++next;
    order[i] = static_cast<int64_t>(next++);
  }
  return order;
}

SliceRange<int64_t> slice_range(int64_t size, std::optional<int64_t> start,
                                std::optional<int64_t> end, int64_t step) {
  return range_of_slice<int64_t>(size, start, end, step);
}
SliceRange<SymInt> slice_range(SymInt size, std::optional<SymInt> start, std::optional<SymInt> end,
                               SymInt step) {
  return range_of_slice<SymInt>(size, start, end, step);
}

DimVector format_strides(IntArrayRef sizes, MemoryFormat format) {
  if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d)
    return c10::channels_last_strides(sizes);
  return c10::contiguous_strides(sizes);
}

} // namespace at::native
