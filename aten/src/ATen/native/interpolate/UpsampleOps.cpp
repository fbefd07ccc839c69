// The operators of resizing: their shape functions, kernels and the forms that take either sizes or
// factors. All of a number of dimensions share one shape function.
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/interpolate/Native.h>
#include <ATen/native/interpolate/Upsample.h>
#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/_upsample_lanczos2d_aa.h>
#include <ATen/ops/_upsample_nearest_exact1d.h>
#include <ATen/ops/_upsample_nearest_exact2d.h>
#include <ATen/ops/_upsample_nearest_exact3d.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_linear1d.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/upsample_nearest3d.h>
#include <ATen/ops/upsample_trilinear3d.h>
#include <c10/core/MemoryFormat.h>

#include <cmath>
#include <string>

namespace at::native {
namespace {
using interpolate::Mode;
using interpolate::Scales;
using interpolate::upsample;
using interpolate::upsample_backward;
using Scale = std::optional<double>;
using Factors = std::optional<ArrayRef<double>>;

constexpr auto kNo = std::nullopt;

// The sizes that a call with either sizes or factors asks for.
DimVector asked_size(const Tensor& input, const OptionalIntArrayRef& size, const Factors& factors) {
  TORCH_CHECK(size.has_value() != factors.has_value(),
              "Must specify exactly one of output_size and scale_factors");
  if (size) return DimVector(*size);
  TORCH_CHECK(input.dim() >= 2 && factors->size() == static_cast<size_t>(input.dim()) - 2,
              "upsample: expected a scale factor for each of the ", input.dim() - 2,
              " spatial dimensions, but got ", factors->size());
  DimVector out;
  for (size_t i = 0; i < factors->size(); ++i) {
    const double wanted = static_cast<double>(input.size(2 + i)) * (*factors)[i];
    TORCH_CHECK(wanted > -9.2e18 && wanted < 9.2e18, "upsample: scale factor ", (*factors)[i],
                " gives no valid size");
    out.push_back(static_cast<int64_t>(wanted));
  }
  return out;
}
Scale factor(const Factors& factors, size_t i) {
  return factors && i < factors->size() ? Scale((*factors)[i]) : Scale();
}

} // namespace

void upsample_nearest1d_cpu(const Tensor& self, IntArrayRef, Scale scales, const Tensor& out) {
  upsample(self, out, 1, Mode::Nearest, false, Scales{kNo, kNo, scales}, "upsample_nearest1d");
}
void upsample_nearest1d_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef, Scale scales,
                                     const Tensor& out) {
  upsample_backward(grad, out, 1, Mode::Nearest, false, Scales{kNo, kNo, scales},
                    "upsample_nearest1d_backward");
}
Tensor upsample_nearest1d_vec(const Tensor& input, OptionalIntArrayRef size, Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::upsample_nearest1d(input, IntArrayRef(sizes), factor(factors, 0));
}

void upsample_nearest_exact1d_cpu(const Tensor& self, IntArrayRef, Scale scales,
                                  const Tensor& out) {
  upsample(self, out, 1, Mode::NearestExact, false, Scales{kNo, kNo, scales},
           "upsample_nearest_exact1d");
}
void upsample_nearest_exact1d_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef,
                                           Scale scales, const Tensor& out) {
  upsample_backward(grad, out, 1, Mode::NearestExact, false, Scales{kNo, kNo, scales},
                    "upsample_nearest_exact1d_backward");
}
Tensor upsample_nearest_exact1d_vec(const Tensor& input, OptionalIntArrayRef size,
                                    Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::_upsample_nearest_exact1d(input, IntArrayRef(sizes), factor(factors, 0));
}

void upsample_nearest2d_cpu(const Tensor& self, IntArrayRef, Scale scales_h, Scale scales_w,
                            const Tensor& out) {
  upsample(self, out, 2, Mode::Nearest, false, Scales{kNo, scales_h, scales_w},
           "upsample_nearest2d");
}
void upsample_nearest2d_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef, Scale scales_h,
                                     Scale scales_w, const Tensor& out) {
  upsample_backward(grad, out, 2, Mode::Nearest, false, Scales{kNo, scales_h, scales_w},
                    "upsample_nearest2d_backward");
}
Tensor upsample_nearest2d_vec(const Tensor& input, OptionalIntArrayRef size, Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::upsample_nearest2d(input, IntArrayRef(sizes), factor(factors, 0), factor(factors, 1));
}

void upsample_nearest_exact2d_cpu(const Tensor& self, IntArrayRef, Scale scales_h, Scale scales_w,
                                  const Tensor& out) {
  upsample(self, out, 2, Mode::NearestExact, false, Scales{kNo, scales_h, scales_w},
           "upsample_nearest_exact2d");
}
void upsample_nearest_exact2d_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef,
                                           Scale scales_h, Scale scales_w, const Tensor& out) {
  upsample_backward(grad, out, 2, Mode::NearestExact, false, Scales{kNo, scales_h, scales_w},
                    "upsample_nearest_exact2d_backward");
}
Tensor upsample_nearest_exact2d_vec(const Tensor& input, OptionalIntArrayRef size,
                                    Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::_upsample_nearest_exact2d(input, IntArrayRef(sizes), factor(factors, 0),
                                       factor(factors, 1));
}

void upsample_nearest3d_cpu(const Tensor& self, IntArrayRef, Scale scales_d, Scale scales_h,
                            Scale scales_w, const Tensor& out) {
  upsample(self, out, 3, Mode::Nearest, false, Scales{scales_d, scales_h, scales_w},
           "upsample_nearest3d");
}
void upsample_nearest3d_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef, Scale scales_d,
                                     Scale scales_h, Scale scales_w, const Tensor& out) {
  upsample_backward(grad, out, 3, Mode::Nearest, false, Scales{scales_d, scales_h, scales_w},
                    "upsample_nearest3d_backward");
}
Tensor upsample_nearest3d_vec(const Tensor& input, OptionalIntArrayRef size, Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::upsample_nearest3d(input, IntArrayRef(sizes), factor(factors, 0), factor(factors, 1),
                                factor(factors, 2));
}

void upsample_nearest_exact3d_cpu(const Tensor& self, IntArrayRef, Scale scales_d, Scale scales_h,
                                  Scale scales_w, const Tensor& out) {
  upsample(self, out, 3, Mode::NearestExact, false, Scales{scales_d, scales_h, scales_w},
           "upsample_nearest_exact3d");
}
void upsample_nearest_exact3d_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef,
                                           Scale scales_d, Scale scales_h, Scale scales_w,
                                           const Tensor& out) {
  upsample_backward(grad, out, 3, Mode::NearestExact, false, Scales{scales_d, scales_h, scales_w},
                    "upsample_nearest_exact3d_backward");
}
Tensor upsample_nearest_exact3d_vec(const Tensor& input, OptionalIntArrayRef size,
                                    Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::_upsample_nearest_exact3d(input, IntArrayRef(sizes), factor(factors, 0),
                                       factor(factors, 1), factor(factors, 2));
}

void upsample_linear1d_cpu(const Tensor& self, IntArrayRef, bool align_corners, Scale scales,
                           const Tensor& out) {
  upsample(self, out, 1, Mode::Linear, align_corners, Scales{kNo, kNo, scales},
           "upsample_linear1d");
}
void upsample_linear1d_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef,
                                    bool align_corners, Scale scales, const Tensor& out) {
  upsample_backward(grad, out, 1, Mode::Linear, align_corners, Scales{kNo, kNo, scales},
                    "upsample_linear1d_backward");
}
Tensor upsample_linear1d_vec(const Tensor& input, OptionalIntArrayRef size, bool align_corners,
                             Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::upsample_linear1d(input, IntArrayRef(sizes), align_corners, factor(factors, 0));
}

void upsample_bilinear2d_cpu(const Tensor& self, IntArrayRef, bool align_corners, Scale scales_h,
                             Scale scales_w, const Tensor& out) {
  upsample(self, out, 2, Mode::Linear, align_corners, Scales{kNo, scales_h, scales_w},
           "upsample_bilinear2d");
}
void upsample_bilinear2d_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef,
                                      bool align_corners, Scale scales_h, Scale scales_w,
                                      const Tensor& out) {
  upsample_backward(grad, out, 2, Mode::Linear, align_corners, Scales{kNo, scales_h, scales_w},
                    "upsample_bilinear2d_backward");
}
Tensor upsample_bilinear2d_vec(const Tensor& input, OptionalIntArrayRef size, bool align_corners,
                               Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::upsample_bilinear2d(input, IntArrayRef(sizes), align_corners, factor(factors, 0),
                                 factor(factors, 1));
}

void upsample_bicubic2d_cpu(const Tensor& self, IntArrayRef, bool align_corners, Scale scales_h,
                            Scale scales_w, const Tensor& out) {
  upsample(self, out, 2, Mode::Cubic, align_corners, Scales{kNo, scales_h, scales_w},
           "upsample_bicubic2d");
}
void upsample_bicubic2d_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef,
                                     bool align_corners, Scale scales_h, Scale scales_w,
                                     const Tensor& out) {
  upsample_backward(grad, out, 2, Mode::Cubic, align_corners, Scales{kNo, scales_h, scales_w},
                    "upsample_bicubic2d_backward");
}
Tensor upsample_bicubic2d_vec(const Tensor& input, OptionalIntArrayRef size, bool align_corners,
                              Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::upsample_bicubic2d(input, IntArrayRef(sizes), align_corners, factor(factors, 0),
                                factor(factors, 1));
}

void upsample_bilinear2d_aa_cpu(const Tensor& self, IntArrayRef, bool align_corners, Scale scales_h,
                                Scale scales_w, const Tensor& out) {
  upsample(self, out, 2, Mode::LinearAa, align_corners, Scales{kNo, scales_h, scales_w},
           "upsample_bilinear2d_aa");
}
void upsample_bilinear2d_aa_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef,
                                         bool align_corners, Scale scales_h, Scale scales_w,
                                         const Tensor& out) {
  upsample_backward(grad, out, 2, Mode::LinearAa, align_corners, Scales{kNo, scales_h, scales_w},
                    "upsample_bilinear2d_aa_backward");
}
Tensor upsample_bilinear2d_aa_vec(const Tensor& input, OptionalIntArrayRef size, bool align_corners,
                                  Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::_upsample_bilinear2d_aa(input, IntArrayRef(sizes), align_corners, factor(factors, 0),
                                     factor(factors, 1));
}

void upsample_bicubic2d_aa_cpu(const Tensor& self, IntArrayRef, bool align_corners, Scale scales_h,
                               Scale scales_w, const Tensor& out) {
  upsample(self, out, 2, Mode::CubicAa, align_corners, Scales{kNo, scales_h, scales_w},
           "upsample_bicubic2d_aa");
}
void upsample_bicubic2d_aa_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef,
                                        bool align_corners, Scale scales_h, Scale scales_w,
                                        const Tensor& out) {
  upsample_backward(grad, out, 2, Mode::CubicAa, align_corners, Scales{kNo, scales_h, scales_w},
                    "upsample_bicubic2d_aa_backward");
}
Tensor upsample_bicubic2d_aa_vec(const Tensor& input, OptionalIntArrayRef size, bool align_corners,
                                 Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::_upsample_bicubic2d_aa(input, IntArrayRef(sizes), align_corners, factor(factors, 0),
                                    factor(factors, 1));
}

void upsample_lanczos2d_aa_cpu(const Tensor& self, IntArrayRef, bool align_corners, Scale scales_h,
                               Scale scales_w, const Tensor& out) {
  upsample(self, out, 2, Mode::LanczosAa, align_corners, Scales{kNo, scales_h, scales_w},
           "upsample_lanczos2d_aa");
}
void upsample_lanczos2d_aa_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef,
                                        bool align_corners, Scale scales_h, Scale scales_w,
                                        const Tensor& out) {
  upsample_backward(grad, out, 2, Mode::LanczosAa, align_corners, Scales{kNo, scales_h, scales_w},
                    "upsample_lanczos2d_aa_backward");
}
Tensor upsample_lanczos2d_aa_vec(const Tensor& input, OptionalIntArrayRef size, bool align_corners,
                                 Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::_upsample_lanczos2d_aa(input, IntArrayRef(sizes), align_corners, factor(factors, 0),
                                    factor(factors, 1));
}

void upsample_trilinear3d_cpu(const Tensor& self, IntArrayRef, bool align_corners, Scale scales_d,
                              Scale scales_h, Scale scales_w, const Tensor& out) {
  upsample(self, out, 3, Mode::Linear, align_corners, Scales{scales_d, scales_h, scales_w},
           "upsample_trilinear3d");
}
void upsample_trilinear3d_backward_cpu(const Tensor& grad, IntArrayRef, IntArrayRef,
                                       bool align_corners, Scale scales_d, Scale scales_h,
                                       Scale scales_w, const Tensor& out) {
  upsample_backward(grad, out, 3, Mode::Linear, align_corners, Scales{scales_d, scales_h, scales_w},
                    "upsample_trilinear3d_backward");
}
Tensor upsample_trilinear3d_vec(const Tensor& input, OptionalIntArrayRef size, bool align_corners,
                                Factors factors) {
  const DimVector sizes = asked_size(input, size, factors);
  return at::upsample_trilinear3d(input, IntArrayRef(sizes), align_corners, factor(factors, 0),
                                  factor(factors, 1), factor(factors, 2));
}

} // namespace at::native

namespace at::meta {
namespace {
using Scale = std::optional<double>;

// "(H: 8, W: 6)"
std::string named(IntArrayRef sizes) {
  static const char* const names[] = {"D: ", "H: ", "W: "};
  std::string out = "(";
  for (size_t i = 0; i < sizes.size(); ++i)
    out += (i ? ", " : "") + std::string(names[3 - sizes.size() + i]) + std::to_string(sizes[i]);
  return out + ")";
}

template <class Int> void set(OutputBuilder& out, ArrayRef<Int> sizes, const Tensor& like) {
  const bool last = like.dim() >= 4 && like.suggest_memory_format() != MemoryFormat::Contiguous;
  if (last) {
    native::set_output(out, 0, sizes, like.scalar_type(),
                       native::channels_last_strides_of<Int>(sizes));
  } else {
    native::set_output(out, 0, sizes, like.scalar_type());
  }
}

// The output's sizes, after the checks that all share.
DimVector output_sizes(IntArrayRef input, IntArrayRef output_size, size_t dims) {
  TORCH_CHECK(output_size.size() == dims, "It is expected output_size equals to ", dims,
              ", but got size ", output_size.size());
  TORCH_CHECK(input.size() == dims + 2, "It is expected input_size equals to ", dims + 2,
              ", but got size ", input.size());
  const IntArrayRef spatial = input.slice(2, dims);
  bool positive = true;
  for (size_t i = 0; i < dims; ++i) positive = positive && spatial[i] > 0 && output_size[i] > 0;
  TORCH_CHECK(positive, "Input and output sizes should be greater than 0, but got input ",
              named(spatial), dims == 1 ? " and output " : " output ", named(output_size));
  DimVector sizes{input[0], input[1]};
  for (const int64_t size : output_size) sizes.push_back(size);
  return sizes;
}

void shape(OutputBuilder& out, const Tensor& self, IntArrayRef output_size, size_t dims) {
  if (native::is_symbolic(self)) {
    TORCH_CHECK(output_size.size() == dims && self.dim() == static_cast<int64_t>(dims) + 2,
                "It is expected output_size equals to ", dims, ", but got size ",
                output_size.size());
    native::SymDimVector sizes{self.sym_size(0), self.sym_size(1)};
    for (const int64_t size : output_size) sizes.push_back(size);
    set<SymInt>(out, sizes, self);
    return;
  }
  const DimVector sizes = output_sizes(self.sizes(), output_size, dims);
  TORCH_CHECK(self.size(1) > 0, "Non-empty ", dims + 2,
              "D data tensor expected but got a tensor with sizes ", self.sizes());
  set<int64_t>(out, sizes, self);
}

void backward_shape(OutputBuilder& out, const Tensor& grad, IntArrayRef output_size,
                    IntArrayRef input_size, size_t dims) {
  const DimVector sizes = output_sizes(input_size, output_size, dims);
  TORCH_CHECK(grad.dim() == static_cast<int64_t>(dims) + 2,
              "Expected grad_output to be a tensor of dimension ", dims + 2, " but got: dimension ",
              grad.dim());
  for (size_t i = 0; i < sizes.size(); ++i)
    TORCH_CHECK(grad.size(i) == sizes[i],
                "Expected grad_output to have the same shape as output; output.size(", i,
                ") = ", sizes[i], " but got grad_output.size(", i, ") = ", grad.size(i));
  set<int64_t>(out, input_size, grad);
}

} // namespace

void meta_upsample_nearest1d(OutputBuilder& out, const Tensor& self, IntArrayRef output_size,
                             Scale) {
  shape(out, self, output_size, 1);
}
void meta_upsample_nearest1d_backward(OutputBuilder& out, const Tensor& grad,
                                      IntArrayRef output_size, IntArrayRef input_size, Scale) {
  backward_shape(out, grad, output_size, input_size, 1);
}
void meta_upsample_linear1d(OutputBuilder& out, const Tensor& self, IntArrayRef output_size, bool,
                            Scale) {
  shape(out, self, output_size, 1);
}
void meta_upsample_linear1d_backward(OutputBuilder& out, const Tensor& grad,
                                     IntArrayRef output_size, IntArrayRef input_size, bool, Scale) {
  backward_shape(out, grad, output_size, input_size, 1);
}
void meta_upsample_nearest2d(OutputBuilder& out, const Tensor& self, IntArrayRef output_size, Scale,
                             Scale) {
  shape(out, self, output_size, 2);
}
void meta_upsample_nearest2d_backward(OutputBuilder& out, const Tensor& grad,
                                      IntArrayRef output_size, IntArrayRef input_size, Scale,
                                      Scale) {
  backward_shape(out, grad, output_size, input_size, 2);
}
void meta_upsample_linear2d(OutputBuilder& out, const Tensor& self, IntArrayRef output_size, bool,
                            Scale, Scale) {
  shape(out, self, output_size, 2);
}
void meta_upsample_linear2d_backward(OutputBuilder& out, const Tensor& grad,
                                     IntArrayRef output_size, IntArrayRef input_size, bool, Scale,
                                     Scale) {
  backward_shape(out, grad, output_size, input_size, 2);
}
void meta_upsample_nearest3d(OutputBuilder& out, const Tensor& self, IntArrayRef output_size, Scale,
                             Scale, Scale) {
  shape(out, self, output_size, 3);
}
void meta_upsample_nearest3d_backward(OutputBuilder& out, const Tensor& grad,
                                      IntArrayRef output_size, IntArrayRef input_size, Scale, Scale,
                                      Scale) {
  backward_shape(out, grad, output_size, input_size, 3);
}
void meta_upsample_linear3d(OutputBuilder& out, const Tensor& self, IntArrayRef output_size, bool,
                            Scale, Scale, Scale) {
  shape(out, self, output_size, 3);
}
void meta_upsample_linear3d_backward(OutputBuilder& out, const Tensor& grad,
                                     IntArrayRef output_size, IntArrayRef input_size, bool, Scale,
                                     Scale, Scale) {
  backward_shape(out, grad, output_size, input_size, 3);
}

} // namespace at::meta
