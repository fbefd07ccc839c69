// What the formulas of derivatives.yaml are written with: arithmetic on tensors, and the gradients
// too long for one line. All are made of operators, so that they can be differentiated again.
//
// Gradients of complex inputs follow the convention of the conjugate Wirtinger derivative: a step
// against the gradient makes a real loss smaller; hence `cj` on every factor. A gradient of a
// broadcast input need not be summed here: the engine brings each one to its input's shape.
#pragma once
#include <ATen/native/norm/PendingSum.h>
#include <ATen/ops/add.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sub.h>
#include <c10/util/MathConstants.h>
#include <torch/csrc/autograd/generated_node.h>

namespace torch::autograd::generated {

using at::IntArrayRef;
using at::OptionalIntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;
using at::TensorList;
using Tensors = std::vector<Tensor>;
using OptionalTensor = std::optional<Tensor>;
using SymSizes = c10::SmallVector<c10::SymInt, 6>;

inline Tensor operator+(const Tensor& a, const Tensor& b) { return at::add(a, b); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return at::add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return at::sub(a, b); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return at::sub(a, b); }
TORCH_API Tensor operator-(const Scalar& a, const Tensor& b);
inline Tensor operator-(const Tensor& a) { return at::neg(a); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return at::mul(a, b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return at::mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return at::div(a, b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return at::div(a, b); }

inline Tensor cj(const Tensor& t) { return t.is_complex() ? at::conj(t) : t; }
inline Scalar cj(const Scalar& s) {
  if (!s.isComplex()) return s;
  const c10::complex<double> z = s.toComplexDouble();
  return c10::complex<double>(z.real_, -z.imag_);
}
// grad * s, without a multiplication by one.
inline Tensor scaled(const Tensor& grad, const Scalar& s) {
  return s.equal(int64_t(1)) ? grad : grad * cj(s);
}

// The gradients that `f` computes, of which the first may come added to the sum that waits for it.
template <class F> auto granting_sum(const F& f) {
  const at::native::GrantSum granted;
  return f();
}

// t * s. A multiplication by one is made only where handlers look on, who expect it.
Tensor times(const Tensor& t, const Scalar& s);
// A number that stands beside `like` as a tensor.
Tensor number_like(const Scalar& number, const Tensor& like);
// Writes zero where `mask` holds into a tensor that nobody else has.
Tensor zeroed(Tensor fresh, const Tensor& mask);
Scalar one_minus(const Scalar& s);

constexpr double kPi = c10::pi<double>;
constexpr double kLn2 = 0.69314718055994530942;
constexpr double kLn10 = 2.30258509299404568402;
constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
constexpr double kSqrtHalf = 0.70710678118654752440;

[[noreturn]] TORCH_API Tensor not_implemented(const char* what);
// The gradient where, and in the dtype in which, what it belongs to is.
Tensor moved_like(const Tensor& grad, const at::TensorOptions& options);
// Zeros of the shape of each gradient.
Tensors zeros_like_each(const TensorVec& grads);
Tensor zero_where(const Tensor& grad, const Tensor& mask);
Tensor keep_where(const Tensor& grad, const Tensor& mask);

// What the backward of a batch norm needs of running statistics, which the next forward overwrites:
// nothing in training, else a copy.
Tensor running_stats(const Tensor& statistics, bool training);
std::optional<Tensor> running_stats(const std::optional<Tensor>& statistics, bool training);

// ---- pointwise
Tensor sinc_grad(const Tensor& grad, const Tensor& self);
Tensor angle_grad(const Tensor& grad, const Tensor& self);
Tensor sgn_grad(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor trigamma(const Tensor& self);
// grad * (first - result / self), where the bracket is `at_zero` at zero.
Tensor ratio_rule(const Tensor& grad, const Tensor& self, const Tensor& first, const Tensor& result,
                  double at_zero);
Tensor i1e_grad(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor div_self_grad(const Tensor& grad, const Tensor& other,
                     const std::optional<std::string>& mode);
Tensor div_other_grad(const Tensor& grad, const Tensor& self, const Tensor& other,
                      const std::optional<std::string>& mode);
Tensor div_scalar_grad(const Tensor& grad, const Scalar& other,
                       const std::optional<std::string>& mode);
// The share of the larger of two; halves at equality.
// Of maximum and minimum: half of it where the operands are equal, none where `self` is smaller
// (`less`) or larger than `other`.
Tensor larger_share(const Tensor& grad, const Tensor& self, const Tensor& other, bool less);
Tensor first_of_fmax(const Tensor& grad, const Tensor& self, const Tensor& other, bool first,
                     bool max);
Tensor pow_grad(const Tensor& grad, const Tensor& self, const Scalar& exponent);
Tensor pow_self_grad(const Tensor& grad, const Tensor& self, const Tensor& exponent);
Tensor pow_exponent_grad(const Tensor& grad, const Tensor& self, const Tensor& exponent,
                         const Tensor& result);
Tensor pow_scalar_grad(const Tensor& grad, const Scalar& self, const Tensor& exponent,
                       const Tensor& result);
std::tuple<Tensor, Tensor> atan2_grads(const Tensor& grad, const Tensor& self, const Tensor& other,
                                       std::array<bool, 2> mask);
// The gradient times a logarithm, and zero where zero was multiplied with one that is not finite.
Tensor xlogy_self_grad(const Tensor& product, const Tensor& self, const Tensor& other,
                       double limit);
Tensor xlogy_number_grad(const Tensor& product, const Tensor& self, const Scalar& other,
                         double limit);
Tensor addcdiv_grad(const Tensor& grad, const Scalar& value, const Tensor& divisor);
Tensor igamma_other_grad(const Tensor& grad, const Tensor& self, const Tensor& other);
Tensor clamp_grad(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                  const std::optional<Scalar>& max);
Tensor clamp_tensor_grad(const Tensor& grad, const Tensor& self, const OptionalTensor& min,
                         const OptionalTensor& max);
std::tuple<Tensor, Tensor> clamp_bound_grads(const Tensor& grad, const Tensor& self,
                                             const OptionalTensor& min, const OptionalTensor& max,
                                             std::array<bool, 2> mask);
Tensor copysign_grad(const Tensor& grad, const Tensor& self, const Tensor& result);

// ---- sizes
Tensor expanded(const Tensor& t, SizesRef sizes);
Tensor reshaped(const Tensor& t, SizesRef sizes);
// Behind the last element that narrow() took, as slicing counts.
c10::SymInt narrow_end(c10::SymInt start, c10::SymInt length);

// ---- reductions
// The gradient of a reduction seen with the reduced dimensions back in place (of size 1).
Tensor unreduce(const Tensor& grad, SizesRef sizes, const OptionalIntArrayRef& dims, bool keepdim);
Tensor sum_grad(const Tensor& grad, SizesRef sizes, const OptionalIntArrayRef& dims, bool keepdim);
Tensor mean_grad(const Tensor& grad, SizesRef sizes, const OptionalIntArrayRef& dims, bool keepdim);
Tensor prod_grad(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor prod_dim_grad(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim,
                     bool keepdim);
// Shared evenly among the elements equal to the result.
Tensor extremum_grad(const Tensor& grad, const Tensor& self, const Tensor& result,
                     const OptionalIntArrayRef& dims, bool keepdim);
// The same for the extremum of all elements; a NaN that is the result has the gradient.
Tensor whole_extremum_grad(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor aminmax_grad(const Tensor& gmin, const Tensor& gmax, const Tensor& self, const Tensor& min,
                    const Tensor& max, std::optional<int64_t> dim, bool keepdim);
Tensor var_grad(const Tensor& grad, const Tensor& self, const OptionalIntArrayRef& dims,
                const std::optional<Scalar>& correction, bool keepdim);
Tensor std_grad(const Tensor& grad, const Tensor& self, const Tensor& result,
                const OptionalIntArrayRef& dims, const std::optional<Scalar>& correction,
                bool keepdim);
Tensor var_mean_grad(const Tensor& gvar, const Tensor& gmean, const Tensor& self,
                     const OptionalIntArrayRef& dims, const std::optional<Scalar>& correction,
                     bool keepdim);
Tensor std_mean_grad(const Tensor& gstd, const Tensor& gmean, const Tensor& self, const Tensor& std,
                     const OptionalIntArrayRef& dims, const std::optional<Scalar>& correction,
                     bool keepdim);
Tensor logsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result,
                      IntArrayRef dims, bool keepdim);
Tensor norm_grad(const Tensor& grad, const Tensor& self, const Tensor& result, const Scalar& ord,
                 const OptionalIntArrayRef& dims, bool keepdim);
Tensor reversed_cumsum(const Tensor& grad, int64_t dim);
Tensor cumprod_grad(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);
Tensor logcumsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim);
Tensor cumextremum_grad(const Tensor& grad, const Tensor& indices, IntArrayRef sizes, int64_t dim);
Tensor softmax_output_grad(const Tensor& gg, const Tensor& grad, const Tensor& output, int64_t dim);
Tensor log_softmax_grad_grad(const Tensor& gg, const Tensor& output, int64_t dim);
Tensor trace_grad(const Tensor& grad, IntArrayRef sizes);

// ---- shapes
// The gradient of squeeze, of all dimensions or those given.
Tensor unsqueezed(const Tensor& grad, SizesRef sizes, const OptionalIntArrayRef& dims);
Tensor permute_grad(const Tensor& grad, IntArrayRef dims);
Tensor as_strided_grad(const Tensor& grad, IntArrayRef base_sizes, IntArrayRef base_strides,
                       int64_t base_offset, IntArrayRef sizes, IntArrayRef strides,
                       std::optional<int64_t> offset);
Tensor unbind_grad(const TensorVec& grads, SizesRef sizes, const at::TensorOptions& options,
                   int64_t dim);
std::tuple<Tensor, Tensor, Tensor>
cudnn_attention_grads(const Tensor& grad, const Tensor& query, const Tensor& key,
                      const Tensor& value, const std::optional<Tensor>& attn_mask,
                      const Tensor& output, const Tensor& logsumexp, const Tensor& seed,
                      double dropout_p, bool is_causal, double scale);
Tensor split_grad(const TensorVec& grads, SizesRef sizes, const at::TensorOptions& options,
                  c10::SymInt size, int64_t dim);
Tensor split_sizes_grad(const TensorVec& grads, SizesRef sizes, const at::TensorOptions& options,
                        SizesRef parts, int64_t dim);
Tensors cat_grad(const Tensor& grad, const std::vector<KeptSizes>& sizes, int64_t dim);
Tensors stack_grad(const Tensor& grad, int64_t dim);
Tensors block_diag_grad(const Tensor& grad, const std::vector<KeptSizes>& sizes);
Tensor roll_grad(const Tensor& grad, IntArrayRef shifts, IntArrayRef dims);
Tensor repeat_grad(const Tensor& grad, SizesRef sizes, SizesRef repeats);
Tensor pad_grad(const Tensor& grad, IntArrayRef pad);

// ---- indexing
using OptionalTensors = std::vector<OptionalTensor>;
Tensor zeros_of(SizesRef sizes, const Tensor& like);
Tensor index_grad(const Tensor& grad, SizesRef sizes, const OptionalTensors& indices);
Tensor index_put_self_grad(const Tensor& grad, const OptionalTensors& indices, bool accumulate);
Tensor masked_scatter_source_grad(const Tensor& grad, const Tensor& mask, IntArrayRef sizes);
Tensor take_grad(const Tensor& grad, SizesRef sizes, const Tensor& index);
Tensor index_copy_source_grad(const Tensor& grad, const Tensor& index, int64_t dim,
                              IntArrayRef sizes);
Tensor scatter_reduce_self_grad(const Tensor& grad, const Tensor& self, int64_t dim,
                                const Tensor& index, const Tensor& src, std::string_view reduce,
                                bool include_self, const Tensor& result);
Tensor scatter_reduce_src_grad(const Tensor& grad, const Tensor& self, int64_t dim,
                               const Tensor& index, const Tensor& src, std::string_view reduce,
                               bool include_self, const Tensor& result);
Tensor index_reduce_grad(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& source, std::string_view reduce, bool include_self,
                         const Tensor& result, bool of_self);

// ---- matrix products
Tensor matrix_H(const Tensor& t); // of the last two dimensions
Tensor turned(const Tensor& t);   // of a matrix
// Of a product of matrices at the operand with these strides: made by columns where the operand
// lies so, for whose transposed view the gradient is then contiguous.
Tensor mm_left_grad(const Tensor& grad, const Tensor& right, SizesRef strides);
Tensor mm_right_grad(const Tensor& grad, const Tensor& left, SizesRef strides);
// The matrix for each sample of a batch.
Tensor repeated(const Tensor& matrix, SizesRef batch_sizes);
Tensor repeated_last(const Tensor& batch, const Tensor& grad);
Tensor linear_input_grad(const Tensor& grad, SizesRef sizes, const Tensor& weight);
Tensor linear_weight_grad(const Tensor& grad, const Tensor& input, SizesRef sizes);
Tensor linear_bias_grad(const Tensor& grad, int64_t weight_dim);
// The name of linear's node: that of the last of the operators PyTorch makes of these arguments.
const char* linear_node(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias);

// ---- activations and losses
Tensor elu_slope_grad(const Tensor& grad, const Tensor& grad_output, const Scalar& alpha,
                      const Scalar& scale, const Scalar& input_scale, bool is_result,
                      const Tensor& self_or_result);
Tensor renorm_grad(const Tensor& grad, const Tensor& self, const Scalar& p, int64_t dim,
                   const Scalar& maxnorm);
// Mean and reciprocal deviation are results too and may have gradients.
std::tuple<Tensor, Tensor, Tensor> group_norm_grad(const TensorVec& grads, const Tensor& input,
                                                   const Tensor& mean, const Tensor& rstd,
                                                   const OptionalTensor& weight, int64_t n,
                                                   int64_t c, int64_t hxw, int64_t group,
                                                   std::array<bool, 3> mask);
Tensor bce_target_grad(const Tensor& grad, const Tensor& self, const OptionalTensor& weight,
                       int64_t reduction);
Tensor bce_with_logits_grad(const Tensor& grad, const Tensor& self, const Tensor& target,
                            const OptionalTensor& weight, const OptionalTensor& pos_weight,
                            int64_t reduction);
Tensor bce_with_logits_target_grad(const Tensor& grad, const Tensor& self,
                                   const OptionalTensor& weight, const OptionalTensor& pos_weight,
                                   int64_t reduction);

// ---- convolutions
std::tuple<Tensor, Tensor, Tensor> conv_grad(const Tensor& grad, const Tensor& input,
                                             const Tensor& weight, IntArrayRef stride,
                                             IntArrayRef padding, IntArrayRef dilation,
                                             bool transposed, IntArrayRef output_padding,
                                             int64_t groups, std::array<bool, 3> mask);
// Of convolution_backward: at grad_output, input and weight.
std::tuple<Tensor, Tensor, Tensor> conv_grad_grad(const TensorVec& grads, const Tensor& grad_output,
                                                  const Tensor& input, const Tensor& weight,
                                                  IntArrayRef stride, IntArrayRef padding,
                                                  IntArrayRef dilation, bool transposed,
                                                  IntArrayRef output_padding, int64_t groups,
                                                  std::array<bool, 3> mask);
Tensor im2col_grad(const Tensor& grad, IntArrayRef sizes, IntArrayRef kernel_size,
                   IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride);

// ---- pooling
// The elements of each plane (the last `dims` dimensions) at the flat indices.
Tensor gather_planes(const Tensor& grad, const Tensor& indices, int64_t dims);
// Whether adaptive pooling leaves one value of each plane, which PyTorch computes as a mean.
bool pools_all(c10::SymIntArrayRef output_size);
IntArrayRef last_sizes(IntArrayRef sizes, int64_t dims);

// ---- Fourier transforms
Tensor fft_r2c_grad(const Tensor& grad, IntArrayRef dim, int64_t normalization, bool onesided,
                    IntArrayRef sizes);
Tensor fft_c2r_grad(const Tensor& grad, IntArrayRef dim, int64_t normalization);

} // namespace torch::autograd::generated

#include <torch/csrc/autograd/functions_linalg.h>
#include <torch/csrc/autograd/functions_sparse.h>
