// Batch norm. Data laid out by planes is reduced plane by plane, one task per channel;
// channels-last data and matrices are reduced down the rows, a block of rows at a time while it
// lies in cache. Either way the sets' moments are merged in a fixed order.
#include <cmath>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/norm/Native.h>
#include <ATen/native/norm/NormUtil.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/repeat.h>
#include <ATen/parallel/Stretches.h>

namespace at::native {
namespace {
using norm_loops::loops_for;
using norm_loops::Moments;
using norm_loops::NormLoops;

// The input as samples x channels x plane; `columns` when channels are innermost.
struct Planes {
  int64_t samples, channels, plane;
  bool columns;
  int64_t per_channel() const { return samples * plane; }
};

MemoryFormat format_of(const Tensor& t) {
  const MemoryFormat format = t.suggest_memory_format();
  return t.is_contiguous(format) ? format : MemoryFormat::Contiguous;
}
Planes planes_of(const Tensor& input, MemoryFormat format) {
  Planes s{input.size(0), input.dim() > 1 ? input.size(1) : 0, 1,
           format != MemoryFormat::Contiguous};
  for (int64_t d = 2; d < input.dim(); ++d) s.plane *= input.size(d);
  s.columns = s.columns || s.plane == 1;
  return s;
}

void check_parameter(const char* name, const std::optional<Tensor>& t, int64_t channels) {
  TORCH_CHECK(!has(t) || t->numel() == channels, name, " should contain ", channels,
              " elements not ", has(t) ? t->numel() : 0);
}
void check_batch_norm(const Tensor& input, const std::optional<Tensor>& weight,
                      const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                      const std::optional<Tensor>& running_var, bool training) {
  TORCH_CHECK(input.dim() > 0,
              "batch_norm: expected input to have at least 1 dimension, got a scalar");
  TORCH_CHECK_INDEX(input.dim() > 1 || input.numel() == 0,
                    "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  const int64_t channels = input.dim() > 1 ? input.size(1) : 0;
  TORCH_CHECK(training || has(running_mean), "running_mean must be defined in evaluation mode");
  TORCH_CHECK(training || has(running_var), "running_var must be defined in evaluation mode");
  check_parameter("running_mean", running_mean, channels);
  check_parameter("running_var", running_var, channels);
  check_parameter("weight", weight, channels);
  check_parameter("bias", bias, channels);
}

// Rows of a block that stays in the second-level cache while it is read twice.
int64_t block_rows(int64_t columns) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(columns, 1));
}

// Room for `count` values of the compute type, zeroed.
struct Values {
  Values(int64_t count, ScalarType compute)
      : is_double(compute == kDouble), f(is_double ? 0 : count, 0.0f),
        d(is_double ? count : 0, 0.0) {}
  void* data() { return is_double ? static_cast<void*>(d.data()) : f.data(); }
  double operator[](int64_t i) const { return is_double ? d[i] : static_cast<double>(f[i]); }
  void set(int64_t i, double v) {
    if (is_double)
      d[i] = v;
    else
      f[i] = static_cast<float>(v);
  }
  bool is_double;
  std::vector<float> f;
  std::vector<double> d;
};

void column_moments(const NormLoops& loops, const Tensor& x, const Planes& s,
                    std::vector<Moments>& result) {
  const int64_t rows = s.per_channel(), columns = s.channels, block = block_rows(columns);
  const int64_t chunk = at::chunk_size(rows, block), chunks = at::chunk_count(rows, block);
  std::vector<std::vector<Moments>> partial(static_cast<size_t>(chunks));
  const ScalarType compute = compute_type(x.scalar_type());
  at::parallel_for(0, rows, block, [&](int64_t begin, int64_t end) {
    std::vector<Moments>& own = partial[static_cast<size_t>(begin / chunk)];
    own.resize(static_cast<size_t>(columns));
    for (int64_t b = begin; b < end; b += block) {
      const int64_t count = std::min(block, end - b);
      const char* base = advance(x.const_data_ptr(), b * columns, x.itemsize());
      Values mean(columns, compute), deviation(columns, compute);
      loops.column_sums(base, count, columns, mean.data());
      for (int64_t c = 0; c < columns; ++c) mean.set(c, mean[c] / static_cast<double>(count));
      loops.column_deviations(base, count, columns, mean.data(), deviation.data());
      for (int64_t c = 0; c < columns; ++c)
        own[static_cast<size_t>(c)].merge(static_cast<double>(count), mean[c], deviation[c]);
    }
  });
  for (const auto& part : partial)
    for (size_t c = 0; c < part.size(); ++c) result[c].merge(part[c]);
}

void plane_moments(const NormLoops& loops, const Tensor& x, const Planes& s,
                   std::vector<Moments>& result) {
  at::parallel_for(0, s.channels, row_grain(s.per_channel()), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      for (int64_t n = 0; n < s.samples; ++n)
        row_moments(loops,
                    advance(x.const_data_ptr(), (n * s.channels + c) * s.plane, x.itemsize()),
                    s.plane, x.itemsize(), &result[static_cast<size_t>(c)]);
  });
}

// y = x scale[c] + shift[c]
void apply(const NormLoops& loops, const Tensor& x, const Tensor& y, const Planes& s, Values& scale,
           Values& shift) {
  const int64_t item = x.itemsize();
  const void* source = x.const_data_ptr();
  void* target = y.mutable_data_ptr();
  if (s.columns) {
    at::parallel_for(0, s.per_channel(), row_grain(s.channels), [&](int64_t begin, int64_t end) {
      loops.column_scale_shift(advance(source, begin * s.channels, item),
                               advance(target, begin * s.channels, item), end - begin, s.channels,
                               scale.data(), shift.data());
    });
    return;
  }
  at::parallel_for(0, s.samples * s.channels, row_grain(s.plane), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for_row_parts(s.plane, [&](int64_t b, int64_t e) {
        const int64_t offset = r * s.plane + b;
        loops.scale_shift(advance(source, offset, item), advance(target, offset, item), e - b,
                          scale[r % s.channels], shift[r % s.channels]);
      });
  });
}

// running = (1 - momentum) running + momentum value
void update_running(const std::optional<Tensor>& running, double momentum,
                    const std::vector<double>& values) {
  if (!has(running)) return;
  std::vector<double> next = load_values(*running);
  for (size_t i = 0; i < next.size(); ++i)
    next[i] = (1 - momentum) * next[i] + momentum * values[i];
  if (running->is_contiguous()) {
    store_values(*running, next.data(), static_cast<int64_t>(next.size()));
    running->unsafeGetTensorImpl()->bump_version();
    return;
  }
  const Tensor packed = at::detail::empty(running->sizes(), running->scalar_type());
  store_values(packed, next.data(), static_cast<int64_t>(next.size()));
  running->copy_(packed);
}

// sum(g) and sum(g (x - mean)) of each channel.
void gradient_sums(const NormLoops& loops, const Tensor& g, const Tensor& x, const Planes& s,
                   const std::vector<double>& mean, std::vector<double>& sums) {
  const int64_t item = x.itemsize();
  if (!s.columns) {
    at::parallel_for(0, s.channels, row_grain(s.per_channel()), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        for (int64_t n = 0; n < s.samples; ++n) {
          const int64_t offset = (n * s.channels + c) * s.plane;
          row_grad_sums(loops, advance(g.const_data_ptr(), offset, item),
                        advance(x.const_data_ptr(), offset, item), s.plane, item,
                        mean[static_cast<size_t>(c)], &sums[static_cast<size_t>(2 * c)]);
        }
    });
    return;
  }
  const ScalarType compute = compute_type(x.scalar_type());
  const int64_t rows = s.per_channel(), columns = s.channels, block = block_rows(columns);
  if (rows == 0) return;
  const int64_t chunk = at::chunk_size(rows, block);
  Values centre(columns, compute);
  for (int64_t c = 0; c < columns; ++c) centre.set(c, mean[static_cast<size_t>(c)]);
  std::vector<std::vector<double>> partial(static_cast<size_t>(at::chunk_count(rows, block)));
  at::parallel_for(0, rows, block, [&](int64_t begin, int64_t end) {
    std::vector<double>& own = partial[static_cast<size_t>(begin / chunk)];
    own.resize(static_cast<size_t>(2 * columns));
    for (int64_t b = begin; b < end; b += block) {
      Values total(columns, compute), dot(columns, compute);
      loops.column_grad_sums(advance(g.const_data_ptr(), b * columns, item),
                             advance(x.const_data_ptr(), b * columns, item),
                             std::min(block, end - b), columns, centre.data(), total.data(),
                             dot.data());
      for (int64_t c = 0; c < columns; ++c) {
        own[static_cast<size_t>(2 * c)] += total[c];
        own[static_cast<size_t>(2 * c + 1)] += dot[c];
      }
    }
  });
  for (const auto& part : partial)
    for (size_t i = 0; i < part.size(); ++i) sums[i] += part[i];
}

// out = a[c] g + b[c] x + k[c]
void combine(const NormLoops& loops, const Tensor& g, const Tensor& x, const Tensor& out,
             const Planes& s, Values& a, Values& b, Values& k) {
  const int64_t item = x.itemsize();
  if (s.columns) {
    at::parallel_for(0, s.per_channel(), row_grain(s.channels), [&](int64_t begin, int64_t end) {
      const int64_t offset = begin * s.channels;
      loops.column_combine(advance(g.const_data_ptr(), offset, item),
                           advance(x.const_data_ptr(), offset, item),
                           advance(out.mutable_data_ptr(), offset, item), end - begin, s.channels,
                           a.data(), b.data(), k.data());
    });
    return;
  }
  at::parallel_for(0, s.samples * s.channels, row_grain(s.plane), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t offset = r * s.plane, c = r % s.channels;
      for_row_parts(s.plane, [&](int64_t first, int64_t last) {
        loops.combine(advance(g.const_data_ptr(), offset + first, item),
                      advance(x.const_data_ptr(), offset + first, item),
                      advance(out.mutable_data_ptr(), offset + first, item), last - first, a[c],
                      b[c], k[c]);
      });
    }
  });
}

Tensor vector_of(bool wanted, const std::vector<double>& values, ScalarType dtype) {
  if (!wanted) return Tensor();
  const int64_t count = static_cast<int64_t>(values.size());
  const Tensor t = at::detail::empty({count}, dtype);
  store_values(t, values.data(), count);
  return t;
}
} // namespace

void batch_norm_cpu(const Tensor& input, const std::optional<Tensor>& weight,
                    const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                    const std::optional<Tensor>& running_var, bool training, double momentum,
                    double eps, const Tensor& out, const Tensor& save_mean,
                    const Tensor& save_invstd) {
  const NormLoops& loops = loops_for(input.scalar_type(), "batch_norm");
  const ScalarType compute = compute_type(input.scalar_type());
  const MemoryFormat format = format_of(input);
  const Tensor x = input.contiguous(format);
  const Planes s = planes_of(input, format);
  const size_t channels = static_cast<size_t>(s.channels);
  const Tensor w = parameter_values(weight, compute), b = parameter_values(bias, compute);
  BlockingRegion region;
  std::vector<double> mean(channels), invstd(channels);
  if (training && s.per_channel() > 0) {
    std::vector<Moments> moments(channels);
    (s.columns ? column_moments : plane_moments)(loops, x, s, moments);
    std::vector<double> unbiased(channels);
    for (size_t c = 0; c < channels; ++c) {
      mean[c] = moments[c].mean;
      invstd[c] = 1.0 / std::sqrt(moments[c].variance() + eps);
      unbiased[c] = moments[c].deviation / (moments[c].count - 1);
    }
    update_running(running_mean, momentum, mean);
    update_running(running_var, momentum, unbiased);
  } else if (!training) {
    mean = load_values(*running_mean);
    invstd = load_values(*running_var);
    for (double& v : invstd) v = 1.0 / std::sqrt(v + eps);
  }
  if (training) {
    store_values(save_mean, mean.data(), s.channels);
    store_values(save_invstd, invstd.data(), s.channels);
  }
  Values scale(s.channels, compute), shift(s.channels, compute);
  for (int64_t c = 0; c < s.channels; ++c) {
    const double a = invstd[static_cast<size_t>(c)] * value_at(w, c, 1);
    scale.set(c, a);
    shift.set(c, value_at(b, c, 0) - mean[static_cast<size_t>(c)] * a);
  }
  apply(loops, x, out, s, scale, shift);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_cpu(
    const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight,
    const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
    const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train,
    double eps, std::array<bool, 3> output_mask) {
  check_batch_norm(input, weight, std::nullopt, running_mean, running_var, train);
  TORCH_CHECK(grad_out.sizes() == input.sizes(),
              "Expected the gradient to have the shape of the input, ", input.sizes(), ", but got ",
              grad_out.sizes());
  const ScalarType dtype = input.scalar_type(), compute = compute_type(dtype);
  const NormLoops& loops = loops_for(dtype, "batch_norm_backward");
  const MemoryFormat format = format_of(input);
  const Tensor x = input.contiguous(format), g = grad_out.to(dtype).contiguous(format);
  const Planes s = planes_of(input, format);
  const size_t channels = static_cast<size_t>(s.channels);
  const Tensor w = parameter_values(weight, compute);
  std::vector<double> mean, invstd;
  if (train) {
    check_parameter("save_mean", save_mean, s.channels);
    check_parameter("save_invstd", save_invstd, s.channels);
    TORCH_CHECK(has(save_mean) && has(save_invstd),
                "batch_norm_backward: save_mean and save_invstd must be defined "
                "in training mode");
    mean = load_values(*save_mean);
    invstd = load_values(*save_invstd);
  } else {
    mean = load_values(*running_mean);
    invstd = load_values(*running_var);
    for (double& v : invstd) v = 1.0 / std::sqrt(v + eps);
  }
  BlockingRegion region;
  std::vector<double> sums(2 * channels);
  gradient_sums(loops, g, x, s, mean, sums);
  Tensor to_input;
  if (output_mask[0]) {
    to_input = at::detail::empty_strided(x.sizes(), x.strides(), dtype);
    Values a(s.channels, compute), b(s.channels, compute), k(s.channels, compute);
    const double count = static_cast<double>(s.per_channel());
    for (int64_t i = 0; i < s.channels; ++i) {
      const size_t c = static_cast<size_t>(i);
      const double scale = invstd[c] * value_at(w, i, 1);
      a.set(i, scale);
      if (!train) continue;
      const double slope = -invstd[c] * invstd[c] * scale * sums[2 * c + 1] / count;
      b.set(i, slope);
      k.set(i, -scale * sums[2 * c] / count - slope * mean[c]);
    }
    combine(loops, g, x, to_input, s, a, b, k);
  }
  std::vector<double> to_weight(channels), to_bias(channels);
  for (size_t c = 0; c < channels; ++c) {
    to_weight[c] = sums[2 * c + 1] * invstd[c];
    to_bias[c] = sums[2 * c];
  }
  const ScalarType type = has(weight) ? weight->scalar_type() : dtype;
  return {to_input, vector_of(output_mask[1], to_weight, type),
          vector_of(output_mask[2], to_bias, type)};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_meta(
    const Tensor& /*grad_out*/, const Tensor& input, const std::optional<Tensor>& weight,
    const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
    const std::optional<Tensor>& /*save_mean*/, const std::optional<Tensor>& /*save_invstd*/,
    bool train, double /*eps*/, std::array<bool, 3> output_mask) {
  check_batch_norm(input, weight, std::nullopt, running_mean, running_var, train);
  const ScalarType type = has(weight) ? weight->scalar_type() : input.scalar_type();
  const int64_t channels = input.dim() > 1 ? input.size(1) : 0;
  const auto vector = [&](bool wanted) {
    return wanted ? at::detail::empty({channels}, type, Device(kMeta)) : Tensor();
  };
  Tensor to_input;
  if (output_mask[0]) {
    const IntArrayRef sizes = input.sizes();
    const bool last = format_of(input) != MemoryFormat::Contiguous;
    to_input = at::detail::empty_strided(
        sizes, last ? c10::channels_last_strides(sizes) : c10::contiguous_strides(sizes),
        input.scalar_type(), Device(kMeta));
  }
  return {to_input, vector(output_mask[1]), vector(output_mask[2])};
}

// ---- the other names ----------------------------------------------------------------------------
namespace {
// Handlers expect the reserve of _batch_norm_impl_index, which is empty on the CPU.
void show_reserve(const Tensor& input) {
  if (C10_UNLIKELY(seen_by_handlers(input))) at::empty({0}, input.options().dtype(kByte));
}
} // namespace

Tensor batch_norm(const Tensor& input, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                  const std::optional<Tensor>& running_var, bool training, double momentum,
                  double eps, bool /*cudnn_enabled*/) {
  show_reserve(input);
  const auto [out, mean, invstd] = at::native_batch_norm(input, weight, bias, running_mean,
                                                         running_var, training, momentum, eps);
  return out;
}

std::tuple<Tensor, Tensor, Tensor>
_native_batch_norm_legit(const Tensor& input, const std::optional<Tensor>& weight,
                         const std::optional<Tensor>& bias, Tensor& running_mean,
                         Tensor& running_var, bool training, double momentum, double eps) {
  return at::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum,
                               eps);
}
std::tuple<Tensor, Tensor, Tensor>
_native_batch_norm_legit_no_stats(const Tensor& input, const std::optional<Tensor>& weight,
                                  const std::optional<Tensor>& bias, bool training, double momentum,
                                  double eps) {
  return at::native_batch_norm(input, weight, bias, std::nullopt, std::nullopt, training, momentum,
                               eps);
}
std::tuple<Tensor, Tensor, Tensor>
_native_batch_norm_legit_no_training(const Tensor& input, const std::optional<Tensor>& weight,
                                     const std::optional<Tensor>& bias, const Tensor& running_mean,
                                     const Tensor& running_var, double momentum, double eps) {
  return at::native_batch_norm(input, weight, bias, running_mean, running_var, false, momentum,
                               eps);
}
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>
_native_batch_norm_legit_functional(const Tensor& input, const std::optional<Tensor>& weight,
                                    const std::optional<Tensor>& bias, const Tensor& running_mean,
                                    const Tensor& running_var, bool training, double momentum,
                                    double eps) {
  const Tensor mean = running_mean.clone(), var = running_var.clone();
  auto [out, save_mean, save_invstd] =
      at::native_batch_norm(input, weight, bias, mean, var, training, momentum, eps);
  return {out, save_mean, save_invstd, mean, var};
}
std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t>
_batch_norm_impl_index(const Tensor& input, const std::optional<Tensor>& weight,
                       const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                       const std::optional<Tensor>& running_var, bool training, double momentum,
                       double eps, bool /*cudnn_enabled*/) {
  auto [out, save_mean, save_invstd] = at::native_batch_norm(input, weight, bias, running_mean,
                                                             running_var, training, momentum, eps);
  return {out, save_mean, save_invstd, at::detail::empty({0}, c10::kByte, input.device()), 0};
}
std::tuple<Tensor, Tensor, Tensor> _batch_norm_impl_index_backward(
    int64_t impl_index, const Tensor& input, const Tensor& grad_output,
    const std::optional<Tensor>& weight, const std::optional<Tensor>& running_mean,
    const std::optional<Tensor>& running_var, const std::optional<Tensor>& save_mean,
    const std::optional<Tensor>& save_var_transform, bool train, double eps,
    std::array<bool, 3> output_mask, const Tensor& /*reservedSpace*/) {
  TORCH_CHECK(impl_index == 0,
              "Unsupported impl_index in _batch_norm_impl_index_backward: ", impl_index);
  return at::native_batch_norm_backward(grad_output, input, weight, running_mean, running_var,
                                        save_mean, save_var_transform, train, eps, output_mask);
}

// Batch norm over one long batch whose channels are all channels of all samples.
Tensor instance_norm(const Tensor& input, const std::optional<Tensor>& weight,
                     const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                     const std::optional<Tensor>& running_var, bool use_input_stats,
                     double momentum, double eps, bool cudnn_enabled) {
  TORCH_CHECK(use_input_stats || (has(running_mean) && has(running_var)),
              "Expected running_mean and running_var to be defined when use_input_stats is false");
  TORCH_CHECK(input.dim() >= 2, "instance_norm: expected input to have at least 2 dimensions, got ",
              input.dim());
  const int64_t samples = input.size(0), channels = input.size(1);
  const c10::SymInt times(samples);
  const auto repeated = [&](const std::optional<Tensor>& t) -> std::optional<Tensor> {
    if (!has(t)) return std::nullopt;
    return at::_ops::repeat::call(*t, c10::SymIntArrayRef(&times, 1));
  };
  const std::optional<Tensor> mean = repeated(running_mean), var = repeated(running_var);
  DimVector sizes(input.sizes().begin(), input.sizes().end());
  sizes[0] = 1;
  sizes[1] = samples * channels;
  const Tensor out =
      at::batch_norm(input.contiguous().view(sizes), repeated(weight), repeated(bias), mean, var,
                     use_input_stats, momentum, eps, cudnn_enabled);
  const auto average = [&](const std::optional<Tensor>& running,
                           const std::optional<Tensor>& each) {
    if (has(running))
      running->copy_(at::mean(each->view({samples, channels}), IntArrayRef({0}), false));
  };
  if (use_input_stats) {
    average(running_mean, mean);
    average(running_var, var);
  }
  return out.view(input.sizes());
}
} // namespace at::native

namespace at::meta {
void meta_native_batch_norm(OutputBuilder& out, const Tensor& input,
                            const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                            const std::optional<Tensor>& running_mean,
                            const std::optional<Tensor>& running_var, bool training,
                            double /*momentum*/, double /*eps*/) {
  if (native::is_symbolic(input)) {
    // Channels have as many statistics as the program gives; the other sizes decide nothing.
    TORCH_CHECK(input.dim() > 1, "batch_norm: expected at least 2 dimensions, got ", input.dim());
    const ScalarType kind =
        native::statistics_type(input, {&weight, &bias, &running_mean, &running_var});
    for (const std::optional<Tensor>* each : {&weight, &bias, &running_mean, &running_var})
      TORCH_CHECK(!each->has_value() || !(*each)->defined() ||
                      c10::expect_true(c10::sym_eq((*each)->sym_size(0), input.sym_size(1))),
                  "batch_norm: expected ", input.sym_size(1), " channels, got ",
                  (*each)->sym_sizes());
    const SymInt statistics[] = {training ? input.sym_size(1) : SymInt(0)};
    out.set_symint(0, input.sym_sizes(), input.scalar_type());
    out.set_symint(1, statistics, kind);
    out.set_symint(2, statistics, kind);
    return;
  }
  native::check_batch_norm(input, weight, bias, running_mean, running_var, training);
  const ScalarType type =
      native::statistics_type(input, {&weight, &bias, &running_mean, &running_var});
  if (native::format_of(input) == MemoryFormat::Contiguous) {
    out.set(0, input.sizes(), input.scalar_type());
  } else {
    out.set(0, input.sizes(), input.scalar_type(), input.strides());
  }
  const int64_t statistics[] = {!training ? 0 : input.dim() > 1 ? input.size(1) : 0};
  out.set(1, statistics, type);
  out.set(2, statistics, type);
}
} // namespace at::meta
