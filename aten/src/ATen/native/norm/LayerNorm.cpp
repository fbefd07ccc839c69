// Layer norm and RMS norm: each row is read while it lies in the first-level cache, first for its
// moments and again to be scaled, so that memory sees one read and one write. Gradients of the
// parameters are summed per chunk of rows and the chunks in order.
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/core/SymbolicTensor.h>
#include <ATen/native/RowKernels.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/norm/Native.h>
#include <ATen/native/norm/NormUtil.h>
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/square.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SafeArithmetic.h>

namespace at::native {
namespace {
using norm_loops::loops_for;
using norm_loops::Moments;
using norm_loops::NormLoops;

// The input as a matrix: one row for each slice of the normalised shape.
struct Rows {
  int64_t count, length;
  DimVector statistics; // sizes of mean and rstd: 1 for each normalised dimension
};

std::string starred(IntArrayRef shape, const char* separator) {
  std::string s = "[*";
  for (size_t i = 0; i < shape.size(); ++i)
    s += (i == 0 ? separator : ", ") + std::to_string(shape[i]);
  return s + "]";
}

Rows rows_of(const Tensor& input, IntArrayRef shape, const std::optional<Tensor>& weight,
             const std::optional<Tensor>& bias, const char* separator = ", ") {
  TORCH_CHECK(
      !shape.empty(),
      "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
      "element, but got normalized_shape = ",
      shape);
  TORCH_CHECK(!has(weight) || weight->sizes() == shape,
              "Expected weight to be of same shape as normalized_shape, but got weight of shape ",
              has(weight) ? weight->sizes() : shape, " and normalized_shape = ", shape);
  TORCH_CHECK(!has(bias) || bias->sizes() == shape,
              "Expected bias to be of same shape as normalized_shape, but got bias of shape ",
              has(bias) ? bias->sizes() : shape, " and normalized_shape = ", shape);
  const IntArrayRef sizes = input.sizes();
  const bool fits =
      sizes.size() >= shape.size() && sizes.slice(sizes.size() - shape.size()) == shape;
  TORCH_CHECK(fits, "Given normalized_shape=", shape, ", expected input with shape ",
              starred(shape, separator), ", but got input of size", sizes);
  Rows rows{1, 1, {}};
  const size_t lead = sizes.size() - shape.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    (i < lead ? rows.count : rows.length) *= sizes[i];
    rows.statistics.push_back(i < lead ? sizes[i] : 1);
  }
  return rows;
}

// f(row) for every row, shared between threads.
template <class F> void each_row(const Rows& rows, const F& f) {
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r);
  };
  const int64_t grain = row_grain(rows.length);
  if (rows.count <= grain && rows.length <= kLongRow) {
    range(0, rows.count);
    return;
  }
  BlockingRegion region;
  at::parallel_for(0, rows.count, grain, range);
}

// What one row needs: loops, length, element size, and the parameters or null.
struct RowNorm {
  const NormLoops& loops;
  int64_t n, item, parameter;
  double eps;
  const void *scale, *shift;
};

void scaled_row(const RowNorm& norm, const char* row, char* to, double mean, double rstd) {
  for_row_parts(norm.n, [&](int64_t b, int64_t e) {
    norm.loops.normalize(row + b * norm.item, to + b * norm.item, e - b, mean, rstd,
                         norm.scale ? advance(norm.scale, b, norm.parameter) : nullptr,
                         norm.shift ? advance(norm.shift, b, norm.parameter) : nullptr);
  });
}
void layer_norm_row(const RowNorm& norm, const char* row, char* to, double& mean, double& rstd) {
  Moments m;
  row_moments(norm.loops, row, norm.n, norm.item, &m);
  mean = m.mean;
  rstd = 1.0 / std::sqrt((norm.n > 0 ? m.variance() : std::numeric_limits<double>::quiet_NaN()) +
                         norm.eps);
  scaled_row(norm, row, to, mean, rstd);
}

// Statistics computed row by row; small counts stay on the stack.
using Statistics = c10::SmallVector<double, 32>;

struct Gradients {
  Tensor input, weight, bias;
};

// Gradients of y = (x - mean) rstd w + b.
Gradients gradients(const Tensor& grad_out, const Tensor& input, const Rows& rows,
                    const double* mean, const double* rstd, const std::optional<Tensor>& weight,
                    ScalarType parameter_type, IntArrayRef shape, bool want_input, bool want_weight,
                    bool want_bias) {
  TORCH_CHECK(grad_out.sizes() == input.sizes(),
              "Expected the gradient to have the shape of the input, ", input.sizes(), ", but got ",
              grad_out.sizes());
  const ScalarType dtype = input.scalar_type(), compute = compute_type(dtype);
  const NormLoops& loops = loops_for(dtype, "LayerNormBackwardKernelImpl");
  const Tensor x = input.contiguous(), g = grad_out.to(dtype).contiguous();
  const Tensor w = parameter_values(weight, compute);
  const int64_t n = rows.length, item = x.itemsize();
  Gradients result;
  if (want_input) result.input = at::detail::empty(input.sizes(), dtype);
  // One partial sum for each chunk of rows, whatever the number of threads.
  const int64_t grain = row_grain(n),
                chunks = std::max<int64_t>(1, at::chunk_count(rows.count, grain));
  const int64_t chunk = rows.count > 0 ? at::chunk_size(rows.count, grain) : 1;
  const int64_t parts = (want_weight ? 1 : 0) + (want_bias ? 1 : 0);
  const Tensor partial = at::detail::empty({chunks, parts, n}, compute);
  partial.zero_();
  const auto range = [&](int64_t begin, int64_t end) {
    char* base = advance(partial.mutable_data_ptr(), begin / chunk * parts * n, partial.itemsize());
    char* to_weight = want_weight ? base : nullptr;
    char* to_bias = want_bias ? advance(base, (parts - 1) * n, partial.itemsize()) : nullptr;
    for (int64_t r = begin; r < end; ++r) {
      const char* gradient = advance(g.const_data_ptr(), r * n, item);
      const char* row = advance(x.const_data_ptr(), r * n, item);
      const double m = mean ? mean[r] : 0;
      if (want_input)
        loops.row_gradient(gradient, row, advance(result.input.mutable_data_ptr(), r * n, item), n,
                           m, rstd[r], data_or_null(w), mean != nullptr);
      if (parts > 0) loops.row_parameters(gradient, row, n, m, rstd[r], to_weight, to_bias);
    }
  };
  {
    BlockingRegion region;
    at::parallel_for(0, rows.count, grain, range);
  }
  if (parts == 0) return result;
  const Tensor total = at::detail::empty({parts, n}, compute);
  total.zero_();
  const NormLoops& sums = loops_for(compute, "LayerNormBackwardKernelImpl");
  sums.column_sums(partial.const_data_ptr(), partial.size(0), parts * n, total.mutable_data_ptr());
  if (want_weight)
    result.weight = total.select(0, 0).to(parameter_type, false, true).reshape(shape);
  if (want_bias)
    result.bias = total.select(0, parts - 1).to(parameter_type, false, true).reshape(shape);
  return result;
}

ScalarType parameter_type(const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                          const Tensor& input) {
  return has(weight) ? weight->scalar_type()
         : has(bias) ? bias->scalar_type()
                     : input.scalar_type();
}
} // namespace

// ---- layer norm ---------------------------------------------------------------------------------
Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape,
                  const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                  double eps, bool /*cudnn_enable*/) {
  return std::get<0>(at::native_layer_norm(input, normalized_shape, weight, bias, eps));
}

void layer_norm_cpu(const Tensor& input, IntArrayRef normalized_shape,
                    const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                    double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  const Rows rows = rows_of(input, normalized_shape, weight, bias);
  const ScalarType compute = compute_type(input.scalar_type());
  const NormLoops& loops = loops_for(input.scalar_type(), "LayerNormKernelImpl");
  const Tensor x = input.contiguous(), w = parameter_values(weight, compute),
               b = parameter_values(bias, compute);
  const int64_t n = rows.length, item = x.itemsize();
  const RowNorm norm{loops,          n, item, c10::elementSize(compute), eps, data_or_null(w),
                     data_or_null(b)};
  const void* source = x.const_data_ptr();
  void* target = out.mutable_data_ptr();
  Statistics statistics(static_cast<size_t>(2 * rows.count), 0.0);
  double* means = statistics.data();
  double* rstds = means + rows.count;
  each_row(rows, [&](int64_t r) {
    layer_norm_row(norm, advance(source, r * n, item), advance(target, r * n, item), means[r],
                   rstds[r]);
  });
  store_values(mean, means, rows.count);
  store_values(rstd, rstds, rows.count);
}

std::tuple<Tensor, Tensor, Tensor>
layer_norm_backward_cpu(const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape,
                        const Tensor& mean, const Tensor& rstd, const std::optional<Tensor>& weight,
                        const std::optional<Tensor>& bias, std::array<bool, 3> output_mask) {
  const Rows rows = rows_of(input, normalized_shape, weight, bias);
  TORCH_CHECK(mean.numel() == rows.count && rstd.numel() == rows.count,
              "Expected mean and rstd to have one value for each of the ", rows.count, " slices");
  const std::vector<double> means = load_values(mean), rstds = load_values(rstd);
  Gradients g = gradients(grad_out, input, rows, means.data(), rstds.data(), weight,
                          parameter_type(weight, bias, input), normalized_shape, output_mask[0],
                          output_mask[1] && has(weight), output_mask[2] && has(bias));
  return {g.input, g.weight, g.bias};
}
std::tuple<Tensor, Tensor, Tensor>
layer_norm_backward_meta(const Tensor& /*grad_out*/, const Tensor& input,
                         IntArrayRef normalized_shape, const Tensor& /*mean*/,
                         const Tensor& /*rstd*/, const std::optional<Tensor>& weight,
                         const std::optional<Tensor>& bias, std::array<bool, 3> output_mask) {
  rows_of(input, normalized_shape, weight, bias);
  const ScalarType type = parameter_type(weight, bias, input);
  const auto like = [&](bool wanted, IntArrayRef sizes, ScalarType dtype) {
    return wanted ? at::detail::empty(sizes, dtype, Device(kMeta)) : Tensor();
  };
  return {like(output_mask[0], input.sizes(), input.scalar_type()),
          like(output_mask[1] && has(weight), normalized_shape, type),
          like(output_mask[2] && has(bias), normalized_shape, type)};
}
// The forward pass has checked the arguments.
std::tuple<Tensor, Tensor, Tensor>
layer_norm_backward_symbolic(const Tensor& /*grad_out*/, const Tensor& input,
                             SymIntArrayRef normalized_shape, const Tensor& /*mean*/,
                             const Tensor& /*rstd*/, const std::optional<Tensor>& weight,
                             const std::optional<Tensor>& bias, std::array<bool, 3> output_mask) {
  const ScalarType type = parameter_type(weight, bias, input);
  const auto like = [&](bool wanted, SymIntArrayRef sizes, ScalarType dtype) {
    return wanted ? at::detail::empty_symint(sizes, dtype, Device(kMeta)) : Tensor();
  };
  return {like(output_mask[0], input.sym_sizes(), input.scalar_type()),
          like(output_mask[1] && has(weight), normalized_shape, type),
          like(output_mask[2] && has(bias), normalized_shape, type)};
}

// ---- RMS norm -----------------------------------------------------------------------------------
namespace {
double rms_eps(std::optional<double> eps, ScalarType dtype) {
  return eps ? *eps : default_rms_eps(dtype);
}

// Contiguous, but images with the channels innermost stay so.
MemoryFormat rms_format(const Tensor& input) {
  return input.is_contiguous() ? MemoryFormat::Contiguous : input.suggest_memory_format();
}

// 1 / sqrt(square + eps) with the roundings of the type: ones divided by their norm are ones.
double reciprocal_root(double square, double eps, ScalarType compute) {
  if (compute == kDouble) return 1.0 / std::sqrt(square + eps);
  return 1.0F / std::sqrt(static_cast<float>(square) + static_cast<float>(eps));
}

double rms_norm_row(const RowNorm& norm, ScalarType compute, const char* row, char* to) {
  const double square =
      row_square_sum(norm.loops, row, norm.n, norm.item) / static_cast<double>(norm.n);
  const double rstd = reciprocal_root(square, norm.eps, compute);
  scaled_row(norm, row, to, 0, rstd);
  return rstd;
}

void store_statistic(char* to, int64_t i, double value, ScalarType dtype) {
  if (!to) return;
  if (dtype == kDouble)
    reinterpret_cast<double*>(to)[i] = value;
  else
    reinterpret_cast<float*>(to)[i] = static_cast<float>(value);
}
} // namespace

double default_rms_eps(ScalarType dtype) {
  return dtype == kDouble || dtype == kComplexDouble
             ? std::numeric_limits<double>::epsilon()
             : static_cast<double>(std::numeric_limits<float>::epsilon());
}

RowKernel layer_norm_rows(ScalarType dtype, int64_t length, double eps) {
  RowKernel rows{nullptr, dtype, length, eps};
  if (!c10::isFloatingType(dtype)) return rows;
  rows.run = [](const RowKernel& k, const char* const* in, char* const* out, int64_t count) {
    const ScalarType compute = compute_type(k.dtype);
    const int64_t item = c10::elementSize(k.dtype);
    const RowNorm norm{loops_for(k.dtype, "LayerNormKernelImpl"),
                       k.length,
                       item,
                       c10::elementSize(compute),
                       k.eps,
                       in[1],
                       in[2]};
    for (int64_t r = 0; r < count; ++r) {
      const int64_t offset = r * k.length * item;
      double mean = 0, rstd = 0;
      layer_norm_row(norm, in[0] + offset, out[0] + offset, mean, rstd);
      store_statistic(out[1], r, mean, compute);
      store_statistic(out[2], r, rstd, compute);
    }
  };
  return rows;
}
RowKernel rms_norm_rows(ScalarType dtype, int64_t length, double eps) {
  RowKernel rows{nullptr, dtype, length, eps};
  if (!c10::isFloatingType(dtype)) return rows;
  rows.run = [](const RowKernel& k, const char* const* in, char* const* out, int64_t count) {
    const ScalarType compute = compute_type(k.dtype);
    const int64_t item = c10::elementSize(k.dtype);
    const RowNorm norm{loops_for(k.dtype, "rms_norm"),
                       k.length,
                       item,
                       c10::elementSize(compute),
                       k.eps,
                       in[1],
                       nullptr};
    for (int64_t r = 0; r < count; ++r) {
      const int64_t offset = r * k.length * item;
      store_statistic(out[1], r, rms_norm_row(norm, compute, in[0] + offset, out[0] + offset),
                      compute);
    }
  };
  return rows;
}

// One fused operator where input and weight have one floating type, else, and for most handlers,
// the formula.
Tensor rms_norm(const Tensor& input, IntArrayRef normalized_shape,
                const std::optional<Tensor>& weight, std::optional<double> eps) {
  rows_of(input, normalized_shape, weight, std::nullopt, "");
  const ScalarType dtype = input.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(!c10::isIntegralType(dtype, true),
                              "\"rms_norm\" not implemented for '", dtype, "'");
  if (!input.is_complex() && (!has(weight) || weight->scalar_type() == dtype) &&
      (C10_LIKELY(!seen_by_handlers(input)) || records_whole_operators()))
    return std::get<0>(at::_fused_rms_norm(input, normalized_shape, weight, eps));
  const bool reduced = dtype == kHalf || dtype == kBFloat16;
  const Tensor x = reduced ? input.to(kFloat) : input;
  DimVector dims;
  for (size_t i = 0; i < normalized_shape.size(); ++i) dims.push_back(-1 - static_cast<int64_t>(i));
  Tensor square = at::mean(at::square(x), dims, true);
  at::_ops::add__Scalar::call(square, rms_eps(eps, dtype), 1);
  Tensor result = at::mul(x, at::rsqrt(square));
  if (has(weight)) result = at::mul(result, *weight);
  return result.to(dtype);
}

std::tuple<Tensor, Tensor> fused_rms_norm_cpu(const Tensor& input, IntArrayRef normalized_shape,
                                              const std::optional<Tensor>& weight,
                                              std::optional<double> eps) {
  const Rows rows = rows_of(input, normalized_shape, weight, std::nullopt, "");
  const ScalarType compute = compute_type(input.scalar_type());
  const NormLoops& loops = loops_for(input.scalar_type(), "rms_norm");
  const Tensor x = input.contiguous(), w = parameter_values(weight, compute);
  const Tensor out = at::detail::empty(input.sizes(), input.scalar_type());
  const Tensor rstd = at::detail::empty(rows.statistics, compute);
  const int64_t n = rows.length, item = x.itemsize();
  const RowNorm norm{
      loops,           n,      item, c10::elementSize(compute), rms_eps(eps, input.scalar_type()),
      data_or_null(w), nullptr};
  const void* source = x.const_data_ptr();
  void* target = out.mutable_data_ptr();
  Statistics rstds(static_cast<size_t>(rows.count), 0.0);
  each_row(rows, [&](int64_t r) {
    rstds[static_cast<size_t>(r)] =
        rms_norm_row(norm, compute, advance(source, r * n, item), advance(target, r * n, item));
  });
  store_values(rstd, rstds.data(), rows.count);
  return {out.contiguous(rms_format(input)), rstd};
}
std::tuple<Tensor, Tensor> fused_rms_norm_meta(const Tensor& input, IntArrayRef normalized_shape,
                                               const std::optional<Tensor>& weight,
                                               std::optional<double> /*eps*/) {
  const Rows rows = rows_of(input, normalized_shape, weight, std::nullopt, "");
  return {at::detail::empty(input.sizes(), input.scalar_type(), Device(kMeta))
              .contiguous(rms_format(input)),
          at::detail::empty(rows.statistics, compute_type(input.scalar_type()), Device(kMeta))};
}

std::tuple<Tensor, Tensor> fused_rms_norm_backward_cpu(const Tensor& grad_out, const Tensor& input,
                                                       IntArrayRef normalized_shape,
                                                       const Tensor& rstd,
                                                       const std::optional<Tensor>& weight,
                                                       std::array<bool, 2> output_mask) {
  const Rows rows = rows_of(input, normalized_shape, weight, std::nullopt, "");
  TORCH_CHECK(rstd.numel() == rows.count, "Expected rstd to have one value for each of the ",
              rows.count, " slices");
  const std::vector<double> rstds = load_values(rstd);
  Gradients g = gradients(grad_out, input, rows, nullptr, rstds.data(), weight,
                          parameter_type(weight, std::nullopt, input), normalized_shape,
                          output_mask[0], output_mask[1] && has(weight), false);
  return {g.input, g.weight};
}
std::tuple<Tensor, Tensor>
fused_rms_norm_backward_meta(const Tensor& /*grad_out*/, const Tensor& input,
                             IntArrayRef normalized_shape, const Tensor& /*rstd*/,
                             const std::optional<Tensor>& weight, std::array<bool, 2> output_mask) {
  rows_of(input, normalized_shape, weight, std::nullopt, "");
  Tensor to_input, to_weight;
  if (output_mask[0])
    to_input = at::detail::empty(input.sizes(), input.scalar_type(), Device(kMeta));
  if (output_mask[1] && has(weight))
    to_weight = at::detail::empty(normalized_shape, weight->scalar_type(), Device(kMeta));
  return {to_input, to_weight};
}
} // namespace at::native

namespace at::meta {
void meta_native_layer_norm(OutputBuilder& out, const Tensor& input, IntArrayRef normalized_shape,
                            const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                            double /*eps*/) {
  if (native::is_symbolic(input)) {
    // The normalised dimensions are given as numbers, which the input's sizes then are.
    const size_t lead = static_cast<size_t>(input.dim()) - normalized_shape.size();
    native::SymDimVector statistics(input.sym_sizes());
    for (size_t i = lead; i < statistics.size(); ++i) {
      TORCH_CHECK(c10::expect_true(c10::sym_eq(statistics[i], normalized_shape[i - lead])),
                  "Given normalized_shape=", normalized_shape, ", got input of size",
                  input.sym_sizes());
      statistics[i] = 1;
    }
    const ScalarType type = native::statistics_type(input, {&weight, &bias});
    out.set_symint(0, input.sym_sizes(), input.scalar_type());
    out.set_symint(1, statistics, type);
    out.set_symint(2, statistics, type);
    return;
  }
  const native::Rows rows = native::rows_of(input, normalized_shape, weight, bias);
  // A GPU keeps statistics in the type it computes in; the check of the types is the same.
  const ScalarType checked = native::statistics_type(input, {&weight, &bias});
  const ScalarType type = input.is_cuda() ? native::compute_type(input.scalar_type()) : checked;
  out.set(0, input.sizes(), input.scalar_type());
  out.set(1, rows.statistics, type);
  out.set(2, rows.statistics, type);
}
} // namespace at::meta
