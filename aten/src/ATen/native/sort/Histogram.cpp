// Counting into bins: bincount, histc, histogram, histogramdd. Sums run in the order of the
// elements, so weighted results have the same bits on every machine.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/PrivateCopy.h>
#include <ATen/native/sort/Native.h>
#include <ATen/ops/_histogramdd_bin_edges.h>
#include <ATen/ops/_histogramdd_from_bin_cts.h>
#include <ATen/ops/_histogramdd_from_bin_tensors.h>
#include <ATen/ops/linspace.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SafeArithmetic.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace at::native {

// ---- bincount
namespace {

template <class T, class W> void count_into(const T* data, int64_t n, const W* weights, W* out) {
  serial_for(0, n, 4, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[data[i]] += weights != nullptr ? weights[i] : W(1);
  });
}

// Whole numbers of elements. Neighbours count into tables of their own: a counter that was just
// written is not read again at once.
template <class T> void count_plain(const T* data, int64_t n, int64_t bins, int64_t* out) {
  constexpr int64_t kTables = 4, kMostBins = 2048;
  if (bins > kMostBins || n < 4 * bins) return count_into<T, int64_t>(data, n, nullptr, out);
  std::vector<int64_t> tables(static_cast<size_t>((kTables - 1) * bins), 0);
  int64_t *second = tables.data(), *third = second + bins, *fourth = third + bins;
  serial_for(0, n / kTables, 4 * kTables, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * kTables; i < end * kTables; i += kTables) {
      ++out[data[i]];
      ++second[data[i + 1]];
      ++third[data[i + 2]];
      ++fourth[data[i + 3]];
    }
  });
  for (int64_t i = n / kTables * kTables; i < n; ++i) ++out[data[i]];
  for (int64_t b = 0; b < bins; ++b) out[b] += second[b] + third[b] + fourth[b];
}

template <class T> int64_t bins_needed(const T* data, int64_t n, int64_t minlength) {
  if (n == 0) return minlength;
  T low = data[0], high = data[0];
  serial_for(0, n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      low = std::min(low, data[i]), high = std::max(high, data[i]);
  });
  TORCH_CHECK(low >= 0, "bincount only supports 1-d non-negative integral inputs.");
  const uint64_t largest = static_cast<uint64_t>(high);
  TORCH_CHECK(largest < static_cast<uint64_t>(INT64_MAX), "bincount: the value ", high,
              " is too large");
  return std::max(static_cast<int64_t>(largest) + 1, minlength);
}

} // namespace

Tensor bincount_cpu(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  TORCH_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  const bool weighted = weights && weights->defined() && self.numel() > 0;
  const bool given = weights && weights->defined();
  TORCH_CHECK(!given || (weights->dim() == 1 && weights->size(0) == self.size(0)),
              "weights should be 1-d and have the same length as input");
  const Tensor data = private_copy(self);
  const int64_t n = data.numel();
  Tensor result;
  dtype_switch<IntegralTypes>(self.scalar_type(), "bincount_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* values = static_cast<const T*>(data.data_ptr());
    const int64_t bins = bins_needed(values, n, minlength);
    const auto count = [&](auto zero, ScalarType dtype) {
      using W = decltype(zero);
      result = detail::empty({bins}, dtype);
      result.zero_();
      const Tensor w = weights->to(dtype).contiguous();
      count_into<T, W>(values, n, w.data_ptr<W>(), result.data_ptr<W>());
    };
    if (!weighted) {
      result = detail::empty({bins}, kLong);
      result.zero_();
      count_plain(values, n, bins, result.data_ptr<int64_t>());
    } else if (weights->scalar_type() == kFloat) {
      count(float(0), kFloat);
    } else {
      count(double(0), kDouble);
    }
  });
  return result;
}

// ---- histc
namespace {

// The smallest and largest element; not finite when one is not.
template <class T> std::pair<double, double> extremes(const T* data, int64_t n, int64_t stride) {
  double low = static_cast<double>(data[0]), high = low;
  serial_for(1, n, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && low == low; ++i) {
      const double v = static_cast<double>(data[i * stride]);
      if (!(v >= low)) low = v;
      if (!(v <= high)) high = v;
    }
  });
  return low == low ? std::make_pair(low, high) : std::make_pair(low, low);
}

void check_bins(int64_t bins, int64_t dim) {
  TORCH_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins, " for dimension ",
              dim);
}

} // namespace

Tensor histc_cpu(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  check_bins(bins, 0);
  const Tensor data = self.contiguous();
  const int64_t n = data.numel();
  const Tensor result = detail::empty({bins}, self.scalar_type(), self.device());
  if (result.is_meta()) return result;
  dtype_switch<FloatingTypes>(self.scalar_type(), "histogram_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* values = static_cast<const T*>(data.data_ptr());
    double low = min.toDouble(), high = max.toDouble();
    if (low == high && n > 0) std::tie(low, high) = extremes(values, n, 1);
    TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", low, ", ",
                high, "] is not finite");
    TORCH_CHECK(low <= high, "torch.histc: max must be larger than min");
    if (low == high) {
      low -= 1;
      high += 1;
    }
    // The arithmetic of T itself decides the bin of elements on an edge.
    const T first = static_cast<T>(static_cast<float>(low)),
            last = static_cast<T>(static_cast<float>(high));
    const T start = std::is_same_v<T, double> ? static_cast<T>(low) : first;
    const T stop = std::is_same_v<T, double> ? static_cast<T>(high) : last;
    const T width = static_cast<T>(stop - start), count = static_cast<T>(static_cast<float>(bins));
    const Tensor counts = detail::empty({bins}, kLong);
    counts.zero_();
    int64_t* counted = counts.data_ptr<int64_t>();
    serial_for(0, n, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T v = values[i];
        if (!(v >= start && v <= stop)) continue;
        const T scaled = static_cast<T>(static_cast<T>(static_cast<T>(v - start) * count) / width);
        const int64_t bin = static_cast<int64_t>(static_cast<double>(scaled));
        ++counted[std::min(bin, bins - 1)];
      }
    });
    T* out = static_cast<T*>(result.data_ptr());
    parallel_for(0, bins, 32768, [=](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) out[b] = static_cast<T>(static_cast<float>(counted[b]));
    });
  });
  return result;
}

// ---- histogramdd
namespace {

void check_input(const Tensor& self, size_t dimensions) {
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  TORCH_CHECK(
      static_cast<int64_t>(dimensions) == self.size(-1),
      "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() == kFloat || self.scalar_type() == kDouble,
                              "\"histogramdd\" not implemented for '", self.scalar_type(), "'");
}

void check_weight(const Tensor& self, const std::optional<Tensor>& weight) {
  if (!weight || !weight->defined()) return;
  TORCH_CHECK(
      weight->scalar_type() == self.scalar_type(),
      "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
      "have the same dtype, but got input(",
      self.scalar_type(), "), and weight(", weight->scalar_type(), ")");
  const IntArrayRef sizes = self.sizes();
  TORCH_CHECK(
      weight->sizes() == sizes.slice(0, sizes.size() - 1),
      "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
      "input tensor excluding its innermost dimension, but got input with shape ",
      sizes, " and weight with shape ", weight->sizes());
}

void check_edges(const Tensor& self, TensorList edges) {
  for (size_t d = 0; d < edges.size(); ++d) {
    TORCH_CHECK(
        edges[d].scalar_type() == self.scalar_type(),
        "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
        "input with dtype ",
        self.scalar_type(), " and bins for dimension ", d, " with dtype ", edges[d].scalar_type());
    TORCH_CHECK(edges[d].dim() == 1,
                "torch.histogramdd: bins tensor should have one dimension, but got ",
                edges[d].dim(), " dimensions in the bins tensor for dimension ", d);
    check_bins(edges[d].numel() - 1, static_cast<int64_t>(d));
  }
}

// The bin of v between sorted edges, the last one closed; -1 outside. The search halves without a
// branch on the data: which half is taken is a coin that no predictor knows.
template <class T> int64_t find_bin(const T* edges, int64_t n, T v) {
  if (!(v >= edges[0] && v <= edges[n - 1])) return -1;
  const T* low = edges; // v is at or above it
  for (int64_t left = n; left > 1;) {
    const int64_t half = left / 2;
    low = low[half] <= v ? low + half : low;
    left -= half;
  }
  return std::min<int64_t>(low - edges, n - 2);
}

template <class T> void fill_histogram(const Tensor& points, const std::vector<Tensor>& edges,
                                       const T* weights, T* hist) {
  struct Axis {
    const T* edges;
    int64_t count;
  };
  c10::SmallVector<Axis, 4> axes;
  for (const Tensor& own : edges)
    axes.push_back({static_cast<const T*>(own.data_ptr()), own.numel()});
  const int64_t dims = static_cast<int64_t>(axes.size());
  const int64_t n = dims == 0 ? 0 : points.numel() / dims;
  const T* data = static_cast<const T*>(points.data_ptr());
  serial_for(0, n, 16 * dims, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t place = 0;
      for (int64_t d = 0; d < dims && place >= 0; ++d) {
        const int64_t bin = find_bin(axes[d].edges, axes[d].count, data[i * dims + d]);
        place = bin < 0 ? -1 : place * (axes[d].count - 1) + bin;
      }
      if (place >= 0) hist[place] += weights != nullptr ? weights[i] : T(1);
    }
  });
}

// Divides by the total and by the volume of each bin.
template <class T>
void make_density(const std::vector<Tensor>& edges, const DimVector& shape, T* hist) {
  const int64_t n = c10::checked_numel(shape);
  double total = 0;
  serial_for(0, n, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) total += hist[i];
  });
  parallel_for(0, n, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T value = static_cast<T>(hist[i] / total);
      int64_t rest = i;
      for (size_t d = shape.size(); d-- > 0;) {
        const T* e = static_cast<const T*>(edges[d].data_ptr()) + rest % shape[d];
        rest /= shape[d];
        value /= e[1] - e[0];
      }
      hist[i] = value;
    }
  });
}

// The interval of each dimension: the given range, or that of the data, never empty.
template <class T> std::vector<std::pair<double, double>>
intervals(const Tensor& points, int64_t dims, std::optional<ArrayRef<double>> range) {
  std::vector<std::pair<double, double>> result;
  const int64_t n = dims == 0 ? 0 : points.numel() / dims;
  for (int64_t d = 0; d < dims; ++d) {
    std::pair<double, double> own{0, 1};
    if (range)
      own = {(*range)[2 * d], (*range)[2 * d + 1]};
    else if (n > 0)
      own = extremes(static_cast<const T*>(points.data_ptr()) + d, n, dims);
    TORCH_CHECK(std::isfinite(own.first) && std::isfinite(own.second),
                "torch.histogramdd: dimension ", d, "'s range [", own.first, ", ", own.second,
                "] is not finite");
    TORCH_CHECK(own.first <= own.second,
                "torch.histogramdd: min should not exceed max, but got min ", own.first, " max ",
                own.second, " for dimension ", d);
    if (own.first == own.second) own = {own.first - 0.5, own.second + 0.5};
    result.push_back(own);
  }
  return result;
}

void histogram_into(const Tensor& self, const std::vector<Tensor>& edges,
                    const std::optional<Tensor>& weight, bool density, const DimVector& shape,
                    const Tensor& hist) {
  const Tensor points = self.contiguous();
  const Tensor w = weight && weight->defined() ? weight->contiguous() : Tensor();
  dtype_switch<WideFloatingTypes>(self.scalar_type(), "histogramdd", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = hist.data_ptr<T>();
    fill_histogram<T>(points, edges, w.defined() && w.numel() > 0 ? w.data_ptr<T>() : nullptr, out);
    if (density) make_density<T>(edges, shape, out);
  });
}

} // namespace

std::vector<Tensor> histogramdd_bin_edges_cpu(const Tensor& self, IntArrayRef bins,
                                              std::optional<ArrayRef<double>> range,
                                              const std::optional<Tensor>& weight, bool density) {
  static_cast<void>(density);
  check_input(self, bins.size());
  check_weight(self, weight);
  for (size_t d = 0; d < bins.size(); ++d) check_bins(bins[d], static_cast<int64_t>(d));
  TORCH_CHECK(!range || range->size() == 2 * bins.size(), "torch.histogramdd: for a ", bins.size(),
              "-dimensional histogram range should have ", 2 * bins.size(), " elements, but got ",
              range ? range->size() : 0);
  std::vector<Tensor> edges;
  if (self.is_meta()) {
    for (const int64_t count : bins)
      edges.push_back(detail::empty({count + 1}, self.scalar_type(), self.device()));
    return edges;
  }
  const Tensor points = self.contiguous();
  const int64_t dims = static_cast<int64_t>(bins.size());
  const auto own = self.scalar_type() == kFloat ? intervals<float>(points, dims, range)
                                                : intervals<double>(points, dims, range);
  for (size_t d = 0; d < bins.size(); ++d)
    edges.push_back(at::linspace(Scalar(own[d].first), Scalar(own[d].second), bins[d] + 1,
                                 TensorOptions(self.scalar_type())));
  return edges;
}

Tensor histogramdd_from_bin_tensors_cpu(const Tensor& self, TensorList bins,
                                        const std::optional<Tensor>& weight, bool density) {
  check_input(self, bins.size());
  check_edges(self, bins);
  check_weight(self, weight);
  DimVector shape;
  std::vector<Tensor> edges;
  for (const Tensor& b : bins) {
    shape.push_back(b.numel() - 1);
    edges.push_back(b.contiguous());
  }
  Tensor hist = detail::empty(shape, self.scalar_type(), self.device());
  if (hist.is_meta()) return hist;
  hist.zero_();
  histogram_into(self, edges, weight, density, shape, hist);
  return hist;
}

Tensor histogramdd_from_bin_cts_cpu(const Tensor& self, IntArrayRef bins,
                                    std::optional<ArrayRef<double>> range,
                                    const std::optional<Tensor>& weight, bool density) {
  const std::vector<Tensor> edges = histogramdd_bin_edges_cpu(self, bins, range, weight, density);
  return histogramdd_from_bin_tensors_cpu(self, edges, weight, density);
}

std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, IntArrayRef bins,
                                                    std::optional<ArrayRef<double>> range,
                                                    const std::optional<Tensor>& weight,
                                                    bool density) {
  std::vector<Tensor> edges = at::_histogramdd_bin_edges(self, bins, range, weight, density);
  const Tensor hist = at::_histogramdd_from_bin_tensors(self, edges, weight, density);
  return {hist, std::move(edges)};
}

std::tuple<Tensor, std::vector<Tensor>> histogramdd_one_count(const Tensor& self, int64_t bins,
                                                              std::optional<ArrayRef<double>> range,
                                                              const std::optional<Tensor>& weight,
                                                              bool density) {
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  const DimVector all(static_cast<size_t>(self.size(-1)), bins);
  return histogramdd(self, all, range, weight, density);
}

std::tuple<Tensor, std::vector<Tensor>> histogramdd_tensors(const Tensor& self, TensorList bins,
                                                            std::optional<ArrayRef<double>> range,
                                                            const std::optional<Tensor>& weight,
                                                            bool density) {
  static_cast<void>(range);
  const Tensor hist = at::_histogramdd_from_bin_tensors(self, bins, weight, density);
  return {hist, std::vector<Tensor>(bins.begin(), bins.end())};
}

// ---- histogram: one dimension
namespace {

std::optional<Tensor> flat(const std::optional<Tensor>& t) {
  return t && t->defined() ? std::optional<Tensor>(t->reshape({-1})) : std::nullopt;
}

void check_scalar_dtype(const Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() == kFloat || self.scalar_type() == kDouble,
                              "\"histogramdd\" not implemented for '", self.scalar_type(), "'");
}

} // namespace

std::tuple<Tensor, Tensor> histogram_bin_ct(const Tensor& self, int64_t bins,
                                            std::optional<ArrayRef<double>> range,
                                            const std::optional<Tensor>& weight, bool density) {
  check_scalar_dtype(self);
  const Tensor points = self.reshape({-1, 1});
  const std::optional<Tensor> w = flat(weight);
  const std::vector<Tensor> edges = histogramdd_bin_edges_cpu(points, {bins}, range, w, density);
  return {histogramdd_from_bin_tensors_cpu(points, edges, w, density), edges[0]};
}

std::tuple<Tensor, Tensor> histogram_bins_tensor(const Tensor& self, const Tensor& bins,
                                                 const std::optional<Tensor>& weight,
                                                 bool density) {
  check_scalar_dtype(self);
  const std::vector<Tensor> edges{bins};
  const Tensor hist =
      histogramdd_from_bin_tensors_cpu(self.reshape({-1, 1}), edges, flat(weight), density);
  return {hist, bins.clone()};
}

} // namespace at::native
