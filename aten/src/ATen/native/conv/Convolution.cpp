// `convolution` and its gradient: brings operands to the layout of the kernels, and a transposed
// convolution to the plain one it is the gradient of.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/CTypeName.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/conv/ConvGeometry.h>
#include <ATen/native/conv/ConvKernels.h>
#include <ATen/native/conv/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/sum.h>
#include <ATen/parallel/Parallel.h>
#include <c10/core/MemoryFormat.h>

namespace at::native {
namespace {

bool is_reduced(const Tensor& t) {
  return t.scalar_type() == kHalf || t.scalar_type() == kBFloat16;
}
Tensor widened(const Tensor& t) { return is_reduced(t) ? t.to(kFloat) : t; }
Tensor conjugate(const Tensor& t) { return t.is_complex() ? at::conj_physical(t) : t; }

// Contiguous or channels last, whichever it already is.
Tensor dense_planes(const Tensor& t) {
  const MemoryFormat format = t.suggest_memory_format();
  if (format != MemoryFormat::Contiguous && t.is_contiguous(format)) return t;
  return t.contiguous();
}

const char* kernel_name(int64_t rank, bool transposed) {
  if (transposed)
    return rank == 5 ? "slow_conv_transpose3d_out_cpu" : "slow_conv_transpose2d_out_cpu";
  return rank == 5 ? "slow_conv3d_cpu" : "slow_conv2d_cpu";
}

void check_types(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  if (bias && bias->defined()) {
    TORCH_CHECK(bias->scalar_type() == input.scalar_type(), "Input type (",
                c_type_name(input.scalar_type()), ") and bias type (",
                c_type_name(bias->scalar_type()), ") should be the same");
  }
  TORCH_CHECK(weight.scalar_type() == input.scalar_type(), "expected scalar type ",
              input.scalar_type(), " but found ", weight.scalar_type());
}

// The large side gets the kernel's (contiguous) result.
void store(const Tensor& to, const Tensor& from) {
  if (!to.is_same(from)) to.copy_(from);
}

void transposed_forward(const ConvGeometry& g, const Tensor& input, const Tensor& weight,
                        const Tensor& bias, const Tensor& out, const char* name) {
  const bool direct = out.is_contiguous() && !is_reduced(input);
  const Tensor target =
      direct ? out : detail::empty(out.sizes(), is_reduced(input) ? kFloat : out.scalar_type());
  conv_input_gradient(g, dense_planes(widened(input)), widened(weight).contiguous(), target, name);
  if (bias.defined()) {
    DimVector shape(out.dim(), 1);
    shape[1] = -1;
    Tensor sum = target;
    at::_ops::add__Tensor::call(sum, widened(bias).view(shape), 1);
  }
  store(out, target);
}

} // namespace

void convolution_cpu(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                     IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                     IntArrayRef output_padding, int64_t groups, const Tensor& out) {
  check_types(input, weight, bias);
  const ConvParams params = check_convolution(input.sizes(), weight.sizes(), bias, stride, padding,
                                              dilation, transposed, output_padding, groups);
  const char* name = kernel_name(input.dim(), transposed);
  const Tensor b = bias && bias->defined() ? bias->contiguous() : Tensor();
  if (transposed) {
    const ConvGeometry g = conv_geometry(out.sizes(), weight.sizes(), input.sizes(), params);
    transposed_forward(g, input, weight, b, out, name);
    return;
  }
  const ConvGeometry g = conv_geometry(input.sizes(), weight.sizes(), out.sizes(), params);
  const bool direct = out.is_contiguous() || out.is_contiguous(out.suggest_memory_format());
  const Tensor target = direct ? out : detail::empty(out.sizes(), out.scalar_type());
  conv_forward(g, input.contiguous(), weight.contiguous(), b, target, name);
  store(out, target);
}

std::tuple<Tensor, Tensor, Tensor>
convolution_backward_cpu(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                         OptionalIntArrayRef, IntArrayRef stride, IntArrayRef padding,
                         IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                         int64_t groups, std::array<bool, 3> output_mask) {
  const ConvParams params =
      check_convolution(input.sizes(), weight.sizes(), std::nullopt, stride, padding, dilation,
                        transposed, output_padding, groups);
  const DimVector sizes = convolution_output_size(input.sizes(), weight.sizes(), params);
  TORCH_CHECK(grad_output.sizes().equals(sizes),
              "convolution_backward: expected grad_output of size ", IntArrayRef(sizes),
              ", but got ", grad_output.sizes());
  TORCH_CHECK(grad_output.scalar_type() == input.scalar_type() &&
                  weight.scalar_type() == input.scalar_type(),
              "expected scalar type ", input.scalar_type(), " but found ",
              weight.scalar_type() == input.scalar_type() ? grad_output.scalar_type()
                                                          : weight.scalar_type());
  const Tensor grad = widened(grad_output), x = widened(input), w = widened(weight);
  const char* name = "convolution_backward_cpu";
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    grad_input = detail::empty(input.sizes(), x.scalar_type());
    if (transposed) {
      conv_forward(conv_geometry(sizes, weight.sizes(), input.sizes(), params), grad.contiguous(),
                   conjugate(w).contiguous(), Tensor(), grad_input, name);
    } else {
      conv_input_gradient(conv_geometry(input.sizes(), weight.sizes(), sizes, params),
                          dense_planes(grad), conjugate(w).contiguous(), grad_input, name);
    }
    grad_input = grad_input.to(input.scalar_type()).contiguous(conv_memory_format(input, weight));
  }
  if (output_mask[1]) {
    grad_weight = detail::empty(weight.sizes(), w.scalar_type());
    if (transposed) {
      // The roles are exchanged: the small side is the input, and it is the one to conjugate.
      conv_weight_gradient(conv_geometry(sizes, weight.sizes(), input.sizes(), params),
                           dense_planes(conjugate(x)), grad.contiguous(), grad_weight, name);
    } else {
      conv_weight_gradient(conv_geometry(input.sizes(), weight.sizes(), sizes, params),
                           dense_planes(grad), conjugate(x).contiguous(), grad_weight, name);
    }
    grad_weight = grad_weight.to(weight.scalar_type()).contiguous(weight.suggest_memory_format());
  }
  if (output_mask[2]) {
    DimVector dims{0};
    for (int64_t d = 2; d < grad_output.dim(); ++d) dims.push_back(d);
    grad_bias = at::sum(grad_output, dims);
  }
  return {grad_input, grad_weight, grad_bias};
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward_symbolic(
    const Tensor& grad_output, const Tensor& input, const Tensor& weight, OptionalSymIntArrayRef,
    SymIntArrayRef stride, SymIntArrayRef padding, SymIntArrayRef dilation, bool transposed,
    SymIntArrayRef output_padding, SymInt groups, std::array<bool, 3> output_mask) {
  return convolution_backward_meta(
      grad_output, input, weight, std::nullopt, c10::as_int_array(stride),
      c10::as_int_array(padding), c10::as_int_array(dilation), transposed,
      c10::as_int_array(output_padding), groups.guard_int(), output_mask);
}
std::tuple<Tensor, Tensor, Tensor>
convolution_backward_meta(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                          OptionalIntArrayRef, IntArrayRef stride, IntArrayRef padding,
                          IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                          int64_t groups, std::array<bool, 3> output_mask) {
  if (is_symbolic(input) || is_symbolic(weight)) {
    const ConvParams params = check_conv_params(weight.dim(), stride, padding, dilation, transposed,
                                                output_padding, groups);
    symbolic_convolution_size(input, weight, std::nullopt, params);
  } else {
    check_convolution(input.sizes(), weight.sizes(), std::nullopt, stride, padding, dilation,
                      transposed, output_padding, groups);
  }
  const auto like = [](const Tensor& t, MemoryFormat format) {
    const SymIntArrayRef sizes = t.sym_sizes();
    if (format == MemoryFormat::Contiguous)
      return detail::empty_symint(sizes, t.scalar_type(), t.device());
    return detail::empty_strided_symint(sizes, channels_last_strides_of<SymInt>(sizes),
                                        t.scalar_type(), t.device());
  };
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) grad_input = like(input, conv_memory_format(input, weight));
  if (output_mask[1]) grad_weight = like(weight, weight.suggest_memory_format());
  if (output_mask[2])
    grad_bias = detail::empty_symint(grad_output.sym_sizes().slice(1, 1), grad_output.scalar_type(),
                                     grad_output.device());
  return {grad_input, grad_weight, grad_bias};
}

} // namespace at::native

namespace at::meta {

void meta_convolution(OutputBuilder& out, const Tensor& input, const Tensor& weight,
                      const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                      IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                      int64_t groups) {
  if (native::is_symbolic(input) || native::is_symbolic(weight)) {
    const native::ConvParams params = native::check_conv_params(
        weight.dim(), stride, padding, dilation, transposed, output_padding, groups);
    const native::SymDimVector sizes =
        native::symbolic_convolution_size(input, weight, bias, params);
    if (native::conv_memory_format(input, weight) == MemoryFormat::Contiguous)
      out.set_symint(0, sizes, input.scalar_type());
    else
      native::set_output(out, 0, SymIntArrayRef(sizes), input.scalar_type(),
                         native::channels_last_strides_of<SymInt>(sizes));
    return;
  }
  const auto params =
      native::check_convolution(input.sizes(), weight.sizes(), bias, stride, padding, dilation,
                                transposed, output_padding, groups);
  const DimVector sizes = native::convolution_output_size(input.sizes(), weight.sizes(), params);
  if (native::conv_memory_format(input, weight) == MemoryFormat::Contiguous) {
    out.set(0, sizes, input.scalar_type());
  } else {
    out.set(0, sizes, input.scalar_type(), IntArrayRef(c10::channels_last_strides(sizes)));
  }
}

} // namespace at::meta
