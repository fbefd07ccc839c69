// What is particular to compressed tensors (CSR, CSC, BSR, BSC): their dimensions are of three
// kinds, batch, sparse and dense, and an operator on sizes means another thing for each. Indices
// and values have the batch dimensions in common, so that whatever concerns a batch dimension is
// done to all three members alike. For the table of Fallback.cpp.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/native/sparse/Kernels.h>
#include <ATen/native/sparse/Native.h>
#include <ATen/ops/select.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Stretches.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/SafeArithmetic.h>

namespace at::sparse {
namespace {
int64_t batch_dims(const SparseTensorImpl& s) { return s.indices.dim() - 1; }

const char* kind_of(const SparseTensorImpl& s, int64_t dim) {
  const int64_t batch = batch_dims(s);
  return dim < batch ? "Batch" : dim < batch + 2 ? "Sparse" : "Dense";
}
Layout flipped(Layout layout) {
  return layout == Layout::SparseCsr   ? Layout::SparseCsc
         : layout == Layout::SparseCsc ? Layout::SparseCsr
         : layout == Layout::SparseBsr ? Layout::SparseBsc
                                       : Layout::SparseBsr;
}
int64_t wrapped(int64_t dim, int64_t rank) {
  TORCH_CHECK_INDEX(dim >= -rank && dim < rank,
                    "Dimension out of range (expected to be in range of [", -rank, ", ", rank - 1,
                    "], but got ", dim, ")");
  return dim < 0 ? dim + rank : dim;
}
IntArrayRef blocksize(const SparseTensorImpl& s) {
  return s.values.sizes().slice(static_cast<size_t>(batch_dims(s)) + 1, 2);
}

// ---- parts
Tensor selected(const Tensor& self, int64_t dim, int64_t given) {
  const SparseTensorImpl& s = compressed(self, "select");
  dim = wrapped(dim, self.dim());
  TORCH_CHECK_INDEX(given >= -self.size(dim) && given < self.size(dim), "select(): index ", given,
                    " out of range for tensor of size ", self.sizes(), " at dimension ", dim);
  const int64_t index = given < 0 ? given + self.size(dim) : given, batch = batch_dims(s);
  DimVector size(self.sizes());
  size.erase(size.begin() + dim);
  if (dim < batch)
    return make_compressed(self.layout(), s.indices.select(dim, index), s.plain.select(dim, index),
                           s.values.select(dim, index), size);
  if (dim >= batch + 2) {
    const int64_t inner = dim - 1 + (is_block(self.layout()) ? 2 : 0);
    return make_compressed(self.layout(), s.indices, s.plain, s.values.select(inner, index), size);
  }
  TORCH_CHECK(batch == 0,
              "select(): selecting sparse dimensions is not supported for batched sparse "
              "compressed tensors.");
  return at::select(to_coo(self), dim, index);
}
void select_handler(const OperatorEntry&, Stack& s) {
  answer(s, selected(s[0].toTensor(), s[1].toInt(), s[2].toInt()));
}

// ---- copies
Tensor empty_like(const Tensor& self, ScalarType type) {
  const SparseTensorImpl& s = compressed(self, "empty_like");
  return make_compressed(self.layout(), s.indices.clone(), s.plain.clone(),
                         detail::empty(s.values.sizes(), type, self.device()), self.sizes());
}
void empty_like_handler(const OperatorEntry&, Stack& s) {
  const Tensor self = s[0].toTensor();
  const Layout layout = s[2].isNone() ? self.layout() : s[2].toLayout();
  TORCH_CHECK(layout == self.layout(),
              "empty_like with different sparse layout is not supported (self is ",
              spelled(self.layout()), " but you requested ", spelled(layout), ")");
  TORCH_CHECK_NOT_IMPLEMENTED(s[3].isNone() || s[3].toDevice() == self.device(),
                              "empty_like of a sparse tensor is only implemented on its device, ",
                              self.device());
  answer(s, empty_like(self, s[1].isNone() ? self.scalar_type() : s[1].toScalarType()));
}

// ones_like, full_like and randn_like: of the elements that are there.
void like_handler(const OperatorEntry& op, Stack& s) {
  const Tensor self = s[0].toTensor();
  const auto& arguments = op.schema().arguments;
  for (size_t i = 0; i < s.size(); ++i) {
    if (arguments[i].name != "layout" || s[i].isNone()) continue;
    TORCH_CHECK(s[i].toLayout() == self.layout(), op.name + 6,
                " with different sparse layout is not supported (self is ", spelled(self.layout()),
                " but you requested ", spelled(s[i].toLayout()), ")");
    s[i] = IValue();
  }
  s[0] = compressed(self, op.name).values;
  op.call_boxed(s);
  answer(s, with_values(self, s.back().toTensor()));
}

void check_copy(const Tensor& self, const Tensor& from) {
  TORCH_CHECK(is_compressed(self.layout()),
              "copy_sparse_compressed_ expected sparse compressed tensor layout but got ",
              spelled(self.layout()));
  TORCH_CHECK(self.layout() == from.layout(),
              "torch.copy_: copy of sparse compressed tensors having different layouts is not "
              "supported. self layout is ",
              spelled(self.layout()), " and src layout is ", spelled(from.layout()));
  const SparseTensorImpl& to = compressed(self, "copy_");
  const SparseTensorImpl& s = compressed(from, "copy_");
  TORCH_CHECK(to.nnz() == s.nnz(),
              "torch.copy_: only sparse compressed tensors with the same number of specified "
              "elements are supported.");
  TORCH_CHECK(self.dim() == from.dim(), "torch.copy_: expected self and src to have ", self.dim(),
              " dimensions, but src has ", from.dim());
  const int64_t batch = batch_dims(to);
  const int64_t lead = batch + (by_rows(self.layout()) ? 0 : 1);
  TORCH_CHECK(self.size(lead) == from.size(lead),
              "torch.copy_: expected shapes of self and src to match along dimension ", lead,
              " for ", spelled(self.layout()),
              " layout but the corresponding dimensions of self "
              "and src are ",
              self.size(lead), " and ", from.size(lead), ", respectively.");
  if (is_block(self.layout()))
    TORCH_CHECK(blocksize(to) == blocksize(s),
                "torch.copy_: copy of sparse compressed tensors having different block sizes is "
                "not supported. self and src block sizes are ",
                blocksize(to), " and ", blocksize(s), ", respectively.");
  TORCH_CHECK(self.sizes() == from.sizes(), "torch.copy_: expected self and src to have the same ",
              "size, but got ", self.sizes(), " and ", from.sizes());
}
void copy_handler(const OperatorEntry&, Stack& stack) {
  const Tensor self = stack[0].toTensor(), from = stack[1].toTensor();
  check_copy(self, from);
  if (!self.is_same(from)) {
    const SparseTensorImpl& to = compressed(self, "copy_");
    const SparseTensorImpl& s = compressed(from, "copy_");
    const ScalarType type = to.indices.scalar_type();
    const Device device = self.device();
    become(self, make_compressed(self.layout(), moved_to(s.indices, device, type, false, true),
                                 moved_to(s.plain, device, type, false, true),
                                 moved_to(s.values, device, self.scalar_type(), false, true),
                                 from.sizes()));
  }
  answer(stack, self);
}

// ---- sizes
// One matrix in another size. Rows and elements that no longer have room go; new rows are empty.
Tensor resized_matrix(const Tensor& matrix, IntArrayRef size) {
  const SparseTensorImpl& s = compressed(matrix, "resize_");
  const bool rows = by_rows(matrix.layout()), block = is_block(matrix.layout());
  const int64_t tile[] = {block ? s.values.size(1) : 1, block ? s.values.size(2) : 1};
  const int64_t major = rows ? 0 : 1;
  const int64_t extent = size[static_cast<size_t>(major)] / tile[major];
  int64_t room = 0;
  TORCH_CHECK(
      !c10::mul_overflows(extent, size[static_cast<size_t>(1 - major)] / tile[1 - major], &room),
      "torch.resize_: size ", size, " is too large");
  const int64_t nnz = std::min(s.nnz(), room);
  const Tensor held = moved_to(s.indices, kCPU, kLong).contiguous();
  Tensor starts = at::zeros({extent + 1}, TensorOptions(kLong));
  int64_t* start = starts.data_ptr<int64_t>();
  for (int64_t i = 0; i <= extent; ++i) {
    const int64_t last = held.data_ptr<int64_t>()[std::min(i, held.numel() - 1)];
    start[i] = i == extent ? nnz : std::clamp<int64_t>(last, 0, nnz);
  }
  return make_compressed(matrix.layout(),
                         moved_to(starts, s.indices.device(), s.indices.scalar_type()),
                         s.plain.narrow(0, 0, nnz), s.values.narrow(0, 0, nnz), size);
}
void resize_handler(const OperatorEntry&, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  const std::vector<int64_t> size = stack[1].toIntList();
  const SparseTensorImpl& s = compressed(self, "resize_");
  TORCH_CHECK(size.size() >= 2 + static_cast<size_t>(s.dense_dim),
              "torch.resize_: Only batched sparse CSR matrices are supported, but got size ",
              IntArrayRef(size));
  for (int64_t v : size)
    TORCH_CHECK(v >= 0, "Trying to create tensor with negative dimension ", v, ": ",
                IntArrayRef(size));
  const size_t batch = size.size() - 2 - static_cast<size_t>(s.dense_dim);
  const IntArrayRef outer = IntArrayRef(size).slice(0, batch);
  const IntArrayRef inner = IntArrayRef(size).slice(batch);
  const bool rows = by_rows(self.layout());
  const int64_t held = self.size(batch_dims(s) + (rows ? 1 : 0)), asked = inner[rows ? 1 : 0];
  TORCH_CHECK(asked >= held, "torch.resize_: Resizing ", rows ? "columns" : "rows",
              " of sparse CSR tensors to a smaller value is not supported. The original number of ",
              rows ? "columns" : "rows", " is ", held, " while the requested new number of ",
              rows ? "columns" : "rows", " is ", asked, ".");
  std::vector<Tensor> matrices = matrices_of(self);
  const int64_t count = c10::checked_numel(outer);
  TORCH_CHECK_NOT_IMPLEMENTED(count > 0 && count <= static_cast<int64_t>(matrices.size()),
                              "resize_ of a tensor of layout ", self.layout(), " and dtype ",
                              self.scalar_type(), " from ", matrices.size(), " matrices to ", count,
                              " is not implemented");
  matrices.resize(static_cast<size_t>(count));
  for (Tensor& matrix : matrices) matrix = resized_matrix(matrix, inner);
  become(self, batch_of(matrices, outer));
  answer(stack, self);
}
} // namespace

Tensor transposed_compressed(const Tensor& self, int64_t a, int64_t b) {
  const SparseTensorImpl& s = compressed(self, "transpose");
  TORCH_CHECK(s.dense_dim == 0,
              "transpose(): hybrid sparse compressed tensors with dense dimensions are not "
              "supported");
  if (a == b) return as_view(Tensor(s.shallow_copy()), self);
  const std::string_view kind = kind_of(s, a);
  TORCH_CHECK(kind == kind_of(s, b),
              "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), "
              "got ",
              a, "(", kind, ") and ", b, "(", kind_of(s, b), ")");
  DimVector size(self.sizes());
  std::swap(size[static_cast<size_t>(a)], size[static_cast<size_t>(b)]);
  if (kind == "Batch")
    return as_view(make_compressed(self.layout(), s.indices.transpose(a, b),
                                   s.plain.transpose(a, b), s.values.transpose(a, b), size),
                   self);
  const int64_t tile = batch_dims(s) + 1;
  const Tensor values = is_block(self.layout()) ? s.values.transpose(tile, tile + 1) : s.values;
  return as_view(make_compressed(flipped(self.layout()), s.indices, s.plain, values, size), self);
}

void resize_as_compressed(const Tensor& self, const Tensor& the_template) {
  compressed(self, "resize_as_sparse_compressed_: self ");
  compressed(the_template, "resize_as_sparse_compressed_: src ");
  TORCH_CHECK(self.layout() == the_template.layout(),
              "resize_as_sparse_compressed_tensor_: self and src must have the same layout, but "
              "got: self (",
              spelled(self.layout()), ") and source (", spelled(the_template.layout()), ")");
  const SparseTensorImpl& to = compressed(self, "resize_as_sparse_");
  const SparseTensorImpl& s = compressed(the_template, "resize_as_sparse_");
  if (self.sizes() == the_template.sizes() && to.values.sizes() == s.values.sizes()) return;
  // The values have no meaning in the new size; the template's pattern is one that holds in it.
  const ScalarType type = to.indices.scalar_type();
  const Tensor values = at::zeros(s.values.sizes(), s.values.options().dtype(self.scalar_type()));
  become(self, make_compressed(self.layout(), s.indices.to(type, false, true),
                               s.plain.to(type, false, true), values, the_template.sizes()));
}

void add_compressed_kernels(Handlers& csr) {
  csr.insert({{"select.int", select_handler},
              {"empty_like", empty_like_handler},
              {"ones_like", like_handler},
              {"full_like", like_handler},
              {"randn_like", like_handler},
              {"copy_", copy_handler},
              {"resize_", resize_handler}});
}

} // namespace at::sparse

namespace at::native {
Tensor sparse_compressed_tensor_with_dims(int64_t nnz, int64_t dense_dim, IntArrayRef size,
                                          IntArrayRef blocksize, ScalarType index_dtype,
                                          std::optional<ScalarType> dtype,
                                          std::optional<Layout> layout,
                                          std::optional<Device> device, std::optional<bool>) {
  TORCH_CHECK(layout && sparse::is_compressed(*layout),
              "_sparse_compressed_tensor_with_dims expected sparse compressed tensor layout but "
              "got ",
              layout ? sparse::spelled(*layout) : "none");
  TORCH_CHECK(index_dtype == kInt || index_dtype == kLong,
              "indices dtype must be Int or Long, but got ", index_dtype);
  const bool block = sparse::is_block(*layout), rows = sparse::by_rows(*layout);
  const int64_t batch = static_cast<int64_t>(size.size()) - 2 - dense_dim;
  TORCH_CHECK(dense_dim >= 0 && batch >= 0, "tensor dimensionality must be at least 2 + ",
              dense_dim, ", but got ", size.size());
  TORCH_CHECK(blocksize.size() == (block ? 2u : 0u), "blocksize must have ", block ? 2 : 0,
              " elements for layout ", sparse::spelled(*layout), ", but got ", blocksize.size());
  TORCH_CHECK(nnz >= 0, "nnz must be non-negative, but got ", nnz);
  for (int64_t v : size)
    TORCH_CHECK(v >= 0, "Trying to create tensor with negative dimension ", v, ": ", size);
  for (int64_t v : blocksize) TORCH_CHECK(v > 0, "block sizes must be positive, but got ", v);
  const size_t major = static_cast<size_t>(batch) + (rows ? 0 : 1);
  DimVector starts(size.slice(0, static_cast<size_t>(batch))), others = starts, values;
  others.push_back(nnz);
  values = others;
  starts.push_back(size[major] / (block ? blocksize[rows ? 0 : 1] : 1) + 1);
  for (int64_t v : blocksize) values.push_back(v);
  for (int64_t v : size.slice(static_cast<size_t>(batch) + 2)) values.push_back(v);
  const Device place = device.value_or(Device(kCPU));
  const TensorOptions indexed = TensorOptions(index_dtype).device(place);
  return sparse::make_compressed(
      *layout, at::zeros(starts, indexed), at::zeros(others, indexed),
      detail::empty(values, dtype.value_or(c10::get_default_dtype()), place), size);
}

void _validate_compressed_sparse_indices(bool is_crow, const Tensor& compressed_idx,
                                         const Tensor& plain_idx, int64_t cdim, int64_t dim,
                                         int64_t nnz) {
  TORCH_CHECK(plain_idx.dim() >= 1 && plain_idx.size(-1) == nnz,
              "_validate_compressed_sparse_indices: expected ", nnz, " plain indices, but got ",
              plain_idx.sizes());
  DimVector size(plain_idx.sizes().slice(0, static_cast<size_t>(plain_idx.dim()) - 1));
  size.push_back(is_crow ? cdim : dim);
  size.push_back(is_crow ? dim : cdim);
  const Tensor values = at::zeros(plain_idx.sizes(), plain_idx.options().dtype(kByte));
  sparse::check_compressed(compressed_idx, plain_idx, values, size,
                           is_crow ? Layout::SparseCsr : Layout::SparseCsc);
}

} // namespace at::native
