// See AdvancedIndex.h.
#include <ATen/native/index/AdvancedIndex.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/ops/nonzero.h>
#include <ATen/parallel/Parallel.h>
#include <c10/util/SafeArithmetic.h>

#include <algorithm>
#include <string>

namespace at::native {
namespace {

bool is_mask(const Tensor& t) { return t.scalar_type() == kBool || t.scalar_type() == kByte; }

using Slots = c10::SmallVector<Tensor, 8>;

// One slot per dimension of self: an index tensor or nothing. Masks are replaced by the coordinates
// of their true elements.
Slots expand_masks(const Tensor& self, OptionalTensorList indices) {
  Slots slots;
  for (const std::optional<Tensor>& given : indices) {
    if (!given || !given->defined()) {
      slots.push_back(Tensor());
      continue;
    }
    const Tensor& t = *given;
    const ScalarType dtype = t.scalar_type();
    TORCH_CHECK_INDEX(dtype == kLong || dtype == kInt || is_mask(t),
                      "tensors used as indices must be long, int, byte or bool tensors");
    TORCH_CHECK_INDEX(
        t.device() == self.device() || t.is_cpu(),
        "indices should be either on cpu or on the same device as the indexed tensor (",
        self.device(), ")");
    if (!is_mask(t)) {
      slots.push_back(t);
      continue;
    }
    if (dtype == kByte)
      TORCH_WARN("indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                 "torch.bool instead.");
    check_mask_shape(self, t, static_cast<int64_t>(slots.size()));
    const Tensor where = at::nonzero(t);
    for (int64_t d = 0; d < t.dim(); ++d) slots.push_back(where.select(1, d));
  }
  TORCH_CHECK_INDEX(static_cast<int64_t>(slots.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ", slots.size(),
                    ")");
  return slots;
}

// False when the shapes do not fit.
bool broadcast_into(DimVector& shape, IntArrayRef other) {
  DimVector merged(std::max(shape.size(), other.size()), 1);
  for (size_t i = 0; i < merged.size(); ++i) {
    const size_t back = merged.size() - i;
    const int64_t a = back <= shape.size() ? shape[shape.size() - back] : 1;
    const int64_t b = back <= other.size() ? other[other.size() - back] : 1;
    if (a != b && a != 1 && b != 1) return false;
    merged[i] = a == 1 ? b : a;
  }
  shape = merged;
  return true;
}

[[noreturn]] void throw_index_shapes(ArrayRef<Tensor> indices) {
  std::string shapes;
  for (const Tensor& t : indices) {
    if (!shapes.empty()) shapes += ", ";
    append(shapes, t.sizes());
  }
  TORCH_CHECK_INDEX(false,
                    "shape mismatch: indexing tensors could not be broadcast together with "
                    "shapes ",
                    shapes);
}

// Dimensions with an index first, the others after them.
DimVector indexed_first(const Slots& slots, int64_t ndim) {
  DimVector order;
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].defined()) order.push_back(static_cast<int64_t>(i));
  for (int64_t i = 0; i < ndim; ++i)
    if (i >= static_cast<int64_t>(slots.size()) || !slots[i].defined()) order.push_back(i);
  return order;
}

template <class I> void add_offsets(const I* index, int64_t n, int64_t size, int64_t dim,
                                    int64_t stride, bool first, int64_t* out) {
  parallel_for(0, n, 32768, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t v = index[i];
      if (C10_UNLIKELY(v < -size || v >= size)) throw_index_out_of_bounds(v, dim, size);
      const int64_t offset = (v < 0 ? v + size : v) * stride;
      out[i] = first ? offset : out[i] + offset;
    }
  });
}

} // namespace

void check_mask_shape(const Tensor& self, const Tensor& mask, int64_t dim) {
  TORCH_CHECK_INDEX(dim + mask.dim() <= self.dim(), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", dim + mask.dim(), ")");
  for (int64_t d = 0; d < mask.dim(); ++d)
    TORCH_CHECK_INDEX(mask.size(d) == self.size(dim + d), "The shape of the mask ", mask.sizes(),
                      " at index ", d, " does not match the shape of the indexed tensor ",
                      self.sizes(), " at index ", dim + d);
}

const Tensor* full_mask(const Tensor& self, OptionalTensorList indices) {
  if (indices.size() != 1 || !indices[0] || !indices[0]->defined()) return nullptr;
  const Tensor& mask = *indices[0];
  const bool full = mask.scalar_type() == kBool && mask.dim() == self.dim() && mask.dim() > 0 &&
                    mask.sizes() == self.sizes() && mask.device() == self.device();
  return full ? &mask : nullptr;
}

AdvancedIndex::AdvancedIndex(const Tensor& given, OptionalTensorList given_indices) {
  TORCH_CHECK_INDEX(!given_indices.empty(), "at least one index must be provided");
  TORCH_CHECK_INDEX(static_cast<int64_t>(given_indices.size()) <= given.dim() || given.dim() == 0,
                    "too many indices for tensor of dimension ", given.dim(), " (got ",
                    given_indices.size(), ")");
  const Slots slots = expand_masks(given, given_indices);
  bool adjacent = true;
  int64_t last = -1;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].defined()) continue;
    const int64_t dim = static_cast<int64_t>(i);
    if (last < 0)
      first = dim;
    else
      adjacent = adjacent && dim == last + 1;
    last = dim;
    indices.push_back(slots[i]);
    if (!broadcast_into(shape, slots[i].sizes()))
      throw_index_shapes({indices.data(), indices.size()});
  }
  if (adjacent) {
    self = given;
  } else {
    self = given.permute(indexed_first(slots, given.dim()));
    first = 0;
  }
}

DimVector AdvancedIndex::result_sizes() const {
  const IntArrayRef old = self.sizes();
  DimVector sizes(old.begin(), old.begin() + first);
  sizes.append(shape.begin(), shape.end());
  sizes.append(old.begin() + first + indices.size(), old.end());
  // No index into an empty dimension exists, unless the result is empty too.
  const int64_t numel = c10::checked_numel(sizes);
  for (size_t k = 0; k < indices.size(); ++k)
    TORCH_CHECK_INDEX(numel == 0 || old[first + k] != 0,
                      "index is out of bounds for dimension with size 0");
  return sizes;
}

DimVector AdvancedIndex::result_strides(IntArrayRef sizes) const {
  bool row_major = self.is_contiguous();
  for (const Tensor& t : indices) row_major = row_major && t.is_contiguous();
  if (row_major) return {};
  // As for pointwise operators over self, still along the index dimensions, and the index tensors,
  // still along all others.
  const int64_t ndim = static_cast<int64_t>(sizes.size());
  const int64_t index_dims = static_cast<int64_t>(shape.size());
  c10::SmallVector<Tensor, 4> operands;
  DimVector strides(static_cast<size_t>(ndim), 0);
  for (int64_t d = 0; d < first; ++d) strides[d] = self.stride(d);
  for (int64_t d = first + index_dims; d < ndim; ++d)
    strides[d] = self.stride(d - index_dims + static_cast<int64_t>(indices.size()));
  operands.push_back(detail::view_of(self, sizes, strides, self.storage_offset()));
  // Where the result has size 1 a stride still takes part in the order: the one that the index
  // tensor has there once it is shaped like the result.
  DimVector padded(static_cast<size_t>(ndim), 1);
  for (int64_t d = 0; d < index_dims; ++d) padded[first + d] = shape[d];
  for (const Tensor& t : indices) {
    const Tensor shaped = t.expand(shape).reshape(padded);
    DimVector own(shaped.strides());
    for (int64_t d = 0; d < ndim; ++d)
      if (padded[d] == 1 && sizes[d] != 1) own[d] = 0;
    operands.push_back(detail::view_of(shaped, sizes, own, shaped.storage_offset()));
  }
  c10::SmallVector<const Tensor*, 4> pointers;
  for (const Tensor& t : operands) pointers.push_back(&t);
  return pointwise_output_strides(sizes, ArrayRef<const Tensor*>(pointers.data(), pointers.size()));
}

void AdvancedIndex::offsets(Offsets& out) const {
  const int64_t n = c10::checked_numel(shape);
  out.resize(static_cast<size_t>(n));
  const int64_t itemsize = self.itemsize();
  for (size_t k = 0; k < indices.size(); ++k) {
    Tensor t = indices[k];
    if (t.sizes() != IntArrayRef(shape)) t = t.expand(shape);
    if (!t.is_contiguous()) t = t.contiguous();
    const int64_t dim = first + static_cast<int64_t>(k);
    const int64_t size = self.size(dim), stride = self.stride(dim) * itemsize;
    // Messages number the indexed dimensions, as PyTorch's do.
    if (t.scalar_type() == kLong)
      add_offsets(t.data_ptr<int64_t>(), n, size, static_cast<int64_t>(k), stride, k == 0,
                  out.data());
    else
      add_offsets(t.data_ptr<int32_t>(), n, size, static_cast<int64_t>(k), stride, k == 0,
                  out.data());
  }
}

RowWalk AdvancedIndex::walk(const Tensor& linear, const Offsets& offsets,
                            Offsets& linear_offsets) const {
  RowWalk w;
  const int64_t itemsize = self.itemsize();
  const int64_t index_dims = static_cast<int64_t>(shape.size());
  const int64_t indexed = static_cast<int64_t>(indices.size());
  const IntArrayRef strides = linear.strides();
  for (int64_t d = 0; d < first; ++d)
    w.before.add(self.size(d), self.stride(d) * itemsize, strides[d] * itemsize);
  for (int64_t d = first + indexed; d < self.dim(); ++d)
    w.after.add(self.size(d), self.stride(d) * itemsize,
                strides[d - indexed + index_dims] * itemsize);
  w.count = static_cast<int64_t>(offsets.size());
  w.offsets = offsets.data();
  w.itemsize = itemsize;
  w.disjoint = surely_disjoint(self);
  WalkDims positions;
  for (int64_t d = 0; d < index_dims; ++d)
    positions.add(shape[d], 0, strides[first + d] * itemsize);
  // Merging compares both sides; the indexed one is 0 everywhere, so the linear one decides.
  if (positions.sizes.size() <= 1) {
    w.linear_stride = positions.sizes.empty() ? 0 : positions.linear[0];
    return w;
  }
  linear_offsets.resize(offsets.size());
  size_t filled = 1;
  if (w.count > 0) linear_offsets[0] = 0;
  // Row-major order: each dimension repeats the pattern of the ones inside it.
  for (size_t d = positions.sizes.size(); d-- > 0 && w.count > 0;) {
    for (int64_t i = 1; i < positions.sizes[d]; ++i)
      for (size_t j = 0; j < filled; ++j)
        linear_offsets[static_cast<size_t>(i) * filled + j] =
            linear_offsets[j] + i * positions.linear[d];
    filled *= static_cast<size_t>(positions.sizes[d]);
  }
  w.linear_offsets = linear_offsets.data();
  return w;
}

} // namespace at::native
