// Group norm on CUDA, made of reductions and pointwise operators in the compute type. The
// statistics come from var_mean, which is a fixed tree: results have the same bits every time.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/norm/Native.h>
#include <ATen/native/norm/NormUtil.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
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
Tensor invstd_of(const Tensor& variance, double eps) { return at::rsqrt(at::add(variance, eps)); }
Tensor as_type(const Tensor& t, bool wanted, ScalarType dtype) {
  return wanted ? t.to(dtype) : Tensor();
}

} // namespace

// Rows of (N, group, C / group * HxW)
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
