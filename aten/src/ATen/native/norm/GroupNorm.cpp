// Group norm: a group of channels of one sample is one contiguous row for its moments, and one
// plane per channel when it is scaled.
#include <cmath>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/norm/Native.h>
#include <ATen/native/norm/NormUtil.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SafeArithmetic.h>

namespace at::native {
namespace {
using norm_loops::loops_for;
using norm_loops::Moments;
using norm_loops::NormLoops;

struct Groups {
  int64_t samples, channels, plane, groups;
  int64_t per_group() const { return channels / groups; }
  int64_t row() const { return per_group() * plane; }
  int64_t rows() const { return samples * groups; }
};

void check_parameter(const char* name, const std::optional<Tensor>& t, const Tensor& input,
                     int64_t channels) {
  if (!has(t)) return;
  TORCH_CHECK(t->dim() == 1 && t->numel() == channels, "Expected ", name,
              " to be a vector of size equal to the number of channels in input, but got ", name,
              " of shape ", t->sizes(), " and input of shape ", input.sizes());
}

Groups check_groups(const Tensor& input, const std::optional<Tensor>& weight,
                    const std::optional<Tensor>& bias, int64_t samples, int64_t channels,
                    int64_t plane, int64_t groups) {
  TORCH_CHECK(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  TORCH_CHECK(samples >= 0 && channels >= 0 && plane >= 0,
              "Expected non-negative sizes, got N = ", samples, ", C = ", channels,
              ", HxW = ", plane);
  TORCH_CHECK(
      channels % groups == 0,
      "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
      input.sizes(), " and num_groups=", groups);
  const int64_t sizes[] = {samples, channels, plane};
  TORCH_CHECK(c10::checked_numel(sizes) == input.numel(),
              "Expected N x C x HxW to be the number of elements of input, ", input.numel(),
              ", but got ", IntArrayRef(sizes));
  check_parameter("weight", weight, input, channels);
  check_parameter("bias", bias, input, channels);
  return {samples, channels, plane, groups};
}

// The input's own dense layout, as PyTorch returns it for channels-last images.
DimVector output_strides(const Tensor& input) {
  DimVector strides(input.strides().begin(), input.strides().end());
  if (input.suggest_memory_format() != MemoryFormat::Contiguous &&
      input.is_non_overlapping_and_dense())
    return strides;
  int64_t step = 1;
  for (int64_t d = input.dim() - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = step;
    step *= std::max<int64_t>(input.size(d), 1);
  }
  return strides;
}

template <class F> void parallel_rows(int64_t rows, int64_t length, const F& f) {
  BlockingRegion region;
  at::parallel_for(0, rows, row_grain(length), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r);
  });
}
} // namespace

Tensor group_norm(const Tensor& input, int64_t num_groups, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, double eps, bool /*cudnn_enabled*/) {
  TORCH_CHECK(input.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ",
              input.dim());
  int64_t plane = 1;
  for (int64_t d = 2; d < input.dim(); ++d) plane *= input.size(d);
  return std::get<0>(at::native_group_norm(input, weight, bias, input.size(0), input.size(1), plane,
                                           num_groups, eps));
}

void group_norm_cpu(const Tensor& input, const std::optional<Tensor>& weight,
                    const std::optional<Tensor>& bias, int64_t N, int64_t C, int64_t HxW,
                    int64_t group, double eps, const Tensor& out, const Tensor& mean,
                    const Tensor& rstd) {
  const Groups s{N, C, HxW, group};
  const NormLoops& loops = loops_for(input.scalar_type(), "GroupNormKernelImpl");
  const ScalarType compute = compute_type(input.scalar_type());
  const Tensor x = input.contiguous(), w = parameter_values(weight, compute),
               b = parameter_values(bias, compute);
  const Tensor y = out.is_contiguous() ? out : at::detail::empty(out.sizes(), out.scalar_type());
  const int64_t item = x.itemsize(), row = s.row(), per_group = s.per_group();
  std::vector<double> means(static_cast<size_t>(s.rows())), rstds(means.size());
  parallel_rows(s.rows(), row, [&](int64_t r) {
    const char* source = advance(x.const_data_ptr(), r * row, item);
    char* target = advance(y.mutable_data_ptr(), r * row, item);
    Moments m;
    row_moments(loops, source, row, item, &m);
    const double scale = 1.0 / std::sqrt(m.variance() + eps);
    means[static_cast<size_t>(r)] = m.mean;
    rstds[static_cast<size_t>(r)] = scale;
    const int64_t first = r % group * per_group;
    if (HxW == 1 || (!w.defined() && !b.defined())) {
      for_row_parts(row, [&](int64_t begin, int64_t end) {
        const auto part = [&](const Tensor& t) {
          return t.defined() ? advance(t.const_data_ptr(), first + begin, t.itemsize()) : nullptr;
        };
        loops.normalize(source + begin * item, target + begin * item, end - begin, m.mean, scale,
                        part(w), part(b));
      });
      return;
    }
    for (int64_t c = 0; c < per_group; ++c) {
      const double a = scale * value_at(w, first + c, 1);
      for_row_parts(HxW, [&](int64_t begin, int64_t end) {
        const int64_t offset = (c * HxW + begin) * item;
        loops.scale_shift(source + offset, target + offset, end - begin, a,
                          value_at(b, first + c, 0) - m.mean * a);
      });
    }
  });
  store_values(mean, means.data(), s.rows());
  store_values(rstd, rstds.data(), s.rows());
  if (!y.is_same(out)) out.copy_(y);
}

std::tuple<Tensor, Tensor, Tensor>
group_norm_backward_cpu(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                        const Tensor& rstd, const std::optional<Tensor>& weight, int64_t N,
                        int64_t C, int64_t HxW, int64_t group, std::array<bool, 3> output_mask) {
  const Groups s = check_groups(input, weight, std::nullopt, N, C, HxW, group);
  TORCH_CHECK(grad_out.sizes() == input.sizes(),
              "Expected the gradient to have the shape of the input, ", input.sizes(), ", but got ",
              grad_out.sizes());
  TORCH_CHECK(mean.numel() == s.rows() && rstd.numel() == s.rows(),
              "Expected mean and rstd to have one value for each of the ", s.rows(), " groups");
  const ScalarType dtype = input.scalar_type();
  const NormLoops& loops = loops_for(dtype, "GroupNormBackwardKernelImpl");
  const Tensor x = input.contiguous(), g = grad_out.to(dtype).contiguous();
  const Tensor w = parameter_values(weight, compute_type(dtype));
  const std::vector<double> means = load_values(mean), rstds = load_values(rstd);
  const int64_t item = x.itemsize(), row = s.row(), per_group = s.per_group();
  Tensor to_input;
  if (output_mask[0]) to_input = at::detail::empty(input.sizes(), dtype);
  // sum(g) and sum(g (x - mean)) of each plane.
  std::vector<double> sums(static_cast<size_t>(2 * N * C));
  parallel_rows(s.rows(), row, [&](int64_t r) {
    const double m = means[static_cast<size_t>(r)], scale = rstds[static_cast<size_t>(r)];
    const int64_t first = r % group * per_group;
    double total = 0, dot = 0;
    for (int64_t c = 0; c < per_group; ++c) {
      const int64_t offset = r * row + c * HxW;
      double* plane = &sums[static_cast<size_t>(2 * (r * per_group + c))];
      row_grad_sums(loops, advance(g.const_data_ptr(), offset, item),
                    advance(x.const_data_ptr(), offset, item), HxW, item, m, plane);
      total += plane[0] * value_at(w, first + c, 1);
      dot += plane[1] * value_at(w, first + c, 1);
    }
    if (!to_input.defined()) return;
    const double count = static_cast<double>(row), slope = -scale * scale * scale * dot / count;
    const double shift = -scale * total / count - slope * m;
    for (int64_t c = 0; c < per_group; ++c) {
      const int64_t offset = r * row + c * HxW;
      for_row_parts(HxW, [&](int64_t begin, int64_t end) {
        loops.combine(advance(g.const_data_ptr(), offset + begin, item),
                      advance(x.const_data_ptr(), offset + begin, item),
                      advance(to_input.mutable_data_ptr(), offset + begin, item), end - begin,
                      scale * value_at(w, first + c, 1), slope, shift);
      });
    }
  });
  std::vector<double> to_weight(static_cast<size_t>(C)), to_bias(static_cast<size_t>(C));
  for (int64_t n = 0; n < N; ++n)
    for (int64_t c = 0; c < C; ++c) {
      const double* plane = &sums[static_cast<size_t>(2 * (n * C + c))];
      to_weight[static_cast<size_t>(c)] +=
          plane[1] * rstds[static_cast<size_t>(n * group + c / per_group)];
      to_bias[static_cast<size_t>(c)] += plane[0];
    }
  const auto parameter = [&](bool wanted, const std::vector<double>& values) {
    if (!wanted) return Tensor();
    const Tensor t = at::detail::empty({C}, has(weight) ? weight->scalar_type() : dtype);
    store_values(t, values.data(), C);
    return t;
  };
  return {to_input, parameter(output_mask[1], to_weight), parameter(output_mask[2], to_bias)};
}

std::tuple<Tensor, Tensor, Tensor>
group_norm_backward_meta(const Tensor& /*grad_out*/, const Tensor& input, const Tensor& /*mean*/,
                         const Tensor& /*rstd*/, const std::optional<Tensor>& weight, int64_t N,
                         int64_t C, int64_t HxW, int64_t group, std::array<bool, 3> output_mask) {
  check_groups(input, weight, std::nullopt, N, C, HxW, group);
  const ScalarType type = has(weight) ? weight->scalar_type() : input.scalar_type();
  const auto like = [](bool wanted, IntArrayRef sizes, ScalarType dtype) {
    return wanted ? at::detail::empty(sizes, dtype, Device(kMeta)) : Tensor();
  };
  return {like(output_mask[0], input.sizes(), input.scalar_type()), like(output_mask[1], {C}, type),
          like(output_mask[2], {C}, type)};
}
} // namespace at::native

namespace at::meta {
void meta_native_group_norm(OutputBuilder& out, const Tensor& input,
                            const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                            int64_t N, int64_t C, int64_t HxW, int64_t group, double /*eps*/) {
  native::check_groups(input, weight, bias, N, C, HxW, group);
  const ScalarType type = native::statistics_type(input, {&weight, &bias});
  const DimVector strides = native::output_strides(input);
  out.set(0, input.sizes(), input.scalar_type(), IntArrayRef(strides));
  out.set(1, {N, group}, type);
  out.set(2, {N, group}, type);
}
} // namespace at::meta
