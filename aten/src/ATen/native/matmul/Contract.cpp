// Products written with other operators: outer products and contractions over chosen dimensions.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/matmul/Native.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/linalg_multi_dot.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/resolve_conj.h>
#include <ATen/ops/sum.h>

namespace at::native {

Tensor outer(const Tensor& self, const Tensor& vec2) {
  TORCH_CHECK(self.dim() == 1, "outer: Expected 1-D argument self, but got ", self.dim(), "-D");
  TORCH_CHECK(vec2.dim() == 1, "outer: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  return at::mul(self.reshape({self.size(0), 1}), vec2);
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  TORCH_CHECK(vec1.dim() == 1, "addr: Expected 1-D argument vec1, but got ", vec1.dim(), "-D");
  TORCH_CHECK(vec2.dim() == 1, "addr: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  const DimVector shape{vec1.size(0), vec2.size(0)};
  TORCH_CHECK(broadcast_shapes(self.sizes(), shape) == shape, "The expanded size of the tensor (",
              shape[1], ") must match the existing size (", self.dim() ? self.sizes().back() : 1,
              ") at non-singleton dimension ", shape.size() - 1,
              ".  Target sizes: ", IntArrayRef(shape), ".  Tensor sizes: ", self.sizes());
  const ScalarType type = c10::promoteTypes(
      self.scalar_type(), c10::promoteTypes(vec1.scalar_type(), vec2.scalar_type()));
  TORCH_CHECK(type == kBool || (!beta.isBoolean() && !alpha.isBoolean()),
              "Boolean beta and alpha only supported for Boolean results.");
  TORCH_CHECK(
      !c10::isIntegralType(type, true) || (beta.isIntegral(true) && alpha.isIntegral(true)),
      "For integral input tensors, argument beta and alpha must not be a floating point number.");
  // Each product is rounded to the type of the result, as PyTorch does; bool results are logic,
  // whatever the factors.
  const auto rounded = [&](const Scalar& s) {
    return type == kHalf || type == kBFloat16
               ? Scalar(detail::scalar_tensor(s, type).item().to<double>())
               : s;
  };
  // These compute in their own precision, so that one pass rounds as the three would.
  if (beta.equal(1.0) && (type == kFloat || type == kDouble || c10::isIntegralType(type, false)))
    return at::addcmul(self.to(type), vec1.to(type).unsqueeze(1), vec2.to(type), alpha);
  Tensor row = vec1.to(type);
  if (!alpha.equal(1.0)) row = at::mul(row, rounded(alpha)).to(type);
  const Tensor product = outer(row, vec2.to(type));
  if (beta.equal(0.0)) return product;
  const Tensor base =
      beta.equal(1.0) ? self.to(type) : at::mul(self.to(type), rounded(beta)).to(type);
  return at::add(base, product).to(type);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return at::mul(self, other);
  TORCH_CHECK(self.size(-1) == other.size(-1),
              "inner() the last dimension must match on both input tensors but got shapes ",
              self.sizes(), " and ", other.sizes());
  return tensordot(self, other, {int64_t(-1)}, {int64_t(-1)});
}

Tensor kron(const Tensor& self, const Tensor& other) {
  // Every dimension is split in two, one of each operand, multiplied, and joined again.
  const int64_t n = std::max(self.dim(), other.dim());
  DimVector a_shape(2 * n), b_shape(2 * n), shape(n);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t sa = i < n - self.dim() ? 1 : self.sizes()[i - (n - self.dim())];
    const int64_t sb = i < n - other.dim() ? 1 : other.sizes()[i - (n - other.dim())];
    a_shape[2 * i] = sa, a_shape[2 * i + 1] = 1;
    b_shape[2 * i] = 1, b_shape[2 * i + 1] = sb;
    shape[i] = sa * sb;
  }
  const Tensor a = at::_unsafe_view(self.contiguous(), a_shape);
  const Tensor b = at::_unsafe_view(other.contiguous(), b_shape);
  return at::_unsafe_view(at::mul(a, b), shape);
}

// ---- tensordot --------------------------------------------------------------------------------
namespace {
int64_t wrap(int64_t dim, int64_t n) {
  TORCH_CHECK_INDEX(dim >= -std::max<int64_t>(n, 1) && dim < std::max<int64_t>(n, 1),
                    "Dimension out of range (expected to be in range of [",
                    -std::max<int64_t>(n, 1), ", ", std::max<int64_t>(n, 1) - 1, "], but got ", dim,
                    ")");
  return dim < 0 ? dim + n : dim;
}
} // namespace

Tensor tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self,
                 IntArrayRef dims_other) {
  TORCH_CHECK(dims_self.size() == dims_other.size(),
              "both dimension lists should have same length");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "both inputs should have same dtype");
  Tensor a = self, b = other;
  DimVector da, db;
  int64_t contracted = 1;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    da.push_back(wrap(dims_self[i], self.dim()));
    db.push_back(wrap(dims_other[i], other.dim()));
    const int64_t sa = self.size(da[i]), sb = other.size(db[i]);
    if (sb == 1 && sa != 1) {
      a = at::sum(a, at::OptionalIntArrayRef(IntArrayRef(da[i])), true, a.scalar_type());
    } else if (sa == 1 && sb != 1) {
      b = at::sum(b, at::OptionalIntArrayRef(IntArrayRef(db[i])), true, b.scalar_type());
    } else {
      TORCH_CHECK(sa == sb, "contracted dimensions need to match, but first has size ", sa,
                  " in dim ", dims_self[i], " and second has size ", sb, " in dim ", dims_other[i]);
      contracted *= sa;
    }
  }
  DimVector order_a, order_b, shape;
  int64_t rows = 1, cols = 1;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (std::find(da.begin(), da.end(), d) != da.end()) continue;
    order_a.push_back(d);
    shape.push_back(a.size(d));
    rows *= a.size(d);
  }
  for (int64_t d : da) order_a.push_back(d);
  for (int64_t d : db) order_b.push_back(d);
  for (int64_t d = 0; d < b.dim(); ++d) {
    if (std::find(db.begin(), db.end(), d) != db.end()) continue;
    order_b.push_back(d);
    shape.push_back(b.size(d));
    cols *= b.size(d);
  }
  return at::mm(a.permute(order_a).reshape({rows, contracted}),
                b.permute(order_b).reshape({contracted, cols}))
      .reshape(shape);
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const std::optional<Tensor>& bias) {
  TORCH_CHECK(input1.dim() == input2.dim(), "bilinear(): input dimensions do not match: got ",
              input1.dim(), " and ", input2.dim());
  for (int64_t i = 0; i + 1 < input1.dim(); ++i)
    TORCH_CHECK(input1.size(i) == input2.size(i),
                "bilinear(): input batch dimensions do not match at dim ", i, ": got ",
                input1.size(i), " and ", input2.size(i));
  TORCH_CHECK(input1.size(-1) == weight.size(1),
              "bilinear(): input1 size does not match weight size: got ", input1.size(-1),
              " but expected ", weight.size(1));
  TORCH_CHECK(input2.size(-1) == weight.size(2),
              "bilinear(): input2 size does not match weight size: got ", input2.size(-1),
              " but expected ", weight.size(2));
  TORCH_CHECK(!bias || !bias->defined() || bias->size(0) == weight.size(0),
              "bilinear(): bias size does not match weight size: got ", bias ? bias->size(0) : 0,
              " but expected ", weight.size(0));
  DimVector shape(input1.sizes());
  shape.back() = weight.size(0);
  int64_t rows = 1;
  for (int64_t i = 0; i + 1 < input1.dim(); ++i) rows *= input1.size(i);
  const Tensor x = input1.reshape({rows, input1.size(-1)}),
               y = input2.reshape({rows, input2.size(-1)});
  // (rows, out * in2), then a sum against y.
  const Tensor left = tensordot(x, weight, {int64_t(1)}, {int64_t(1)});
  Tensor out = at::bmm(left, y.unsqueeze(2)).reshape(shape);
  return bias && bias->defined() ? at::add(out, *bias) : out;
}

Tensor chain_matmul(TensorList matrices) {
  TORCH_CHECK(!matrices.empty(), "chain_matmul(): Expected one or more matrices");
  for (size_t i = 0; i < matrices.size(); ++i)
    TORCH_CHECK(matrices[i].dim() == 2, "Tensor dimension is ", matrices[i].dim(),
                ", expected 2 instead.");
  return matrices.size() == 1 ? matrices[0].clone() : at::linalg_multi_dot(matrices);
}

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  TORCH_CHECK(x.is_floating_point() || x.is_complex(),
              "linalg.vecdot: Expected a floating point or complex tensor as input. Got ",
              x.scalar_type());
  TORCH_CHECK(x.scalar_type() == y.scalar_type(),
              "linalg.vecdot: Expected x and y to have the same dtype, but found x of type ",
              x.scalar_type(), " and y of type ", y.scalar_type(), " instead");
  return at::sum(at::mul(x.is_complex() ? at::conj(x) : x, y),
                 at::OptionalIntArrayRef(IntArrayRef(dim)), false, std::nullopt);
}

} // namespace at::native
