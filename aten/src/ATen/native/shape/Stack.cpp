// The relatives of cat: stacking along a new dimension, NumPy's names, and the padded form that
// sharded training uses. All of them end in cat.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>

#include <algorithm>

#include <ATen/ops/_stack.h>
#include <ATen/ops/atleast_1d.h>
#include <ATen/ops/atleast_2d.h>
#include <ATen/ops/atleast_3d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/hstack.h>
#include <ATen/ops/vstack.h>

namespace at::native {
namespace {

using Tensors = std::vector<Tensor>;

void check_not_empty(TensorList tensors, const char* name) {
  TORCH_CHECK(!tensors.empty(), name, " expects a non-empty TensorList");
}

Tensor columns_of(TensorList tensors, int64_t d) {
  Tensors columns;
  columns.reserve(tensors.size());
  for (const Tensor& t : tensors) columns.push_back(t.unsqueeze(d));
  return at::cat(columns, d);
}

// Sizes that may vary: they are the same where nothing says otherwise.
Tensor stack_symbolic(TensorList tensors, int64_t d) {
  const SymIntArrayRef sizes = tensors[0].sym_sizes();
  for (size_t i = 1; i < tensors.size(); ++i) {
    const SymIntArrayRef others = tensors[i].sym_sizes();
    bool same = others.size() == sizes.size();
    for (size_t k = 0; same && k < sizes.size(); ++k)
      same = c10::expect_true(c10::sym_eq(others[k], sizes[k]));
    TORCH_CHECK(same, "stack expects each tensor to be equal size, but got ", sizes,
                " at entry 0 and ", others, " at entry ", i);
  }
  return columns_of(tensors, d);
}

} // namespace

Tensor concat(TensorList tensors, int64_t dim) { return at::cat(tensors, dim); }
Tensor concatenate(TensorList tensors, int64_t dim) { return at::cat(tensors, dim); }

Tensor stack(TensorList tensors, int64_t dim) {
  check_not_empty(tensors, "stack");
  const Tensor& first = tensors[0];
  const int64_t ndim = first.dim();
  const int64_t d = wrap_dim(dim, ndim + 1);
  if (any_symbolic(tensors)) return stack_symbolic(tensors, d);
  for (size_t i = 1; i < tensors.size(); ++i) {
    TORCH_CHECK(tensors[i].sizes() == first.sizes(),
                "stack expects each tensor to be equal size, but got ", first.sizes(),
                " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
  }
  if (d == ndim || first.numel() == 0) return columns_of(tensors, d);
  // Joined along the dimension itself and then spread: no view per tensor is needed.
  DimVector sizes(first.sizes());
  sizes.insert(sizes.begin() + d, static_cast<int64_t>(tensors.size()));
  return native::_unsafe_view(at::cat(tensors, d), sizes);
}

Tensor hstack(TensorList tensors) {
  check_not_empty(tensors, "hstack");
  const Tensors rows = at::atleast_1d(tensors);
  return at::cat(rows, rows[0].dim() == 1 ? 0 : 1);
}
Tensor vstack(TensorList tensors) {
  check_not_empty(tensors, "vstack");
  return at::cat(at::atleast_2d(tensors), 0);
}
Tensor row_stack(TensorList tensors) { return at::vstack(tensors); }
Tensor dstack(TensorList tensors) {
  check_not_empty(tensors, "dstack");
  return at::cat(at::atleast_3d(tensors), 2);
}
Tensor column_stack(TensorList tensors) {
  check_not_empty(tensors, "column_stack");
  Tensors columns;
  columns.reserve(tensors.size());
  for (const Tensor& t : tensors) columns.push_back(t.dim() <= 1 ? t.reshape({t.numel(), 1}) : t);
  return at::hstack(columns);
}

// Each tensor is padded with zeros to a multiple of num_chunks along `dim`, cut into num_chunks
// rows, and the rows of all tensors are joined.
Tensor _chunk_cat(TensorList tensors, int64_t dim, int64_t num_chunks) {
  TORCH_CHECK(!tensors.empty(), "_chunk_cat expects a non-empty input tensor list");
  TORCH_CHECK(num_chunks >= 1, "_chunk_cat expects positive num_chunks");
  const Tensor& first = tensors[0];
  const int64_t d = wrap_dim(dim, first.dim());
  Tensors rows;
  rows.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    TORCH_CHECK(t.numel() > 0, "_chunk_cat expects non-empty tensor");
    TORCH_CHECK(t.dim() > d, "_chunk_cat expects dim < ndim for all input tensors");
    TORCH_CHECK(t.scalar_type() == first.scalar_type(),
                "_chunk_cat expects all input tensors with the same dtype");
    TORCH_CHECK(t.device() == first.device(),
                "_chunk_cat expects all input tensors on the same device");
    for (int64_t i = 0; i < d; ++i) {
      TORCH_CHECK(t.size(i) == first.size(i),
                  "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
    }
    const int64_t size = t.size(d);
    const int64_t padded = ((size - 1) / num_chunks + 1) * num_chunks;
    DimVector pads(static_cast<size_t>(2 * (t.dim() - d)), 0);
    pads.back() = padded - size;
    DimVector shape(t.sizes().slice(0, d));
    shape.push_back(num_chunks);
    shape.push_back(-1);
    rows.push_back((padded == size ? t : at::constant_pad_nd(t, pads, 0)).reshape(shape));
  }
  return at::cat(rows, d + 1);
}

} // namespace at::native
