// What the ways of tiled attention share: the rows of one head, and how a block of them is copied
// to where the inner loops (TiledLoops.h) read it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <ATen/core/Tensor.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/native/attention/TiledLoops.h>

namespace at::native::tiles {

inline const attention_loops::TiledTable& tiled_table() {
  return CRESSET_BY_ISA(attention_loops::, tiled_table);
}
template <class A> const attention_loops::TiledLoops<A>& loops_of() {
  if constexpr (std::is_same_v<A, float>)
    return tiled_table().f32;
  else
    return tiled_table().f64;
}

// The rows of one head.
template <class A> struct Rows {
  A* data;
  int64_t row, column; // strides
  A& at(int64_t r, int64_t c) const { return data[r * row + c * column]; }
  Rows from(int64_t first) const { return {data + first * row, row, column}; }
};
template <class A> Rows<const A> head_of(const Tensor& t, int64_t b, int64_t h) {
  const A* data = static_cast<const A*>(t.const_data_ptr());
  return {data + b * t.stride(0) + h * t.stride(1), t.stride(2), t.stride(3)};
}
template <class A> Rows<A> written_head_of(const Tensor& t, int64_t b, int64_t h) {
  A* data = static_cast<A*>(t.mutable_data_ptr());
  return {data + b * t.stride(0) + h * t.stride(1), t.stride(2), t.stride(3)};
}

// to[c][r] = from[r][c] * factor, the rows filled up with zeros to `wide`. In squares, since rows
// that are far apart in memory share few lines of the cache.
template <class A> void copy_transposed(Rows<const A> from, int64_t rows, int64_t columns, A factor,
                                        A* to, int64_t wide) {
  constexpr int64_t kSquare = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kSquare)
    for (int64_t c0 = 0; c0 < columns; c0 += kSquare) {
      const int64_t r1 = std::min(rows, r0 + kSquare), c1 = std::min(columns, c0 + kSquare);
      for (int64_t c = c0; c < c1; ++c)
        for (int64_t r = r0; r < r1; ++r) to[c * wide + r] = from.at(r, c) * factor;
    }
  for (int64_t c = 0; c < columns; ++c) std::fill(to + c * wide + rows, to + (c + 1) * wide, A(0));
}
// to[r][c] = from[r][c] * factor, likewise filled up.
template <class A>
void copy_rows(Rows<const A> from, int64_t rows, int64_t columns, A factor, A* to, int64_t wide) {
  for (int64_t r = 0; r < rows; ++r) {
    A* const line = to + r * wide;
    const A* const source = from.data + r * from.row;
    if (from.column == 1)
      loops_of<A>().scaled_copy(source, columns, factor, line);
    else
      for (int64_t c = 0; c < columns; ++c) line[c] = source[c * from.column] * factor;
    std::fill(line + columns, line + wide, A(0));
  }
}
template <class A>
void copy_back(const A* from, int64_t wide, int64_t rows, int64_t columns, A factor, Rows<A> to) {
  for (int64_t r = 0; r < rows; ++r) {
    A* const line = to.data + r * to.row;
    const A* const source = from + r * wide;
    if (to.column == 1)
      loops_of<A>().scaled_copy(source, columns, factor, line);
    else
      for (int64_t c = 0; c < columns; ++c) line[c * to.column] = source[c] * factor;
  }
}

} // namespace at::native::tiles
