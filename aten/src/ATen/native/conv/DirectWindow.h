// The part of the source that a tile of a direct convolution meets: read where it lies when that is
// all inside the source, else copied with zeros around it. Rows of the copy begin on a register's
// boundary and share the zeros between them: those behind a row are the ones before the next.
#pragma once
#include <ATen/native/conv/DirectPlan.h>

#include <algorithm>
#include <cstring>

namespace at::native::direct {

struct Window {
  Range reach[3], inside[3];
  bool in_place = true;
  int64_t row, plane, channel; // steps, in elements
  int64_t origin;              // of the place of source position (0, 0, 0)

  // `tile` holds the positions of the output, per axis.
  Window(const Plan& p, const Range* tile) {
    for (int d = 0; d < 3; ++d) {
      const int64_t count = p.axis[d].source_count;
      reach[d] = p.axis[d].reach(tile[d]);
      inside[d] = {std::clamp<int64_t>(reach[d].begin, 0, count),
                   std::clamp<int64_t>(reach[d].end, 0, count)};
      in_place = in_place && inside[d].begin == reach[d].begin && inside[d].end == reach[d].end;
    }
    if (in_place) {
      row = p.axis[2].source_count;
      plane = row * p.axis[1].source_count;
      channel = plane * p.axis[0].source_count;
      origin = 0;
      return;
    }
    const int64_t before = inside[2].begin - reach[2].begin, lanes = p.kernels->lanes;
    const int64_t margin = std::max(before, reach[2].end - inside[2].end);
    row = rounded(inside[2].size() + margin, inside[2].size() < lanes ? lanes / 2 : lanes);
    plane = row * reach[1].size();
    channel = plane * reach[0].size();
    // Channels a power of two apart would share a few lines of the first-level cache.
    if (channel % 256 == 0) channel += lanes;
    origin =
        rounded(before, lanes) - inside[2].begin - reach[0].begin * plane - reach[1].begin * row;
    front_ = rounded(before, lanes);
    whole_rows_ = inside[2].size() >= lanes && inside[1].size() > 0 && reach[0].size() == 1 &&
                  inside[0].size() == 1;
  }

  // Of the copy, which clear() prepares for the first fill().
  int64_t elements(int64_t channels) const {
    return in_place ? 0 : front_ + channels * channel + row;
  }

  // Zeros where fill() does not write.
  template <class T> void clear(int64_t channels, T* copy) const {
    if (in_place) return;
    if (!whole_rows_) {
      clear_range(copy, copy + elements(channels));
      return;
    }
    clear_range(copy, copy + front_);
    for (int64_t c = 0; c < channels; ++c) {
      T* target = copy + front_ + c * channel;
      clear_range(target, target + (inside[1].begin - reach[1].begin) * row);
      clear_range(target + (inside[1].end - reach[1].begin) * row, target + channel);
    }
    T* end = copy + front_ + channels * channel;
    clear_range(end, end + row);
  }

  // Copies what lies inside the source; the zeros around it stay from one fill to the next.
  template <class T> void fill(const Plan& p, const T* source, int64_t channels, T* copy) const {
    const int64_t from_row = p.axis[2].source_count, from_plane = from_row * p.axis[1].source_count,
                  from_channel = from_plane * p.axis[0].source_count;
    if (inside[1].size() <= 0 || inside[2].size() <= 0) return;
    const CopyFn move = whole_rows_ ? p.kernels->pad : p.kernels->copy;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t z = inside[0].begin; z < inside[0].end; ++z)
        move(inside[1].size(), inside[2].size(),
             source + c * from_channel + z * from_plane + inside[1].begin * from_row +
                 inside[2].begin,
             from_row,
             copy + origin + c * channel + z * plane + inside[1].begin * row + inside[2].begin,
             row);
  }

 private:
  template <class T> static void clear_range(T* begin, T* end) {
    std::memset(static_cast<void*>(begin), 0, static_cast<size_t>(end - begin) * sizeof(T));
  }
  static int64_t rounded(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }
  int64_t front_ = 0;       // elements before the first row
  bool whole_rows_ = false; // of one plane: fill() writes the zeros behind a row too
};

} // namespace at::native::direct
