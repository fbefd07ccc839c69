// The object behind sparse tensors, and its checked constructors. See SparseTensor.h.
#include <ATen/native/sparse/SparseTensor.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/sparse/DeviceIndex.h>
#include <ATen/ops/_to_copy.h>
#include <ATen/ops/le.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SafeArithmetic.h>

namespace at::sparse {
namespace {
DispatchKeySet keys_for(Layout layout, Device device) {
  TORCH_CHECK_NOT_IMPLEMENTED(device.is_cpu() || device.is_cuda(), "tensors of layout ", layout,
                              " are not implemented on ", device);
  if (layout == Layout::Sparse)
    return DispatchKeySet(device.is_cpu() ? DispatchKey::SparseCPU : DispatchKey::SparseCUDA);
  return DispatchKeySet(device.is_cpu() ? DispatchKey::SparseCsrCPU : DispatchKey::SparseCsrCUDA);
}
// The same memory without history, so that a member never leads back into a graph.
Tensor alias_of(const Tensor& t) { return Tensor(t.unsafeGetTensorImpl()->shallow_copy()); }

void check_dense(const Tensor& t, const char* what) {
  TORCH_CHECK(t.defined() && t.layout() == kStrided, "expected ", what,
              " to be a strided tensor, but got layout ", t.defined() ? t.layout() : kStrided);
  TORCH_CHECK_NOT_IMPLEMENTED(t.is_cpu() || t.is_cuda(), "sparse tensors are not implemented on ",
                              t.device());
}
void check_index_type(const Tensor& t, const char* what) {
  TORCH_CHECK(t.scalar_type() == kLong || t.scalar_type() == kInt, what,
              " must be an int32 or int64 tensor, but got ", t.scalar_type());
}
} // namespace

Tensor moved_to(const Tensor& t, Device device, ScalarType dtype, bool non_blocking, bool copy) {
  const bool there =
      t.device() == device || (!device.has_index() && t.device().type() == device.type());
  if (there && t.scalar_type() == dtype && !copy) return t;
  return at::_to_copy(t, TensorOptions(dtype).device(device), non_blocking);
}

const char* spelled(Layout layout) {
  static const char* const names[] = {"Strided",   "Sparse",    "SparseCsr", "Mkldnn",
                                      "SparseCsc", "SparseBsr", "SparseBsc", "Jagged"};
  return names[static_cast<int>(layout)];
}

SparseTensorImpl::SparseTensorImpl(Layout layout, ScalarType dtype, Device device)
    : TensorImpl(Storage(), keys_for(layout, device), dtype, device) {
  set_layout(layout);
}

void SparseTensorImpl::copy_metadata_from(const TensorImpl& from) {
  const auto* other = dynamic_cast<const SparseTensorImpl*>(&from);
  TORCH_CHECK(other != nullptr, "a sparse tensor cannot take the contents of a tensor of layout ",
              from.layout());
  TensorImpl::copy_metadata_from(from);
  indices = other->indices;
  plain = other->plain;
  values = other->values;
  sparse_dim = other->sparse_dim;
  dense_dim = other->dense_dim;
  coalesced = other->coalesced;
}

c10::intrusive_ptr<TensorImpl> SparseTensorImpl::shallow_copy() const {
  auto out = c10::make_intrusive<SparseTensorImpl>(layout(), dtype(), device());
  out->copy_metadata_from(*this);
  return out;
}

void SparseTensorImpl::release_resources() {
  TensorImpl::release_resources();
  indices.reset();
  plain.reset();
  values.reset();
}

SparseTensorImpl& any_sparse(const Tensor& t, const char* op) {
  auto* impl = t.defined() ? dynamic_cast<SparseTensorImpl*>(t.unsafeGetTensorImpl()) : nullptr;
  TORCH_CHECK(impl != nullptr, op, " expected sparse tensor layout but got ",
              t.defined() ? spelled(t.layout()) : "an undefined tensor");
  return *impl;
}
SparseTensorImpl& coo(const Tensor& t, const char* op) {
  auto* impl = t.defined() ? dynamic_cast<SparseTensorImpl*>(t.unsafeGetTensorImpl()) : nullptr;
  TORCH_CHECK(impl != nullptr && t.layout() == Layout::Sparse, op,
              " expected sparse coordinate tensor layout but got ",
              t.defined() ? spelled(t.layout()) : "an undefined tensor");
  return *impl;
}
SparseTensorImpl& compressed(const Tensor& t, const char* op) {
  auto* impl = t.defined() ? dynamic_cast<SparseTensorImpl*>(t.unsafeGetTensorImpl()) : nullptr;
  TORCH_CHECK(impl != nullptr && is_compressed(t.layout()), op,
              " expected sparse compressed tensor layout but got ",
              t.defined() ? spelled(t.layout()) : "an undefined tensor");
  return *impl;
}

// ---- COO
namespace {
void check_coo_shapes(const Tensor& indices, const Tensor& values, IntArrayRef size) {
  check_dense(indices, "indices");
  check_dense(values, "values");
  TORCH_CHECK(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", indices.sizes());
  TORCH_CHECK(values.dim() >= 1,
              "values must have at least one dimension, but got: ", values.sizes());
  const int64_t sparse_dim = indices.size(0), dense_dim = values.dim() - 1;
  TORCH_CHECK(indices.size(1) == values.size(0),
              "indices and values must have same nnz, but got nnz from indices: ", indices.size(1),
              ", nnz from values: ", values.size(0));
  TORCH_CHECK(indices.device() == values.device(), "backend of indices (", indices.device(),
              ") must match backend of values (", values.device(), ")");
  TORCH_CHECK(static_cast<int64_t>(size.size()) == sparse_dim + dense_dim,
              "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = ", size.size(),
              ", sparse_dim = ", sparse_dim, ", dense_dim = ", dense_dim);
  for (int64_t s : size)
    TORCH_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", size);
  TORCH_CHECK(values.sizes().slice(1) == size.slice(static_cast<size_t>(sparse_dim)),
              "values has incorrect size, expected ", size.slice(static_cast<size_t>(sparse_dim)),
              ", got ", values.sizes().slice(1));
}
} // namespace

namespace {
// Every index, in host memory.
void check_coo_indices(const Tensor& indices, IntArrayRef size, bool coalesced) {
  const Tensor plain = indices.to(kLong).contiguous();
  const int64_t rows = plain.size(0), nnz = plain.size(1);
  const int64_t* index_data = nnz > 0 && rows > 0 ? plain.data_ptr<int64_t>() : nullptr;
  for (int64_t d = 0; d < rows; ++d) {
    parallel_for(0, nnz, 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t index = index_data[d * nnz + i];
        TORCH_CHECK(index >= 0, "found negative index ", index, " for dim ", d);
        TORCH_CHECK(index < size[static_cast<size_t>(d)],
                    "size is inconsistent with indices: for dim ", d, ", size is ",
                    size[static_cast<size_t>(d)], " but found index ", index);
      }
    });
  }
  if (!coalesced || nnz < 2) return;
  const Tensor flat = flat_indices(plain, size);
  const int64_t* key = flat.data_ptr<int64_t>();
  parallel_for(1, nnz, 32768, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      TORCH_CHECK(key[i - 1] < key[i], "cannot set is_coalesced to true if indices correspond to "
                                       "uncoalesced COO tensor");
  });
}

bool ascends(const Tensor& indices, IntArrayRef size) {
  const Tensor keys = on_device::flat_indices(indices, size);
  const int64_t n = keys.numel();
  return n < 2 || !on_device::any_true(at::le(keys.narrow(0, 1, n - 1), keys.narrow(0, 0, n - 1)));
}
} // namespace

void check_coo(const Tensor& indices, const Tensor& values, IntArrayRef size, bool coalesced) {
  check_coo_shapes(indices, values, size);
  check_index_type(indices, "indices");
  if (on_device::applies_to(indices)) {
    const Tensor wide = indices.to(kLong);
    if (on_device::has_bad_coordinates(wide, size) || (coalesced && !ascends(wide, size)))
      check_coo_indices(moved_to(indices, kCPU, kLong), size, coalesced);
    return;
  }
  check_coo_indices(indices, size, coalesced);
}

Tensor make_coo(const Tensor& indices, const Tensor& values, IntArrayRef size, bool coalesced) {
  check_coo_shapes(indices, values, size);
  auto impl =
      c10::make_intrusive<SparseTensorImpl>(Layout::Sparse, values.scalar_type(), values.device());
  impl->set_contiguous(size);
  impl->indices = alias_of(indices.scalar_type() == kLong ? indices : indices.to(kLong));
  impl->values = alias_of(values);
  impl->sparse_dim = indices.size(0);
  impl->dense_dim = values.dim() - 1;
  impl->coalesced = coalesced || indices.size(1) < 2;
  return Tensor(std::move(impl));
}

Tensor empty_coo(IntArrayRef size, int64_t sparse_dim, ScalarType dtype, Device device) {
  TORCH_CHECK(sparse_dim >= 0 && sparse_dim <= static_cast<int64_t>(size.size()),
              "number of dimensions must be sparse_dim (", sparse_dim, ") + dense_dim, but got ",
              size.size());
  DimVector shape{0};
  for (size_t d = static_cast<size_t>(sparse_dim); d < size.size(); ++d) shape.push_back(size[d]);
  return make_coo(detail::empty({sparse_dim, 0}, kLong, device),
                  detail::empty(shape, dtype, device), size, true);
}

void become(const Tensor& self, const Tensor& from) {
  TORCH_CHECK(self.layout() == from.layout(), "cannot store a result of layout ", from.layout(),
              " in a tensor of layout ", self.layout());
  SparseTensorImpl& to = any_sparse(self, "store");
  const SparseTensorImpl& source = any_sparse(from, "store");
  TORCH_CHECK(self.scalar_type() == from.scalar_type(), "cannot store a result of dtype ",
              from.scalar_type(), " in a sparse tensor of dtype ", self.scalar_type());
  to.set_contiguous(from.sizes());
  to.indices = source.indices;
  to.plain = source.plain;
  to.values = source.values;
  to.sparse_dim = source.sparse_dim;
  to.dense_dim = source.dense_dim;
  to.coalesced = source.coalesced;
  to.bump_version();
}

// ---- compressed
namespace {
struct CompressedShape {
  int64_t batch, dense;
  int64_t block[2] = {1, 1};
  int64_t compressed_size, plain_size;
};

CompressedShape compressed_shape(const Tensor& compressed, const Tensor& plain,
                                 const Tensor& values, IntArrayRef size, Layout layout) {
  const bool rows = by_rows(layout), block = is_block(layout);
  const char* names[] = {rows ? "crow_indices" : "ccol_indices",
                         rows ? "col_indices" : "row_indices"};
  check_dense(compressed, names[0]);
  check_dense(plain, names[1]);
  check_dense(values, "values");
  TORCH_CHECK(compressed.device() == values.device() && plain.device() == values.device(),
              "device of ", names[0], " (=", compressed.device(), ") and ", names[1],
              " (=", plain.device(), ") must match device of values (=", values.device(), ")");
  TORCH_CHECK(compressed.dim() >= 1, names[0], " must have dimensionality >= 1 but got ",
              compressed.dim());
  TORCH_CHECK(compressed.dim() == plain.dim(), names[0], " and ", names[1],
              " dimensionalities must be equal but got ", compressed.dim(), " and ", plain.dim(),
              ", respectively");
  CompressedShape s;
  s.batch = compressed.dim() - 1;
  const int64_t block_dims = block ? 2 : 0;
  s.dense = values.dim() - s.batch - block_dims - 1;
  TORCH_CHECK(s.dense >= 0,
              "values must have dimensionality > sum of batch and block "
              "dimensionalities (=",
              s.batch, " + ", block_dims, ") but got ", values.dim());
  TORCH_CHECK(static_cast<int64_t>(size.size()) == s.batch + 2 + s.dense,
              "tensor dimensionality must be sum of batch, base, and dense dimensionalities (=",
              s.batch, " + 2 + ", s.dense, ") but got ", size.size());
  for (int64_t v : size)
    TORCH_CHECK(v >= 0, "Trying to create tensor with negative dimension ", v, ": ", size);
  const size_t b = static_cast<size_t>(s.batch);
  const IntArrayRef batch = size.slice(0, b);
  TORCH_CHECK(compressed.sizes().slice(0, b) == batch && plain.sizes().slice(0, b) == batch &&
                  values.sizes().slice(0, b) == batch,
              "all batch dimensions of ", names[0], " (=", compressed.sizes().slice(0, b), "), ",
              names[1], " (=", plain.sizes().slice(0, b),
              "), and values (=", values.sizes().slice(0, b),
              ") must be equal to tensor batch dimensions (=", batch, ")");
  if (block)
    for (int i = 0; i < 2; ++i) s.block[i] = values.size(s.batch + 1 + i);
  for (int i = 0; i < 2; ++i) {
    const int64_t dim = s.batch + i, extent = size[static_cast<size_t>(dim)];
    TORCH_CHECK(s.block[i] > 0, "block sizes must be positive, but got ", s.block[0], " and ",
                s.block[1]);
    TORCH_CHECK(extent % s.block[i] == 0, "tensor shape[", dim, "] (=", extent,
                ") must be divisible with blocksize[", i, "] (=", s.block[i],
                ") as defined by values shape");
  }
  const int64_t extent[] = {size[b] / s.block[0], size[b + 1] / s.block[1]};
  s.compressed_size = extent[rows ? 0 : 1];
  s.plain_size = extent[rows ? 1 : 0];
  TORCH_CHECK(compressed.size(-1) == s.compressed_size + 1, names[0],
              ".shape[-1] must be equal to the number of ", rows ? "row" : "column",
              block ? " blocks" : "s", " + 1 (=", s.compressed_size + 1, "), but got ",
              compressed.size(-1));
  TORCH_CHECK(values.size(s.batch) == plain.size(-1), names[1],
              ".shape[-1] must be equal to nnz (=", values.size(s.batch),
              ") as defined by values.shape[", s.batch, "], but got ", plain.size(-1));
  const size_t tail = b + 1 + static_cast<size_t>(block_dims);
  TORCH_CHECK(values.sizes().slice(tail) == size.slice(b + 2), "values dense dimensions ",
              values.sizes().slice(tail), " must be those of the tensor: ", size.slice(b + 2));
  // The misspelling is PyTorch's; programs look for the phrase as it is.
  TORCH_CHECK(compressed.scalar_type() == plain.scalar_type(), names[0], " and ", names[1],
              " must have the same dtype, bot got ", compressed.scalar_type(), " and ",
              plain.scalar_type(), ", respectively");
  TORCH_CHECK(compressed.scalar_type() == kLong || compressed.scalar_type() == kInt, names[0],
              " and ", names[1], " dtype must be Int or Long, but got ", compressed.scalar_type());
  return s;
}

void check_rows_contiguous(const Tensor& t, const char* what) {
  check_dense(t, what);
  TORCH_CHECK(t.dim() == 0 || t.size(-1) <= 1 || t.stride(-1) == 1, "expected ", what,
              " to be a contiguous tensor per batch");
}
} // namespace

void check_compressed(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                      IntArrayRef size, Layout layout, bool ordered) {
  TORCH_CHECK(is_compressed(layout), "expected a compressed sparse layout, but got ", layout);
  const bool rows = by_rows(layout);
  const char* start = rows ? "crow_indices" : "ccol_indices";
  const char* other = rows ? "col_indices" : "row_indices";
  check_rows_contiguous(compressed, start);
  check_rows_contiguous(plain, other);
  const CompressedShape s = compressed_shape(compressed, plain, values, size, layout);
  if (on_device::applies_to(compressed) && !ordered &&
      !on_device::has_bad_starts(compressed, plain, s.plain_size))
    return;
  const Tensor starts = moved_to(compressed, kCPU, kLong).contiguous();
  const Tensor others = moved_to(plain, kCPU, kLong).contiguous();
  const int64_t nnz = others.size(-1), step = s.compressed_size + 1;
  const int64_t batches = starts.numel() / step;
  const int64_t* crow = batches > 0 ? starts.data_ptr<int64_t>() : nullptr;
  const int64_t* col = others.numel() > 0 ? others.data_ptr<int64_t>() : nullptr;
  Steps steps;
  for (int64_t b = 0; b < batches; ++b, crow += step, col += col ? nnz : 0) {
    TORCH_CHECK(crow[0] == 0, "`", start, "[..., 0] == 0` is not satisfied.");
    TORCH_CHECK(crow[step - 1] == nnz, "`", start, "[..., -1] == nnz` is not satisfied.");
    for (int64_t i = 0; i < s.compressed_size; ++i) {
      TORCH_CHECK(crow[i] <= crow[i + 1] && crow[i + 1] <= nnz &&
                      (!ordered || crow[i + 1] - crow[i] <= s.plain_size),
                  "`0 <= ", start, "[..., 1:] - ", start,
                  "[..., :-1] <= ", rows ? "ncols" : "nrows", "` is not satisfied.");
      steps.add(2);
      for (int64_t k = crow[i]; k < crow[i + 1]; ++k) {
        steps.add(2);
        TORCH_CHECK(col[k] >= 0 && col[k] < s.plain_size, "`0 <= ", other, " < ",
                    rows ? "ncols" : "nrows", "` is not satisfied.");
        TORCH_CHECK(!ordered || k == crow[i] || col[k - 1] < col[k], "`", other, "[..., ", start,
                    "[..., i - 1]:", start, "[..., i]] for all i = 1, ..., ",
                    rows ? "nrows" : "ncols",
                    " are sorted and distinct along the last dimension values` is not satisfied.");
      }
    }
  }
}

Tensor make_compressed(Layout layout, const Tensor& compressed, const Tensor& plain,
                       const Tensor& values, IntArrayRef size) {
  TORCH_CHECK(is_compressed(layout), "expected a compressed sparse layout, but got ", layout);
  const CompressedShape s = compressed_shape(compressed, plain, values, size, layout);
  auto impl = c10::make_intrusive<SparseTensorImpl>(layout, values.scalar_type(), values.device());
  impl->set_contiguous(size);
  impl->indices = alias_of(compressed);
  impl->plain = alias_of(plain);
  impl->values = alias_of(values);
  impl->sparse_dim = 2;
  impl->dense_dim = s.dense;
  impl->coalesced = true;
  return Tensor(std::move(impl));
}

Tensor empty_compressed(IntArrayRef size, Layout layout, ScalarType dtype, Device device) {
  TORCH_CHECK(!is_block(layout),
              "empty_sparse_compressed expected sparse compressed (non-block) tensor layout but "
              "got ",
              spelled(layout));
  TORCH_CHECK(size.size() >= 2,
              "torch.empty: Only batched sparse compressed (non-block) tensors are supported, but "
              "got size ",
              size);
  for (int64_t v : size)
    TORCH_CHECK(v >= 0, "Trying to create tensor with negative dimension ", v, ": ", size);
  DimVector starts(size.slice(0, size.size() - 2)), none = starts;
  const int64_t extent = size[size.size() - (by_rows(layout) ? 2 : 1)];
  TORCH_CHECK(extent < INT64_MAX, "size ", size, " is too large");
  starts.push_back(extent + 1);
  none.push_back(0);
  return make_compressed(layout, at::zeros(starts, TensorOptions(kLong).device(device)),
                         detail::empty(none, kLong, device), detail::empty(none, dtype, device),
                         size);
}

Tensor as_view(Tensor made, const Tensor& of) {
  const TensorImpl& source = *of.unsafeGetTensorImpl();
  // A gradient's way is the operator's own formula: sparse views are not replayed.
  if (source.is_inference() || of.requires_grad()) return made;
  made.unsafeGetTensorImpl()->set_view_of(source.is_view() ? source.base() : of.getIntrusivePtr());
  return made;
}

// ---- batches of matrices
std::vector<Tensor> matrices_of(const Tensor& self) {
  const SparseTensorImpl& s = compressed(self, "matrices_of");
  const int64_t batch = s.indices.dim() - 1;
  if (batch == 0) return {self};
  const IntArrayRef inner = self.sizes().slice(static_cast<size_t>(batch));
  const int64_t count = c10::checked_numel(self.sizes().slice(0, static_cast<size_t>(batch)));
  const Tensor starts = s.indices.flatten(0, batch - 1), others = s.plain.flatten(0, batch - 1);
  const Tensor values = s.values.flatten(0, batch - 1);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(make_compressed(self.layout(), starts.select(0, i), others.select(0, i),
                                    values.select(0, i), inner));
  return parts;
}

Tensor batch_of(const std::vector<Tensor>& matrices, IntArrayRef batch) {
  if (batch.empty()) return matrices.at(0);
  std::vector<Tensor> starts, others, values;
  for (const Tensor& matrix : matrices) {
    const SparseTensorImpl& s = compressed(matrix, "batch_of");
    TORCH_CHECK(others.empty() || s.plain.size(-1) == others[0].size(-1),
                "Expect the same number of specified elements per batch.");
    starts.push_back(s.indices);
    others.push_back(s.plain);
    values.push_back(s.values);
  }
  const auto joined = [&](const std::vector<Tensor>& parts) {
    DimVector shape(batch);
    for (int64_t extent : parts.at(0).sizes()) shape.push_back(extent);
    return at::stack(parts, 0).view(shape);
  };
  DimVector size(batch);
  for (int64_t extent : matrices.at(0).sizes()) size.push_back(extent);
  return make_compressed(matrices[0].layout(), joined(starts), joined(others), joined(values),
                         size);
}

} // namespace at::sparse
