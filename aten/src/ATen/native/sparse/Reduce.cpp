// Sums, softmax and products as operators of their own (torch.sparse.sum, softmax, mm ...), with
// the gradients that keep the pattern of their input.
#include <algorithm>
#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/sparse/DeviceIndex.h>
#include <ATen/native/sparse/DeviceProduct.h>
#include <ATen/native/sparse/Native.h>
#include <ATen/native/sparse/SparseTensor.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/_sparse_addmm.h>
#include <ATen/ops/_sparse_log_softmax.h>
#include <ATen/ops/_sparse_mm.h>
#include <ATen/ops/_sparse_softmax.h>
#include <ATen/ops/_sparse_sparse_matmul.h>
#include <ATen/ops/_sparse_sum.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/coalesce.h>
#include <ATen/ops/div.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_reduce.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sspaddmm.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/t.h>
#include <ATen/ops/values.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Stretches.h>

namespace at::native {
namespace {
using sparse::SparseTensorImpl;

// Which dimensions are reduced, each once and counted from the front.
std::vector<bool> reduced_dims(const Tensor& self, IntArrayRef dim) {
  std::vector<bool> reduced(static_cast<size_t>(self.dim()), dim.empty());
  for (int64_t d : dim) {
    TORCH_CHECK_INDEX(d >= -self.dim() && d < self.dim(),
                      "Dimension out of range (expected to be in range of [", -self.dim(), ", ",
                      self.dim() - 1, "], but got ", d, ")");
    const size_t wrapped = static_cast<size_t>(d < 0 ? d + self.dim() : d);
    TORCH_CHECK(!reduced[wrapped], "dim ", wrapped, " appears multiple times in the list of dims");
    reduced[wrapped] = true;
  }
  return reduced;
}

// Rows of `indices` that stay, in order.
Tensor kept_rows(const Tensor& indices, const std::vector<bool>& reduced) {
  DimVector rows;
  for (int64_t d = 0; d < indices.size(0); ++d)
    if (!reduced[static_cast<size_t>(d)]) rows.push_back(d);
  return at::index_select(indices, 0, sparse::on_device::list_of(rows, indices.device()));
}
} // namespace

Tensor sparse_sum(const Tensor& self) {
  return at::sum(at::_ops::values::call(at::_ops::coalesce::call(self)));
}
Tensor sparse_sum_dtype(const Tensor& self, ScalarType dtype) {
  return at::sum(at::_ops::values::call(at::_ops::coalesce::call(self)), dtype);
}
Tensor sparse_sum_dim_dtype(const Tensor& self, IntArrayRef dim, ScalarType dtype) {
  return at::_sparse_sum(self.to(dtype), dim);
}

Tensor sparse_sum_dim(const Tensor& self, IntArrayRef dim) {
  const SparseTensorImpl& s = sparse::coo(self, "_sparse_sum");
  const std::vector<bool> reduced = reduced_dims(self, dim);
  DimVector size, inner;
  bool sparse_left = false, all_sparse = true;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!reduced[static_cast<size_t>(d)]) {
      size.push_back(self.size(d));
      sparse_left |= d < s.sparse_dim;
    } else if (d >= s.sparse_dim) {
      inner.push_back(d - s.sparse_dim + 1);
    }
    all_sparse &= d >= s.sparse_dim || reduced[static_cast<size_t>(d)];
  }
  if (all_sparse) inner.insert(inner.begin(), 0);
  const Tensor values =
      inner.empty() ? s.values : at::sum(s.values, OptionalIntArrayRef(IntArrayRef(inner)));
  if (!sparse_left) return values;
  const Tensor typed =
      values.scalar_type() == self.scalar_type() ? values : values.to(values.scalar_type());
  return sparse::coalesced(sparse::make_coo(kept_rows(s.indices, reduced), typed, size, false));
}

// Every element of self gets the gradient of the sum it went into.
Tensor sparse_sum_backward(const Tensor& grad, const Tensor& self, IntArrayRef dim) {
  const SparseTensorImpl& s = sparse::coo(self, "_sparse_sum_backward");
  const std::vector<bool> reduced = reduced_dims(self, dim);
  DimVector with_ones;
  int64_t kept = 0, d = 0;
  for (; d < s.sparse_dim; ++d) kept += !reduced[static_cast<size_t>(d)];
  with_ones.push_back(kept > 0 ? s.nnz() : 1);
  for (; d < self.dim(); ++d)
    with_ones.push_back(reduced[static_cast<size_t>(d)] ? 1 : self.size(d));
  Tensor rows;
  if (kept > 0) {
    const Tensor indices = kept_rows(s.indices, reduced);
    const Tensor pattern = sparse::empty_coo(grad.sizes(), kept, grad.scalar_type(),
                                             grad.device()); // gives the shape of values
    DimVector shape(sparse::coo(pattern, "_sparse_sum_backward").values.sizes());
    shape[0] = s.nnz();
    const Tensor none = at::zeros(shape, grad.options().layout(kStrided));
    const Tensor wanted = sparse::make_coo(indices, none, grad.sizes(), false);
    rows = sparse::coo(sparse::masked_by(grad, wanted), "_sparse_sum_backward").values;
  } else {
    rows = grad.layout() == kStrided ? grad : sparse::to_dense(grad);
  }
  return sparse::with_values(self, rows.reshape(with_ones).expand(s.values.sizes()).contiguous());
}

// ---- softmax
namespace {
// Elements that share all sparse coordinates but `dim` have one number, counted from 0.
struct Groups {
  Groups(const SparseTensorImpl& s, IntArrayRef size, int64_t dim) {
    std::vector<bool> drop(size.size(), false);
    drop[static_cast<size_t>(dim)] = true;
    DimVector rest;
    for (int64_t d = 0; d < s.sparse_dim; ++d)
      if (d != dim) rest.push_back(size[static_cast<size_t>(d)]);
    const Tensor flat = sparse::flat_indices(kept_rows(s.indices, drop), rest);
    if (sparse::on_device::applies_to(flat)) {
      const sparse::on_device::Distinct found = sparse::on_device::distinct_keys(flat);
      number = found.number;
      count = found.keys.numel();
      return;
    }
    const auto [keys, order] = at::sort(flat, std::optional<bool>(true), 0, false);
    number = detail::empty({flat.numel()}, kLong);
    Steps steps;
    for (int64_t i = 0; i < flat.numel(); ++i, steps.add(8)) {
      if (i == 0 || keys.data_ptr<int64_t>()[i] != keys.data_ptr<int64_t>()[i - 1]) ++count;
      number.data_ptr<int64_t>()[order.data_ptr<int64_t>()[i]] = count - 1;
    }
  }
  Tensor sums(const Tensor& values) const {
    DimVector shape(values.sizes());
    shape[0] = count;
    return at::index_add(at::zeros(shape, values.options()), 0, number, values);
  }
  Tensor spread(const Tensor& per_group) const { return at::index_select(per_group, 0, number); }
  Tensor number;
  int64_t count = 0;
};

int64_t wrapped(const Tensor& self, int64_t dim) {
  TORCH_CHECK_INDEX(dim >= -self.dim() && dim < self.dim(),
                    "Dimension out of range (expected to be in range of [", -self.dim(), ", ",
                    self.dim() - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + self.dim() : dim;
}

Tensor softmax_of(const Tensor& given, int64_t dim, bool half_to_float, bool log) {
  dim = wrapped(given, dim);
  TORCH_CHECK(!half_to_float, "softmax with half to float conversion is not supported on CPU");
  const Tensor self = sparse::coalesced(given);
  const SparseTensorImpl& s = sparse::coo(self, "_sparse_softmax");
  if (s.nnz() == 0) return sparse::with_values(self, s.values.clone());
  if (dim >= s.sparse_dim) {
    const int64_t inner = dim - s.sparse_dim + 1;
    return sparse::with_values(self, log ? at::log_softmax(s.values, inner)
                                         : at::softmax(s.values, inner));
  }
  const Groups groups(s, self.sizes(), dim);
  DimVector shape(s.values.sizes());
  shape[0] = groups.count;
  const Tensor lowest =
      at::full(shape, Scalar(-std::numeric_limits<double>::infinity()), s.values.options());
  const Tensor most = at::index_reduce(lowest, 0, groups.number, s.values, "amax", true);
  const Tensor shifted = at::sub(s.values, groups.spread(most));
  const Tensor powers = at::exp(shifted);
  const Tensor sums = groups.sums(powers);
  return sparse::with_values(self, log ? at::sub(shifted, groups.spread(at::log(sums)))
                                       : at::div(powers, groups.spread(sums)));
}

Tensor softmax_grad(const Tensor& grad, const Tensor& output, int64_t dim, const Tensor& self,
                    bool log) {
  dim = wrapped(self, dim);
  const SparseTensorImpl& out = sparse::coo(output, "_sparse_softmax_backward_data");
  const Tensor given = sparse::coo(sparse::masked_by(grad, output), "softmax").values;
  if (dim >= out.sparse_dim) {
    const int64_t inner = dim - out.sparse_dim + 1;
    return sparse::with_values(
        output, log ? at::_log_softmax_backward_data(given, out.values, inner, given.scalar_type())
                    : at::_softmax_backward_data(given, out.values, inner, given.scalar_type()));
  }
  const Groups groups(out, output.sizes(), dim);
  if (log) {
    const Tensor part = at::mul(at::exp(out.values), groups.spread(groups.sums(given)));
    return sparse::with_values(output, at::sub(given, part));
  }
  const Tensor dots = groups.spread(groups.sums(at::mul(given, out.values)));
  return sparse::with_values(output, at::mul(out.values, at::sub(given, dots)));
}
} // namespace

Tensor sparse_softmax(const Tensor& self, int64_t dim, bool half_to_float) {
  return softmax_of(self, dim, half_to_float, false);
}
Tensor sparse_log_softmax(const Tensor& self, int64_t dim, bool half_to_float) {
  return softmax_of(self, dim, half_to_float, true);
}
Tensor sparse_softmax_int(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return at::_sparse_softmax(dtype ? self.to(*dtype) : self, dim, false);
}
Tensor sparse_log_softmax_int(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return at::_sparse_log_softmax(dtype ? self.to(*dtype) : self, dim, false);
}
Tensor sparse_softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim,
                               const Tensor& self) {
  return softmax_grad(grad_output, output, dim, self, false);
}
Tensor sparse_log_softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim,
                                   const Tensor& self) {
  return softmax_grad(grad_output, output, dim, self, true);
}

// ---- products
Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense) {
  const bool first = sparse::is_sparse_layout(sparse.layout());
  if (first && sparse::is_sparse_layout(dense.layout()))
    return at::_sparse_sparse_matmul(sparse, dense);
  TORCH_CHECK(sparse.dim() == 2 && dense.dim() == 2, "torch.sparse.mm: expected two matrices, got ",
              sparse.dim(), "-D and ", dense.dim(), "-D tensors");
  if (!first && !sparse::is_sparse_layout(dense.layout())) return at::mm(sparse, dense);
  if (!first) return at::mm(sparse, dense);
  const Tensor zero = at::zeros({sparse.size(0), dense.size(1)}, dense.options());
  return at::_sparse_addmm(zero, sparse, dense, 0, 1);
}
namespace {
// Per row the largest or smallest product of an element with the dense row it names; zero for a row
// without elements. Written with differentiable operators, the elements' values among them.
Tensor extreme_products(const Tensor& csr, const Tensor& dense, std::string_view reduce) {
  TORCH_CHECK(dense.dim() == 2 && csr.size(1) == dense.size(0),
              "mat1 and mat2 shapes cannot be multiplied (", csr.size(0), "x", csr.size(1), " and ",
              dense.dim() == 2 ? dense.size(0) : 0, "x", dense.size(-1), ")");
  const Tensor places = sparse::to_coo(csr.detach());
  const Tensor& indices = sparse::coo(places, "mm").indices;
  const Tensor values = at::_ops::values::call(csr).unsqueeze(1);
  const Tensor products = at::mul(values, at::index_select(dense, 0, indices.select(0, 1)));
  const Tensor zero = at::zeros({csr.size(0), dense.size(1)}, products.options());
  return at::index_reduce(zero, 0, indices.select(0, 0), products, reduce, false);
}
} // namespace
Tensor sparse_mm_reduce(const Tensor& sparse, const Tensor& dense, std::string_view reduce) {
  if (reduce == "mean" && sparse::is_sparse_layout(sparse.layout()) && sparse.dim() == 2) {
    const Tensor elements = sparse::coalesced(sparse::to_coo(sparse.detach()));
    const SparseTensorImpl& s = sparse::coo(elements, "mm");
    const TensorOptions options = dense.options();
    const Tensor ones = at::full({s.nnz()}, 1, options);
    // A row without elements has a sum of zero, which any count leaves as it is.
    Tensor counts =
        at::index_add(at::zeros({sparse.size(0)}, options), 0, s.indices.select(0, 0), ones);
    counts = at::clamp_min(counts, 1).unsqueeze(1);
    return at::div(at::_ops::_sparse_mm::call(sparse, dense), counts);
  }
  const bool largest = reduce == "amax" || reduce == "max";
  if ((largest || reduce == "amin" || reduce == "min") && sparse.layout() == Layout::SparseCsr &&
      sparse.dim() == 2)
    return extreme_products(sparse, dense, largest ? "amax" : "amin");
  TORCH_CHECK_NOT_IMPLEMENTED(reduce == "sum", "torch.sparse.mm with reduce='", reduce,
                              "' is not implemented for ", sparse.scalar_type(), " and layout ",
                              sparse.layout());
  return at::_ops::_sparse_mm::call(sparse, dense);
}
Tensor sparse_sparse_matmul(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(sparse::is_sparse_layout(self.layout()) && sparse::is_sparse_layout(other.layout()),
              "_sparse_sparse_matmul: expected two sparse matrices");
  return sparse::times_sparse(self, other);
}
Tensor sparse_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                    const Scalar& alpha) {
  TORCH_CHECK(sparse::is_sparse_layout(mat1.layout()) && mat2.layout() == kStrided,
              "sparse.addmm: expected mat1 sparse and mat2 strided, but got ", mat1.layout(),
              " and ", mat2.layout());
  Tensor product = sparse::times_dense(mat1, mat2);
  if (!alpha.equal(int64_t(1))) product = at::mul(product, alpha);
  if (beta.equal(int64_t(0))) return product;
  const Tensor base = sparse::is_sparse_layout(self.layout()) ? sparse::to_dense(self) : self;
  return at::add(beta.equal(int64_t(1)) ? base : at::mul(base, beta), product);
}
Tensor sspaddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                const Scalar& alpha) {
  const Tensor product = sparse::dense_to_coo(sparse::times_dense(mat1, mat2), 2);
  return sparse::coalesced(at::add(at::mul(self, beta), product, alpha));
}
Tensor smm(const Tensor& self, const Tensor& mat2) {
  TORCH_CHECK(self.dim() == 2 && mat2.dim() == 2, "smm: expected two matrices, got ", self.dim(),
              "-D and ", mat2.dim(), "-D tensors");
  const Tensor none = at::zeros({self.size(0), mat2.size(1)}, self.options());
  return at::sspaddmm(none, self, mat2, 0, 1);
}
// Rows of the product that any element of mat1 lies in, the rest of each row dense.
Tensor hspmm(const Tensor& mat1, const Tensor& mat2) {
  return sparse::dense_to_coo(sparse::times_dense(mat1, mat2), 1);
}

Tensor sparse_sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                            const Scalar& beta, const Scalar& alpha) {
  TORCH_CHECK(mat1.layout() == kStrided && mat2.layout() == kStrided && mat1.dim() == 2 &&
                  mat2.dim() == 2,
              "sampled_addmm: expected two strided matrices, got ", mat1.dim(), "-D ",
              mat1.layout(), " and ", mat2.dim(), "-D ", mat2.layout());
  TORCH_CHECK(mat1.size(1) == mat2.size(0) && self.size(0) == mat1.size(0) &&
                  self.size(1) == mat2.size(1),
              "sampled_addmm: mat1 (", mat1.sizes(), "), mat2 (", mat2.sizes(), ") and input (",
              self.sizes(), ") do not fit");
  const Tensor elements = sparse::to_coo(self);
  const Tensor places = sparse::coo(elements, "sampled_addmm").indices;
  Tensor values = at::mul(
      sparse::on_device::products_at(places.select(0, 0), places.select(0, 1), mat1, at::t(mat2)),
      alpha);
  values = at::add(values, sparse::coo(elements, "sampled_addmm").values, beta);
  return sparse::to_layout(sparse::with_values(elements, values), self.layout(), std::nullopt,
                           std::nullopt);
}

Tensor spdiags(const Tensor& diagonals, const Tensor& offsets, IntArrayRef shape,
               std::optional<Layout> layout) {
  const Tensor rows = diagonals.dim() == 1 ? diagonals.unsqueeze(0) : diagonals;
  const Tensor shift = (offsets.dim() == 0 ? offsets.unsqueeze(0) : offsets);
  TORCH_CHECK(rows.dim() == 2, "Diagonals must be vector or matrix");
  TORCH_CHECK(shape.size() == 2, "Output shape must be 2d");
  TORCH_CHECK(shift.dim() == 1, "Offsets must be scalar or vector");
  TORCH_CHECK(shift.scalar_type() == kLong, "Offset Tensor must have dtype Long but got ",
              shift.scalar_type());
  TORCH_CHECK(rows.size(0) == shift.numel(), "Number of diagonals (", rows.size(0),
              ") does not match the number of offsets (", shift.numel(), ")");
  const Tensor held = sparse::moved_to(shift, kCPU, kLong).contiguous();
  std::vector<int64_t> y, x, from;
  Steps steps;
  for (int64_t k = 0; k < held.numel(); ++k, steps.add(k)) {
    const int64_t offset = held.data_ptr<int64_t>()[k];
    for (int64_t j = 0; j < k; ++j)
      TORCH_CHECK(held.data_ptr<int64_t>()[j] != offset, "Offset tensor contains duplicate values");
    for (int64_t column = 0; column < std::min(rows.size(1), shape[1]); ++column) {
      steps.add(4);
      const int64_t row = offset > INT64_MIN ? column - std::max(offset, -(int64_t(1) << 62)) : -1;
      if (row < 0 || row >= shape[0]) continue;
      y.push_back(row);
      x.push_back(column);
      from.push_back(k * rows.size(1) + column);
    }
  }
  const int64_t n = static_cast<int64_t>(y.size());
  Tensor indices = detail::empty({2, n}, kLong), picked = detail::empty({n}, kLong);
  for (int64_t i = 0; i < n; ++i, steps.add(4)) {
    indices.data_ptr<int64_t>()[i] = y[static_cast<size_t>(i)];
    indices.data_ptr<int64_t>()[n + i] = x[static_cast<size_t>(i)];
    picked.data_ptr<int64_t>()[i] = from[static_cast<size_t>(i)];
  }
  const Device device = diagonals.device();
  const Tensor values =
      at::index_select(rows.reshape({-1}), 0, sparse::moved_to(picked, device, kLong));
  const Tensor out =
      sparse::make_coo(sparse::moved_to(indices, device, kLong), values, shape, false);
  const Layout wanted = layout.value_or(Layout::Sparse);
  TORCH_CHECK(wanted == Layout::Sparse || wanted == Layout::SparseCsr ||
                  wanted == Layout::SparseCsc,
              "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got ", wanted);
  return sparse::to_layout(out, wanted, std::nullopt, std::nullopt);
}

} // namespace at::native
