// Arithmetic of sizes and strides that view operators share: which shape is meant, and whether the
// elements can be seen in it without a copy. Integers in, integers out; no tensors
// made. Sizes may be symbolic: then a check is a guard, or a check at run time.
#pragma once
#include <ATen/native/Sizes.h>

namespace at::native {

[[noreturn]] void throw_dim_range(int64_t dim, int64_t ndim);

// A dimension counted from the front. A tensor without dimensions counts as having one, as
// transpose(0, -1) of a number does nothing.
inline int64_t wrap_dim(int64_t dim, int64_t ndim) {
  const int64_t n = ndim == 0 ? 1 : ndim;
  if (C10_UNLIKELY(dim < -n || dim >= n)) throw_dim_range(dim, n);
  return dim < 0 ? dim + n : dim;
}

// `shape` with its -1 replaced so that it has `numel` elements; Error when that cannot be.
DimVector infer_shape(IntArrayRef shape, int64_t numel);
SymDimVector infer_shape(SymIntArrayRef shape, SymInt numel);

// Strides that show the elements of (sizes, strides) as `shape`, which has as many elements. False
// when no strides do.
bool view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape, DimVector& out);
bool view_strides(SymIntArrayRef sizes, SymIntArrayRef strides, SymIntArrayRef shape,
                  SymDimVector& out);

// Sizes and strides of `expand`.
void expand_geometry(const Tensor& self, IntArrayRef size, DimVector& sizes, DimVector& strides);
void expand_geometry(const Tensor& self, SymIntArrayRef size, SymDimVector& sizes,
                     SymDimVector& strides);

// The order of dimensions that permute(dims) means: wrapped, each once.
DimVector permutation(IntArrayRef dims, int64_t ndim);
// The order that movedim(source, destination) means.
DimVector moved_dims(IntArrayRef source, IntArrayRef destination, int64_t ndim);

// Which dimensions are named in `dims`; Error when one is named twice.
using DimFlags = c10::SmallVector<bool, 8>;
DimFlags dim_flags(IntArrayRef dims, int64_t ndim);

// Start and length of the part of a dimension of `size` that a Python slice names. step > 0.
template <class Int> struct SliceRange {
  Int start;
  Int length;
};
SliceRange<int64_t> slice_range(int64_t size, std::optional<int64_t> start,
                                std::optional<int64_t> end, int64_t step);
SliceRange<SymInt> slice_range(SymInt size, std::optional<SymInt> start, std::optional<SymInt> end,
                               SymInt step);

// Strides of a dense tensor of `sizes` in the given order of memory.
DimVector format_strides(IntArrayRef sizes, MemoryFormat format);

} // namespace at::native
