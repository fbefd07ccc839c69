// Convolution and its gradients on CUDA: by cuDNN where it has a kernel, by definition
// (DirectConv.cuh) otherwise. Complex convolutions are made of real ones.
#include <ATen/core/Context.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/CublasLt.h>
#include <ATen/cuda/Cudnn.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/CTypeName.h>
#include <ATen/native/conv/ConvGeometry.h>
#include <ATen/native/conv/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/real.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>

namespace at::native {
namespace {
using cuda::ConvolutionKind;
using cuda::CudnnConvolution;
using cuda::Kernel;

constexpr const char* kProgram = "native/conv/DirectConv.cuh";
const Kernel kForward[4] = CRESSET_FLOATING_KERNELS(kProgram, "conv_forward");
const Kernel kInput[4] = CRESSET_FLOATING_KERNELS(kProgram, "conv_input");
const Kernel kWeight[4] = CRESSET_FLOATING_KERNELS(kProgram, "conv_weight");

void check_types(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  for (const Tensor* other : {&weight, &bias}) {
    if (!other->defined()) continue;
    const bool same = other->scalar_type() == input.scalar_type();
    TORCH_CHECK(same, "Input type (", c_type_name(input.scalar_type()), ") and ",
                other == &weight ? "weight" : "bias", " type (", c_type_name(other->scalar_type()),
                ") should be the same");
  }
  cuda::check_same_device({&input, &weight, &bias});
}

// The large side, the weight and the small side of a convolution; the one of `kind` is computed
// into the tensor given for it. All have the layout of `format`.
struct Call {
  ConvolutionKind kind;
  ConvGeometry g;
  MemoryFormat format;
  const Tensor &large, &weight, &small;

  const Tensor& result() const {
    return kind == ConvolutionKind::Forward         ? small
           : kind == ConvolutionKind::InputGradient ? large
                                                    : weight;
  }
};

CudnnConvolution description_of(const Call& call) {
  const ConvGeometry& g = call.g;
  const cuda::CudnnSettings& settings = cuda::cudnn_settings();
  CudnnConvolution c;
  // Two spatial dimensions where the first of three has no extent.
  const bool flat = g.in[0] == 1 && g.out[0] == 1 && g.kernel[0] == 1 && g.padding[0] == 0;
  const int first = flat ? 1 : 0;
  c.rank = flat ? 4 : 5;
  c.input[0] = c.output[0] = g.n;
  c.input[1] = g.c;
  c.output[1] = c.weight[0] = g.o;
  c.weight[1] = g.c_per_group();
  for (int d = first; d < 3; ++d) {
    c.input[2 + d - first] = g.in[d];
    c.weight[2 + d - first] = g.kernel[d];
    c.output[2 + d - first] = g.out[d];
    c.padding[d - first] = g.padding[d];
    c.stride[d - first] = g.stride[d];
    c.dilation[d - first] = g.dilation[d];
  }
  c.device = call.large.device().index();
  c.dtype = static_cast<int8_t>(call.large.scalar_type());
  c.kind = call.kind;
  c.channels_last = call.format != MemoryFormat::Contiguous;
  c.tf32 = settings.allow_tf32;
  c.deterministic = settings.deterministic || at::globalContext().deterministic_algorithms;
  c.benchmark = settings.benchmark;
  c.align = std::min({cuda::alignment_log2(call.large.const_data_ptr()),
                      cuda::alignment_log2(call.weight.const_data_ptr()),
                      cuda::alignment_log2(call.small.const_data_ptr()), uint8_t(4)});
  return c;
}

void run_direct(const Call& call) {
  const int slot = cuda::floating_slot(call.large.scalar_type(), "convolution_cuda");
  const Tensor large = call.large.contiguous(), weight = call.weight.contiguous(),
               small = call.small.contiguous();
  const auto stream = cuda::current_stream();
  const int64_t items = call.result().numel();
  const unsigned blocks = cuda::blocks_for(items, 256);
  const void *x = large.const_data_ptr(), *w = weight.const_data_ptr(), *y = small.const_data_ptr();
  switch (call.kind) {
  case ConvolutionKind::Forward:
    cuda::launch(kForward[slot], blocks, 256, 0, stream, x, w, y, call.g);
    if (!small.is_same(call.small)) call.small.copy_(small);
    break;
  case ConvolutionKind::InputGradient:
    cuda::launch(kInput[slot], blocks, 256, 0, stream, y, w, x, call.g);
    if (!large.is_same(call.large)) call.large.copy_(large);
    break;
  case ConvolutionKind::WeightGradient:
    cuda::launch(kWeight[slot], static_cast<unsigned>(items), 256, 0, stream, y, x, w, call.g);
    if (!weight.is_same(call.weight)) call.weight.copy_(weight);
    break;
  }
}

void run(const Call& call) {
  if (call.result().numel() == 0) return;
  if (call.large.numel() == 0 || call.weight.numel() == 0 || call.small.numel() == 0) {
    call.result().zero_();
    return;
  }
  if (cuda::cudnn_settings().enabled) {
    const cuda::CudnnConvolutionData data{call.large.const_data_ptr(), call.weight.const_data_ptr(),
                                          call.small.const_data_ptr()};
    if (cuda::run_convolution(description_of(call), data, cuda::current_stream())) return;
  }
  run_direct(call);
}

Tensor empty_in(IntArrayRef sizes, const Tensor& like, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous)
    return detail::empty(sizes, like.scalar_type(), like.device());
  return detail::empty_strided(sizes, c10::channels_last_strides(sizes), like.scalar_type(),
                               like.device());
}

// The convolution's layouts are two; everything else is copied into one of them.
void convolve(const Tensor& input, const Tensor& weight, const ConvParams& params,
              const Tensor& out) {
  const MemoryFormat format = conv_memory_format(input, weight);
  const Tensor x = input.contiguous(format), w = weight.contiguous(format);
  const bool direct = out.is_contiguous(format);
  const Tensor y = direct ? out : empty_in(out.sizes(), out, format);
  if (params.transposed) {
    run({ConvolutionKind::InputGradient, conv_geometry(y.sizes(), w.sizes(), x.sizes(), params),
         format, y, w, x});
  } else {
    run({ConvolutionKind::Forward, conv_geometry(x.sizes(), w.sizes(), y.sizes(), params), format,
         x, w, y});
  }
  if (!direct) out.copy_(y);
}

Tensor input_gradient(const Tensor& grad, const Tensor& weight, IntArrayRef sizes,
                      const ConvParams& params, MemoryFormat format) {
  const Tensor dy = grad.contiguous(format), w = weight.contiguous(format);
  const Tensor dx = empty_in(sizes, grad, format);
  if (params.transposed) {
    run({ConvolutionKind::Forward, conv_geometry(dy.sizes(), w.sizes(), sizes, params), format, dy,
         w, dx});
  } else {
    run({ConvolutionKind::InputGradient, conv_geometry(sizes, w.sizes(), dy.sizes(), params),
         format, dx, w, dy});
  }
  return dx;
}

Tensor weight_gradient(const Tensor& grad, const Tensor& input, IntArrayRef sizes,
                       const ConvParams& params, MemoryFormat format) {
  const Tensor dy = grad.contiguous(format), x = input.contiguous(format);
  const Tensor dw = empty_in(sizes, grad, format);
  const Tensor &large = params.transposed ? dy : x, &small = params.transposed ? x : dy;
  run({ConvolutionKind::WeightGradient, conv_geometry(large.sizes(), sizes, small.sizes(), params),
       format, large, dw, small});
  return dw;
}

// f(a, b) of a function that is linear in both, for complex a and b.
template <class F> Tensor bilinear(const Tensor& a, const Tensor& b, const F& f) {
  if (!a.is_complex()) return f(a, b);
  const Tensor ar = at::real(a), ai = at::imag(a), br = at::real(b), bi = at::imag(b);
  return at::complex(at::sub(f(ar, br), f(ai, bi)), at::add(f(ar, bi), f(ai, br)));
}
Tensor conjugate(const Tensor& t) { return t.is_complex() ? at::conj_physical(t) : t; }

} // namespace

void convolution_cuda(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                      IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                      bool transposed, IntArrayRef output_padding, int64_t groups,
                      const Tensor& out) {
  const Tensor b = bias ? *bias : Tensor();
  check_types(input, weight, b);
  const ConvParams params = check_convolution(input.sizes(), weight.sizes(), bias, stride, padding,
                                              dilation, transposed, output_padding, groups);
  if (input.is_complex()) {
    out.copy_(bilinear(input, weight, [&](const Tensor& x, const Tensor& w) {
      const Tensor y = detail::empty(out.sizes(), x.scalar_type(), x.device());
      convolve(x, w, params, y);
      return y;
    }));
  } else {
    convolve(input, weight, params, out);
  }
  if (!b.defined()) return;
  DimVector shape(static_cast<size_t>(out.dim()), 1);
  shape[1] = -1;
  Tensor sum = out;
  at::_ops::add__Tensor::call(sum, b.view(shape), 1);
}

std::tuple<Tensor, Tensor, Tensor>
convolution_backward_cuda(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                          OptionalIntArrayRef, IntArrayRef stride, IntArrayRef padding,
                          IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                          int64_t groups, std::array<bool, 3> output_mask) {
  check_types(grad_output, input, weight);
  const ConvParams params =
      check_convolution(input.sizes(), weight.sizes(), std::nullopt, stride, padding, dilation,
                        transposed, output_padding, groups);
  const DimVector sizes = convolution_output_size(input.sizes(), weight.sizes(), params);
  TORCH_CHECK(grad_output.sizes().equals(sizes),
              "convolution_backward: expected grad_output of size ", IntArrayRef(sizes),
              ", but got ", grad_output.sizes());
  const MemoryFormat format = conv_memory_format(input, weight);
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0])
    grad_input = bilinear(grad_output, conjugate(weight), [&](const Tensor& dy, const Tensor& w) {
      return input_gradient(dy, w, input.sizes(), params, format);
    });
  if (output_mask[1])
    grad_weight = bilinear(grad_output, conjugate(input), [&](const Tensor& dy, const Tensor& x) {
                    return weight_gradient(dy, x, weight.sizes(), params, format);
                  }).contiguous(weight.suggest_memory_format());
  if (output_mask[2]) {
    DimVector dims{0};
    for (int64_t d = 2; d < grad_output.dim(); ++d) dims.push_back(d);
    grad_bias = at::sum(grad_output, dims);
  }
  return {grad_input, grad_weight, grad_bias};
}

} // namespace at::native
