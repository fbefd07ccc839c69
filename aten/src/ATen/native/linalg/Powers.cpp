// Functions of matrices by products alone: powers, the exponential, chains of products and
// Vandermonde matrices.
#include <cmath>
#include <vector>

#include <ATen/core/HandlerKeys.h>
#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/Native.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/linalg_inv.h>
#include <ATen/ops/linalg_matrix_exp.h>
#include <ATen/ops/linalg_solve_ex.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/new_ones.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace at::native {
using namespace linalg;

// ---- powers ------------------------------------------------------------------------------------
Tensor linalg_matrix_power(const Tensor& self, int64_t n) {
  check_square(self, "linalg.matrix_power");
  if (n == 0) {
    // Written over a copy, so that the gradient is zero rather than none.
    return at::copy(self.contiguous(), at::eye(self.size(-2), self.options()));
  }
  if (n == 1) return self.clone();
  if (n < 0) {
    TORCH_CHECK(n != INT64_MIN, "linalg.matrix_power: the exponent ", n, " is out of range");
    const Tensor inverse = at::linalg_inv(self);
    return n == -1 ? inverse : linalg_matrix_power(inverse, -n);
  }
  Tensor square = self, result;
  for (int64_t bits = n; bits > 0; bits >>= 1) {
    if (bits & 1) result = result.defined() ? at::matmul(result, square) : square;
    if (bits > 1) square = at::matmul(square, square);
  }
  return result;
}
Tensor matrix_power(const Tensor& self, int64_t n) { return linalg_matrix_power(self, n); }

// ---- the exponential: scaling and squaring with Pade approximants ------------------------------
namespace {

// Coefficients of the diagonal approximants of degree 13 (double) and 7 (single), and the norm up
// to which they are exact to rounding (Higham, The scaling and squaring method revisited, 2005).
constexpr double kPade13[14] = {64764752532480000.,
                                32382376266240000.,
                                7771770303897600.,
                                1187353796428800.,
                                129060195264000.,
                                10559470521600.,
                                670442572800.,
                                33522128640.,
                                1323241920.,
                                40840800.,
                                960960.,
                                16380.,
                                182.,
                                1.};
constexpr double kPade7[8] = {17297280., 8648640., 1995840., 277200., 25200., 1512., 56., 1.};
constexpr double kNorm13 = 5.371920351148152, kNorm7 = 3.925724783138660;

Tensor scaled(const Tensor& t, double c) { return at::mul(t, c); }

Tensor pade(const Tensor& a, bool single) {
  const Tensor one = at::eye(a.size(-1), a.options()).expand(a.sizes());
  const Tensor a2 = at::matmul(a, a), a4 = at::matmul(a2, a2), a6 = at::matmul(a2, a4);
  const auto combine = [&](const double* c, int low) {
    return at::add(at::add(scaled(a6, c[low + 6]), scaled(a4, c[low + 4])),
                   at::add(scaled(a2, c[low + 2]), scaled(one, c[low])));
  };
  Tensor odd, even;
  if (single) {
    odd = at::matmul(a, combine(kPade7, 1));
    even = combine(kPade7, 0);
  } else {
    const auto high = [&](int at_degree) {
      return at::matmul(
          a6, at::add(at::add(scaled(a6, kPade13[at_degree]), scaled(a4, kPade13[at_degree - 2])),
                      scaled(a2, kPade13[at_degree - 4])));
    };
    odd = at::matmul(a, at::add(high(13), combine(kPade13, 1)));
    even = at::add(high(12), combine(kPade13, 0));
  }
  return std::get<0>(at::linalg_solve_ex(at::sub(even, odd), at::add(even, odd)));
}

} // namespace

Tensor linalg_matrix_exp(const Tensor& self) {
  check_square(self, "linalg.matrix_exp");
  check_float(self, "linalg.matrix_exp");
  if (self.numel() == 0 || self.is_meta()) return at::empty(self.sizes(), self.options());
  if (self.size(-1) == 1) return at::exp(self).contiguous();
  const ScalarType type = self.scalar_type();
  if (type == kHalf || type == kBFloat16)
    return native::linalg_matrix_exp(self.to(kFloat)).to(type);
  const bool single = type == kFloat || type == kComplexFloat;
  const Tensor columns =
      at::sum(at::abs(self), OptionalIntArrayRef(IntArrayRef(int64_t(-2))), false, std::nullopt);
  const Tensor there = at::amax(columns, IntArrayRef(int64_t(-1)), false);
  const Tensor norms = detail::empty(there.sizes(), kDouble);
  norms.copy_(there);
  // How often each matrix is halved before and squared after: decided on the host.
  const Tensor halvings = detail::empty(norms.sizes(), kDouble);
  const Tensor factors = detail::empty(norms.sizes(), kDouble);
  double most = 0;
  for (int64_t i = 0; i < norms.numel(); ++i) {
    const double ratio = data_of<double>(norms)[i] / (single ? kNorm7 : kNorm13);
    const double s = std::isfinite(ratio) && ratio > 1 ? std::ceil(std::log2(ratio)) : 0;
    data_of<double>(halvings)[i] = s;
    data_of<double>(factors)[i] = std::ldexp(1.0, -static_cast<int>(s));
    most = std::max(most, s);
  }
  const auto matrixwise = [&](const Tensor& t) {
    const Tensor beside = detail::empty(t.sizes(), t.scalar_type(), self.device());
    beside.copy_(t);
    return beside.unsqueeze(-1).unsqueeze(-1);
  };
  const ScalarType real = c10::toRealValueType(type);
  Tensor result = pade(at::mul(self, matrixwise(factors.to(real))), single).contiguous();
  for (double step = 1; step <= most; ++step)
    result = at::where(matrixwise(at::ge(halvings, step)), at::matmul(result, result), result);
  return result;
}

// The derivative of exp at A in direction G is the corner of exp([[A, G], [0, A]]).
Tensor matrix_exp_backward(const Tensor& self, const Tensor& grad) {
  Tensor a = self.transpose(-2, -1);
  if (a.is_complex()) a = at::conj(a);
  const int64_t n = self.size(-1);
  const Tensor top = at::cat({a, grad}, -1), bottom = at::cat({at::zeros_like(grad), a}, -1);
  const Tensor block = at::linalg_matrix_exp(at::cat({top, bottom}, -2));
  return block.narrow(-2, 0, n).narrow(-1, n, n);
}

// ---- chains of products ------------------------------------------------------------------------
namespace {

struct Chain {
  std::vector<Tensor> matrices;
  std::vector<std::vector<size_t>> split;

  // The cheapest bracketing by the number of multiplications.
  void plan() {
    const size_t n = matrices.size();
    std::vector<double> sizes;
    for (const Tensor& m : matrices) sizes.push_back(static_cast<double>(m.size(0)));
    sizes.push_back(static_cast<double>(matrices.back().size(1)));
    std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
    split.assign(n, std::vector<size_t>(n, 0));
    for (size_t length = 1; length < n; ++length)
      for (size_t i = 0; i + length < n; ++i) {
        const size_t j = i + length;
        double best = -1;
        for (size_t k = i; k < j; ++k) {
          const double c = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
          if (best < 0 || c < best) best = c, split[i][j] = k;
        }
        cost[i][j] = best;
      }
  }
  Tensor multiply(size_t i, size_t j) const {
    if (i == j) return matrices[i];
    return at::matmul(multiply(i, split[i][j]), multiply(split[i][j] + 1, j));
  }
};

void check_chain(TensorList tensors) {
  const size_t n = tensors.size();
  TORCH_CHECK(n >= 2, "multi_dot(): expected at least 2 tensors but got ", n);
  TORCH_CHECK(tensors[0].dim() == 1 || tensors[0].dim() == 2,
              "multi_dot(): the first tensor must be 1D or 2D but got ", tensors[0].dim(), "D");
  TORCH_CHECK(tensors[n - 1].dim() == 1 || tensors[n - 1].dim() == 2,
              "multi_dot(): the last tensor must be 1D or 2D but got ", tensors[n - 1].dim(), "D");
  for (size_t i = 1; i + 1 < n; ++i)
    TORCH_CHECK(tensors[i].dim() == 2, "multi_dot(): tensor ", i, " must be 2D but got ",
                tensors[i].dim(), "D");
  for (size_t i = 1; i < n; ++i) {
    TORCH_CHECK(tensors[i].scalar_type() == tensors[0].scalar_type(),
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is ",
                c10::info(tensors[0].scalar_type()).name, " and tensor ", i, " ",
                c10::info(tensors[i].scalar_type()).name);
    TORCH_CHECK(tensors[i].device() == tensors[0].device(),
                "multi_dot(): all tensors must be on the same device but tensor 0 is on ",
                tensors[0].device(), " and tensor ", i, " on ", tensors[i].device());
    TORCH_CHECK(tensors[i - 1].size(-1) == tensors[i].size(0), "multi_dot(): tensors ", i - 1,
                " and ", i, " with shapes ", tensors[i - 1].sizes(), " and ", tensors[i].sizes(),
                " cannot be multiplied");
  }
}

} // namespace

Tensor linalg_multi_dot(TensorList tensors) {
  check_chain(tensors);
  Chain chain;
  const bool first_vector = tensors[0].dim() == 1, last_vector = tensors.back().dim() == 1;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor t = tensors[i];
    if (i == 0 && first_vector)
      t = t.unsqueeze(0);
    else if (i + 1 == tensors.size() && last_vector)
      t = t.unsqueeze(1);
    chain.matrices.push_back(t);
  }
  chain.plan();
  Tensor out = chain.multiply(0, tensors.size() - 1);
  if (last_vector) out = out.squeeze(-1);
  if (first_vector) return out.squeeze(0);
  return !last_vector && handlers_active() ? out.view(out.sizes()) : out;
}

// ---- Vandermonde matrices ----------------------------------------------------------------------
namespace {
Tensor powers_of(const Tensor& x, int64_t n) {
  DimVector shape(x.sizes());
  shape.push_back(n - 1);
  const Tensor powers = at::cumprod(x.unsqueeze(-1).expand(shape), -1);
  shape.back() = 1;
  const Tensor ones = at::_ops::new_ones::call(powers, c10::as_symint_array(shape), std::nullopt,
                                               std::nullopt, std::nullopt, std::nullopt);
  return at::cat({ones, powers}, -1);
}
} // namespace

Tensor linalg_vander(const Tensor& x, std::optional<int64_t> N) {
  TORCH_CHECK(x.scalar_type() != kBool,
              "linalg.vander supports floating point, complex, and integer tensors, but got ",
              x.scalar_type());
  const Tensor rows = x.dim() == 0 ? x.unsqueeze(-1) : x;
  const int64_t n = N.value_or(rows.sizes().back());
  TORCH_CHECK(n > 1, "N must be greater than 1.");
  return powers_of(rows, n);
}

Tensor vander(const Tensor& x, std::optional<int64_t> N, bool increasing) {
  TORCH_CHECK(x.dim() == 1, "x must be a one-dimensional tensor.");
  const int64_t n = N.value_or(x.size(0));
  TORCH_CHECK(n >= 0, "N must be non-negative.");
  const Tensor wide = c10::isIntegralType(x.scalar_type(), true) ? x.to(kLong) : x;
  if (n == 0) return at::empty({x.size(0), 0}, wide.options());
  if (n == 1) return at::ones({x.size(0), 1}, wide.options());
  const Tensor powers = powers_of(wide, n);
  return increasing ? powers : at::flip(powers, IntArrayRef(int64_t(1)));
}

} // namespace at::native
