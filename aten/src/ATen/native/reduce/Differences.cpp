// Differences along a dimension, in slices: diff, the n-th forward difference, and gradient, second
// order central differences with one-sided ones at the edges, on even or uneven grids.
#include <ATen/native/reduce/Native.h>
#include <ATen/native/reduce/ReduceDims.h>

#include <algorithm>

#include <ATen/native/shape/Geometry.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/div.h>
#include <ATen/ops/logical_xor.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/narrow.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/sub.h>

namespace at::native {
namespace {

void check_border(const Tensor& self, const Tensor& border, int64_t dim) {
  TORCH_CHECK(border.dim() == self.dim(),
              "diff expects prepend or append to be the same dimension as input");
  for (int64_t d = 0; d < self.dim(); ++d)
    TORCH_CHECK(d == dim || c10::expect_true(c10::sym_eq(border.sym_size(d), self.sym_size(d))),
                "diff expects the shape of tensor to prepend or append to match that of input "
                "except along the differencing dimension; input.size(",
                d, ") = ", self.sym_size(d), ", but got tensor.size(", d,
                ") = ", border.sym_size(d));
}

// ---- gradient
Tensor at_index(const Tensor& f, int64_t dim, int64_t i) {
  return f.narrow(dim, i < 0 ? i + f.sizes()[dim] : i, 1);
}

Tensor weighted(const Tensor& a, const Scalar& wa, const Tensor& b, const Scalar& wb,
                const Tensor& c, const Scalar& wc) {
  return at::add(at::add(at::mul(a, wa), at::mul(b, wb)), at::mul(c, wc));
}
Tensor weighted(const Tensor& a, const Tensor& wa, const Tensor& b, const Tensor& wb,
                const Tensor& c, const Tensor& wc) {
  return at::add(at::add(at::mul(a, wa), at::mul(b, wb)), at::mul(c, wc));
}

// Even grid of distance h.
Tensor even_gradient(const Tensor& f, const Scalar& h, int64_t dim, int64_t edge_order) {
  const int64_t n = f.sizes()[dim];
  Tensor first, last;
  if (edge_order == 1) {
    first = at::div(at::sub(at_index(f, dim, 1), at_index(f, dim, 0)), h);
    last = at::div(at::sub(at_index(f, dim, -1), at_index(f, dim, -2)), h);
  } else {
    first =
        weighted(at_index(f, dim, 0), -1.5, at_index(f, dim, 1), 2.0, at_index(f, dim, 2), -0.5);
    last =
        weighted(at_index(f, dim, -1), 1.5, at_index(f, dim, -2), -2.0, at_index(f, dim, -3), 0.5);
    first = at::div(first, h);
    last = at::div(last, h);
  }
  const Tensor center = at::sub(f.narrow(dim, 2, n - 2), f.narrow(dim, 0, n - 2));
  const Tensor parts[3] = {first, at::div(at::div(center, Scalar(2.0)), h), last};
  return at::cat(parts, dim);
}

// One-sided second-order difference: p is the distance next to the edge, q the one after, and the
// values stand in that order; `sign` is -1 at the upper edge.
Tensor uneven_edge(const Tensor& edge, const Tensor& next, const Tensor& after, const Tensor& p,
                   const Tensor& q, double sign) {
  const Tensor sum = at::add(p, q);
  const Tensor a =
      at::div(at::mul(at::add(at::mul(p, Scalar(2.0)), q), Scalar(-sign)), at::mul(p, sum));
  const Tensor b = at::div(at::mul(sum, Scalar(sign)), at::mul(p, q));
  const Tensor c = at::div(at::mul(p, Scalar(-sign)), at::mul(q, sum));
  return weighted(edge, a, next, b, after, c);
}

// The sample points stand at `x`.
Tensor uneven_gradient(const Tensor& f, const Tensor& x, int64_t dim, int64_t edge_order) {
  const int64_t n = f.sizes()[dim];
  TORCH_CHECK(x.dim() == 1,
              "torch.gradient expected each element of spacing to have one dimension, but got an "
              "element with ",
              x.dim(), " dimensions!");
  TORCH_CHECK(x.sizes()[0] == n, "torch.gradient expected ", n, " coordinates along dimension ",
              dim, ", but got ", x.sizes()[0]);
  DimVector shape(f.dim(), 1);
  shape[dim] = n - 1;
  const Tensor d = at::sub(x.narrow(0, 1, n - 1), x.narrow(0, 0, n - 1)).view(shape);
  Tensor first, last;
  if (edge_order == 1) {
    first = at::div(at::sub(at_index(f, dim, 1), at_index(f, dim, 0)), at_index(d, dim, 0));
    last = at::div(at::sub(at_index(f, dim, -1), at_index(f, dim, -2)), at_index(d, dim, -1));
  } else {
    first = uneven_edge(at_index(f, dim, 0), at_index(f, dim, 1), at_index(f, dim, 2),
                        at_index(d, dim, 0), at_index(d, dim, 1), 1.0);
    last = uneven_edge(at_index(f, dim, -1), at_index(f, dim, -2), at_index(f, dim, -3),
                       at_index(d, dim, -1), at_index(d, dim, -2), -1.0);
  }
  const Tensor left = d.narrow(dim, 0, n - 2), right = d.narrow(dim, 1, n - 2);
  const Tensor sum = at::add(left, right);
  const Tensor a = at::neg(at::div(right, at::mul(left, sum)));
  const Tensor b = at::div(at::sub(right, left), at::mul(left, right));
  const Tensor c = at::div(left, at::mul(right, sum));
  const Tensor center =
      weighted(f.narrow(dim, 0, n - 2), a, f.narrow(dim, 1, n - 2), b, f.narrow(dim, 2, n - 2), c);
  const Tensor parts[3] = {first, center, last};
  return at::cat(parts, dim);
}

// The dimensions meant: all, or the given ones, each once and long enough.
DimVector gradient_dims(const Tensor& self, OptionalIntArrayRef dims, int64_t edge_order) {
  TORCH_CHECK(self.scalar_type() != kByte, "torch.gradient does not support uint8 input.");
  TORCH_CHECK(edge_order == 1 || edge_order == 2,
              "torch.gradient only supports edge_order=1 and edge_order=2.");
  DimVector list;
  if (dims) {
    reduce::dims_mask(dims, self.dim(), false);
    for (int64_t d : *dims) list.push_back(wrap_dim(d, self.dim()));
  } else {
    for (int64_t d = 0; d < self.dim(); ++d) list.push_back(d);
  }
  for (int64_t d : list)
    TORCH_CHECK(self.dim() > 0 && self.sizes()[d] >= edge_order + 1,
                "torch.gradient expected each dimension size to be at least edge_order+1");
  return list;
}

void check_spacing_count(const Tensor& self, size_t count, const DimVector& dims, bool dims_given) {
  if (dims_given) {
    TORCH_CHECK(
        count == dims.size(),
        "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
        "arguments to have the same length, but got a spacing argument of length ",
        count, " and a dim argument of length ", dims.size(), ".");
  } else {
    TORCH_CHECK(
        count == dims.size(),
        "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal "
        "to 'self.dim() = ",
        self.dim(), "', since dim argument was not given, but got a list of length ", count);
  }
}

std::vector<Tensor> gradients(const Tensor& self, const Scalar& h, OptionalIntArrayRef dims,
                              int64_t edge_order) {
  std::vector<Tensor> out;
  for (int64_t d : gradient_dims(self, dims, edge_order))
    out.push_back(even_gradient(self, h, d, edge_order));
  return out;
}
std::vector<Tensor> gradients(const Tensor& self, ArrayRef<Scalar> spacing,
                              OptionalIntArrayRef dims, int64_t edge_order) {
  const DimVector list = gradient_dims(self, dims, edge_order);
  check_spacing_count(self, spacing.size(), list, dims.has_value());
  std::vector<Tensor> out;
  for (size_t i = 0; i < list.size(); ++i)
    out.push_back(even_gradient(self, spacing[i], list[i], edge_order));
  return out;
}
std::vector<Tensor> gradients(const Tensor& self, TensorList spacing, OptionalIntArrayRef dims,
                              int64_t edge_order) {
  const DimVector list = gradient_dims(self, dims, edge_order);
  check_spacing_count(self, spacing.size(), list, dims.has_value());
  std::vector<Tensor> out;
  for (size_t i = 0; i < list.size(); ++i)
    out.push_back(uneven_gradient(self, spacing[i], list[i], edge_order));
  return out;
}

OptionalIntArrayRef as_list(const std::optional<int64_t>& dim) {
  return dim ? OptionalIntArrayRef(IntArrayRef(&*dim, 1)) : OptionalIntArrayRef();
}

} // namespace

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const std::optional<Tensor>& prepend,
            const std::optional<Tensor>& append) {
  TORCH_CHECK(self.dim() >= 1, "diff expects input to be at least one-dimensional");
  const int64_t d = wrap_dim(dim, self.dim());
  if (prepend) check_border(self, *prepend, d);
  if (append) check_border(self, *append, d);
  TORCH_CHECK(n >= 0, "order must be non-negative but got ", n);
  if (n == 0) return self.clone();
  Tensor result = self;
  if (prepend || append) {
    std::vector<Tensor> parts;
    if (prepend) parts.push_back(*prepend);
    parts.push_back(self);
    if (append) parts.push_back(*append);
    result = at::cat(parts, d);
  }
  for (int64_t left = n; left > 0 && c10::guard_or_true(c10::sym_gt(result.sym_size(d), 0));
       --left) {
    const SymInt length = result.sym_size(d) - 1;
    const Tensor upper = at::narrow_symint(result, d, 1, length);
    const Tensor lower = at::narrow_symint(result, d, 0, length);
    result = result.scalar_type() == kBool ? at::logical_xor(upper, lower) : at::sub(upper, lower);
  }
  return result;
}

std::vector<Tensor> gradient(const Tensor& self, const std::optional<Scalar>& spacing,
                             std::optional<int64_t> dim, int64_t edge_order) {
  return gradients(self, spacing.value_or(Scalar(1.0)), as_list(dim), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, const Scalar& spacing, IntArrayRef dim,
                             int64_t edge_order) {
  return gradients(self, spacing, dim, edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, IntArrayRef dim, int64_t edge_order) {
  return gradients(self, Scalar(1.0), dim, edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing,
                             std::optional<int64_t> dim, int64_t edge_order) {
  return gradients(self, spacing, as_list(dim), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing, IntArrayRef dim,
                             int64_t edge_order) {
  return gradients(self, spacing, dim, edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, std::optional<int64_t> dim,
                             int64_t edge_order) {
  return gradients(self, spacing, as_list(dim), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, IntArrayRef dim,
                             int64_t edge_order) {
  return gradients(self, spacing, dim, edge_order);
}

} // namespace at::native
