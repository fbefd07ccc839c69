// See Geometry.h.
#include <ATen/native/CTypeName.h>
#include <ATen/native/shape/Geometry.h>

#include <cstdint>

namespace at::native {

void throw_dim_range(int64_t dim, int64_t n) {
  throw c10::IndexError(c10::str("Dimension out of range (expected to be in range of [", -n, ", ",
                                 n - 1, "], but got ", dim, ")"));
}

DimVector infer_shape(IntArrayRef shape, int64_t numel) {
  DimVector out(shape);
  int64_t known = 1;
  int64_t unknown = -1;
  bool overflow = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      TORCH_CHECK(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<int64_t>(i);
      continue;
    }
    TORCH_CHECK(shape[i] >= 0, "invalid shape dimension ", shape[i], " at index ", i, " of shape ",
                shape);
    overflow |= c10::mul_overflows(known, shape[i], &known);
  }
  if (overflow) known = c10::checked_numel(out);
  if (unknown < 0) {
    TORCH_CHECK(known == numel, "shape '", shape, "' is invalid for input of size ", numel);
    return out;
  }
  TORCH_CHECK(known != 0 || numel != 0, "cannot reshape tensor of 0 elements into shape ", shape,
              " because the unspecified dimension size -1 can be any value and is ambiguous");
  TORCH_CHECK(known != 0 && numel % known == 0, "shape '", shape, "' is invalid for input of size ",
              numel);
  out[unknown] = numel / known;
  return out;
}

bool view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape, DimVector& out) {
  out.resize(shape.size());
  if (c10::checked_numel(sizes) == 0) {
    if (sizes == shape) {
      out = strides;
    } else {
      c10::contiguous_strides(shape, out.data());
    }
    return true;
  }
  size_t d = sizes.size();
  size_t v = shape.size();
  if (d == 0) {
    for (int64_t& s : out) s = 1;
    return true;
  }
  while (d > 0) {
    // A run: neighbouring dimensions that lie flush in memory.
    --d;
    const int64_t step = strides[d];
    int64_t count = sizes[d];
    while (d > 0 && (sizes[d - 1] == 1 || strides[d - 1] == count * step)) count *= sizes[--d];
    // The dimensions of the new shape that cover exactly this run.
    int64_t covered = 1;
    while (v > 0 && (covered < count || shape[v - 1] == 1)) {
      --v;
      out[v] = covered * step;
      covered *= shape[v];
    }
    if (covered != count) return false;
  }
  return v == 0;
}

void expand_geometry(const Tensor& self, IntArrayRef size, DimVector& sizes, DimVector& strides) {
  const int64_t ndim = self.dim();
  const int64_t wanted = static_cast<int64_t>(size.size());
  TORCH_CHECK(wanted >= ndim, "expand(", tensor_type_name(self.scalar_type(), self.device()), "{",
              self.sizes(), "}, size=", size, "): the number of sizes provided (", wanted,
              ") must be greater or equal to the number of dimensions in the tensor (", ndim, ")");
  const IntArrayRef old_sizes = self.sizes(), old_strides = self.strides();
  sizes = size;
  strides.resize(size.size());
  for (int64_t i = wanted - 1; i >= 0; --i) {
    const int64_t d = i - (wanted - ndim);
    if (d < 0) {
      TORCH_CHECK(size[i] != -1, "The expanded size of the tensor (", size[i],
                  ") isn't allowed in a leading, non-existing dimension ", i);
      TORCH_CHECK(size[i] >= 0, "Trying to create tensor with negative dimension ", size[i], ": ",
                  size);
      // A new dimension of size 1 gets the stride it would have if it were not expanded.
      strides[i] = size[i] == 1 && ndim > 0 ? sizes[i + 1] * strides[i + 1] : 0;
      continue;
    }
    const int64_t target = size[i] == -1 ? old_sizes[d] : size[i];
    sizes[i] = target;
    strides[i] = old_strides[d];
    if (target == old_sizes[d]) continue;
    TORCH_CHECK(old_sizes[d] == 1, "The expanded size of the tensor (", target,
                ") must match the existing size (", old_sizes[d], ") at non-singleton dimension ",
                i, ".  Target sizes: ", size, ".  Tensor sizes: ", old_sizes);
    TORCH_CHECK(target >= 0, "Trying to create tensor with negative dimension ", target, ": ",
                size);
    strides[i] = 0;
  }
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

SliceRange slice_range(int64_t size, std::optional<int64_t> start, std::optional<int64_t> end,
                       int64_t step) {
  TORCH_CHECK(step > 0, "slice step must be positive");
  auto clamp = [size](int64_t v) {
    if (v < 0) v += size;
    return v < 0 ? 0 : v > size ? size : v;
  };
  const int64_t first = start ? clamp(*start) : 0;
  const int64_t last = end ? clamp(*end) : size;
  const int64_t span = last - first;
  return {first, span <= 0 ? 0 : (span - 1) / step + 1};
}

DimVector format_strides(IntArrayRef sizes, MemoryFormat format) {
  if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d)
    return c10::channels_last_strides(sizes);
  return c10::contiguous_strides(sizes);
}

} // namespace at::native
