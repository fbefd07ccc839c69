// Gradients of orthogonal factors, eigenvalues and singular values. Vectors are determined up to
// signs or phases only: a loss that depends on these has no gradient, and is refused where it
// shows.
#include <torch/csrc/autograd/functions_linalg.h>

#include <ATen/ops/abs.h>
#include <ATen/ops/all.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/diag_embed.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ormqr.h>
#include <ATen/ops/real.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace torch::autograd::generated {

namespace {

Tensor mm(const Tensor& a, const Tensor& b) { return at::matmul(a, b); }
Tensor h(const Tensor& t) { return cj(t.transpose(-2, -1)); }
Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}
Tensor diagonal_of(const Tensor& t) { return at::diagonal(t, 0, -2, -1); }

// values_j - values_i, with ones on the diagonal so that it can be divided by.
Tensor gaps(const Tensor& values) {
  const Tensor difference = values.unsqueeze(-2) - values.unsqueeze(-1);
  return difference + at::eye(values.size(-1), values.options());
}
Tensor without_diagonal(const Tensor& t) { return t - at::diag_embed(diagonal_of(t)); }

// Not where the incoming gradient is itself a variable: forward mode takes derivatives by it, at a
// value of no meaning.
void check_phase(const Tensor& turn, const char* what, bool is_variable) {
  if (is_variable || turn.is_meta() || turn.numel() == 0) return;
  constexpr double limit = 1e-2;
  TORCH_CHECK(at::allclose(turn, at::zeros_like(turn), limit, limit), what);
}

} // namespace

// ---- QR ----------------------------------------------------------------------------------------
namespace {

// A = Q R with R square: gA = (gQ + Q S) R^-H, S the Hermitian completion of triu(gR R^H - Q^H gQ).
Tensor square_qr_grad(const Tensor& gQ, const Tensor& gR, const Tensor& Q, const Tensor& R) {
  Tensor inner;
  if (gR.defined()) inner = mm(gR, h(R));
  if (gQ.defined()) inner = plus(inner, -mm(h(Q), gQ));
  inner = at::triu(inner);
  const Tensor both = inner + h(inner);
  const Tensor completed = both - at::diag_embed(diagonal_of(both)) * 0.5;
  const Tensor rows = plus(gQ, mm(Q, completed));
  return at::linalg_solve_triangular(h(R), rows, false, false);
}

} // namespace

Tensor qr_grad(const Tensor& gQ, const Tensor& gR, const Tensor& Q, const Tensor& R,
               const std::string& mode) {
  TORCH_CHECK(mode != "r", "The derivative of linalg.qr depends on Q, which is not computed when "
                           "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to "
                           "require gradients.");
  const int64_t m = Q.size(-2), n = R.size(-1);
  TORCH_CHECK(mode != "complete" || m <= n,
              "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
  if (m >= n) return square_qr_grad(gQ, gR, Q, R);
  // The last columns are Q^H A2.
  const Tensor r1 = R.narrow(-1, 0, m);
  if (!gR.defined()) {
    const Tensor first = square_qr_grad(gQ, gR, Q, r1);
    DimVector rest(first.sizes());
    rest[rest.size() - 1] = n - m;
    return at::cat({first, at::zeros(rest, first.options())}, -1);
  }
  const Tensor g1 = gR.narrow(-1, 0, m), g2 = gR.narrow(-1, m, n - m);
  const Tensor a2 = mm(Q, R.narrow(-1, m, n - m));
  const Tensor to_q = plus(gQ, mm(a2, h(g2)));
  return at::cat({square_qr_grad(to_q, g1, Q, r1), mm(Q, g2)}, -1);
}

// ---- Householder reflections -------------------------------------------------------------------
namespace {

// Reflection i is I - tau_i v_i v_i^H with v_i zero above its unit at i.
Tensor reflector(const Tensor& input, int64_t i) {
  const int64_t m = input.size(-2);
  const Tensor column = input.select(-1, i);
  DimVector lead(column.sizes());
  lead[lead.size() - 1] = i;
  const Tensor zeros = at::zeros(lead, input.options());
  lead[lead.size() - 1] = 1;
  const Tensor one = at::zeros(lead, input.options()) + Scalar(1);
  return at::cat({zeros, one, column.narrow(-1, i + 1, m - i - 1)}, -1).unsqueeze(-1);
}

Tensor reflect(const Tensor& v, const Tensor& tau, const Tensor& x) {
  return x - mm(v * tau.unsqueeze(-1).unsqueeze(-1), mm(h(v), x));
}

// The gradients of <G, H_1 ... H_k C> with respect to the columns of `input` and to tau.
TensorPair reflections_grad(const Tensor& G, const Tensor& C, const Tensor& input,
                            const Tensor& tau) {
  const int64_t k = tau.size(-1), m = input.size(-2);
  Tensors behind(static_cast<size_t>(k)), vectors(static_cast<size_t>(k));
  Tensor tail = C;
  for (int64_t i = k; i-- > 0;) {
    behind[i] = tail;
    vectors[i] = reflector(input, i);
    tail = reflect(vectors[i], tau.select(-1, i), tail);
  }
  Tensor front = G;
  Tensors columns, taus;
  for (int64_t i = 0; i < k; ++i) {
    const Tensor& v = vectors[i];
    const Tensor t = tau.select(-1, i).unsqueeze(-1).unsqueeze(-1);
    const Tensor mv = mm(front, mm(h(behind[i]), v));
    const Tensor mhv = mm(behind[i], mm(h(front), v));
    taus.push_back(-mm(h(v), mv).squeeze(-1).squeeze(-1));
    const Tensor gv = -(mv * cj(t)) - mhv * t;
    const Tensor low = gv.squeeze(-1).narrow(-1, i + 1, m - i - 1);
    DimVector lead(low.sizes());
    lead[lead.size() - 1] = i + 1;
    columns.push_back(at::cat({at::zeros(lead, input.options()), low}, -1));
    front = reflect(v, cj(tau.select(-1, i)), front);
  }
  Tensor g_input = k == 0 ? at::zeros_like(input.narrow(-1, 0, 0)) : at::stack(columns, -1);
  if (input.size(-1) > k) {
    DimVector rest(input.sizes());
    rest[rest.size() - 1] = input.size(-1) - k;
    g_input = at::cat({g_input, at::zeros(rest, input.options())}, -1);
  }
  return {g_input, k == 0 ? at::zeros_like(tau) : at::stack(taus, -1)};
}

} // namespace

TensorPair householder_grad(const Tensor& grad, const Tensor& input, const Tensor& tau, PairMask) {
  if (!grad.defined() || input.numel() == 0) return {at::zeros_like(input), at::zeros_like(tau)};
  const int64_t m = input.size(-2), n = input.size(-1);
  const Tensor columns = at::eye(m, n, input.options()).expand(input.sizes());
  return reflections_grad(grad, columns, input, tau);
}

std::tuple<Tensor, Tensor, Tensor> ormqr_grad(const Tensor& grad, const Tensor& input,
                                              const Tensor& tau, const Tensor& other, bool left,
                                              bool transpose, std::array<bool, 3> mask) {
  Tensor g_input, g_tau, g_other;
  if (mask[2]) g_other = at::ormqr(input, tau, grad, left, !transpose);
  if (mask[0] || mask[1]) {
    // Each case as <G, Q C>.
    const Tensor g = left ? grad : h(grad), c = left ? other : h(other);
    const bool swapped = left == transpose;
    std::tie(g_input, g_tau) = reflections_grad(swapped ? c : g, swapped ? g : c, input, tau);
  }
  return {g_input, g_tau, g_other};
}

// ---- eigenvalues -------------------------------------------------------------------------------
Tensor eigh_grad(const Tensor& gL, const Tensor& gV, const Tensor& L, const Tensor& V) {
  TORCH_CHECK(V.size(-1) == L.size(-1),
              "linalg_eigh_backward: the eigenvectors are needed for the gradient, call "
              "linalg.eigh or linalg.eigvalsh with an input that requires grad");
  if (!gV.defined()) return mm(V * gL.unsqueeze(-2), h(V));
  const Tensor turned = mm(h(V), gV);
  if (V.is_complex())
    check_phase(
        at::imag(diagonal_of(turned)),
        "linalg_eigh_backward: The eigenvectors in the complex case are specified up to "
        "multiplication by e^{i phi}. The specified loss function depends on this quantity, "
        "so it is ill-defined.",
        gV.requires_grad());
  Tensor inner = without_diagonal(turned / gaps(L));
  if (gL.defined()) inner = inner + at::diag_embed(gL);
  return mm(V, mm(inner, h(V)));
}

Tensor eig_grad(const Tensor& gL, const Tensor& gV, const Tensor& L, const Tensor& V,
                bool complex_input) {
  Tensor inner;
  if (gV.defined()) {
    const Tensor turned = mm(h(V), gV);
    const Tensor on_diagonal = diagonal_of(turned);
    check_phase(
        at::imag(on_diagonal),
        "linalg_eig_backward: The eigenvectors in the complex case are specified up to "
        "multiplication by e^{i phi}. The specified loss function depends on this quantity, "
        "so it is ill-defined.",
        gV.requires_grad());
    // Eigenvectors have unit length: no step along themselves.
    const Tensor tangent = turned - mm(h(V), V) * at::real(on_diagonal).unsqueeze(-2);
    inner = without_diagonal(tangent / gaps(cj(L)));
  }
  if (gL.defined()) inner = plus(inner, at::diag_embed(gL));
  const Tensor out = at::linalg_solve(h(V), mm(inner, h(V)));
  return complex_input ? out : at::real(out);
}

// ---- singular values ---------------------------------------------------------------------------
Tensor svd_grad(const Tensor& gU_full, const Tensor& gS, const Tensor& gVh_full,
                const Tensor& U_full, const Tensor& S, const Tensor& Vh_full) {
  const int64_t k = S.size(-1);
  TORCH_CHECK(U_full.dim() == S.dim() + 1,
              "svd_backward: the singular vectors are needed for the gradient, call linalg.svd or "
              "linalg.svdvals with an input that requires grad");
  const Tensor U = U_full.size(-1) == k ? U_full : U_full.narrow(-1, 0, k);
  const Tensor Vh = Vh_full.size(-2) == k ? Vh_full : Vh_full.narrow(-2, 0, k);
  const int64_t m = U.size(-2), n = Vh.size(-1);
  if (!gU_full.defined() && !gVh_full.defined()) {
    return m >= n ? mm(U, Vh * gS.unsqueeze(-1)) : mm(U * gS.unsqueeze(-2), Vh);
  }
  const Tensor V = h(Vh);
  const Tensor gU = gU_full.defined() ? gU_full.narrow(-1, 0, k) : gU_full;
  const Tensor gV = gVh_full.defined() ? h(gVh_full.narrow(-2, 0, k)) : gVh_full;
  const auto skew = [](const Tensor& t) { return t - h(t); };
  // S_j^2 - S_i^2, and ones on the diagonal.
  const Tensor columns = S.unsqueeze(-2), rows = S.unsqueeze(-1);
  const Tensor divisor = (columns - rows) * (columns + rows) + at::eye(k, S.options());
  Tensor inner, turn_u, turn_v;
  if (gU.defined()) {
    const Tensor turned = skew(mm(h(U), gU));
    if (U.is_complex()) turn_u = diagonal_of(turned);
    inner = without_diagonal(turned / divisor) * S.unsqueeze(-2);
  }
  if (gV.defined()) {
    const Tensor turned = skew(mm(h(V), gV));
    if (U.is_complex()) turn_v = diagonal_of(turned);
    inner = plus(inner, without_diagonal(turned / divisor) * S.unsqueeze(-1));
  }
  if (U.is_complex()) {
    check_phase(at::imag(plus(turn_u, turn_v)),
                "svd_backward: The singular vectors in the complex case are specified up to "
                "multiplication by e^{i phi}. The specified loss function depends on this phase "
                "term, making it ill-defined.",
                (gU.defined() && gU.requires_grad()) || (gV.defined() && gV.requires_grad()));
    if (turn_u.defined()) inner = inner + at::diag_embed(turn_u / (S * 2));
  }
  if (gS.defined()) inner = inner + at::diag_embed(gS);
  Tensor out = mm(U, mm(inner, Vh));
  if (m > k && gU.defined()) {
    const Tensor scaled_grad = gU / S.unsqueeze(-2);
    out = out + mm(scaled_grad - mm(U, mm(h(U), scaled_grad)), Vh);
  }
  if (n > k && gV.defined()) {
    const Tensor scaled_grad = h(gV / S.unsqueeze(-2));
    out = out + mm(U, scaled_grad - mm(mm(scaled_grad, V), Vh));
  }
  return out;
}

} // namespace torch::autograd::generated
