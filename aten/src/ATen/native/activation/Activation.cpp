// Activations that choose their functor at run time (gelu's approximation, gradients from the input
// or the result), work on parts of their input (glu), or are made of others. Those that are one
// functor stand in native_functions.yaml alone.
#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/PointwisePrograms.h>
#include <ATen/iter/Pointwise.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/activation/ActivationTables.h>
#include <ATen/native/activation/Native.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/ops/_prelu_kernel.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/add.h>
#include <ATen/ops/all.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/log_sigmoid_forward.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

namespace at::native {
namespace {
using iter::Operands;
using iter::Params;
using iter::PointwiseSpec;
using iter::Promote;

#ifdef CRESSET_HAVE_X86_ISA
#define CRESSET_ACTIVATION_TABLE(Name)                                                             \
  constexpr const LoopTable* tables_##Name[3] = {                                                  \
      &base::activation_##Name, &avx2::activation_##Name, &avx512::activation_##Name};
#else
#define CRESSET_ACTIVATION_TABLE(Name)                                                             \
  constexpr const LoopTable* tables_##Name[3] = {                                                  \
      &base::activation_##Name, &base::activation_##Name, &base::activation_##Name};
#endif
CRESSET_FORALL_ACTIVATION_TABLES(CRESSET_ACTIVATION_TABLE)
#undef CRESSET_ACTIVATION_TABLE

// The loops, and the functor's CUDA program.
#define CRESSET_SPEC(name, functor, inputs, params)                                                \
  PointwiseSpec {                                                                                  \
    name, tables_##functor, inputs, params, OutKind::Same, Promote::Default,                       \
        &cuda::loops_##functor##_##inputs##_##params                                               \
  }
constexpr PointwiseSpec kGelu = CRESSET_SPEC("gelu", Gelu, 1, 0);
constexpr PointwiseSpec kGeluTanh = CRESSET_SPEC("gelu", GeluTanh, 1, 0);
constexpr PointwiseSpec kGeluBackward = CRESSET_SPEC("gelu_backward", GeluBackward, 2, 0);
constexpr PointwiseSpec kGeluTanhBackward = CRESSET_SPEC("gelu_backward", GeluTanhBackward, 2, 0);
constexpr PointwiseSpec kEluBackward = CRESSET_SPEC("elu_backward", EluBackward, 2, 3);
constexpr PointwiseSpec kEluFromResult = CRESSET_SPEC("elu_backward", EluBackwardFromResult, 2, 3);
constexpr PointwiseSpec kLeakyBackward =
    CRESSET_SPEC("leaky_relu_backward", LeakyReluBackward, 2, 1);
constexpr PointwiseSpec kLogSigmoid = CRESSET_SPEC("log_sigmoid", LogSigmoid, 1, 0);
constexpr PointwiseSpec kLogSigmoidBackward =
    CRESSET_SPEC("log_sigmoid_backward", LogSigmoidBackward, 2, 0);
constexpr PointwiseSpec kLogitBackward = CRESSET_SPEC("logit_backward", LogitBackward, 2, 1);
constexpr PointwiseSpec kGlu = CRESSET_SPEC("glu", Glu, 2, 0);
constexpr PointwiseSpec kGluGate = CRESSET_SPEC("glu_backward", GluGate, 3, 0);
constexpr PointwiseSpec kPreluSlope = CRESSET_SPEC("prelu_backward", PreluSlope, 2, 0);
constexpr PointwiseSpec kPreluInput = CRESSET_SPEC("prelu_backward", PreluInput, 3, 0);
#undef CRESSET_SPEC

// Into `out` when there is one.
Tensor run(Tensor* out, const PointwiseSpec& s, Operands operands, Params params = {}) {
  return out ? iter::pointwise_out(s, *out, operands, params)
             : iter::pointwise(s, operands, params);
}

bool use_tanh(std::string_view approximate) {
  TORCH_CHECK(approximate == "none" || approximate == "tanh",
              "approximate argument must be either none or tanh.");
  return approximate == "tanh";
}

Tensor elu_gradient(Tensor* out, const Tensor& grad, const Scalar& alpha, const Scalar& scale,
                    const Scalar& input_scale, bool is_result, const Tensor& self_or_result) {
  TORCH_CHECK(
      !is_result || alpha.toDouble() >= 0,
      "In-place elu backward calculation is triggered with a negative slope which is not "
      "supported. This is caused by calling in-place forward function with a negative slope, "
      "please call out-of-place version instead.");
  return run(out, is_result ? kEluFromResult : kEluBackward, {grad, self_or_result},
             {&alpha, &scale, &input_scale});
}

Tensor leaky_gradient(Tensor* out, const Tensor& grad, const Tensor& self, const Scalar& slope,
                      bool self_is_result) {
  TORCH_CHECK(!self_is_result || slope.toDouble() >= 0,
              "In-place leakyReLu backward calculation is triggered with a negative slope which is "
              "not supported. This is caused by calling in-place forward function with a negative "
              "slope, please call out-of-place version instead.");
  return run(out, kLeakyBackward, {grad, self}, {&slope});
}

Tensor logit_gradient(Tensor* out, const Tensor& grad, const Tensor& self,
                      std::optional<double> eps) {
  const Scalar value = eps ? *eps : -1.0;
  return run(out, kLogitBackward, {grad, self}, {&value});
}

// Where `self` is halved along `dim`.
struct Halves {
  int64_t dim, size;
};
Halves halves_of(const Tensor& self, int64_t dim) {
  TORCH_CHECK(self.dim() > 0, "glu does not support scalars because halving size must be even");
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t n = self.size(d);
  TORCH_CHECK(n % 2 == 0, "Halving dimension must be even, but dimension ", d, " is size ", n);
  return {d, n / 2};
}
Tensor half(const Tensor& t, const Halves& h, int which) {
  return t.narrow(h.dim, which * h.size, h.size);
}

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

Scalar celu_input_scale(const Scalar& alpha) {
  TORCH_CHECK(alpha.toDouble() != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return 1.0 / alpha.toDouble();
}
} // namespace

// ---- checks -------------------------------------------------------------------------------------
void relu_check(const Tensor& self) {
  TORCH_CHECK(self.scalar_type() != kBool, "Boolean inputs not supported for relu");
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "clamp is not supported for complex types");
}
void hardtanh_check(const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  TORCH_CHECK(self.scalar_type() != kBool, "Bool inputs not supported for hardtanh");
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "clamp is not supported for complex types");
  const bool is_unsigned = c10::isIntegralType(self.scalar_type(), false) && !self.is_signed();
  TORCH_CHECK(!is_unsigned || (min_val.toDouble() >= 0 && max_val.toDouble() >= 0),
              "cannot do hardtanh on an unsigned type with negative limits");
}
void softshrink_check(const Tensor& self, const Scalar& lambd) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.is_floating_point(),
                              "\"softshrink_check\" not implemented for '", self.scalar_type(),
                              "'");
  const double value = lambd.toDouble();
  const ScalarType dtype = self.scalar_type();
  struct Limit {
    double value;
    const char* text;
  };
  const Limit limit = dtype == kHalf       ? Limit{65504.0, "65504"}
                      : dtype == kBFloat16 ? Limit{3.3895313892515355e38, "3.38953e+38"}
                      : dtype == kFloat    ? Limit{std::numeric_limits<float>::max(), "3.40282e+38"}
                                        : Limit{std::numeric_limits<double>::max(), "1.79769e+308"};
  TORCH_CHECK(value >= 0 && value <= limit.value, "lambda must be in range [0, ", limit.text,
              "] for input dtype ", dtype, ", but found ", value);
}

// ---- functors chosen at run time ----------------------------------------------------------------
Tensor gelu(const Tensor& self, std::string_view approximate) {
  return run(nullptr, use_tanh(approximate) ? kGeluTanh : kGelu, {self});
}
Tensor& gelu_(Tensor& self, std::string_view approximate) {
  return iter::pointwise_(use_tanh(approximate) ? kGeluTanh : kGelu, self, {self});
}
Tensor& gelu_out(const Tensor& self, std::string_view approximate, Tensor& out) {
  return iter::pointwise_out(use_tanh(approximate) ? kGeluTanh : kGelu, out, {self});
}
Tensor gelu_backward(const Tensor& grad_output, const Tensor& self, std::string_view approximate) {
  return run(nullptr, use_tanh(approximate) ? kGeluTanhBackward : kGeluBackward,
             {grad_output, self});
}
Tensor& gelu_backward_out(const Tensor& grad_output, const Tensor& self,
                          std::string_view approximate, Tensor& grad_input) {
  run(&grad_input, use_tanh(approximate) ? kGeluTanhBackward : kGeluBackward, {grad_output, self});
  return grad_input;
}

Tensor elu_backward(const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                    const Scalar& input_scale, bool is_result, const Tensor& self_or_result) {
  return elu_gradient(nullptr, grad_output, alpha, scale, input_scale, is_result, self_or_result);
}
Tensor& elu_backward_out(const Tensor& grad_output, const Scalar& alpha, const Scalar& scale,
                         const Scalar& input_scale, bool is_result, const Tensor& self_or_result,
                         Tensor& grad_input) {
  elu_gradient(&grad_input, grad_output, alpha, scale, input_scale, is_result, self_or_result);
  return grad_input;
}

Tensor leaky_relu_backward(const Tensor& grad_output, const Tensor& self,
                           const Scalar& negative_slope, bool self_is_result) {
  return leaky_gradient(nullptr, grad_output, self, negative_slope, self_is_result);
}
Tensor& leaky_relu_backward_out(const Tensor& grad_output, const Tensor& self,
                                const Scalar& negative_slope, bool self_is_result,
                                Tensor& grad_input) {
  leaky_gradient(&grad_input, grad_output, self, negative_slope, self_is_result);
  return grad_input;
}

Tensor logit_backward(const Tensor& grad_output, const Tensor& self, std::optional<double> eps) {
  return logit_gradient(nullptr, grad_output, self, eps);
}
Tensor& logit_backward_out(const Tensor& grad_output, const Tensor& self, std::optional<double> eps,
                           Tensor& grad_input) {
  logit_gradient(&grad_input, grad_output, self, eps);
  return grad_input;
}

// The gradient is one exponential of the input itself, so the buffer that the schema has room for
// stays empty.
std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) {
  return {run(nullptr, kLogSigmoid, {self}),
          at::detail::empty({0}, self.scalar_type(), self.device())};
}
Tensor log_sigmoid(const Tensor& self) { return std::get<0>(at::log_sigmoid_forward(self)); }
Tensor log_sigmoid_backward(const Tensor& grad_output, const Tensor& self,
                            const Tensor& /*buffer*/) {
  return run(nullptr, kLogSigmoidBackward, {grad_output, self});
}
Tensor& log_sigmoid_backward_out(const Tensor& grad_output, const Tensor& self,
                                 const Tensor& /*buffer*/, Tensor& grad_input) {
  run(&grad_input, kLogSigmoidBackward, {grad_output, self});
  return grad_input;
}

// ---- glu ----------------------------------------------------------------------------------------
void glu_cpu(const Tensor& self, int64_t dim, const Tensor& out) {
  const Halves h = halves_of(self, dim);
  Tensor target = out;
  iter::pointwise_out(kGlu, target, {half(self, h, 0), half(self, h, 1)});
}
void glu_backward_cpu(const Tensor& grad_output, const Tensor& self, int64_t dim,
                      const Tensor& out) {
  const Halves h = halves_of(self, dim);
  const Tensor x = half(self, h, 0), gate = half(self, h, 1);
  Tensor to_x = half(out, h, 0), to_gate = half(out, h, 1);
  iter::pointwise_out(kGlu, to_x, {grad_output, gate});
  iter::pointwise_out(kGluGate, to_gate, {grad_output, x, gate});
}
Tensor glu_jvp(const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim) {
  const Halves h = halves_of(x, dim);
  const Tensor s = at::sigmoid(half(x, h, 1));
  // d(a s(b)) = s(b) da + a s(b) (1 - s(b)) db
  return at::add(at::mul(half(dx, h, 0), s), at::mul(at::mul(glu, at::rsub(s, 1)), half(dx, h, 1)));
}

// ---- prelu --------------------------------------------------------------------------------------
Tensor prelu(const Tensor& self, const Tensor& weight) {
  TORCH_CHECK(self.scalar_type() == weight.scalar_type(),
              "prelu: Type promoting not supported. Got ", self.scalar_type(), " and ",
              weight.scalar_type());
  const int64_t count = weight.numel();
  if (count != 1) {
    TORCH_CHECK(self.dim() > 0, "Not allow zero-dim input tensor.");
    const int64_t channels = self.dim() > 1 ? self.size(1) : 1;
    TORCH_CHECK(channels == count,
                "Mismatch of parameter numbers and input channel size. Found "
                "parameter numbers = ",
                count, " and channel size = ", channels, ".");
  }
  TORCH_CHECK(
      weight.dim() <= 1,
      "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim());
  DimVector shape(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 1)
    shape[1] = count;
  else if (self.dim() == 1)
    shape[0] = count;
  return at::_prelu_kernel(self, weight.reshape(shape));
}
std::tuple<Tensor, Tensor> _prelu_kernel_backward(const Tensor& grad_output, const Tensor& self,
                                                  const Tensor& weight) {
  return {run(nullptr, kPreluInput, {grad_output, self, weight}),
          run(nullptr, kPreluSlope, {grad_output, self})};
}

// ---- made of others -----------------------------------------------------------------------------
Tensor relu6(const Tensor& self) { return at::hardtanh(self, 0, 6); }
Tensor& relu6_(Tensor& self) { return at::hardtanh_(self, 0, 6); }
Tensor celu(const Tensor& self, const Scalar& alpha) {
  return at::elu(self, alpha, 1.0, celu_input_scale(alpha));
}
Tensor& celu_(Tensor& self, const Scalar& alpha) {
  return at::elu_(self, alpha, 1.0, celu_input_scale(alpha));
}
Tensor selu(const Tensor& self) { return at::elu(self, kSeluAlpha, kSeluScale); }
Tensor& selu_(Tensor& self) { return at::elu_(self, kSeluAlpha, kSeluScale); }

Tensor infinitely_differentiable_gelu_backward(const Tensor& grad, const Tensor& self) {
  constexpr double kInvSqrt2 = 0.70710678118654752440, kInvSqrt2Pi = 0.39894228040143267794;
  const Tensor cdf = at::mul(at::add(at::erf(at::mul(self, kInvSqrt2)), 1.0), 0.5);
  const Tensor pdf = at::mul(at::exp(at::mul(at::mul(self, self), -0.5)), kInvSqrt2Pi);
  return at::mul(grad, at::add(cdf, at::mul(self, pdf)));
}

// The slopes that the forward drew, or their mean.
Tensor rrelu_with_noise_backward(const Tensor& grad_output, const Tensor& self, const Tensor& noise,
                                 const Scalar& lower, const Scalar& upper, bool training,
                                 bool self_is_result) {
  if (training && upper.toDouble() - lower.toDouble() > 1e-6) return at::mul(grad_output, noise);
  const double slope = (lower.toDouble() + upper.toDouble()) / 2;
  return at::leaky_relu_backward(grad_output, self, slope, self_is_result);
}

// softmax with zeros instead of NaN where everything along `dim` is masked with -inf.
Tensor _safe_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  const Tensor result = at::softmax(self, dim, dtype);
  const Scalar lowest = -std::numeric_limits<double>::infinity();
  return at::masked_fill(result, at::all(at::eq(self, lowest), dim, true), 0.0);
}

} // namespace at::native

namespace at::meta {
void meta_glu(OutputBuilder& out, const Tensor& self, int64_t dim) {
  if (native::is_symbolic(self)) {
    TORCH_CHECK(self.dim() > 0, "glu does not support scalars because halving size must be even");
    const int64_t d = native::wrap_dim(dim, self.dim());
    native::SymDimVector halved(self.sym_sizes());
    const SymInt half = halved[static_cast<size_t>(d)] / SymInt(2);
    TORCH_CHECK(c10::expect_true(c10::sym_eq(half * SymInt(2), self.sym_size(d))),
                "Halving dimension must be even, but dimension ", d, " is size ", self.sym_size(d));
    halved[static_cast<size_t>(d)] = half;
    out.set_symint(0, halved, self.scalar_type());
    return;
  }
  const native::Halves h = native::halves_of(self, dim);
  DimVector sizes(self.sizes().begin(), self.sizes().end());
  sizes[static_cast<size_t>(h.dim)] = h.size;
  out.set(0, sizes, self.scalar_type(), c10::infer_dense_strides(sizes, self.strides()));
}
void meta_glu_backward(OutputBuilder& out, const Tensor& /*grad_output*/, const Tensor& self,
                       int64_t dim) {
  native::halves_of(self, dim);
  out.set(0, self.sizes(), self.scalar_type());
}
} // namespace at::meta
