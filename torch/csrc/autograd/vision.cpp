// "torchvision::nms", "roi_align" and the rest: schemas, kernels, gradients, autocast. Registered
// on request, not when the library is loaded, so that a torchvision compiled for this library can
// define them itself. The gradients of the linear operators on regions can be differentiated again:
// the gradient of a backward operator is the forward operator.
#include <torch/csrc/autograd/vision.h>

#include <mutex>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Library.h>
#include <ATen/native/vision/Vision.h>
#include <ATen/ops/to.h>
#include <torch/csrc/autograd/custom_function.h>

namespace torch::vision {
namespace {

using at::Tensor;
using autograd::AutogradContext;
using autograd::variable_list;
namespace kernels = at::native::vision;

// Calls an operator of the namespace through the dispatcher.
template <class... Args> at::Stack call(const char* name, const Args&... args) {
  static constexpr const char* kSpace = "torchvision::";
  const at::OperatorEntry* op = at::Dispatcher::singleton().find(std::string(kSpace) + name, "");
  TORCH_INTERNAL_ASSERT(op != nullptr, name);
  at::Stack stack{at::IValue(args)...};
  op->call_boxed(stack);
  return stack;
}
// The same below autograd, in the forward part of a differentiable operator.
template <class... Args> at::Stack call_below(const char* name, const Args&... args) {
  const c10::ExcludeDispatchKeyGuard below(c10::kAutogradKeys);
  return call(name, args...);
}

// ---- kernels: CPU and meta ----------------------------------------------------------------------
template <bool kMeta> Tensor roi_align(const Tensor& input, const Tensor& rois, double scale,
                                       int64_t ph, int64_t pw, int64_t ratio, bool aligned) {
  const auto sizes = kernels::roi_sizes(input, rois, ph, pw, false, "roi_align");
  if (kMeta) return kernels::roi_result(input, sizes, input.scalar_type());
  return kernels::roi_align_cpu(input, rois, sizes, {scale, ratio, aligned, false});
}
template <bool kMeta> Tensor roi_align_backward(const Tensor& grad, const Tensor& rois,
                                                double scale, int64_t ph, int64_t pw, int64_t n,
                                                int64_t c, int64_t h, int64_t w, int64_t ratio,
                                                bool aligned) {
  const auto sizes =
      kernels::roi_grad_sizes(grad, rois, ph, pw, {n, c, h, w}, false, "_roi_align_backward");
  if (kMeta) return kernels::roi_grad_result(grad, sizes);
  return kernels::roi_align_backward_cpu(grad, rois, sizes, {scale, ratio, aligned, false});
}

template <bool kMeta>
std::tuple<Tensor, Tensor> ps_roi_align(const Tensor& input, const Tensor& rois, double scale,
                                        int64_t ph, int64_t pw, int64_t ratio) {
  const auto sizes = kernels::roi_sizes(input, rois, ph, pw, true, "ps_roi_align");
  if (kMeta)
    return {kernels::roi_result(input, sizes, input.scalar_type()),
            kernels::roi_result(input, sizes, at::kInt)};
  return {kernels::roi_align_cpu(input, rois, sizes, {scale, ratio, true, true}),
          kernels::channel_mapping_cpu(sizes)};
}
template <bool kMeta> Tensor ps_roi_align_backward(const Tensor& grad, const Tensor& rois,
                                                   const Tensor&, double scale, int64_t ph,
                                                   int64_t pw, int64_t ratio, int64_t n, int64_t c,
                                                   int64_t h, int64_t w) {
  const auto sizes =
      kernels::roi_grad_sizes(grad, rois, ph, pw, {n, c, h, w}, true, "_ps_roi_align_backward");
  if (kMeta) return kernels::roi_grad_result(grad, sizes);
  return kernels::roi_align_backward_cpu(grad, rois, sizes, {scale, ratio, true, true});
}

template <bool kMeta> std::tuple<Tensor, Tensor> roi_pool(const Tensor& input, const Tensor& rois,
                                                          double scale, int64_t ph, int64_t pw) {
  const auto sizes = kernels::roi_sizes(input, rois, ph, pw, false, "roi_pool");
  if (kMeta)
    return {kernels::roi_result(input, sizes, input.scalar_type()),
            kernels::roi_result(input, sizes, at::kInt)};
  return kernels::roi_pool_cpu(input, rois, sizes, scale);
}
template <bool kMeta> Tensor roi_pool_backward(const Tensor& grad, const Tensor& rois,
                                               const Tensor& argmax, double, int64_t ph, int64_t pw,
                                               int64_t n, int64_t c, int64_t h, int64_t w) {
  const auto sizes =
      kernels::roi_grad_sizes(grad, rois, ph, pw, {n, c, h, w}, false, "_roi_pool_backward");
  if (kMeta) return kernels::roi_grad_result(grad, sizes);
  return kernels::roi_pool_backward_cpu(grad, rois, argmax, sizes);
}

template <bool kMeta> std::tuple<Tensor, Tensor>
ps_roi_pool(const Tensor& input, const Tensor& rois, double scale, int64_t ph, int64_t pw) {
  const auto sizes = kernels::roi_sizes(input, rois, ph, pw, true, "ps_roi_pool");
  if (kMeta)
    return {kernels::roi_result(input, sizes, input.scalar_type()),
            kernels::roi_result(input, sizes, at::kInt)};
  return {kernels::ps_roi_pool_cpu(input, rois, sizes, scale), kernels::channel_mapping_cpu(sizes)};
}
template <bool kMeta>
Tensor ps_roi_pool_backward(const Tensor& grad, const Tensor& rois, const Tensor&, double scale,
                            int64_t ph, int64_t pw, int64_t n, int64_t c, int64_t h, int64_t w) {
  const auto sizes =
      kernels::roi_grad_sizes(grad, rois, ph, pw, {n, c, h, w}, true, "_ps_roi_pool_backward");
  if (kMeta) return kernels::roi_grad_result(grad, sizes);
  return kernels::ps_roi_pool_backward_cpu(grad, rois, sizes, scale);
}

template <bool kMeta> Tensor deform_conv2d(const Tensor& input, const Tensor& weight,
                                           const Tensor& offset, const Tensor& mask,
                                           const Tensor& bias, int64_t sh, int64_t sw, int64_t ph,
                                           int64_t pw, int64_t dh, int64_t dw, int64_t groups,
                                           int64_t offset_groups, bool use_mask) {
  const kernels::DeformParams params{{sh, sw}, {ph, pw}, {dh, dw}, groups, offset_groups, use_mask};
  if (kMeta) return kernels::deform_conv2d_shape(input, weight, offset, mask, bias, params);
  return kernels::deform_conv2d_cpu(input, weight, offset, mask, bias, params);
}
kernels::DeformGrads deform_conv2d_backward(const Tensor& grad, const Tensor& input,
                                            const Tensor& weight, const Tensor& offset,
                                            const Tensor& mask, const Tensor& bias, int64_t sh,
                                            int64_t sw, int64_t ph, int64_t pw, int64_t dh,
                                            int64_t dw, int64_t groups, int64_t offset_groups,
                                            bool use_mask) {
  const kernels::DeformParams params{{sh, sw}, {ph, pw}, {dh, dw}, groups, offset_groups, use_mask};
  return kernels::deform_conv2d_backward_cpu(grad, input, weight, offset, mask, bias, params);
}
kernels::DeformGrads deform_conv2d_backward_meta(const Tensor&, const Tensor& input,
                                                 const Tensor& weight, const Tensor& offset,
                                                 const Tensor& mask, const Tensor& bias, int64_t,
                                                 int64_t, int64_t, int64_t, int64_t, int64_t,
                                                 int64_t, int64_t, bool) {
  const auto like = [](const Tensor& t) {
    return at::detail::empty(t.sizes(), t.scalar_type(), t.device());
  };
  return {like(input), like(weight), like(offset), like(mask), like(bias)};
}

// ---- gradients ----------------------------------------------------------------------------------
// The numbers of a call, kept for backward.
template <class... Args> void keep(AutogradContext* ctx, const Args&... args) {
  int i = 0;
  ((ctx->saved_data[std::to_string(i++)] = at::IValue(args)), ...);
}
double number(AutogradContext* ctx, int i) {
  return ctx->saved_data.at(std::to_string(i)).toDouble();
}
int64_t integer(AutogradContext* ctx, int i) {
  return ctx->saved_data.at(std::to_string(i)).toInt();
}
bool flag(AutogradContext* ctx, int i) { return ctx->saved_data.at(std::to_string(i)).toBool(); }

struct RoiAlignBackwardGrad : autograd::Function<RoiAlignBackwardGrad> {
  static Tensor forward(AutogradContext* ctx, const Tensor& grad, const Tensor& rois, double scale,
                        int64_t ph, int64_t pw, int64_t n, int64_t c, int64_t h, int64_t w,
                        int64_t ratio, bool aligned) {
    ctx->save_for_backward({rois});
    keep(ctx, scale, ph, pw, ratio, aligned);
    return call_below("_roi_align_backward", grad, rois, scale, ph, pw, n, c, h, w, ratio,
                      aligned)[0]
        .toTensor();
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    variable_list out(11);
    out[0] = call("roi_align", grads[0], ctx->get_saved_variables()[0], number(ctx, 0),
                  integer(ctx, 1), integer(ctx, 2), integer(ctx, 3), flag(ctx, 4))[0]
                 .toTensor();
    return out;
  }
};

struct RoiAlignGrad : autograd::Function<RoiAlignGrad> {
  static Tensor forward(AutogradContext* ctx, const Tensor& input, const Tensor& rois, double scale,
                        int64_t ph, int64_t pw, int64_t ratio, bool aligned) {
    Tensor out = call_below("roi_align", input, rois, scale, ph, pw, ratio, aligned)[0].toTensor();
    ctx->save_for_backward({rois});
    keep(ctx, scale, ph, pw, ratio, aligned, input.size(0), input.size(1), input.size(2),
         input.size(3));
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    variable_list out(7);
    out[0] = call("_roi_align_backward", grads[0], ctx->get_saved_variables()[0], number(ctx, 0),
                  integer(ctx, 1), integer(ctx, 2), integer(ctx, 5), integer(ctx, 6),
                  integer(ctx, 7), integer(ctx, 8), integer(ctx, 3), flag(ctx, 4))[0]
                 .toTensor();
    return out;
  }
};

struct PsRoiAlignBackwardGrad : autograd::Function<PsRoiAlignBackwardGrad> {
  static Tensor forward(AutogradContext* ctx, const Tensor& grad, const Tensor& rois,
                        const Tensor& mapping, double scale, int64_t ph, int64_t pw, int64_t ratio,
                        int64_t n, int64_t c, int64_t h, int64_t w) {
    ctx->save_for_backward({rois});
    keep(ctx, scale, ph, pw, ratio);
    return call_below("_ps_roi_align_backward", grad, rois, mapping, scale, ph, pw, ratio, n, c, h,
                      w)[0]
        .toTensor();
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    variable_list out(11);
    out[0] = call("ps_roi_align", grads[0], ctx->get_saved_variables()[0], number(ctx, 0),
                  integer(ctx, 1), integer(ctx, 2), integer(ctx, 3))[0]
                 .toTensor();
    return out;
  }
};

struct PsRoiAlignGrad : autograd::Function<PsRoiAlignGrad> {
  static variable_list forward(AutogradContext* ctx, const Tensor& input, const Tensor& rois,
                               double scale, int64_t ph, int64_t pw, int64_t ratio) {
    const at::Stack results = call_below("ps_roi_align", input, rois, scale, ph, pw, ratio);
    const Tensor mapping = results[1].toTensor();
    ctx->save_for_backward({rois, mapping});
    ctx->mark_non_differentiable({mapping});
    keep(ctx, scale, ph, pw, ratio, input.size(0), input.size(1), input.size(2), input.size(3));
    return {results[0].toTensor(), mapping};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    variable_list out(6);
    out[0] = call("_ps_roi_align_backward", grads[0], saved[0], saved[1], number(ctx, 0),
                  integer(ctx, 1), integer(ctx, 2), integer(ctx, 3), integer(ctx, 4),
                  integer(ctx, 5), integer(ctx, 6), integer(ctx, 7))[0]
                 .toTensor();
    return out;
  }
};

struct PsRoiPoolBackwardGrad : autograd::Function<PsRoiPoolBackwardGrad> {
  static Tensor forward(AutogradContext* ctx, const Tensor& grad, const Tensor& rois,
                        const Tensor& mapping, double scale, int64_t ph, int64_t pw, int64_t n,
                        int64_t c, int64_t h, int64_t w) {
    ctx->save_for_backward({rois});
    keep(ctx, scale, ph, pw);
    return call_below("_ps_roi_pool_backward", grad, rois, mapping, scale, ph, pw, n, c, h, w)[0]
        .toTensor();
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    variable_list out(10);
    out[0] = call("ps_roi_pool", grads[0], ctx->get_saved_variables()[0], number(ctx, 0),
                  integer(ctx, 1), integer(ctx, 2))[0]
                 .toTensor();
    return out;
  }
};

// roi_pool and ps_roi_pool: forward gives the values and an index tensor that backward takes back.
template <bool kSensitive> struct RoiPoolGrad : autograd::Function<RoiPoolGrad<kSensitive>> {
  static variable_list forward(AutogradContext* ctx, const Tensor& input, const Tensor& rois,
                               double scale, int64_t ph, int64_t pw) {
    const at::Stack results =
        call_below(kSensitive ? "ps_roi_pool" : "roi_pool", input, rois, scale, ph, pw);
    const Tensor places = results[1].toTensor();
    ctx->save_for_backward({rois, places});
    ctx->mark_non_differentiable({places});
    keep(ctx, scale, ph, pw, input.size(0), input.size(1), input.size(2), input.size(3));
    return {results[0].toTensor(), places};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    variable_list out(5);
    out[0] = call(kSensitive ? "_ps_roi_pool_backward" : "_roi_pool_backward", grads[0], saved[0],
                  saved[1], number(ctx, 0), integer(ctx, 1), integer(ctx, 2), integer(ctx, 3),
                  integer(ctx, 4), integer(ctx, 5), integer(ctx, 6))[0]
                 .toTensor();
    return out;
  }
};

struct DeformConvGrad : autograd::Function<DeformConvGrad> {
  static Tensor forward(AutogradContext* ctx, const Tensor& input, const Tensor& weight,
                        const Tensor& offset, const Tensor& mask, const Tensor& bias, int64_t sh,
                        int64_t sw, int64_t ph, int64_t pw, int64_t dh, int64_t dw, int64_t groups,
                        int64_t offset_groups, bool use_mask) {
    ctx->save_for_backward({input, weight, offset, mask, bias});
    keep(ctx, sh, sw, ph, pw, dh, dw, groups, offset_groups, use_mask);
    return call_below("deform_conv2d", input, weight, offset, mask, bias, sh, sw, ph, pw, dh, dw,
                      groups, offset_groups, use_mask)[0]
        .toTensor();
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Stack results =
        call("_deform_conv2d_backward", grads[0], saved[0], saved[1], saved[2], saved[3], saved[4],
             integer(ctx, 0), integer(ctx, 1), integer(ctx, 2), integer(ctx, 3), integer(ctx, 4),
             integer(ctx, 5), integer(ctx, 6), integer(ctx, 7), flag(ctx, 8));
    variable_list out(14);
    for (size_t i = 0; i < 5; ++i) out[i] = results[i].toTensor();
    return out;
  }
};

// A kernel made of a differentiable function: gives a tensor, or two as a tuple.
template <class F, class... Args> Tensor one(Args... args) { return F::apply(args...); }
template <class F, class... Args> std::tuple<Tensor, Tensor> two(Args... args) {
  const variable_list results = F::apply(args...);
  return {results[0], results[1]};
}

// Backward operators that are not differentiated again.
void refuse_twice(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack* stack) {
  bool recorded = false;
  for (const at::IValue& v : *stack)
    recorded = recorded || (v.isTensor() && v.toTensor().requires_grad());
  TORCH_CHECK(!recorded || !c10::tls_autograd_state.grad_mode, "double backwards on ",
              op.full_name(), " not supported");
  const c10::ExcludeDispatchKeyGuard below(c10::kAutogradKeys);
  op.redispatch_boxed(keys - c10::kAutogradKeys, *stack);
}

// Autocast: these operators run in float32 and answer in the dtype of their first argument.
void in_float32(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack* stack) {
  const c10::ExcludeDispatchKeyGuard below(c10::kAutocastKeys);
  const auto cast = [](const Tensor& t, at::ScalarType dtype) {
    return t.scalar_type() == dtype
               ? t
               : at::_ops::to_dtype::call(t, dtype, false, false, std::nullopt);
  };
  const auto is_floating = [](const at::IValue& v) {
    return v.isTensor() && c10::isFloatingType(v.toTensor().scalar_type());
  };
  const at::ScalarType dtype = (*stack)[0].toTensor().scalar_type();
  for (at::IValue& v : *stack)
    if (is_floating(v)) v = cast(v.toTensor(), at::kFloat);
  op.redispatch_boxed(keys - c10::kAutocastKeys, *stack);
  for (at::IValue& v : *stack)
    if (is_floating(v)) v = cast(v.toTensor(), dtype);
}

// ---- registration -------------------------------------------------------------------------------
void define(Library& m) {
  m.def("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor");
  m.def("roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor");
  m.def("_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width, "
        "int sampling_ratio, bool aligned) -> Tensor");
  m.def("roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width) -> (Tensor, Tensor)");
  m.def("_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, "
        "SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, "
        "SymInt height, SymInt width) -> Tensor");
  m.def("ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)");
  m.def("_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, "
        "float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, "
        "SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor");
  m.def("ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width) -> (Tensor, Tensor)");
  m.def("_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, "
        "float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, "
        "SymInt channels, SymInt height, SymInt width) -> Tensor");
  m.def("deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
        "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
        "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor");
  m.def("_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, "
        "Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, "
        "SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
        "bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
  // The CUDA version a torchvision was compiled with: none.
  m.def("_cuda_version() -> int", [] { return int64_t(-1); });
}

template <bool kMeta> void add_kernels(Library& m) {
  m.impl("roi_align", &roi_align<kMeta>);
  m.impl("_roi_align_backward", &roi_align_backward<kMeta>);
  m.impl("roi_pool", &roi_pool<kMeta>);
  m.impl("_roi_pool_backward", &roi_pool_backward<kMeta>);
  m.impl("ps_roi_align", &ps_roi_align<kMeta>);
  m.impl("_ps_roi_align_backward", &ps_roi_align_backward<kMeta>);
  m.impl("ps_roi_pool", &ps_roi_pool<kMeta>);
  m.impl("_ps_roi_pool_backward", &ps_roi_pool_backward<kMeta>);
  m.impl("deform_conv2d", &deform_conv2d<kMeta>);
}

using T = const Tensor&;
using I = int64_t;

void add_gradients(Library& m) {
  m.impl("roi_align", &one<RoiAlignGrad, T, T, double, I, I, I, bool>);
  m.impl("_roi_align_backward",
         &one<RoiAlignBackwardGrad, T, T, double, I, I, I, I, I, I, I, bool>);
  m.impl("ps_roi_align", &two<PsRoiAlignGrad, T, T, double, I, I, I>);
  m.impl("_ps_roi_align_backward",
         &one<PsRoiAlignBackwardGrad, T, T, T, double, I, I, I, I, I, I, I>);
  m.impl("roi_pool", &two<RoiPoolGrad<false>, T, T, double, I, I>);
  m.impl("ps_roi_pool", &two<RoiPoolGrad<true>, T, T, double, I, I>);
  m.impl("_ps_roi_pool_backward", &one<PsRoiPoolBackwardGrad, T, T, T, double, I, I, I, I, I, I>);
  m.impl("deform_conv2d", &one<DeformConvGrad, T, T, T, T, T, I, I, I, I, I, I, I, I, bool>);
  for (const char* name : {"_roi_pool_backward", "_deform_conv2d_backward"})
    m.impl(name, CppFunction::makeFromBoxedFunction(&refuse_twice));
}

} // namespace

void register_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* space = "torchvision";
    Library definitions(Library::DEF, space, std::nullopt);
    define(definitions);
    Library cpu(Library::IMPL, space, c10::DispatchKey::CPU);
    add_kernels<false>(cpu);
    cpu.impl("nms", &kernels::nms_cpu);
    cpu.impl("_deform_conv2d_backward", &deform_conv2d_backward);
    Library meta(Library::IMPL, space, c10::DispatchKey::Meta);
    add_kernels<true>(meta);
    meta.impl("nms", &kernels::nms_shape);
    meta.impl("_deform_conv2d_backward", &deform_conv2d_backward_meta);
    Library gradients(Library::IMPL, space, c10::DispatchKey::Autograd);
    add_gradients(gradients);
    for (const c10::DispatchKey key :
         {c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA}) {
      Library autocast(Library::IMPL, space, key);
      for (const char* name :
           {"nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"})
        autocast.impl(name, CppFunction::makeFromBoxedFunction(&in_float32));
    }
  });
}

} // namespace torch::vision
