// Between an image and the matrix of its windows ("columns"), a tile of windows at a time: one row
// per channel and kernel position, one column per window. Tiles keep the scratch memory in cache
// and bounded.
#pragma once
#include <ATen/native/conv/ConvGeometry.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <cstring>

namespace at::native {

// The windows [lo, hi) of one dimension whose element at kernel position `k` lies inside the image;
// `off` is the place of window 0's element.
struct ValidRange {
  int64_t off, lo, hi;
};
inline ValidRange valid_range(const ConvGeometry& g, int d, int64_t k) {
  const int64_t off = k * g.dilation[d] - g.padding[d], s = g.stride[d];
  const int64_t lo = off >= 0 ? 0 : (-off - 1) / s + 1;
  const int64_t hi = g.in[d] <= off ? 0 : (g.in[d] - off - 1) / s + 1;
  return {off, std::min(lo, g.out[d]), std::max(std::min(hi, g.out[d]), std::min(lo, g.out[d]))};
}

// f(od, oh, begin, end, column) for each piece of a row of windows in the flat range [p0, p1).
template <class F> void for_window_rows(const ConvGeometry& g, int64_t p0, int64_t p1, const F& f) {
  const int64_t w = g.out[2], h = g.out[1], row = p0 / w;
  int64_t begin = p0 % w, od = row / h, oh = row % h;
  for (int64_t p = p0; p < p1;) {
    const int64_t end = std::min(w, begin + (p1 - p));
    f(od, oh, begin, end, p - p0);
    p += end - begin;
    begin = 0;
    if (++oh == h) {
      oh = 0;
      ++od;
    }
  }
}

// f(kd, kh, kw, row) with the row of a channel's block in the matrix.
template <class F> void for_kernel(const ConvGeometry& g, const F& f) {
  const bool large = g.out_plane() > kStretch;
  int64_t row = 0;
  for (int64_t kd = 0; kd < g.kernel[0]; ++kd)
    for (int64_t kh = 0; kh < g.kernel[1]; ++kh)
      for (int64_t kw = 0; kw < g.kernel[2]; ++kw) {
        f(kd, kh, kw, row++);
        if (large) check_interrupt();
      }
}

// Windows that keep the image's rows (stride 1, one depth, as many windows in a row as elements): a
// row of the matrix is then the plane itself, shifted, apart from the columns that fall off its
// edges. Whole ranges are moved at once instead of row by row.
inline bool keeps_rows(const ConvGeometry& g) {
  return g.stride[1] == 1 && g.stride[2] == 1 && g.out[2] == g.in[2] && g.in[0] == 1 &&
         g.out[0] == 1 && g.kernel[0] == 1 && g.padding[0] == 0;
}

// For kernel position (kh, kw): the flat windows [begin, end) of [p0, p1) whose row lies in the
// image, and the distance from a window to its element.
struct ShiftedRange {
  int64_t begin, end, shift;
};
inline ShiftedRange shifted_range(const ConvGeometry& g, int64_t kh, int64_t kw, int64_t p0,
                                  int64_t p1) {
  const ValidRange y = valid_range(g, 1, kh), x = valid_range(g, 2, kw);
  const int64_t w = g.in[2], begin = std::clamp(y.lo * w, p0, p1),
                end = std::clamp(y.hi * w, begin, p1);
  return {begin, x.lo < x.hi ? end : begin, y.off * w + x.off};
}

// Zeroes the windows of [begin, end) whose element at kernel position kw falls off the row.
template <class T>
void clear_edges(const ConvGeometry& g, int64_t kw, int64_t begin, int64_t end, T* row) {
  const int64_t w = g.in[2];
  const ValidRange x = valid_range(g, 2, kw);
  if (x.lo == 0 && x.hi == w) return;
  for (int64_t base = begin / w * w; base < end; base += w) {
    for (int64_t i = std::max(begin, base); i < std::min(end, base + x.lo); ++i) row[i] = T(0);
    for (int64_t i = std::max(begin, base + x.hi); i < std::min(end, base + w); ++i) row[i] = T(0);
  }
}

template <class T> void image_to_columns_shifted(const ConvGeometry& g, const T* image,
                                                 int64_t channels, int64_t p0, int64_t p1,
                                                 T* columns) {
  const int64_t width = p1 - p0, plane = g.in_plane(), volume = g.kernel_volume();
  for_kernel(g, [&](int64_t, int64_t kh, int64_t kw, int64_t k) {
    const ShiftedRange r = shifted_range(g, kh, kw, p0, p1);
    // The first and last windows may fall off the edge where the plane ends.
    const int64_t lo = std::clamp(-r.shift, r.begin, r.end),
                  hi = std::clamp(plane - r.shift, lo, r.end);
    for (int64_t c = 0; c < channels; ++c) {
      T* row = columns + (c * volume + k) * width - p0;
      std::fill(row + p0, row + lo, T(0));
      if (lo < hi)
        std::memcpy(static_cast<void*>(row + lo), image + c * plane + lo + r.shift,
                    static_cast<size_t>(hi - lo) * sizeof(T));
      std::fill(row + hi, row + p1, T(0));
      clear_edges(g, kw, lo, hi, row);
    }
  });
}

template <class T> __attribute__((optimize("O3"))) void
add_range(T* __restrict to, const T* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(to[i] + from[i]);
}

// `columns` is scratch: what falls off the edges is zeroed in it first.
template <class T> void columns_to_image_shifted(const ConvGeometry& g, T* columns,
                                                 int64_t channels, int64_t p0, int64_t p1,
                                                 T* image) {
  const int64_t width = p1 - p0, plane = g.in_plane(), volume = g.kernel_volume();
  for (int64_t c = 0; c < channels; ++c) {
    for_kernel(g, [&](int64_t, int64_t kh, int64_t kw, int64_t k) {
      const ShiftedRange r = shifted_range(g, kh, kw, p0, p1);
      const int64_t lo = std::clamp(-r.shift, r.begin, r.end),
                    hi = std::clamp(plane - r.shift, lo, r.end);
      T* row = columns + (c * volume + k) * width - p0;
      clear_edges(g, kw, lo, hi, row);
      add_range(image + c * plane + lo + r.shift, row + lo, hi - lo);
    });
  }
}

template <class T> __attribute__((optimize("O3"))) void
take_every_second(T* __restrict to, const T* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
}

// `image` is the first of `channels` contiguous planes; columns has rows of p1 - p0 elements.
template <class T> void image_to_columns(const ConvGeometry& g, const T* image, int64_t channels,
                                         int64_t p0, int64_t p1, T* columns) {
  const int64_t width = p1 - p0, plane = g.in_plane(), volume = g.kernel_volume(), s = g.stride[2];
  if (keeps_rows(g)) return image_to_columns_shifted(g, image, channels, p0, p1, columns);
  for (int64_t c = 0; c < channels; ++c) {
    for_kernel(g, [&](int64_t kd, int64_t kh, int64_t kw, int64_t k) {
      T* row = columns + (c * volume + k) * width;
      const ValidRange x = valid_range(g, 2, kw);
      for_window_rows(g, p0, p1,
                      [&](int64_t od, int64_t oh, int64_t begin, int64_t end, int64_t position) {
                        T* to = row + position - begin;
                        const int64_t z = od * g.stride[0] + kd * g.dilation[0] - g.padding[0];
                        const int64_t y = oh * g.stride[1] + kh * g.dilation[1] - g.padding[1];
                        const bool inside = z >= 0 && z < g.in[0] && y >= 0 && y < g.in[1];
                        const int64_t lo = inside ? std::clamp(x.lo, begin, end) : end,
                                      hi = inside ? std::clamp(x.hi, lo, end) : end;
                        for (int64_t i = begin; i < lo; ++i) to[i] = T(0);
                        if (lo < hi) {
                          const T* from = image + c * plane + (z * g.in[1] + y) * g.in[2] + x.off;
                          if (s == 1) {
                            std::memcpy(static_cast<void*>(to + lo), from + lo,
                                        static_cast<size_t>(hi - lo) * sizeof(T));
                          } else if (s == 2) {
                            take_every_second(to + lo, from + lo * 2, hi - lo);
                          } else {
                            for (int64_t i = lo; i < hi; ++i) to[i] = from[i * s];
                          }
                        }
                        for (int64_t i = hi; i < end; ++i) to[i] = T(0);
                      });
    });
  }
}

// Adds the columns to the places of the image they came from.
template <class T> void columns_to_image(const ConvGeometry& g, const T* columns, int64_t channels,
                                         int64_t p0, int64_t p1, T* image) {
  const int64_t width = p1 - p0, plane = g.in_plane(), volume = g.kernel_volume(), s = g.stride[2];
  for (int64_t c = 0; c < channels; ++c) {
    for_kernel(g, [&](int64_t kd, int64_t kh, int64_t kw, int64_t k) {
      const T* row = columns + (c * volume + k) * width;
      const ValidRange x = valid_range(g, 2, kw);
      for_window_rows(
          g, p0, p1, [&](int64_t od, int64_t oh, int64_t begin, int64_t end, int64_t position) {
            const int64_t z = od * g.stride[0] + kd * g.dilation[0] - g.padding[0];
            const int64_t y = oh * g.stride[1] + kh * g.dilation[1] - g.padding[1];
            if (z < 0 || z >= g.in[0] || y < 0 || y >= g.in[1]) return;
            const T* from = row + position - begin;
            T* to = image + c * plane + (z * g.in[1] + y) * g.in[2] + x.off;
            const int64_t lo = std::clamp(x.lo, begin, end), hi = std::clamp(x.hi, lo, end);
            if (s == 1) {
              add_range(to + lo, from + lo, hi - lo);
            } else {
              for (int64_t i = lo; i < hi; ++i) to[i * s] = static_cast<T>(to[i * s] + from[i]);
            }
          });
    });
  }
}

} // namespace at::native
