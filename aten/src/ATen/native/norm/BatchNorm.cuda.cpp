// Batch and group norm on CUDA, made of reductions and pointwise operators in the compute type. The
// statistics come from var_mean, which is a fixed tree: results have the same bits every time.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/norm/Native.h>
#include <ATen/native/norm/NormUtil.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/var_mean.h>

#include <cmath>

namespace at::native {
namespace {

void check_type(const Tensor& input, const char* op) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isFloatingType(input.scalar_type()), "\"", op,
                              "_cuda\" not implemented for '", input.scalar_type(), "'");
}

// All dimensions but the channels'.
DimVector others(const Tensor& x) {
  DimVector dims;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != 1) dims.push_back(d);
  return dims;
}

// One value per channel, seen in the shape of x.
Tensor by_channel(const Tensor& values, const Tensor& x) {
  DimVector sizes(static_cast<size_t>(x.dim()), 1);
  sizes[1] = values.numel();
  return values.view(sizes);
}

Tensor invstd_of(const Tensor& variance, double eps) { return at::rsqrt(at::add(variance, eps)); }

void update_running(const std::optional<Tensor>& running, double momentum, const Tensor& value) {
  if (!has(running)) return;
  const Tensor before = at::mul(running->to(value.scalar_type()), 1 - momentum);
  running->copy_(at::add(before, at::mul(value, momentum)));
}

Tensor as_type(const Tensor& t, bool wanted, ScalarType dtype) {
  return wanted ? t.to(dtype) : Tensor();
}

} // namespace

void batch_norm_cuda(const Tensor& input, const std::optional<Tensor>& weight,
                     const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                     const std::optional<Tensor>& running_var, bool training, double momentum,
                     double eps, const Tensor& out, const Tensor& save_mean,
                     const Tensor& save_invstd) {
  check_type(input, "batch_norm");
  if (input.numel() == 0) {
    save_mean.zero_();
    save_invstd.zero_();
    return;
  }
  const ScalarType compute = compute_type(input.scalar_type());
  const Tensor x = input.to(compute);
  Tensor mean, invstd;
  if (!training) {
    mean = running_mean->to(compute);
    invstd = invstd_of(running_var->to(compute), eps);
  } else {
    const DimVector dims = others(x);
    const auto [variance, centre] =
        at::var_mean(x, IntArrayRef(dims), std::optional<Scalar>(Scalar(0)), false);
    mean = centre;
    invstd = invstd_of(variance, eps);
    update_running(running_mean, momentum, mean);
    const double n = static_cast<double>(input.numel() / input.size(1));
    update_running(running_var, momentum, at::mul(variance, n / (n - 1)));
  }
  if (training) {
    save_mean.copy_(mean);
    save_invstd.copy_(invstd);
  }
  const Tensor scale = has(weight) ? at::mul(invstd, weight->to(compute)) : invstd;
  // x * scale + shift in one pass over x.
  const Tensor centre = at::mul(mean, scale);
  const Tensor shift = has(bias) ? at::sub(bias->to(compute), centre) : at::neg(centre);
  out.copy_(at::addcmul(by_channel(shift, x), x, by_channel(scale, x)));
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_cuda(
    const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight,
    const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
    const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train,
    double eps, std::array<bool, 3> output_mask) {
  check_type(input, "batch_norm_backward");
  TORCH_CHECK(input.dim() >= 2 && grad_out.sizes() == input.sizes(),
              "Expected the gradient to have the shape of the input, ", input.sizes(), ", but got ",
              grad_out.sizes());
  const std::optional<Tensor>&given_mean = train ? save_mean : running_mean,
        &given_spread = train ? save_invstd : running_var;
  TORCH_CHECK(has(given_mean) && has(given_spread), "batch_norm_backward: ",
              train ? "save_mean and save_invstd must be defined in training mode"
                    : "running_mean and running_var must be defined in evaluation mode");
  const ScalarType dtype = input.scalar_type(), compute = compute_type(dtype);
  const int64_t channels = input.size(1);
  const double count = channels > 0 ? static_cast<double>(input.numel() / channels) : 0;
  const Tensor x = input.to(compute), g = grad_out.to(compute);
  const Tensor mean = given_mean->to(compute);
  const Tensor invstd =
      train ? given_spread->to(compute) : invstd_of(given_spread->to(compute), eps);
  const DimVector dims = others(x);
  const Tensor centred = at::sub(x, by_channel(mean, x));
  const Tensor total = at::sum(g, IntArrayRef(dims)),
               dot = at::sum(at::mul(g, centred), IntArrayRef(dims));
  Tensor to_input;
  if (output_mask[0]) {
    const Tensor scale = has(weight) ? at::mul(invstd, weight->to(compute)) : invstd;
    Tensor gained;
    if (train && count > 0) {
      // scale * (g - mean of g - centred * tilt), in one pass over x and one over g.
      const Tensor tilt = at::div(at::mul(at::mul(invstd, invstd), dot), -count);
      const Tensor slope = at::mul(scale, tilt);
      const Tensor shift = at::sub(at::mul(mean, slope), at::mul(scale, at::div(total, -count)));
      const Tensor tilted = at::addcmul(at::neg(by_channel(shift, x)), x, by_channel(slope, x));
      gained = at::addcmul(tilted, g, by_channel(scale, x));
    } else {
      gained = at::mul(g, by_channel(scale, x));
    }
    to_input = gained.to(dtype);
  }
  const ScalarType type = has(weight) ? weight->scalar_type() : dtype;
  return {to_input, as_type(at::mul(dot, invstd), output_mask[1], type),
          as_type(total, output_mask[2], type)};
}

// ---- group norm: rows of (N, group, C / group * HxW)
void group_norm_cuda(const Tensor& input, const std::optional<Tensor>& weight,
                     const std::optional<Tensor>& bias, int64_t N, int64_t C, int64_t HxW,
                     int64_t group, double eps, const Tensor& out, const Tensor& mean,
                     const Tensor& rstd) {
  check_type(input, "group_norm");
  const ScalarType compute = compute_type(input.scalar_type());
  if (input.numel() == 0) {
    mean.zero_();
    rstd.fill_(1.0 / std::sqrt(eps));
    return;
  }
  const Tensor rows = input.to(compute).contiguous().view({N, group, C / group * HxW});
  const int64_t dims[1] = {2};
  const auto [variance, centre] =
      at::var_mean(rows, IntArrayRef(dims), std::optional<Scalar>(Scalar(0)), true);
  const Tensor spread = invstd_of(variance, eps);
  mean.copy_(centre.view(mean.sizes()));
  rstd.copy_(spread.view(rstd.sizes()));
  Tensor y = at::mul(at::sub(rows, centre), spread).view({N, C, HxW});
  if (has(weight)) y = at::mul(y, weight->to(compute).view({1, C, 1}));
  if (has(bias)) y = at::add(y, bias->to(compute).view({1, C, 1}));
  out.copy_(y.view(out.sizes()));
}

std::tuple<Tensor, Tensor, Tensor>
group_norm_backward_cuda(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                         const Tensor& rstd, const std::optional<Tensor>& weight, int64_t N,
                         int64_t C, int64_t HxW, int64_t group, std::array<bool, 3> output_mask) {
  check_type(input, "group_norm_backward");
  TORCH_CHECK(grad_out.sizes() == input.sizes() && N >= 0 && C >= 0 && HxW >= 0 && group > 0 &&
                  C % group == 0 && N * C * HxW == input.numel() && mean.numel() == N * group &&
                  rstd.numel() == N * group,
              "native_group_norm_backward: gradient ", grad_out.sizes(), ", input ", input.sizes(),
              " and statistics do not fit");
  const ScalarType dtype = input.scalar_type(), compute = compute_type(dtype);
  const int64_t length = C / group * HxW, per_plane[1] = {2};
  const Tensor x = input.to(compute).contiguous().view({N, group, length});
  const Tensor g = grad_out.to(compute).contiguous().view({N, C, HxW});
  const Tensor spread = rstd.to(compute).view({N, group, 1});
  const Tensor centred = at::sub(x, mean.to(compute).view({N, group, 1}));
  const Tensor plane_total = at::sum(g, IntArrayRef(per_plane)),
               plane_dot = at::sum(at::mul(g, centred.view({N, C, HxW})), IntArrayRef(per_plane));
  Tensor to_input;
  if (output_mask[0] && input.numel() > 0) {
    const double count = static_cast<double>(length);
    const Tensor w = has(weight) ? weight->to(compute).view({1, C}) : Tensor();
    const auto per_group = [&](const Tensor& planes) {
      const Tensor weighted = w.defined() ? at::mul(planes, w) : planes;
      return at::div(at::sum(weighted.view({N, group, C / group}), IntArrayRef(per_plane), true),
                     count);
    };
    Tensor slope = w.defined() ? at::mul(g, w.view({1, C, 1})) : g;
    slope = slope.view({N, group, length});
    const Tensor tilt = at::mul(at::mul(spread, spread), per_group(plane_dot));
    const Tensor inner = at::sub(at::sub(slope, per_group(plane_total)), at::mul(centred, tilt));
    to_input = at::mul(inner, spread).view(input.sizes()).to(dtype);
  } else if (output_mask[0]) {
    to_input = detail::empty(input.sizes(), dtype, input.device());
  }
  const int64_t samples[1] = {0};
  const Tensor scaled = at::mul(plane_dot.view({N, group, C / group}), spread).view({N, C});
  const ScalarType type = has(weight) ? weight->scalar_type() : dtype;
  return {to_input, as_type(at::sum(scaled, IntArrayRef(samples)), output_mask[1], type),
          as_type(at::sum(plane_total, IntArrayRef(samples)), output_mask[2], type)};
}

} // namespace at::native
