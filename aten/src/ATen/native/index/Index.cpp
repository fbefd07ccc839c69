// index and index_put: advanced indexing. The meaning of the indices is AdvancedIndex's, the moving
// of slices RowWalk's; here they meet. Every index is checked before the first element is written.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/SymbolicShapes.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/index/AdvancedIndex.h>
#include <ATen/native/index/MaskLoops.h>
#include <ATen/native/index/Native.h>
#include <ATen/native/index/RowLoops.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/masked_fill.h>

namespace at::native {

Tensor allocate_result(const AdvancedIndex& plan) {
  const DimVector sizes = plan.result_sizes();
  const DimVector strides = plan.result_strides(sizes);
  if (strides.empty()) return detail::empty(sizes, plan.self.scalar_type(), plan.self.device());
  return detail::empty_strided(sizes, strides, plan.self.scalar_type(), plan.self.device());
}

Tensor fit_values(const Tensor& values, IntArrayRef sizes) {
  if (values.sizes() == sizes) return values;
  int64_t drop = 0;
  while (values.dim() - drop > static_cast<int64_t>(sizes.size()) && values.size(drop) == 1) ++drop;
  bool fits = values.dim() - drop <= static_cast<int64_t>(sizes.size());
  const int64_t shift = static_cast<int64_t>(sizes.size()) - values.dim();
  for (int64_t d = drop; fits && d < values.dim(); ++d)
    fits = values.size(d) == sizes[d + shift] || values.size(d) == 1;
  TORCH_CHECK(fits, "shape mismatch: value tensor of shape ", values.sizes(),
              " cannot be broadcast to indexing result of shape ", sizes);
  DimVector strides(sizes.size(), 0);
  for (int64_t d = drop; d < values.dim(); ++d)
    if (values.size(d) != 1) strides[d + shift] = values.stride(d);
  return detail::view_of(values, sizes, strides, values.storage_offset());
}

void check_put_dtypes(const Tensor& self, const Tensor& values) {
  TORCH_CHECK(self.scalar_type() == values.scalar_type(),
              "Index put requires the source and destination dtypes match, got ",
              self.scalar_type(), " for the destination and ", values.scalar_type(),
              " for the source.");
}

Tensor put_source(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                  bool accumulate) {
  if (accumulate || values.scalar_type() == self.scalar_type() || values.numel() != 1 ||
      values.is_meta())
    return values;
  int64_t masks = 0;
  for (const std::optional<Tensor>& index : indices) {
    if (!index || !index->defined()) continue;
    if (index->scalar_type() != kBool) return values;
    ++masks;
  }
  return masks == 1 ? detail::scalar_tensor(values.item(), self.scalar_type()) : values;
}

void check_put(const Tensor& self, const Tensor& values, OptionalTensorList indices) {
  TORCH_CHECK(values.device() == self.device() || (values.dim() == 0 && values.is_cpu()),
              "Expected all tensors to be on the same device, but got values on ", values.device(),
              " and self on ", self.device());
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.numel() == 0 || self.stride(d) != 0 || self.size(d) < 2) continue;
    TORCH_WARN("Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor "
               "before performing this operation. This also applies to advanced indexing e.g. "
               "tensor[indices] = tensor");
    break;
  }
  assert_no_overlap(self, values);
  for (const std::optional<Tensor>& index : indices)
    if (index && index->defined()) assert_no_overlap(self, *index);
}

namespace {

void put_values(const AdvancedIndex& plan, const Tensor& values, bool accumulate) {
  const DimVector sizes = plan.result_sizes();
  const Tensor fitted = fit_values(values, sizes);
  check_put_dtypes(plan.self, values);
  if (fitted.numel() == 0) return;
  Offsets offsets, linear_offsets;
  plan.offsets(offsets);
  const RowWalk walk = plan.walk(fitted, offsets, linear_offsets);
  const RowLoops loops = accumulate ? add_loops(plan.self.scalar_type(), "index_put_cpu")
                                    : move_loops<true>(plan.self.itemsize());
  run_ordered(walk, bytes_of(plan.self), bytes_of(fitted), loops);
}

} // namespace

Tensor index_cpu(const Tensor& self, OptionalTensorList indices) {
  if (const Tensor* mask = full_mask(self, indices)) return masked_select_cpu(self, *mask);
  const AdvancedIndex plan(self, indices);
  if (plan.indices.empty()) return self.clone();
  Tensor result = allocate_result(plan);
  if (result.numel() == 0) return result;
  Offsets offsets, linear_offsets;
  plan.offsets(offsets);
  const RowWalk walk = plan.walk(result, offsets, linear_offsets);
  run_independent(walk, bytes_of(plan.self), bytes_of(result), move_loops<false>(self.itemsize()));
  return result;
}

namespace {
// The common shape of index tensors.
void broadcast_into(SymDimVector& shape, SymIntArrayRef other) {
  SymDimVector merged(std::max(shape.size(), other.size()), SymInt(1));
  for (size_t back = 1; back <= merged.size(); ++back) {
    const SymInt a = back <= shape.size() ? shape[shape.size() - back] : SymInt(1);
    const SymInt b = back <= other.size() ? other[other.size() - back] : SymInt(1);
    const bool one = c10::guard_or_false(c10::sym_eq(a, 1));
    const bool fits =
        one || c10::guard_or_false(c10::sym_eq(b, 1)) || c10::expect_true(c10::sym_eq(a, b));
    TORCH_CHECK_INDEX(fits, "shape mismatch: indexing tensors of sizes ", a, " and ", b,
                      " could not be broadcast together");
    merged[merged.size() - back] = one ? b : a;
  }
  shape = merged;
}

// An index tensor as it lies along the dimensions of the result: `shape` begins at `first`.
Tensor along_result(const Tensor& index, SymIntArrayRef sizes, size_t first, size_t dims) {
  std::vector<SymInt> strides(sizes.size(), SymInt(0));
  const size_t own = static_cast<size_t>(index.dim());
  for (size_t back = 1; back <= own; ++back) {
    if (c10::guard_or_false(c10::sym_eq(index.sym_sizes()[own - back], 1))) continue;
    strides[first + dims - back] = index.sym_strides()[own - back];
  }
  return detail::view_of_symint(index, sizes, strides, index.sym_storage_offset());
}

// The result of indexing with positions where sizes are symbolic. Its layout is that of a pointwise
// operator over self, still along the index dimensions, and the index tensors, still along others.
Tensor index_symbolic(const Tensor& self, OptionalTensorList indices) {
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  SymDimVector shape, sizes, strides;
  size_t first = indices.size(), last = 0, count = 0, at = 0;
  bool row_major = self.is_contiguous();
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i] || !indices[i]->defined()) continue;
    broadcast_into(shape, indices[i]->sym_sizes());
    row_major = row_major && indices[i]->is_contiguous();
    first = std::min(first, i);
    last = i;
    ++count;
  }
  const bool together = count > 0 && last - first + 1 == count;
  const auto add_shape = [&] {
    at = sizes.size();
    for (const SymInt size : shape) {
      sizes.push_back(size);
      strides.push_back(SymInt(0));
    }
  };
  if (!together) add_shape();
  for (size_t i = 0; i < static_cast<size_t>(self.dim()); ++i) {
    const bool indexed = i < indices.size() && indices[i] && indices[i]->defined();
    if (together && i == first) add_shape();
    if (indexed) continue;
    sizes.push_back(self.sym_sizes()[i]);
    strides.push_back(self.sym_strides()[i]);
  }
  if (row_major) return detail::empty_symint(sizes, self.scalar_type(), self.device());
  std::vector<Tensor> operands{
      detail::view_of_symint(self, sizes, strides, self.sym_storage_offset())};
  for (const std::optional<Tensor>& index : indices)
    if (index && index->defined())
      operands.push_back(along_result(*index, sizes, at, shape.size()));
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : operands) pointers.push_back(&t);
  return detail::empty_strided_symint(sizes, symbolic_output_strides(sizes, pointers),
                                      self.scalar_type(), self.device());
}

bool has_symbolic_sizes(const Tensor& self, OptionalTensorList indices) {
  for (const std::optional<Tensor>& index : indices)
    if (is_symbolic(index)) return true;
  return is_symbolic(self);
}
} // namespace

Tensor index_meta(const Tensor& self, OptionalTensorList indices) {
  if (has_symbolic_sizes(self, indices)) return index_symbolic(self, indices);
  const AdvancedIndex plan(self, indices);
  return plan.indices.empty() ? self.clone() : allocate_result(plan);
}

Tensor& index_put_impl_cpu_(Tensor& self, OptionalTensorList indices, const Tensor& given,
                            bool accumulate, bool unsafe) {
  static_cast<void>(unsafe); // indices are always checked
  const Tensor values = put_source(self, indices, given, accumulate);
  check_put(self, values, indices);
  const Tensor* mask = accumulate || values.dim() != 0 ? nullptr : full_mask(self, indices);
  if (mask != nullptr) return masked_fill_same_dtype_(self, *mask, values);
  const AdvancedIndex plan(self, indices);
  if (plan.indices.empty()) {
    const Tensor fitted = fit_values(values, self.sizes());
    check_put_dtypes(self, values);
    self.copy_(accumulate ? at::add(self, fitted) : fitted);
  } else {
    put_values(plan, values, accumulate);
  }
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor& index_put_impl_meta_(Tensor& self, OptionalTensorList indices, const Tensor& values,
                             bool accumulate, bool unsafe) {
  static_cast<void>(accumulate);
  static_cast<void>(unsafe);
  if (has_symbolic_sizes(self, indices) || is_symbolic(values)) {
    self.unsafeGetTensorImpl()->bump_version();
    return self;
  }
  check_put(self, values, indices);
  // How many places a mask names is not known here.
  const bool masked = std::any_of(indices.begin(), indices.end(), [](const auto& index) {
    return index && index->defined() &&
           (index->scalar_type() == kBool || index->scalar_type() == kByte);
  });
  if (!masked) {
    const AdvancedIndex plan(self, indices);
    fit_values(values, plan.result_sizes());
    if (values.numel() != 1) check_put_dtypes(self, values);
  }
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor& index_put_cpu_(Tensor& self, OptionalTensorList indices, const Tensor& values,
                       bool accumulate) {
  return index_put_impl_cpu_(self, indices, values, accumulate, false);
}

Tensor& index_put_meta_(Tensor& self, OptionalTensorList indices, const Tensor& values,
                        bool accumulate) {
  return index_put_impl_meta_(self, indices, values, accumulate, false);
}

Tensor index_put(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                 bool accumulate) {
  Tensor result = self.clone();
  at::index_put_(result, indices, values, accumulate);
  return result;
}

Tensor _unsafe_index(const Tensor& self, OptionalTensorList indices) {
  return at::index(self, indices);
}

Tensor _unsafe_index_put(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                         bool accumulate) {
  return at::index_put(self, indices, values, accumulate);
}

namespace {

// Indices moved into range: where the mask hides an element its index may be anything.
std::vector<std::optional<Tensor>> clamped(const Tensor& self, OptionalTensorList indices) {
  std::vector<std::optional<Tensor>> out;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d] || !indices[d]->defined()) {
      out.emplace_back();
      continue;
    }
    TORCH_CHECK_INDEX(static_cast<int64_t>(d) < self.dim(),
                      "too many indices for tensor of "
                      "dimension ",
                      self.dim(), " (got ", indices.size(), ")");
    const int64_t size = self.size(static_cast<int64_t>(d));
    out.emplace_back(at::clamp(*indices[d], Scalar(-size), Scalar(size - 1)));
  }
  return out;
}

} // namespace

Tensor _unsafe_masked_index(const Tensor& self, const Tensor& mask, OptionalTensorList indices,
                            const Scalar& fill) {
  if (self.numel() == 0) {
    // Nothing can be read, so every element must be hidden.
    DimVector shape;
    for (const std::optional<Tensor>& t : indices)
      if (t && t->defined()) shape = broadcast_shapes(shape, t->sizes());
    const Tensor result = detail::empty(shape, self.scalar_type(), self.device());
    result.fill_(fill);
    return result;
  }
  const std::vector<std::optional<Tensor>> safe = clamped(self, indices);
  return at::masked_fill(at::index(self, safe), at::logical_not(mask), fill);
}

Tensor _unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask,
                                           OptionalTensorList indices, const Tensor& values) {
  if (self.numel() == 0) return self.clone();
  const std::vector<std::optional<Tensor>> safe = clamped(self, indices);
  return at::index_put(self, safe, at::masked_fill(values, at::logical_not(mask), 0), true);
}

} // namespace at::native
