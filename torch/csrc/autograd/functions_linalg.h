// Gradients of the linalg family, for the formulas of derivatives.yaml. Undefined gradients of an
// output stand for zero; pairs answer what the mask asks for.
#pragma once
#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {

using TensorPair = std::tuple<Tensor, Tensor>;
using PairMask = std::array<bool, 2>;
using c10::DimVector;

TensorPair solve_grad(const Tensor& grad, const Tensor& A, const Tensor& B, bool left,
                      const Tensor& X, const Tensor& LU, const Tensor& pivots, PairMask mask);
Tensor det_grad(const Tensor& grad, const Tensor& A, const Tensor& det, const Tensor& LU,
                const Tensor& pivots);
Tensor slogdet_grad(const Tensor& grad_sign, const Tensor& grad_log, const Tensor& A,
                    const Tensor& sign, const Tensor& LU, const Tensor& pivots);
Tensor lu_grad(const Tensor& gL, const Tensor& gU, const Tensor& P, const Tensor& L,
               const Tensor& U);
Tensor lu_factor_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots);
Tensor lu_unpack_grad(const Tensor& gL, const Tensor& gU, IntArrayRef sizes);
TensorPair lu_solve_grad(const Tensor& grad, const Tensor& LU, const Tensor& pivots,
                         const Tensor& X, bool left, bool adjoint, PairMask mask);
Tensor cholesky_grad(const Tensor& grad, bool upper, const Tensor& factor);
Tensor cholesky_inverse_grad(const Tensor& grad, const Tensor& factor, bool upper,
                             const Tensor& inverse);
TensorPair cholesky_solve_grad(const Tensor& grad, const Tensor& factor, const Tensor& X,
                               bool upper, PairMask mask);
Tensor ldl_solve_grad(const Tensor& grad, const Tensor& LD, const Tensor& pivots, bool hermitian);
TensorPair solve_triangular_grad(const Tensor& grad, const Tensor& A, const Tensor& X, bool upper,
                                 bool left, bool unit, PairMask mask);
TensorPair triangular_solve_grad(const Tensor& grad_x, const Tensor& grad_m, const Tensor& A,
                                 const Tensor& X, bool upper, bool transpose, bool unit,
                                 PairMask mask);
Tensor qr_grad(const Tensor& gQ, const Tensor& gR, const Tensor& Q, const Tensor& R,
               const std::string& mode);
TensorPair householder_grad(const Tensor& grad, const Tensor& input, const Tensor& tau,
                            PairMask mask);
std::tuple<Tensor, Tensor, Tensor> ormqr_grad(const Tensor& grad, const Tensor& input,
                                              const Tensor& tau, const Tensor& other, bool left,
                                              bool transpose, std::array<bool, 3> mask);
Tensor eigh_grad(const Tensor& gL, const Tensor& gV, const Tensor& L, const Tensor& V);
Tensor eig_grad(const Tensor& gL, const Tensor& gV, const Tensor& L, const Tensor& V,
                bool complex_input);
Tensor svd_grad(const Tensor& gU, const Tensor& gS, const Tensor& gVh, const Tensor& U,
                const Tensor& S, const Tensor& Vh);
TensorPair lstsq_grad(const Tensor& grad, const Tensor& grad_residuals, const Tensor& A,
                      const Tensor& B, const Tensor& X, std::optional<double> rcond, PairMask mask);
Tensor pinv_grad(const Tensor& grad, const Tensor& pinv, const Tensor& A);

} // namespace torch::autograd::generated
