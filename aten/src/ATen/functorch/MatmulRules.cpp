// Batching rules of matrix products: each becomes a product with one more batch dimension, which
// matmul knows; the sums around them are other operators.
#include <ATen/functorch/BatchRule.h>

#include <ATen/ops/add.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/sum.h>

namespace at::functorch {
namespace {

// mm and bmm: the batch is one more leading dimension.
void product_rule(Call& call) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  const int64_t rank = call.op.name == std::string("aten::mm") ? 2 : 3;
  TORCH_CHECK(a.dim() == rank && b.dim() == rank, call.op.full_name(), " expects ", rank,
              "D tensors, got ", a.dim(), "D and ", b.dim(), "D");
  const size_t row = static_cast<size_t>(rank) - 2;
  TORCH_CHECK(a.sizes()[row + 1] == b.sizes()[row], "mat1 and mat2 shapes cannot be multiplied (",
              a.sizes()[row], "x", a.sizes()[row + 1], " and ", b.sizes()[row], "x",
              b.sizes()[row + 1], ")");
  call.give(at::matmul(call.front(a), call.front(b)));
}

void mv_rule(Call& call) {
  const Tensor a = call.tensor(0), v = call.tensor(1);
  TORCH_CHECK(a.dim() == 2 && v.dim() == 1, "vector + matrix @ vector expected, got ", 1, ", ",
              a.dim(), ", ", v.dim());
  if (!call.batched(v)) {
    call.give(at::matmul(call.front(a), v));
    return;
  }
  call.give(at::matmul(call.front(a), call.front(v).unsqueeze(-1)).squeeze(-1));
}

void dot_rule(Call& call) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ",
              b.dim(), "D tensors");
  TORCH_CHECK(a.sizes() == b.sizes(), "inconsistent tensor size, expected tensor ", a.sizes(),
              " and src ", b.sizes(), " to have the same number of elements");
  const bool conjugate = call.op.name == std::string("aten::vdot") && a.is_complex();
  const Tensor left = call.front(a).unsqueeze(-2);
  const Tensor out = at::matmul(conjugate ? at::conj(left) : left, call.front(b).unsqueeze(-1));
  call.give(out.squeeze(-1).squeeze(-1));
}

// A factor of an integer product is an integer.
Scalar factor_for(const Tensor& product, const Scalar& s) {
  return product.is_floating_point() || product.is_complex() ? s : Scalar(s.toLong());
}

// beta * self + alpha * product
Tensor combined(const Tensor& self, const Scalar& given_beta, const Tensor& product,
                const Scalar& given_alpha) {
  const Scalar beta = factor_for(product, given_beta), alpha = factor_for(product, given_alpha);
  const Tensor scaled = alpha.equal(int64_t(1)) ? product : at::mul(product, alpha);
  // With beta zero, not even NaN in self matters.
  if (beta.equal(int64_t(0))) return scaled.to(product.scalar_type());
  const Tensor out = at::add(scaled, beta.equal(int64_t(1)) ? self : at::mul(self, beta));
  return product.scalar_type() == kBool ? out.to(kBool) : out;
}
template <Tensor (*kProduct)(const Tensor&, const Tensor&)> void add_product(Call& call) {
  call.give_batched(combined(call.tensor(0), call.args[3].toScalar(),
                             kProduct(call.tensor(1), call.tensor(2)), call.args[4].toScalar()));
}
Tensor summed_bmm(const Tensor& a, const Tensor& b) {
  return at::sum(at::bmm(a, b), OptionalIntArrayRef(IntArrayRef{0}));
}

void linear_rule(Call& call) {
  const Tensor input = call.tensor(0), weight = call.tensor(1);
  const std::optional<Tensor> bias = call.optional(2);
  const bool shared = !call.batched(weight) && !(bias && call.batched(*bias));
  if (shared && input.dim() > 0) {
    call.give(at::linear(call.front(input), weight, bias));
    return;
  }
  TORCH_CHECK(input.dim() > 0 && weight.dim() > 0 && weight.dim() <= 2, "linear(): input of ",
              input.dim(), "D and weight of ", weight.dim(), "D are not supported");
  Tensor out;
  if (weight.dim() == 1) {
    out = at::matmul(input, weight);
  } else if (input.dim() == 1) {
    out = at::mv(weight, input);
  } else {
    const int64_t width = input.sizes().back(), wide = weight.sizes()[0];
    std::vector<int64_t> shape(input.sizes().begin(), input.sizes().end());
    shape.back() = wide;
    out = at::mm(input.reshape({-1, width}), weight.transpose(0, 1)).reshape(shape);
  }
  call.give_batched(bias ? at::add(out, *bias) : out);
}
// ---- systems and factors
// A dimension of the batch must not pass for one of a matrix.
void check_core(const Call& call, const Tensor& t, int64_t core) {
  TORCH_CHECK(t.dim() >= core, call.op.full_name(), ": The input tensor must have at least ", core,
              " dimensions inside of vmap, got one of shape ", t.sizes());
}

// Operators on stacks of matrices and vectors. `flags` has a digit for each tensor argument: how
// many dimensions belong to one matrix (2), vector (1) or number (0); those before are the stack,
// which broadcasts.
void core_rule(Call& call) {
  std::vector<int64_t> cores;
  for (int digits = call.flags; digits > 0; digits /= 10) cores.insert(cores.begin(), digits % 10);
  int64_t lead = 0;
  size_t k = 0;
  for (const IValue& v : call.args)
    each_tensor(v, [&](const Tensor& t) {
      check_core(call, t, cores.at(k));
      lead = std::max(lead, t.dim() - cores.at(k++));
    });
  k = 0;
  Stack stack = call.args;
  for (IValue& v : stack) {
    map_tensors(v, [&](const Tensor& t) {
      return call.padded(call.wrap(call.expanded(t)), lead + cores.at(k++));
    });
  }
  call.run(std::move(stack));
}

void factor_rule(Call& call) {
  check_core(call, call.tensor(0), 2);
  leading_rule(call);
}

// The right-hand side may be a stack of vectors: then as matrices of one column.
void solve_rule(Call& call) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  check_core(call, a, 2);
  const bool vector = b.dim() == 1 || (a.dim() - 1 == b.dim() &&
                                       a.sizes().slice(0, a.sizes().size() - 1) == b.sizes());
  if (!vector) {
    call.flags = 22;
    core_rule(call);
    return;
  }
  Stack stack = call.args;
  stack[1] = IValue(b.unsqueeze(-1));
  call.op.call_boxed(stack);
  stack[0] = IValue(stack[0].toTensor().squeeze(-1));
  call.results = std::move(stack);
}

void check_errors_rule(Call& call) {
  Stack stack = call.args;
  stack[0] = IValue(call.front(call.tensor(0)));
  stack[2] = IValue(false);
  call.op.call_boxed(stack);
}

void cross_rule(Call& call) {
  TORCH_CHECK(call.tensor(0).dim() == call.tensor(1).dim(),
              "linalg.cross: inputs must have the same number of dimensions.");
  const int64_t rank = call.max_rank();
  Stack stack = call.args;
  for (size_t i = 0; i < 2; ++i)
    stack[i] = IValue(call.padded(call.wrap(call.expanded(call.tensor(i))), rank));
  stack[2] = IValue(call.shifted(call.args[2].toInt(), rank) - rank - 1);
  call.run(std::move(stack));
}
} // namespace

ArrayRef<RuleEntry> matmul_rules() {
  static const RuleEntry entries[] = {
      {"mm bmm", product_rule, 0},
      {"mv", mv_rule, 0},
      {"dot vdot", dot_rule, 0},
      {"addmm", add_product<at::mm>, 0},
      {"addmv", add_product<at::mv>, 0},
      {"baddbmm", add_product<at::bmm>, 0},
      {"addbmm", add_product<summed_bmm>, 0},
      {"addr", add_product<at::outer>, 0},
      {"linear", linear_rule, 0},
      {"_linalg_solve_ex", solve_rule, 0},
      {"linalg_solve_triangular cholesky_solve triangular_solve _cdist_forward", core_rule, 22},
      {"linalg_lu_solve linalg_ldl_solve ormqr", core_rule, 212},
      {"lu_unpack linalg_householder_product", core_rule, 21},
      {"_cdist_backward", core_rule, 2222},
      {"_linalg_check_errors", check_errors_rule, 0},
      {"linalg_cross", cross_rule, 0},
      // Factorizations take stacks of matrices of any number of dimensions.
      {"linalg_inv_ex linalg_cholesky_ex linalg_qr linalg_lu linalg_lu_factor_ex _linalg_det "
       "_linalg_slogdet _linalg_eigh _linalg_svd linalg_eig _linalg_eigvals linalg_eigvals "
       "linalg_matrix_exp cholesky cholesky_inverse linalg_ldl_factor_ex geqrf inverse",
       factor_rule, 0},
  };
  return entries;
}

} // namespace at::functorch
