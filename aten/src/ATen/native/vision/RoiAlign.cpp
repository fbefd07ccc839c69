// Regions of interest by interpolation (roi_align and its position sensitive form). The points of a
// region form a grid, and linear interpolation in two directions is a product, so that a region is
// two short lists of taps, one per direction, shared by all channels. Forward runs over (region,
// channel) pairs; backward over the planes of the input, each of which adds up its regions in their
// order, so that the bits do not depend on the threads.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/vision/Vision.h>
#include <ATen/parallel/Parallel.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace at::native::vision {
namespace {

template <class A> struct AxisTap {
  int64_t lo, hi;
  A at_lo, at_hi;
};

// The points of one direction: taps of bin b are taps[first[b]] to taps[first[b + 1]]. Points
// outside the image (by more than one pixel) count, but have no taps.
template <class A> struct Axis {
  std::vector<AxisTap<A>> taps;
  std::vector<int64_t> first;
  double points = 0; // per bin, whether inside or not

  void lay(A start, A length, int64_t bins, int64_t ratio, int64_t size) {
    taps.clear();
    first.assign(1, 0);
    const A bin = length / static_cast<A>(bins);
    const double wanted = ratio > 0 ? static_cast<double>(ratio) : std::ceil(double(bin));
    points = std::min(std::max(wanted, -1e18), 1e18);
    for (int64_t b = 0; b < bins; ++b) {
      if (points > 0) lay_bin(start + static_cast<A>(b) * bin, bin, size);
      first.push_back(static_cast<int64_t>(taps.size()));
    }
  }

  void lay_bin(A start, A bin, int64_t size) {
    // Only the points that can lie inside are visited: a region may be far larger than the image.
    double from = 0, to = points;
    const double step = static_cast<double>(bin) / points;
    if (step != 0) {
      const double a = (-1.0 - start) / step, b = (static_cast<double>(size) - start) / step;
      from = std::max(from, std::floor(std::min(a, b)) - 2);
      to = std::min(to, std::ceil(std::max(a, b)) + 2);
    }
    for (double i = from; i < to; ++i)
      add(start + (static_cast<A>(i) + A(0.5)) * bin / static_cast<A>(points), size);
  }

  void add(A position, int64_t size) {
    if (!(position >= A(-1) && position <= static_cast<A>(size))) return;
    position = std::max(position, A(0));
    AxisTap<A> tap;
    tap.lo = static_cast<int64_t>(position);
    if (tap.lo >= size - 1) {
      tap.lo = tap.hi = size - 1;
      tap.at_hi = 0;
    } else {
      tap.hi = tap.lo + 1;
      tap.at_hi = position - static_cast<A>(tap.lo);
    }
    tap.at_lo = A(1) - tap.at_hi;
    taps.push_back(tap);
  }
};

template <class A> struct Plan {
  Axis<A> y, x;
  A count = 1;
  bool finite = true;

  template <class T> void lay(const T* roi, const RoiSizes& sizes, const RoiSampling& sampling) {
    const A scale = static_cast<A>(sampling.spatial_scale);
    const A shift = sampling.aligned ? A(0.5) : A(0);
    A edge[4];
    finite = true;
    for (int i = 0; i < 4; ++i) {
      edge[i] = static_cast<A>(roi[i + 1]) * scale - shift;
      finite = finite && std::isfinite(edge[i]);
    }
    if (!finite) return;
    A width = edge[2] - edge[0], height = edge[3] - edge[1];
    if (!sampling.aligned) {
      width = std::max(width, A(1));
      height = std::max(height, A(1));
    }
    y.lay(edge[1], height, sizes.ph, sampling.sampling_ratio, sizes.h);
    x.lay(edge[0], width, sizes.pw, sampling.sampling_ratio, sizes.w);
    count = static_cast<A>(std::max(y.points * x.points, 1.0));
  }

  template <class T> A mean(const T* plane, int64_t row, int64_t i, int64_t j) const {
    A sum = 0;
    for (int64_t a = y.first[i]; a < y.first[i + 1]; ++a) {
      const AxisTap<A>& v = y.taps[a];
      const T *top = plane + v.lo * row, *bottom = plane + v.hi * row;
      for (int64_t b = x.first[j]; b < x.first[j + 1]; ++b) {
        const AxisTap<A>& u = x.taps[b];
        sum += v.at_lo * u.at_lo * static_cast<A>(top[u.lo]) +
               v.at_lo * u.at_hi * static_cast<A>(top[u.hi]) +
               v.at_hi * u.at_lo * static_cast<A>(bottom[u.lo]) +
               v.at_hi * u.at_hi * static_cast<A>(bottom[u.hi]);
      }
    }
    return sum / count;
  }

  void spread(A grad, A* plane, int64_t row, int64_t i, int64_t j) const {
    grad /= count;
    for (int64_t a = y.first[i]; a < y.first[i + 1]; ++a) {
      const AxisTap<A>& v = y.taps[a];
      A *top = plane + v.lo * row, *bottom = plane + v.hi * row;
      for (int64_t b = x.first[j]; b < x.first[j + 1]; ++b) {
        const AxisTap<A>& u = x.taps[b];
        top[u.lo] += grad * v.at_lo * u.at_lo;
        top[u.hi] += grad * v.at_lo * u.at_hi;
        bottom[u.lo] += grad * v.at_hi * u.at_lo;
        bottom[u.hi] += grad * v.at_hi * u.at_hi;
      }
    }
  }
};

const char* name_of(const RoiSampling& sampling) {
  return sampling.position_sensitive ? "ps_roi_align" : "roi_align";
}

void check_sampling(const RoiSampling& sampling) {
  constexpr int64_t kMost = 65536; // points per bin: more is a mistake, and would take all memory
  TORCH_CHECK(sampling.sampling_ratio <= kMost, name_of(sampling),
              ": sampling_ratio must be at most ", kMost, ", got ", sampling.sampling_ratio);
}

template <class T> void forward(const T* x, const T* rois, const std::vector<int64_t>& images,
                                const RoiSizes& s, const RoiSampling& sampling, T* out) {
  using A = wide_t<T>;
  const int64_t bins = s.bins();
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(bins * 16, 1));
  parallel_for(0, s.k * s.out_c, grain, [&](int64_t begin, int64_t end) {
    Plan<A> plan;
    int64_t planned = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t k = item / s.out_c, c = item % s.out_c;
      if (k != planned) plan.lay(rois + k * 5, s, sampling);
      planned = k;
      const T* image = x + images[k] * s.c * s.plane();
      T* to = out + item * bins;
      for (int64_t bin = 0; bin < bins; ++bin) {
        const int64_t channel = sampling.position_sensitive ? c * bins + bin : c;
        to[bin] = static_cast<T>(
            plan.finite ? plan.mean(image + channel * s.plane(), s.w, bin / s.pw, bin % s.pw)
                        : std::numeric_limits<A>::quiet_NaN());
      }
    }
  });
}

// The gradient of one plane of the input from one region.
template <class T, class A> void add_region(const Plan<A>& plan, const T* grad, int64_t k,
                                            int64_t channel, const RoiSizes& s, bool sensitive,
                                            A* plane) {
  const int64_t bins = s.bins();
  if (sensitive) {
    const int64_t bin = channel % bins;
    const T g = grad[(k * s.out_c + channel / bins) * bins + bin];
    plan.spread(static_cast<A>(g), plane, s.w, bin / s.pw, bin % s.pw);
    return;
  }
  const T* from = grad + (k * s.out_c + channel) * bins;
  for (int64_t bin = 0; bin < bins; ++bin)
    plan.spread(static_cast<A>(from[bin]), plane, s.w, bin / s.pw, bin % s.pw);
}

template <class T> void backward(const T* grad, const T* rois, const std::vector<int64_t>& images,
                                 const RoiSizes& s, const RoiSampling& sampling, T* out) {
  using A = wide_t<T>;
  const int64_t plane = s.plane();
  // Planes of an image that are worked on together share the plans of its regions.
  parallel_for(0, s.n * s.c, std::max<int64_t>(1, s.c / 16), [&](int64_t begin, int64_t end) {
    std::vector<A> sums(static_cast<size_t>((end - begin) * plane), A(0));
    Plan<A> plan;
    for (int64_t k = 0; k < s.k; ++k) {
      const int64_t from = std::max(begin, images[k] * s.c);
      const int64_t to = std::min(end, (images[k] + 1) * s.c);
      if (from >= to) continue;
      plan.lay(rois + k * 5, s, sampling);
      if (!plan.finite) continue;
      for (int64_t p = from; p < to; ++p)
        add_region(plan, grad, k, p - images[k] * s.c, s, sampling.position_sensitive,
                   sums.data() + (p - begin) * plane);
    }
    for (size_t i = 0; i < sums.size(); ++i) out[begin * plane + i] = static_cast<T>(sums[i]);
  });
}

} // namespace

Tensor roi_align_cpu(const Tensor& input, const Tensor& rois, const RoiSizes& sizes,
                     const RoiSampling& sampling) {
  check_sampling(sampling);
  const std::vector<int64_t> images = roi_images(rois, sizes, name_of(sampling));
  const Tensor x = input.contiguous(), regions = rois.contiguous();
  Tensor out = roi_result(input, sizes, input.scalar_type());
  dtype_switch<FloatingTypes>(input.scalar_type(), "roi_align_forward_kernel", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const BlockingRegion unlocked;
    forward(x.data_ptr<T>(), regions.data_ptr<T>(), images, sizes, sampling, out.data_ptr<T>());
  });
  return out;
}

Tensor roi_align_backward_cpu(const Tensor& grad, const Tensor& rois, const RoiSizes& sizes,
                              const RoiSampling& sampling) {
  check_sampling(sampling);
  const std::vector<int64_t> images = roi_images(rois, sizes, name_of(sampling));
  const Tensor g = grad.contiguous(), regions = rois.contiguous();
  Tensor out = roi_grad_result(grad, sizes);
  dtype_switch<FloatingTypes>(grad.scalar_type(), "roi_align_backward_kernel", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const BlockingRegion unlocked;
    backward(g.data_ptr<T>(), regions.data_ptr<T>(), images, sizes, sampling, out.data_ptr<T>());
  });
  return out;
}

} // namespace at::native::vision
