// Between layouts: coalescing, to and from dense, among COO and the compressed layouts. Everything
// passes through COO with indices flattened to one number per element, which fits in 64 bits
// because the number of elements of the whole tensor does.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/sparse/DeviceIndex.h>
#include <ATen/native/sparse/SparseTensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/unbind.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SafeArithmetic.h>

namespace at::sparse {
namespace {
// Rows [n, values...] of sums: sums[to[i]] += values[i]. Bools are or-ed.
Tensor summed_rows(const Tensor& values, const Tensor& to, int64_t rows) {
  DimVector shape(values.sizes());
  shape[0] = rows;
  const bool narrow = values.scalar_type() == kBool;
  const ScalarType type = narrow ? kByte : values.scalar_type();
  const Tensor zeros = at::zeros(shape, values.options().dtype(type));
  const Tensor sums = at::index_add(zeros, 0, to, narrow ? values.to(kByte) : values);
  return narrow ? sums.to(kBool) : sums;
}

Tensor counts_to_starts(const Tensor& sorted_rows, int64_t rows) {
  if (on_device::applies_to(sorted_rows)) return on_device::starts_of_rows(sorted_rows, rows);
  Tensor starts = at::zeros({rows + 1}, TensorOptions(kLong));
  int64_t* start = starts.data_ptr<int64_t>();
  const Tensor held = sorted_rows.contiguous();
  const int64_t n = held.numel();
  const int64_t* row = n > 0 ? held.data_ptr<int64_t>() : nullptr;
  Steps steps;
  for (int64_t i = 0; i < n; ++i, steps.add(2)) {
    TORCH_CHECK_INDEX(row[i] >= 0 && row[i] < rows, "row index ", row[i], " is out of range for ",
                      rows, " rows");
    ++start[row[i] + 1];
  }
  for (int64_t i = 0; i < rows; ++i, steps.add(1)) start[i + 1] += start[i];
  return starts;
}

// The row of each element of a compressed tensor without batches.
Tensor starts_to_rows(const Tensor& starts, int64_t nnz) {
  if (on_device::applies_to(starts)) return on_device::rows_of_starts(starts, nnz);
  const Tensor held = starts.to(kLong).contiguous();
  const int64_t* start = held.data_ptr<int64_t>();
  Tensor rows = detail::empty({nnz}, kLong);
  int64_t* row = nnz > 0 ? rows.data_ptr<int64_t>() : nullptr;
  const int64_t n = held.numel() - 1;
  int64_t position = 0;
  Steps steps;
  for (int64_t i = 0; i < n; ++i, steps.add(2)) {
    TORCH_CHECK_INDEX(start[i] == position && start[i + 1] >= position && start[i + 1] <= nnz,
                      "the compressed indices do not describe ", nnz, " elements");
    for (; position < start[i + 1]; ++position, steps.add(1)) row[position] = i;
  }
  TORCH_CHECK_INDEX(position == nnz, "the compressed indices do not describe ", nnz, " elements");
  return rows;
}

Tensor stacked(const Tensor& first, const Tensor& second) {
  Tensor out = detail::empty({2, first.numel()}, kLong, first.device());
  out.select(0, 0).copy_(first);
  out.select(0, 1).copy_(second);
  return out;
}
} // namespace

Tensor flat_indices(const Tensor& indices, IntArrayRef size) {
  if (on_device::applies_to(indices)) return on_device::flat_indices(indices, size);
  const Tensor held = indices.contiguous();
  const int64_t rows = held.size(0), nnz = held.size(1);
  Tensor flat = at::zeros({nnz}, TensorOptions(kLong));
  if (nnz == 0) return flat;
  int64_t* key = flat.data_ptr<int64_t>();
  const int64_t* index_data = rows > 0 ? held.data_ptr<int64_t>() : nullptr;
  for (int64_t d = 0; d < rows; ++d) {
    const int64_t extent = size[static_cast<size_t>(d)];
    parallel_for(0, nnz, 32768, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t index = index_data[d * nnz + i];
        TORCH_CHECK_INDEX(index >= 0 && index < extent, "index ", index,
                          " is out of range for sparse dimension ", d, " of size ", extent);
        key[i] = key[i] * extent + index;
      }
    });
  }
  return flat;
}

Tensor unflatten_indices(const Tensor& flat, IntArrayRef size) {
  if (on_device::applies_to(flat)) return on_device::unflatten_indices(flat, size);
  const int64_t rows = static_cast<int64_t>(size.size()), nnz = flat.numel();
  Tensor indices = detail::empty({rows, nnz}, kLong);
  if (nnz == 0 || rows == 0) return indices;
  const Tensor held = flat.contiguous();
  const int64_t* key = held.data_ptr<int64_t>();
  int64_t* index_data = indices.data_ptr<int64_t>();
  parallel_for(0, nnz, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t left = key[i];
      for (int64_t d = rows - 1; d >= 0; --d) {
        const int64_t extent = size[static_cast<size_t>(d)];
        TORCH_CHECK_INDEX(extent > 0, "element in a dimension of size 0");
        index_data[d * nnz + i] = left % extent;
        left /= extent;
      }
    }
  });
  return indices;
}

Tensor with_values(const Tensor& self, const Tensor& values) {
  const SparseTensorImpl& s = any_sparse(self, "with_values");
  if (self.layout() == Layout::Sparse)
    return make_coo(s.indices, values, self.sizes(), s.coalesced);
  return make_compressed(self.layout(), s.indices, s.plain, values, self.sizes());
}

namespace {
bool is_ascending(const Tensor& keys) {
  const int64_t n = keys.numel();
  const int64_t* key = n > 0 ? keys.data_ptr<int64_t>() : nullptr;
  Steps steps;
  for (int64_t i = 1; i < n; ++i, steps.add(1))
    if (key[i - 1] >= key[i]) return false;
  return true;
}
} // namespace

namespace {
// Without a look at the order of a tensor that says it is coalesced, which would wait for the GPU.
Tensor coalesced_on_device(const Tensor& self, const SparseTensorImpl& s) {
  if (s.coalesced) return self;
  const on_device::Distinct found = on_device::distinct_keys(flat_indices(s.indices, self.sizes()));
  const Tensor indices =
      unflatten_indices(found.keys, self.sizes().slice(0, static_cast<size_t>(s.sparse_dim)));
  return make_coo(indices, summed_rows(s.values, found.number, found.keys.numel()), self.sizes(),
                  true);
}
} // namespace

Tensor coalesced(const Tensor& self) {
  const SparseTensorImpl& s = coo(self, "coalesce");
  if (on_device::applies_to(s.indices)) return coalesced_on_device(self, s);
  const int64_t nnz = s.nnz();
  const Tensor flat = flat_indices(s.indices, self.sizes());
  // The flag may be a caller's claim (_coalesced_, is_coalesced=True): what relies on the order
  // comes through here, so one look at it is the check.
  if (s.coalesced && is_ascending(flat)) return self;
  const auto [keys, order] = at::sort(flat, std::optional<bool>(true), 0, false);
  Tensor group = detail::empty({nnz}, kLong), first = detail::empty({nnz}, kLong);
  const int64_t* key = keys.data_ptr<int64_t>();
  int64_t* number = group.data_ptr<int64_t>();
  int64_t* distinct = first.data_ptr<int64_t>();
  int64_t groups = 0;
  Steps steps;
  for (int64_t i = 0; i < nnz; ++i, steps.add(2)) {
    if (i == 0 || key[i] != key[i - 1]) distinct[groups++] = key[i];
    number[i] = groups - 1;
  }
  const Tensor indices = unflatten_indices(
      first.narrow(0, 0, groups), self.sizes().slice(0, static_cast<size_t>(s.sparse_dim)));
  const Tensor values = summed_rows(at::index_select(s.values, 0, order), group, groups);
  return make_coo(indices, values, self.sizes(), true);
}

namespace {
int64_t batch_dims(const SparseTensorImpl& s) { return s.indices.dim() - 1; }

// A batch of compressed matrices, one matrix after the other.
Tensor batch_to_dense(const Tensor& self, const SparseTensorImpl& s) {
  const size_t batch = static_cast<size_t>(batch_dims(s));
  const std::vector<Tensor> matrices = matrices_of(self);
  DimVector shape{static_cast<int64_t>(matrices.size())};
  for (int64_t extent : self.sizes().slice(batch)) shape.push_back(extent);
  Tensor out = at::zeros(shape, s.values.options());
  for (size_t i = 0; i < matrices.size(); ++i, check_interrupt())
    out.select(0, static_cast<int64_t>(i)).copy_(to_dense(matrices[i]));
  return out.view(self.sizes());
}

// The elements of all matrices, the coordinates in the batch before those in the matrix.
Tensor batch_to_coo(const Tensor& self, const SparseTensorImpl& s) {
  const size_t batch = static_cast<size_t>(batch_dims(s));
  const IntArrayRef outer = self.sizes().slice(0, batch);
  const std::vector<Tensor> matrices = matrices_of(self);
  const int64_t dims = static_cast<int64_t>(batch) + 2;
  if (matrices.empty()) return empty_coo(self.sizes(), dims, self.scalar_type(), self.device());
  std::vector<Tensor> columns, values;
  for (size_t i = 0; i < matrices.size(); ++i, check_interrupt()) {
    const Tensor elements = to_coo(matrices[i]);
    const SparseTensorImpl& held = coo(elements, "to_sparse");
    const Tensor number = at::full({held.nnz()}, static_cast<int64_t>(i), held.indices.options());
    const Tensor both[] = {unflatten_indices(number, outer), held.indices};
    columns.push_back(at::cat(TensorList(both, 2), 0));
    values.push_back(held.values);
  }
  return make_coo(at::cat(columns, 1), at::cat(values, 0), self.sizes(), true);
}
} // namespace

Tensor to_dense(const Tensor& self) {
  if (is_compressed(self.layout())) {
    const SparseTensorImpl& s = compressed(self, "to_dense");
    return s.indices.dim() > 1 ? batch_to_dense(self, s) : to_dense(to_coo(self));
  }
  const SparseTensorImpl& s = coo(self, "to_dense");
  const IntArrayRef outer = self.sizes().slice(0, static_cast<size_t>(s.sparse_dim));
  const int64_t rows = c10::checked_numel(outer);
  const Tensor flat = flat_indices(s.indices, self.sizes());
  return summed_rows(s.values, flat, rows).view(self.sizes());
}

Tensor dense_to_coo(const Tensor& self, int64_t sparse_dim) {
  const int64_t rank = self.dim();
  TORCH_CHECK(sparse_dim >= 0 && sparse_dim <= rank && (sparse_dim > 0 || rank == 0),
              "sparse_dim argument must be in >=0 and in [0, ", rank, "] range, but ", sparse_dim,
              " is given");
  const IntArrayRef outer = self.sizes().slice(0, static_cast<size_t>(sparse_dim));
  DimVector shape{c10::checked_numel(outer)};
  for (int64_t d = sparse_dim; d < rank; ++d) shape.push_back(self.size(d));
  const Tensor rows = self.reshape(shape);
  Tensor used = at::ne(rows, Scalar(int64_t(0)));
  for (int64_t d = rows.dim() - 1; d > 0; --d) used = at::any(used, d);
  const Tensor picked = at::nonzero(used).view({-1});
  return make_coo(unflatten_indices(picked, outer), at::index_select(rows, 0, picked), self.sizes(),
                  true);
}

namespace {
// Blocks [nnz, b0, b1, dense...] as single elements: their coordinates and values.
Tensor blocks_to_coo(const SparseTensorImpl& s, const Tensor& rows, const Tensor& columns,
                     IntArrayRef size) {
  const int64_t nnz = s.values.size(0), b0 = s.values.size(1), b1 = s.values.size(2);
  DimVector shape{nnz * b0 * b1};
  for (int64_t d = 3; d < s.values.dim(); ++d) shape.push_back(s.values.size(d));
  if (on_device::applies_to(rows)) {
    const TensorOptions longs = rows.options();
    const Tensor y = at::add(at::mul(rows, Scalar(b0)).view({nnz, 1, 1}),
                             at::arange(b0, longs).view({1, b0, 1}));
    const Tensor x = at::add(at::mul(columns, Scalar(b1)).view({nnz, 1, 1}),
                             at::arange(b1, longs).view({1, 1, b1}));
    const IntArrayRef all = s.values.sizes().slice(0, 3);
    const Tensor places = stacked(y.expand(all).reshape({-1}), x.expand(all).reshape({-1}));
    return coalesced(make_coo(places, s.values.reshape(shape), size, false));
  }
  Tensor indices = detail::empty({2, shape[0]}, kLong);
  int64_t* index_data = shape[0] > 0 ? indices.data_ptr<int64_t>() : nullptr;
  const Tensor r = rows.contiguous(), c = columns.contiguous();
  Steps steps;
  for (int64_t k = 0, i = 0; k < nnz; ++k)
    for (int64_t y = 0; y < b0; ++y)
      for (int64_t x = 0; x < b1; ++x, ++i, steps.add(2)) {
        index_data[i] = r.data_ptr<int64_t>()[k] * b0 + y;
        index_data[shape[0] + i] = c.data_ptr<int64_t>()[k] * b1 + x;
      }
  return coalesced(make_coo(indices, s.values.reshape(shape), size, false));
}
} // namespace

Tensor to_coo(const Tensor& self) {
  if (self.layout() == Layout::Sparse) return self;
  const SparseTensorImpl& s = compressed(self, "to_sparse");
  if (batch_dims(s) > 0) return batch_to_coo(self, s);
  const bool rows = by_rows(self.layout());
  const Tensor major = starts_to_rows(s.indices, s.nnz()), minor = s.plain.to(kLong);
  if (is_block(self.layout()))
    return blocks_to_coo(s, rows ? major : minor, rows ? minor : major, self.sizes());
  if (rows) return make_coo(stacked(major, minor), s.values, self.sizes(), true);
  return coalesced(make_coo(stacked(minor, major), s.values, self.sizes(), false));
}

namespace {
Tensor coo_to_compressed(const Tensor& self, Layout layout) {
  const Tensor sorted = coalesced(self);
  const SparseTensorImpl* s = &coo(sorted, "to_sparse");
  const int64_t major_dim = by_rows(layout) ? 0 : 1;
  Tensor major = s->indices.select(0, major_dim), minor = s->indices.select(0, 1 - major_dim);
  Tensor values = s->values;
  if (major_dim == 1) {
    const Tensor order = std::get<1>(at::sort(major, std::optional<bool>(true), 0, false));
    major = at::index_select(major, 0, order);
    minor = at::index_select(minor, 0, order);
    values = at::index_select(values, 0, order);
  }
  return make_compressed(layout, counts_to_starts(major, self.size(major_dim)), minor.contiguous(),
                         values, self.sizes());
}

// Which tiles of a grid hold an element, by their numbers along the layout, and where each element
// stands among the elements of these tiles.
struct Tiles {
  Tensor first, place;
};
Tiles tiles_of(const Tensor& indices, IntArrayRef size, const int64_t* grid, IntArrayRef blocksize,
               bool rows) {
  const int64_t nnz = indices.size(1), b0 = blocksize[0], b1 = blocksize[1];
  const Tensor held = indices.contiguous();
  const int64_t* index_data = nnz > 0 ? held.data_ptr<int64_t>() : nullptr;
  Tensor tile = detail::empty({nnz}, kLong), inside = detail::empty({nnz}, kLong);
  Steps steps;
  for (int64_t i = 0; i < nnz; ++i, steps.add(32)) {
    const int64_t y = index_data[i], x = index_data[nnz + i];
    TORCH_CHECK_INDEX(y >= 0 && y < size[0] && x >= 0 && x < size[1],
                      "index out of range in a sparse tensor");
    tile.data_ptr<int64_t>()[i] = rows ? y / b0 * grid[1] + x / b1 : x / b1 * grid[0] + y / b0;
    inside.data_ptr<int64_t>()[i] = y % b0 * b1 + x % b1;
  }
  const auto [keys, order] = at::sort(tile, std::optional<bool>(true), 0, false);
  Tensor place = detail::empty({nnz}, kLong), first = detail::empty({nnz}, kLong);
  int64_t tiles = 0;
  for (int64_t i = 0; i < nnz; ++i, steps.add(8)) {
    const int64_t key = keys.data_ptr<int64_t>()[i], from = order.data_ptr<int64_t>()[i];
    if (i == 0 || key != keys.data_ptr<int64_t>()[i - 1]) first.data_ptr<int64_t>()[tiles++] = key;
    place.data_ptr<int64_t>()[from] = (tiles - 1) * b0 * b1 + inside.data_ptr<int64_t>()[from];
  }
  return {first.narrow(0, 0, tiles), place};
}
Tiles tiles_on_device(const Tensor& indices, const int64_t* grid, IntArrayRef blocksize,
                      bool rows) {
  const Tensor y = indices.select(0, 0), x = indices.select(0, 1);
  const Scalar b0(blocksize[0]), b1(blocksize[1]);
  const Tensor down = at::floor_divide(y, b0), across = at::floor_divide(x, b1);
  const Tensor tile = rows ? at::add(at::mul(down, Scalar(grid[1])), across)
                           : at::add(at::mul(across, Scalar(grid[0])), down);
  const Tensor inside = at::add(at::mul(at::remainder(y, b0), b1), at::remainder(x, b1));
  const on_device::Distinct found = on_device::distinct_keys(tile);
  const Scalar elements(blocksize[0] * blocksize[1]);
  return {found.keys, at::add(at::mul(found.number, elements), inside)};
}

// The blocks of a COO matrix that hold an element, each as a dense tile.
Tensor coo_to_blocks(const Tensor& self, Layout layout, IntArrayRef blocksize) {
  TORCH_CHECK(blocksize.size() == 2 && blocksize[0] > 0 && blocksize[1] > 0,
              "blocksize needs to be a tuple of two positive numbers, but got ", blocksize);
  TORCH_CHECK(self.size(0) % blocksize[0] == 0 && self.size(1) % blocksize[1] == 0,
              "tensor sparse size (", self.size(0), ",", self.size(1),
              ") must be divisible by given blocksize (", blocksize[0], ",", blocksize[1], ")");
  const Tensor sorted = coalesced(self);
  const SparseTensorImpl& s = coo(sorted, "to_sparse");
  const int64_t b0 = blocksize[0], b1 = blocksize[1];
  const int64_t grid[] = {self.size(0) / b0, self.size(1) / b1};
  const bool rows = by_rows(layout);
  const Tiles found = on_device::applies_to(s.indices)
                          ? tiles_on_device(s.indices, grid, blocksize, rows)
                          : tiles_of(s.indices, self.sizes(), grid, blocksize, rows);
  const int64_t tiles = found.first.numel();
  DimVector shape{tiles, b0, b1};
  for (int64_t d = 2; d < self.dim(); ++d) shape.push_back(self.size(d));
  const Tensor values = summed_rows(s.values, found.place, tiles * b0 * b1).view(shape);
  const int64_t extents[] = {grid[rows ? 0 : 1], grid[rows ? 1 : 0]};
  const Tensor pairs = unflatten_indices(found.first, IntArrayRef(extents, 2));
  return make_compressed(layout, counts_to_starts(pairs.select(0, 0), extents[0]),
                         pairs.select(0, 1).contiguous(), values, self.sizes());
}
} // namespace

namespace {
const char* lower(Layout layout) {
  return layout == Layout::SparseCsr   ? "csr"
         : layout == Layout::SparseCsc ? "csc"
         : layout == Layout::SparseBsr ? "bsr"
                                       : "bsc";
}
// A strided or compressed tensor with more than two dimensions before the dense ones.
Tensor batch_to_layout(const Tensor& self, Layout layout, OptionalIntArrayRef blocksize,
                       int64_t dense) {
  const size_t batch = static_cast<size_t>(self.dim() - dense - 2);
  const IntArrayRef outer = self.sizes().slice(0, batch);
  TORCH_CHECK(c10::checked_numel(outer) > 0, "to_sparse_", lower(layout),
              ": Expected product of batch dimensions to be non-zero.");
  std::vector<Tensor> matrices;
  if (self.layout() != kStrided) {
    matrices = matrices_of(self);
  } else {
    DimVector shape{-1};
    for (int64_t extent : self.sizes().slice(batch)) shape.push_back(extent);
    shape[0] = c10::checked_numel(outer);
    matrices = at::unbind(self.reshape(shape), 0);
  }
  for (Tensor& matrix : matrices) matrix = to_layout(matrix, layout, blocksize, dense);
  return batch_of(matrices, outer);
}
// Blocks stay as large as they are between the two layouts that have them.
IntArrayRef kept_blocksize(const Tensor& self, Layout layout, OptionalIntArrayRef wanted) {
  const SparseTensorImpl& s = any_sparse(self, "to_sparse");
  const IntArrayRef held = s.values.sizes().slice(static_cast<size_t>(batch_dims(s)) + 1, 2);
  TORCH_CHECK(!wanted || held == *wanted, "sparse_compressed_to_sparse: conversion from ",
              spelled(self.layout()), " to ", spelled(layout), " with blocksize changed from ",
              held, " to ", wanted.value_or(held), " is not supported");
  return held;
}
// With the indices of a compressed tensor in the dtype of another's.
Tensor indexed_like(const Tensor& made, const Tensor& from) {
  const ScalarType type = compressed(from, "to_sparse").indices.scalar_type();
  const SparseTensorImpl& s = compressed(made, "to_sparse");
  if (s.indices.scalar_type() == type) return made;
  return make_compressed(made.layout(), s.indices.to(type), s.plain.to(type), s.values,
                         made.sizes());
}
} // namespace

Tensor to_layout(const Tensor& self, Layout layout, OptionalIntArrayRef blocksize,
                 std::optional<int64_t> dense_dim) {
  TORCH_CHECK(!blocksize || is_block(layout), "to_sparse for ", spelled(self.layout()), " to ",
              spelled(layout), " conversion does not use specified blocksize");
  if (layout == kStrided) return self.layout() == kStrided ? self : to_dense(self);
  const bool strided = self.layout() == kStrided, packed = is_compressed(self.layout());
  const int64_t held = strided ? 0 : any_sparse(self, "to_sparse").dense_dim;
  const int64_t dense = dense_dim.value_or(held);
  TORCH_CHECK(dense >= 0 && dense <= self.dim(), "dense_dim must be in [0, ", self.dim(), "], but ",
              dense, " is given");
  TORCH_CHECK(strided || dense == held,
              "to_sparse: the number of dense dimensions of a sparse tensor stays ", held,
              ", but dense_dim=", dense, " is given");
  if (is_block(layout) && is_block(self.layout()))
    blocksize = kept_blocksize(self, layout, blocksize);
  if (self.layout() == layout) return self;
  TORCH_CHECK(is_sparse_layout(layout), "to_sparse does not support layout ", layout);
  TORCH_CHECK(layout == Layout::Sparse || self.dim() - dense >= 2, "to_sparse: a tensor of layout ",
              layout, " needs two sparse dimensions, but a tensor of ", self.dim(),
              " dimensions with ", dense, " dense is given");
  if (layout == Layout::Sparse)
    return strided ? dense_to_coo(self, self.dim() - dense) : to_coo(self);
  TORCH_CHECK(!is_block(layout) || blocksize, "to_sparse for ", layout,
              " layout requires the blocksize argument");
  TORCH_CHECK(strided || packed || coo(self, "to_sparse").sparse_dim == 2, "coo_to_sparse_",
              lower(layout), ": conversion from Sparse to ", spelled(layout),
              " for input tensors with sparse_dim()!=2 is not supported");
  if (self.dim() - dense > 2) return batch_to_layout(self, layout, blocksize, dense);
  const Tensor elements = strided ? dense_to_coo(self, 2) : to_coo(self);
  const Tensor made = is_block(layout) ? coo_to_blocks(elements, layout, *blocksize)
                                       : coo_to_compressed(elements, layout);
  return packed ? indexed_like(made, self) : made;
}

Tensor to_layout_of(const Tensor& made, const Tensor& like) {
  OptionalIntArrayRef tile;
  if (is_block(like.layout())) tile = kept_blocksize(like, like.layout(), std::nullopt);
  return indexed_like(to_layout(made, like.layout(), tile, std::nullopt), like);
}

namespace {
// Where each wanted key stands in a sorted list of distinct ones; `missing` for those it lacks.
Tensor places_or(const Tensor& keys, const Tensor& wanted_keys, int64_t missing) {
  if (on_device::applies_to(keys)) {
    const on_device::Found found = on_device::find_keys(keys, wanted_keys);
    return at::where(found.is_there, found.place, Scalar(missing));
  }
  const int64_t known = keys.numel(), wanted = wanted_keys.numel();
  Tensor place = detail::empty({wanted}, kLong);
  const int64_t* begin = known > 0 ? keys.data_ptr<int64_t>() : nullptr;
  const int64_t* keyed = wanted > 0 ? wanted_keys.data_ptr<int64_t>() : nullptr;
  int64_t* to = wanted > 0 ? place.data_ptr<int64_t>() : nullptr;
  parallel_for(0, wanted, 2048, [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t* hit = std::lower_bound(begin, begin + known, keyed[i]);
      to[i] = hit != begin + known && *hit == keyed[i] ? hit - begin : missing;
    }
  });
  return place;
}
} // namespace

Tensor masked_by(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(self.sizes() == mask.sizes(),
              "sparse_mask(): operands have incompatible sizes; "
              "self has size ",
              self.sizes(), " but mask has size ", mask.sizes());
  if (is_compressed(mask.layout())) {
    const SparseTensorImpl& pattern = compressed(mask, "sparse_mask");
    if (const int64_t batch = batch_dims(pattern); batch > 0) {
      std::vector<Tensor> matrices = matrices_of(mask);
      const std::vector<Tensor> parts =
          is_compressed(self.layout())
              ? matrices_of(self)
              : at::unbind(
                    (self.layout() == kStrided ? self : to_dense(self)).flatten(0, batch - 1), 0);
      for (size_t i = 0; i < matrices.size(); ++i) matrices[i] = masked_by(parts[i], matrices[i]);
      return batch_of(matrices, self.sizes().slice(0, static_cast<size_t>(batch)));
    }
    const Tensor zeros = at::zeros(pattern.values.sizes(), self.options().layout(kStrided));
    return to_layout_of(masked_by(self, to_coo(with_values(mask, zeros))), mask);
  }
  const SparseTensorImpl& m = coo(mask, "sparse_mask");
  const Tensor flat = flat_indices(m.indices, self.sizes());
  DimVector shape{-1};
  const IntArrayRef outer = self.sizes().slice(0, static_cast<size_t>(m.sparse_dim));
  shape[0] = c10::checked_numel(outer);
  for (int64_t d = m.sparse_dim; d < self.dim(); ++d) shape.push_back(self.size(d));
  if (self.layout() == kStrided)
    return make_coo(m.indices, at::index_select(self.reshape(shape), 0, flat), self.sizes(),
                    m.coalesced);
  const Tensor sorted = coalesced(to_coo(self));
  const SparseTensorImpl& s = coo(sorted, "sparse_mask");
  TORCH_CHECK(s.sparse_dim == m.sparse_dim,
              "sparse_mask(): the number of sparse dimensions in `self` should match that of the "
              "`mask`. Got `self.sparse_dim() == ",
              s.sparse_dim, "` != `mask.sparse_dim() == ", m.sparse_dim, "`.");
  const Tensor keys = flat_indices(s.indices, self.sizes());
  const int64_t known = keys.numel();
  // Row `known` of the values below is zero: what elements missing in self have.
  const Tensor place = places_or(keys, flat, known);
  const Tensor padded = summed_rows(s.values, at::arange(known, keys.options()), known + 1);
  return make_coo(m.indices, at::index_select(padded, 0, place), self.sizes(), m.coalesced);
}

} // namespace at::sparse
