// Regions of interest by windows of whole pixels: the maximum of each window (roi_pool) or its mean
// from a channel of the bin's own (ps_roi_pool); and the argument checks all operators on regions
// share. Backward runs over the planes of the input, each adding up its regions in their order.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/vision/Vision.h>
#include <ATen/parallel/Parallel.h>
#include <c10/util/SafeArithmetic.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace at::native::vision {
namespace {

void check_regions(const Tensor& rois, int64_t ph, int64_t pw, const char* op) {
  TORCH_CHECK(rois.dim() == 2 && rois.size(1) == 5, "rois must have shape as Tensor[K, 5], got ",
              rois.sizes());
  TORCH_CHECK(ph > 0 && pw > 0, op, ": the pooled height and width must be positive, got ", ph,
              " and ", pw);
}

void check_alike(const Tensor& a, const char* name, const Tensor& rois, const char* op) {
  TORCH_CHECK(a.device() == rois.device(), op, ": expected ", name,
              " and rois on the same device, "
              "but found ",
              a.device(), " and ", rois.device());
  TORCH_CHECK(a.scalar_type() == rois.scalar_type(), "Expected tensor for argument #1 '", name,
              "' to have the same type as tensor for argument #2 'rois'; but type ",
              a.scalar_type(), " does not equal ", rois.scalar_type(),
              " (while checking arguments for ", op, ")");
}

// The rows and columns of the bins of one region: whole pixels, inside the image.
struct Windows {
  std::vector<int64_t> top, bottom, left, right;

  // Bins of `length` pixels from `start`, cut to [0, limit].
  static void cut(int64_t start, int64_t length, int64_t bins, int64_t limit,
                  std::vector<int64_t>& lo, std::vector<int64_t>& hi) {
    lo.clear();
    hi.clear();
    const double bin = static_cast<double>(length) / static_cast<double>(bins);
    for (int64_t b = 0; b < bins; ++b) {
      const double from = std::floor(static_cast<double>(b) * bin) + static_cast<double>(start);
      const double to = std::ceil(static_cast<double>(b + 1) * bin) + static_cast<double>(start);
      lo.push_back(static_cast<int64_t>(std::min(std::max(from, 0.0), double(limit))));
      hi.push_back(static_cast<int64_t>(std::min(std::max(to, 0.0), double(limit))));
    }
  }

  // `last` pixels belong to the region beyond the difference of its corners, and the last `margin`
  // rows and columns of the image to none: 1, 0 for maxima; 0, 1 for means.
  template <class A, class T>
  void lay(const T* roi, const RoiSizes& s, double scale, int64_t last, int64_t margin) {
    int64_t edge[4];
    for (int i = 0; i < 4; ++i) {
      const double rounded = std::round(static_cast<A>(roi[i + 1]) * static_cast<A>(scale));
      // NaN becomes an empty region far outside, as does what no image can hold.
      edge[i] = static_cast<int64_t>(rounded >= -1e15 ? std::min(rounded, 1e15) : -1e15);
    }
    cut(edge[1], std::max<int64_t>(edge[3] - edge[1] + last, 1), s.ph,
        std::max<int64_t>(s.h - margin, 0), top, bottom);
    cut(edge[0], std::max<int64_t>(edge[2] - edge[0] + last, 1), s.pw,
        std::max<int64_t>(s.w - margin, 0), left, right);
  }
  int64_t area(int64_t i, int64_t j) const {
    return std::max<int64_t>(bottom[i] - top[i], 0) * std::max<int64_t>(right[j] - left[j], 0);
  }
};

// f(region, channel of the result, windows, first element of the result) for each pair.
template <class A, class T, class F> void for_pairs(const T* rois, const RoiSizes& s, double scale,
                                                    int64_t last, int64_t margin, const F& f) {
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(s.bins() * 4, 1));
  parallel_for(0, s.k * s.out_c, grain, [&](int64_t begin, int64_t end) {
    Windows windows;
    int64_t laid = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t k = item / s.out_c;
      if (k != laid) windows.template lay<A>(rois + k * 5, s, scale, last, margin);
      laid = k;
      f(k, item % s.out_c, windows, item * s.bins());
    }
  });
}

template <class T> void largest(const T* plane, int64_t row, const Windows& w, int64_t i, int64_t j,
                                T& value, int32_t& place) {
  place = -1;
  value = T(0);
  for (int64_t y = w.top[i]; y < w.bottom[i]; ++y) {
    for (int64_t x = w.left[j]; x < w.right[j]; ++x) {
      const T v = plane[y * row + x];
      if (place >= 0 && !(v > value) && v == v) continue;
      value = v;
      place = static_cast<int32_t>(y * row + x);
      if (v != v) return;
    }
  }
}

} // namespace

RoiSizes roi_sizes(const Tensor& input, const Tensor& rois, int64_t ph, int64_t pw, bool sensitive,
                   const char* op) {
  TORCH_CHECK(input.dim() == 4, op, ": expected input of shape [N, C, H, W], got ", input.sizes());
  check_regions(rois, ph, pw, op);
  check_alike(input, "input", rois, op);
  RoiSizes s{input.size(0),
             input.size(1),
             input.size(2),
             input.size(3),
             rois.size(0),
             input.size(1),
             ph,
             pw};
  TORCH_CHECK(s.k == 0 || s.plane() > 0, op, ": input has no pixels: ", input.sizes());
  TORCH_CHECK(s.plane() <= INT32_MAX, op, ": a plane of the input must have less than 2^31 pixels");
  if (sensitive) {
    int64_t bins = 0;
    TORCH_CHECK(!c10::mul_overflows(ph, pw, &bins) && s.c % bins == 0,
                "input channels must be a multiple of pooling height * pooling width, got ", s.c,
                " channels for ", ph, "x", pw);
    s.out_c = s.c / (ph * pw);
  }
  return s;
}

RoiSizes roi_grad_sizes(const Tensor& grad, const Tensor& rois, int64_t ph, int64_t pw,
                        IntArrayRef image, bool sensitive, const char* op) {
  check_regions(rois, ph, pw, op);
  check_alike(grad, "grad", rois, op);
  for (const int64_t size : image)
    TORCH_CHECK(size >= 0, op, ": the input's sizes must not be negative, got ", image);
  c10::checked_numel(image);
  RoiSizes s{image[0], image[1], image[2], image[3], rois.size(0), image[1], ph, pw};
  TORCH_CHECK(s.k == 0 || s.plane() > 0, op, ": the input has no pixels: ", image);
  if (sensitive) {
    int64_t bins = 0;
    TORCH_CHECK(!c10::mul_overflows(ph, pw, &bins) && s.c % bins == 0,
                "input channels must be a multiple of pooling height * pooling width");
    s.out_c = s.c / (ph * pw);
  }
  const int64_t expected[] = {s.k, s.out_c, ph, pw};
  TORCH_CHECK(grad.sizes().equals(expected), op, ": expected grad of shape ", IntArrayRef(expected),
              ", got ", grad.sizes());
  return s;
}

Tensor roi_result(const Tensor& input, const RoiSizes& s, ScalarType dtype) {
  return detail::empty({s.k, s.out_c, s.ph, s.pw}, dtype, input.device());
}
Tensor roi_grad_result(const Tensor& grad, const RoiSizes& s) {
  return detail::empty({s.n, s.c, s.h, s.w}, grad.scalar_type(), grad.device());
}

std::vector<int64_t> roi_images(const Tensor& rois, const RoiSizes& s, const char* op) {
  std::vector<int64_t> images;
  const Tensor regions = rois.contiguous();
  dtype_switch<FloatingTypes>(rois.scalar_type(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = regions.data_ptr<T>();
    for (int64_t k = 0; k < s.k; ++k) {
      const double index = static_cast<double>(from[k * 5]);
      TORCH_CHECK_INDEX(index >= 0 && index < static_cast<double>(s.n), op, ": rois[", k,
                        "] is of image ", index, ", but the batch has ", s.n);
      images.push_back(static_cast<int64_t>(index));
    }
  });
  return images;
}

std::tuple<Tensor, Tensor> roi_pool_cpu(const Tensor& input, const Tensor& rois, const RoiSizes& s,
                                        double scale) {
  const std::vector<int64_t> images = roi_images(rois, s, "roi_pool");
  const Tensor x = input.contiguous(), regions = rois.contiguous();
  Tensor out = roi_result(input, s, input.scalar_type()), argmax = roi_result(input, s, kInt);
  dtype_switch<FloatingTypes>(input.scalar_type(), "roi_pool_forward_kernel", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = wide_t<T>;
    const T* from = x.data_ptr<T>();
    T* values = out.data_ptr<T>();
    int32_t* places = argmax.data_ptr<int32_t>();
    const BlockingRegion unlocked;
    for_pairs<A>(regions.data_ptr<T>(), s, scale, 1, 0,
                 [&](int64_t k, int64_t c, const Windows& windows, int64_t first) {
                   const T* plane = from + (images[k] * s.c + c) * s.plane();
                   for (int64_t b = 0; b < s.bins(); ++b)
                     largest(plane, s.w, windows, b / s.pw, b % s.pw, values[first + b],
                             places[first + b]);
                 });
  });
  return {out, argmax};
}

Tensor roi_pool_backward_cpu(const Tensor& grad, const Tensor& rois, const Tensor& argmax,
                             const RoiSizes& s) {
  TORCH_CHECK(argmax.scalar_type() == kInt && argmax.sizes().equals(grad.sizes()),
              "_roi_pool_backward: argmax must be of type int32 and of grad's shape ", grad.sizes(),
              ", got ", argmax.scalar_type(), " ", argmax.sizes());
  const std::vector<int64_t> images = roi_images(rois, s, "_roi_pool_backward");
  const Tensor g = grad.contiguous(), places = argmax.contiguous();
  Tensor out = roi_grad_result(grad, s);
  dtype_switch<FloatingTypes>(grad.scalar_type(), "roi_pool_backward_kernel", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = wide_t<T>;
    const T* from = g.data_ptr<T>();
    const int32_t* place_data = places.data_ptr<int32_t>();
    T* to = out.data_ptr<T>();
    const int64_t plane = s.plane(), bins = s.bins();
    const BlockingRegion unlocked;
    parallel_for(0, s.n * s.c, 1, [&](int64_t begin, int64_t end) {
      std::vector<A> sums(static_cast<size_t>(plane));
      for (int64_t p = begin; p < end; ++p) {
        std::fill(sums.begin(), sums.end(), A(0));
        for (int64_t k = 0; k < s.k; ++k) {
          if (images[k] != p / s.c) continue;
          const int64_t first = (k * s.out_c + p % s.c) * bins;
          for (int64_t i = first; i < first + bins; ++i) {
            TORCH_CHECK_INDEX(place_data[i] >= -1 && place_data[i] < plane,
                              "_roi_pool_backward: argmax ", place_data[i],
                              " is outside a plane of ", plane, " pixels");
            if (place_data[i] >= 0) sums[place_data[i]] += static_cast<A>(from[i]);
          }
        }
        for (int64_t i = 0; i < plane; ++i) to[p * plane + i] = static_cast<T>(sums[i]);
      }
    });
  });
  return out;
}

Tensor ps_roi_pool_cpu(const Tensor& input, const Tensor& rois, const RoiSizes& s, double scale) {
  const std::vector<int64_t> images = roi_images(rois, s, "ps_roi_pool");
  const Tensor x = input.contiguous(), regions = rois.contiguous();
  Tensor out = roi_result(input, s, input.scalar_type());
  dtype_switch<FloatingTypes>(input.scalar_type(), "ps_roi_pool_forward_kernel", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = wide_t<T>;
    const T* from = x.data_ptr<T>();
    T* values = out.data_ptr<T>();
    const BlockingRegion unlocked;
    for_pairs<A>(regions.data_ptr<T>(), s, scale, 0, 1,
                 [&](int64_t k, int64_t c, const Windows& w, int64_t first) {
                   const T* image = from + (images[k] * s.c + c * s.bins()) * s.plane();
                   for (int64_t b = 0; b < s.bins(); ++b) {
                     const int64_t i = b / s.pw, j = b % s.pw;
                     const T* plane = image + b * s.plane();
                     A sum = 0;
                     for (int64_t y = w.top[i]; y < w.bottom[i]; ++y)
                       for (int64_t u = w.left[j]; u < w.right[j]; ++u)
                         sum += static_cast<A>(plane[y * s.w + u]);
                     const int64_t area = w.area(i, j);
                     values[first + b] =
                         static_cast<T>(area == 0 ? A(0) : sum / static_cast<A>(area));
                   }
                 });
  });
  return out;
}

Tensor ps_roi_pool_backward_cpu(const Tensor& grad, const Tensor& rois, const RoiSizes& s,
                                double scale) {
  const std::vector<int64_t> images = roi_images(rois, s, "_ps_roi_pool_backward");
  const Tensor g = grad.contiguous(), regions = rois.contiguous();
  Tensor out = roi_grad_result(grad, s);
  dtype_switch<FloatingTypes>(grad.scalar_type(), "ps_roi_pool_backward_kernel", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = wide_t<T>;
    const T *from = g.data_ptr<T>(), *roi = regions.data_ptr<T>();
    T* to = out.data_ptr<T>();
    const int64_t plane = s.plane(), bins = s.bins();
    const BlockingRegion unlocked;
    if (grad.numel() == 0) {
      std::fill(to, to + out.numel(), T(0));
      return;
    }
    std::vector<Windows> windows(static_cast<size_t>(s.k));
    for (int64_t k = 0; k < s.k; ++k) windows[k].template lay<A>(roi + k * 5, s, scale, 0, 1);
    parallel_for(0, s.n * s.c, 1, [&](int64_t begin, int64_t end) {
      std::vector<A> sums(static_cast<size_t>(plane));
      for (int64_t p = begin; p < end; ++p) {
        std::fill(sums.begin(), sums.end(), A(0));
        const int64_t channel = p % s.c, bin = channel % bins, i = bin / s.pw, j = bin % s.pw;
        for (int64_t k = 0; k < s.k; ++k) {
          const Windows& w = windows[k];
          if (images[k] != p / s.c || w.area(i, j) == 0) continue;
          const A share = static_cast<A>(from[(k * s.out_c + channel / bins) * bins + bin]) /
                          static_cast<A>(w.area(i, j));
          for (int64_t y = w.top[i]; y < w.bottom[i]; ++y)
            for (int64_t u = w.left[j]; u < w.right[j]; ++u) sums[y * s.w + u] += share;
        }
        for (int64_t e = 0; e < plane; ++e) to[p * plane + e] = static_cast<T>(sums[e]);
      }
    });
  });
  return out;
}

Tensor channel_mapping_cpu(const RoiSizes& s) {
  Tensor out = detail::empty({s.k, s.out_c, s.ph, s.pw}, kInt);
  int32_t* to = out.data_ptr<int32_t>();
  const int64_t per_region = s.out_c * s.bins();
  for (int64_t i = 0; i < out.numel(); ++i) to[i] = static_cast<int32_t>(i % per_region);
  return out;
}

} // namespace at::native::vision
