// Making sparse tensors, reading their parts, and changing their layout: the operators behind
// torch.sparse_coo_tensor, torch.sparse_compressed_tensor, Tensor.to_sparse and Tensor.to_dense.
// The public constructors look at every index; the ones called unsafe leave that to the kernels,
// which check what they use as an address.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/sparse/DeviceIndex.h>
#include <ATen/native/sparse/Native.h>
#include <ATen/native/sparse/SparseTensor.h>
#include <ATen/ops/_coalesce.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors.h>
#include <ATen/ops/_to_dense.h>
#include <ATen/ops/_to_sparse.h>
#include <ATen/ops/_to_sparse_bsc.h>
#include <ATen/ops/_to_sparse_bsr.h>
#include <ATen/ops/_to_sparse_csc.h>
#include <ATen/ops/_to_sparse_csr.h>
#include <ATen/ops/max.h>
#include <ATen/ops/resize.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Stretches.h>
#include <c10/core/TensorOptions.h>

namespace at::native {
namespace {
using sparse::SparseTensorImpl;
using MaybeType = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;

void check_options(const char* op, MaybeLayout layout, Layout expected, MaybeBool pin_memory) {
  TORCH_CHECK(!layout || *layout == expected, op, ": expected layout ", expected, ", but got ",
              layout ? *layout : expected);
  TORCH_CHECK_NOT_IMPLEMENTED(!pin_memory || !*pin_memory, op,
                              " is not implemented for page-locked memory");
}
Tensor typed(const Tensor& values, MaybeType dtype) {
  return dtype && *dtype != values.scalar_type() ? values.to(*dtype) : values;
}
// All members are on one device: the one asked for, or that of the values.
Tensor placed(const Tensor& member, MaybeDevice device, const Tensor& values) {
  return sparse::moved_to(member, device ? *device : values.device(), member.scalar_type());
}

int64_t largest(const Tensor& t) {
  if (sparse::on_device::applies_to(t))
    return t.numel() > 0 ? at::max(t).to(kLong).item().toLong() : -1;
  const Tensor held = t.to(kLong).contiguous();
  const int64_t n = held.numel();
  const int64_t* index_data = n > 0 ? held.data_ptr<int64_t>() : nullptr;
  int64_t most = -1;
  serial_for(0, n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) most = std::max(most, index_data[i]);
  });
  TORCH_CHECK(most < INT64_MAX, "index ", most, " is too large");
  return most;
}

DimVector inferred_coo_size(const Tensor& indices, const Tensor& values) {
  TORCH_CHECK(indices.layout() == kStrided && values.layout() == kStrided,
              "sparse_coo_tensor: expected strided indices and values");
  TORCH_CHECK(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", indices.sizes());
  TORCH_CHECK(values.dim() >= 1,
              "values must have at least one dimension, but got: ", values.sizes());
  DimVector size;
  for (int64_t d = 0; d < indices.size(0); ++d) {
    const Tensor row = sparse::moved_to(indices.select(0, d), kCPU, kLong).contiguous();
    const int64_t* index_data = row.numel() > 0 ? row.data_ptr<int64_t>() : nullptr;
    parallel_for(0, row.numel(), 32768, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        TORCH_CHECK(index_data[i] >= 0, "found negative index ", index_data[i], " for dim ", d);
    });
    size.push_back(largest(row) + 1);
  }
  for (int64_t d = 1; d < values.dim(); ++d) size.push_back(values.size(d));
  return size;
}

DimVector inferred_compressed_size(const Tensor& compressed, const Tensor& plain,
                                   const Tensor& values, Layout layout) {
  TORCH_CHECK(compressed.layout() == kStrided && plain.layout() == kStrided &&
                  values.layout() == kStrided,
              "sparse_compressed_tensor: expected strided indices and values");
  const char* starts = sparse::by_rows(layout) ? "crow_indices" : "ccol_indices";
  TORCH_CHECK(compressed.dim() >= 1, starts, " must have dimensionality >= 1 but got ",
              compressed.dim());
  TORCH_CHECK(compressed.size(-1) >= 1, starts,
              " must have at least one element, but got: ", compressed.sizes());
  TORCH_CHECK(compressed.dim() == plain.dim(), starts, " and ",
              sparse::by_rows(layout) ? "col_indices" : "row_indices",
              " dimensionalities must be equal but got ", compressed.dim(), " and ", plain.dim(),
              ", respectively");
  const int64_t batch = compressed.dim() - 1, block = sparse::is_block(layout) ? 2 : 0;
  TORCH_CHECK(values.dim() > batch + block,
              "values must have dimensionality > sum of batch and "
              "block dimensionalities (=",
              batch, " + ", block, ") but got ", values.dim());
  DimVector size(values.sizes().slice(0, static_cast<size_t>(batch)));
  const int64_t across[] = {compressed.size(-1) - 1, largest(plain) + 1};
  for (int i = 0; i < 2; ++i) {
    const int64_t tile = block > 0 ? values.size(batch + 1 + i) : 1;
    int64_t extent = 0;
    TORCH_CHECK(!c10::mul_overflows(across[sparse::by_rows(layout) ? i : 1 - i], tile, &extent),
                "the size overflows");
    size.push_back(extent);
  }
  for (int64_t d = batch + block + 1; d < values.dim(); ++d) size.push_back(values.size(d));
  return size;
}

Tensor checked_compressed(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                          OptionalIntArrayRef size, MaybeType dtype, MaybeLayout given,
                          Layout layout, MaybeDevice device, MaybeBool pin_memory) {
  check_options("sparse_compressed_tensor", given, layout, pin_memory);
  const DimVector wanted =
      size ? DimVector(*size) : inferred_compressed_size(compressed, plain, values, layout);
  const Tensor held = placed(typed(values, dtype), device, values);
  const Tensor starts = placed(compressed, device, values), others = placed(plain, device, values);
  // Whether rows ascend is looked at where it matters (sparse::coalesced).
  sparse::check_compressed(starts, others, held, wanted, layout, /*ordered=*/false);
  return at::_sparse_compressed_tensor_unsafe(starts, others, held, IntArrayRef(wanted),
                                              held.scalar_type(), layout, held.device(),
                                              std::nullopt);
}
} // namespace

// ---- COO
Tensor sparse_coo_tensor_size(IntArrayRef size, MaybeType dtype, MaybeLayout layout,
                              MaybeDevice device, MaybeBool pin_memory) {
  return at::_sparse_coo_tensor_with_dims(static_cast<int64_t>(size.size()), 0, size, dtype, layout,
                                          device, pin_memory);
}
Tensor sparse_coo_tensor_with_dims(int64_t sparse_dim, int64_t dense_dim, IntArrayRef size,
                                   MaybeType dtype, MaybeLayout layout, MaybeDevice device,
                                   MaybeBool pin_memory) {
  check_options("sparse_coo_tensor", layout, Layout::Sparse, pin_memory);
  TORCH_CHECK(sparse_dim >= 0 && dense_dim >= 0 &&
                  sparse_dim + dense_dim == static_cast<int64_t>(size.size()),
              "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = ", size.size(),
              ", sparse_dim = ", sparse_dim, ", dense_dim = ", dense_dim);
  return sparse::empty_coo(size, sparse_dim, dtype ? *dtype : c10::get_default_dtype(),
                           device.value_or(Device(kCPU)));
}
Tensor sparse_coo_tensor_sized(const Tensor& indices, const Tensor& values, IntArrayRef size,
                               MaybeType dtype, MaybeLayout layout, MaybeDevice device,
                               MaybeBool pin_memory, MaybeBool is_coalesced) {
  const Tensor held = placed(typed(values, dtype), device, values);
  const Tensor places = placed(indices, device, values);
  // Whether the order bears out is_coalesced is looked at where it matters (sparse::coalesced).
  sparse::check_coo(places, held, size, false);
  return at::_sparse_coo_tensor_unsafe(places, held, size, held.scalar_type(), layout,
                                       held.device(), pin_memory, is_coalesced);
}
Tensor sparse_coo_tensor_inferred(const Tensor& indices, const Tensor& values, MaybeType dtype,
                                  MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory,
                                  MaybeBool is_coalesced) {
  return sparse_coo_tensor_sized(indices, values, inferred_coo_size(indices, values), dtype, layout,
                                 device, pin_memory, is_coalesced);
}
Tensor _sparse_coo_tensor_unsafe(const Tensor& indices, const Tensor& values, IntArrayRef size,
                                 MaybeType dtype, MaybeLayout layout, MaybeDevice device,
                                 MaybeBool pin_memory, MaybeBool is_coalesced) {
  TORCH_CHECK(indices.dim() >= 1 && values.dim() >= 1,
              "indices must be sparse_dim x nnz, but got: ", indices.sizes());
  const Tensor held = typed(values, dtype);
  return at::_sparse_coo_tensor_with_dims_and_tensors(
      indices.size(0), held.dim() - 1, size, indices, held, held.scalar_type(), layout,
      device.value_or(held.device()), pin_memory, is_coalesced);
}
Tensor sparse_coo_tensor_of(int64_t sparse_dim, int64_t dense_dim, IntArrayRef size,
                            const Tensor& indices, const Tensor& values, MaybeType dtype,
                            MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory,
                            MaybeBool is_coalesced) {
  check_options("sparse_coo_tensor", layout, Layout::Sparse, pin_memory);
  TORCH_CHECK(indices.dim() == 2 && indices.size(0) == sparse_dim && values.dim() - 1 == dense_dim,
              "indices must be sparse_dim x nnz and values nnz x dense_dim, but got: ",
              indices.sizes(), " and ", values.sizes());
  TORCH_CHECK(indices.scalar_type() == kLong || indices.scalar_type() == kInt,
              "indices must be an int64 or int32 tensor, but got ", indices.scalar_type());
  return sparse::make_coo(placed(indices, device, values),
                          placed(typed(values, dtype), device, values), size,
                          is_coalesced.value_or(false));
}
void _validate_sparse_coo_tensor_args(const Tensor& indices, const Tensor& values, IntArrayRef size,
                                      MaybeBool is_coalesced, MaybeBool) {
  sparse::check_coo(indices, values, size, is_coalesced.value_or(false));
}

// ---- compressed
#define COMPRESSED(name, Kind)                                                                     \
  Tensor sparse_##name##_tensor_inferred(                                                          \
      const Tensor& compressed, const Tensor& plain, const Tensor& values, MaybeType dtype,        \
      MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory) {                              \
    return checked_compressed(compressed, plain, values, std::nullopt, dtype, layout,              \
                              Layout::Kind, device, pin_memory);                                   \
  }                                                                                                \
  Tensor sparse_##name##_tensor_sized(                                                             \
      const Tensor& compressed, const Tensor& plain, const Tensor& values, IntArrayRef size,       \
      MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory) {             \
    return checked_compressed(compressed, plain, values, size, dtype, layout, Layout::Kind,        \
                              device, pin_memory);                                                 \
  }                                                                                                \
  Tensor _sparse_##name##_tensor_unsafe(                                                           \
      const Tensor& compressed, const Tensor& plain, const Tensor& values, IntArrayRef size,       \
      MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory) {             \
    return at::_sparse_compressed_tensor_unsafe(compressed, plain, values, size, dtype,            \
                                                layout ? *layout : Layout::Kind,                   \
                                                device.value_or(values.device()), pin_memory);     \
  }                                                                                                \
  void _validate_sparse_##name##_tensor_args(const Tensor& compressed, const Tensor& plain,        \
                                             const Tensor& values, IntArrayRef size, MaybeBool) {  \
    sparse::check_compressed(compressed, plain, values, size, Layout::Kind);                       \
  }
COMPRESSED(csr, SparseCsr)
COMPRESSED(csc, SparseCsc)
COMPRESSED(bsr, SparseBsr)
COMPRESSED(bsc, SparseBsc)
#undef COMPRESSED

namespace {
Layout required(MaybeLayout layout) {
  TORCH_CHECK(layout && sparse::is_compressed(*layout),
              "sparse_compressed_tensor expected sparse compressed tensor layout but got ",
              layout ? sparse::spelled(*layout) : "none");
  return *layout;
}
} // namespace
Tensor sparse_compressed_tensor_inferred(const Tensor& compressed, const Tensor& plain,
                                         const Tensor& values, MaybeType dtype, MaybeLayout layout,
                                         MaybeDevice device, MaybeBool pin_memory) {
  return checked_compressed(compressed, plain, values, std::nullopt, dtype, layout,
                            required(layout), device, pin_memory);
}
Tensor sparse_compressed_tensor_sized(const Tensor& compressed, const Tensor& plain,
                                      const Tensor& values, IntArrayRef size, MaybeType dtype,
                                      MaybeLayout layout, MaybeDevice device,
                                      MaybeBool pin_memory) {
  return checked_compressed(compressed, plain, values, size, dtype, layout, required(layout),
                            device, pin_memory);
}
Tensor sparse_compressed_tensor_of(const Tensor& compressed, const Tensor& plain,
                                   const Tensor& values, IntArrayRef size, MaybeType dtype,
                                   MaybeLayout layout, MaybeDevice device, MaybeBool pin_memory) {
  check_options("sparse_compressed_tensor", layout, required(layout), pin_memory);
  return sparse::make_compressed(*layout, placed(compressed, device, values),
                                 placed(plain, device, values),
                                 placed(typed(values, dtype), device, values), size);
}
void _validate_sparse_compressed_tensor_args(const Tensor& compressed, const Tensor& plain,
                                             const Tensor& values, IntArrayRef size, Layout layout,
                                             MaybeBool) {
  sparse::check_compressed(compressed, plain, values, size, layout);
}

// ---- parts
namespace {
// Another handle of the same memory: its shape is the caller's to change.
Tensor part(const Tensor& t) { return Tensor(t.unsafeGetTensorImpl()->shallow_copy()); }
void check_coalesced(const SparseTensorImpl& s, const char* what) {
  TORCH_CHECK(s.coalesced, "Cannot get ", what,
              " on an uncoalesced tensor, please call .coalesce() first");
}
Tensor compressed_part(const Tensor& self, const char* op, bool rows, bool compressed) {
  const auto* impl = dynamic_cast<const SparseTensorImpl*>(self.unsafeGetTensorImpl());
  const Layout layout = self.layout();
  TORCH_CHECK(impl && sparse::is_compressed(layout) && sparse::by_rows(layout) == rows, op,
              rows ? " expected sparse row compressed tensor layout but got "
                   : " expected sparse column compressed tensor layout but got ",
              sparse::spelled(layout));
  return part(compressed ? impl->indices : impl->plain);
}
} // namespace
Tensor coo_indices(const Tensor& self) { return part(sparse::coo(self, "_indices").indices); }
Tensor coo_values(const Tensor& self) { return part(sparse::coo(self, "_values").values); }
Tensor indices_of(const Tensor& self) {
  const SparseTensorImpl& s = sparse::coo(self, "indices");
  check_coalesced(s, "indices");
  return part(s.indices);
}
Tensor values_of(const Tensor& self) {
  const SparseTensorImpl& s = sparse::any_sparse(self, "values");
  check_coalesced(s, "values");
  return sparse::as_view(part(s.values), self);
}
Tensor crow_indices(const Tensor& self) {
  return compressed_part(self, "crow_indices", true, true);
}
Tensor col_indices(const Tensor& self) { return compressed_part(self, "col_indices", true, false); }
Tensor ccol_indices(const Tensor& self) {
  return compressed_part(self, "ccol_indices", false, true);
}
Tensor row_indices(const Tensor& self) {
  return compressed_part(self, "row_indices", false, false);
}
int64_t nnz_of(const Tensor& self) { return sparse::any_sparse(self, "_nnz").nnz(); }
int64_t sparse_dim(const Tensor& self) {
  return self.layout() == kStrided ? 0 : sparse::any_sparse(self, "sparse_dim").sparse_dim;
}
int64_t dense_dim(const Tensor& self) {
  return self.layout() == kStrided ? self.dim() : sparse::any_sparse(self, "dense_dim").dense_dim;
}
bool is_coalesced(const Tensor& self) { return sparse::coo(self, "is_coalesced").coalesced; }

Tensor& coalesced_flag_(Tensor& self, bool coalesced) {
  SparseTensorImpl& s = sparse::coo(self, "_coalesced_");
  s.coalesced = coalesced;
  s.bump_version();
  return self;
}
Tensor coalesce(const Tensor& self) {
  const SparseTensorImpl& s = sparse::coo(self, "coalesce");
  return s.coalesced ? self : at::_coalesce(self);
}
Tensor coalesce_coo(const Tensor& self) {
  const Tensor out = sparse::coalesced(self);
  return out.is_same(self) ? part(self) : out;
}

// ---- layouts
Tensor to_dense(const Tensor& self, MaybeType dtype, MaybeBool masked_grad) {
  if (self.layout() == kStrided) return dtype ? self.to(*dtype) : self;
  return at::_ops::_to_dense::call(self, dtype, masked_grad);
}
Tensor dense_of(const Tensor& self, MaybeType dtype, MaybeBool) {
  return typed(sparse::to_dense(self), dtype);
}
namespace {
Tensor fresh(const Tensor& self, Layout layout, OptionalIntArrayRef blocksize,
             std::optional<int64_t> dense_dim) {
  const Tensor out = sparse::to_layout(self, layout, blocksize, dense_dim);
  return out.is_same(self) ? part(self) : out;
}
} // namespace
Tensor to_sparse(const Tensor& self, MaybeLayout layout, OptionalIntArrayRef blocksize,
                 std::optional<int64_t> dense_dim) {
  if (self.layout() == layout.value_or(Layout::Sparse) && !blocksize) return self;
  return at::_ops::_to_sparse::call(self, layout, blocksize, dense_dim);
}
Tensor to_sparse(const Tensor& self, int64_t sparse_dim) {
  return at::_ops::_to_sparse_sparse_dim::call(self, sparse_dim);
}
Tensor to_sparse_layout(const Tensor& self, MaybeLayout layout, OptionalIntArrayRef blocksize,
                        std::optional<int64_t> dense_dim) {
  return fresh(self, layout.value_or(Layout::Sparse), blocksize, dense_dim);
}
Tensor to_sparse_dims(const Tensor& self, int64_t sparse_dim) {
  if (self.layout() == kStrided) return sparse::dense_to_coo(self, sparse_dim);
  TORCH_CHECK(sparse::any_sparse(self, "to_sparse").sparse_dim == sparse_dim,
              "to_sparse: conversion to another number of sparse dimensions is not supported");
  return fresh(self, Layout::Sparse, std::nullopt, std::nullopt);
}
Tensor to_sparse_csr(const Tensor& self, std::optional<int64_t> dense_dim) {
  return self.layout() == Layout::SparseCsr ? self
                                            : at::_ops::_to_sparse_csr::call(self, dense_dim);
}
Tensor to_sparse_csc(const Tensor& self, std::optional<int64_t> dense_dim) {
  return self.layout() == Layout::SparseCsc ? self
                                            : at::_ops::_to_sparse_csc::call(self, dense_dim);
}
Tensor to_sparse_bsr(const Tensor& self, IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  return at::_ops::_to_sparse_bsr::call(self, blocksize, dense_dim);
}
Tensor to_sparse_bsc(const Tensor& self, IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  return at::_ops::_to_sparse_bsc::call(self, blocksize, dense_dim);
}
Tensor to_csr(const Tensor& self, std::optional<int64_t> dense_dim) {
  return fresh(self, Layout::SparseCsr, std::nullopt, dense_dim);
}
Tensor to_csc(const Tensor& self, std::optional<int64_t> dense_dim) {
  return fresh(self, Layout::SparseCsc, std::nullopt, dense_dim);
}
Tensor to_bsr(const Tensor& self, IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  return fresh(self, Layout::SparseBsr, blocksize, dense_dim);
}
Tensor to_bsc(const Tensor& self, IntArrayRef blocksize, std::optional<int64_t> dense_dim) {
  return fresh(self, Layout::SparseBsc, blocksize, dense_dim);
}
Tensor sparse_mask(const Tensor& self, const Tensor& mask) { return sparse::masked_by(self, mask); }
Tensor sparse_broadcast_to(const Tensor& self, IntArrayRef size) {
  return sparse::broadcast_coo(self, size);
}

// ---- sizes
Tensor& sparse_resize_(Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) {
  const SparseTensorImpl& s = sparse::coo(self, "sparse_resize_");
  TORCH_CHECK(s.nnz() == 0 || sparse_dim == s.sparse_dim,
              "changing the number of sparse dimensions (from ", s.sparse_dim, " to ", sparse_dim,
              ") on a non-empty sparse tensor is not supported.");
  TORCH_CHECK(s.nnz() == 0 || dense_dim == s.dense_dim,
              "changing the number of dense dimensions (from ", s.dense_dim, " to ", dense_dim,
              ") on a non-empty sparse tensor is not supported.");
  if (s.nnz() == 0) return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim);
  TORCH_CHECK(static_cast<int64_t>(size.size()) == sparse_dim + dense_dim,
              "number of dimensions must be sparse_dim (", sparse_dim, ") + dense_dim (", dense_dim,
              "), but got ", size.size());
  const size_t split = static_cast<size_t>(sparse_dim);
  for (const bool dense : {false, true}) {
    const IntArrayRef held = dense ? self.sizes().slice(split) : self.sizes().slice(0, split);
    const IntArrayRef asked = dense ? size.slice(split) : size.slice(0, split);
    for (size_t d = 0; d < held.size(); ++d)
      TORCH_CHECK(asked[d] >= held[d], "shrinking the size of ", dense ? "dense" : "sparse",
                  " dimensions (from ", held, " to ", asked,
                  ") on a non-empty sparse tensor is not supported.");
  }
  Tensor values = s.values;
  if (self.sizes().slice(split) != size.slice(split)) {
    DimVector shape{s.nnz()};
    for (int64_t extent : size.slice(split)) shape.push_back(extent);
    values = at::zeros(shape, s.values.options());
    Tensor kept = values;
    for (int64_t d = 1; d < values.dim(); ++d) kept = kept.narrow(d, 0, s.values.size(d));
    kept.copy_(s.values);
  }
  sparse::become(self, sparse::make_coo(s.indices, values, size, s.coalesced));
  return self;
}
Tensor& sparse_resize_and_clear_(Tensor& self, IntArrayRef size, int64_t sparse_dim,
                                 int64_t dense_dim) {
  TORCH_CHECK(sparse_dim >= 0 && dense_dim >= 0 &&
                  static_cast<int64_t>(size.size()) == sparse_dim + dense_dim,
              "number of dimensions must be sparse_dim (", sparse_dim, ") + dense_dim (", dense_dim,
              "), but got ", size.size());
  sparse::coo(self, "sparse_resize_and_clear_");
  sparse::become(self, sparse::empty_coo(size, sparse_dim, self.scalar_type(), self.device()));
  return self;
}
Tensor& resize_as_sparse_(Tensor& self, const Tensor& the_template) {
  if (sparse::is_compressed(self.layout()) || sparse::is_compressed(the_template.layout()))
    return sparse::resize_as_compressed(self, the_template), self;
  const SparseTensorImpl& s = sparse::coo(the_template, "resize_as_sparse_");
  return sparse_resize_(self, the_template.sizes(), s.sparse_dim, s.dense_dim);
}
Tensor& resize_as_coo_(Tensor& self, const Tensor& the_template,
                       std::optional<MemoryFormat> memory_format) {
  TORCH_CHECK(!memory_format,
              "Unsupported memory format for sparse tensor resize_as_ :", *memory_format);
  if (!self.is_sparse())
    return at::_ops::resize_::call(self, c10::as_symint_array(the_template.sizes()), std::nullopt);
  TORCH_CHECK_NOT_IMPLEMENTED(the_template.is_sparse(),
                              "resize_as_: a sparse tensor takes the size of a sparse one, not of ",
                              the_template.layout());
  return resize_as_sparse_(self, the_template);
}

// ---- index lists alone
Tensor indices_to_starts(const Tensor& self, int64_t size, bool out_int32) {
  TORCH_CHECK(self.dim() <= 1, "Input is supposed to be a vector, but got ", self.dim(),
              " dimensional tensor.");
  TORCH_CHECK(self.dim() == 1 && size >= 0 && size < INT64_MAX,
              "_convert_indices_from_coo_to_csr: expected a list of rows and their number");
  if (sparse::on_device::applies_to(self)) {
    const Tensor starts = sparse::on_device::starts_of_rows(self.to(kLong), size);
    return out_int32 ? starts.to(kInt) : starts;
  }
  Tensor starts = at::zeros({size + 1}, TensorOptions(kLong));
  const Tensor rows = self.to(kLong).contiguous();
  int64_t* start = starts.data_ptr<int64_t>();
  Steps steps;
  for (int64_t i = 0; i < rows.numel(); ++i, steps.add(4)) {
    const int64_t row = rows.data_ptr<int64_t>()[i];
    TORCH_CHECK_INDEX(row >= 0 && row < size, "row ", row, " is out of range for ", size);
    ++start[row + 1];
  }
  for (int64_t i = 0; i < size; ++i, steps.add(1)) start[i + 1] += start[i];
  return out_int32 ? starts.to(kInt) : starts;
}
Tensor starts_to_indices(const Tensor& crow_indices, const Tensor& col_indices, bool out_int32,
                         bool transpose) {
  TORCH_CHECK(crow_indices.dim() == 1 && col_indices.dim() == 1 && crow_indices.numel() >= 1,
              "_convert_indices_from_csr_to_coo: expected two lists of indices");
  const int64_t rows = crow_indices.numel() - 1, columns = largest(col_indices) + 1;
  const int64_t size[] = {rows, std::max<int64_t>(columns, 0)};
  const Tensor ones = at::zeros({col_indices.numel()}, col_indices.options().dtype(kByte));
  const Tensor csr =
      sparse::make_compressed(Layout::SparseCsr, crow_indices, col_indices, ones, size);
  const Tensor both = sparse::coo(sparse::to_coo(csr), "convert").indices;
  Tensor out =
      detail::empty({2, col_indices.numel()}, out_int32 ? kInt : kLong, col_indices.device());
  out.select(0, transpose ? 1 : 0).copy_(both.select(0, 0));
  out.select(0, transpose ? 0 : 1).copy_(both.select(0, 1));
  return out;
}

} // namespace at::native
