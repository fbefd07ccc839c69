// Tiled transposition. Walking one operand contiguously and the other with a large stride touches a
// new cache line (and often a new page) per element; 16 x 16 tiles use every line they touch whole.
#include <ATen/native/copy/Transpose.h>

#include <ATen/native/DTypeSwitch.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {
namespace {
constexpr int64_t kTile = 16;

template <class T>
void copy_tile(T* dst, int64_t dst_row, const T* src, int64_t src_col, int64_t rows, int64_t cols) {
  // dst[r * dst_row + c] = src[r + c * src_col]
  if (rows == kTile && cols == kTile) {
    T block[kTile][kTile];
    for (int64_t c = 0; c < kTile; ++c)
      for (int64_t r = 0; r < kTile; ++r) block[r][c] = src[r + c * src_col];
    for (int64_t r = 0; r < kTile; ++r)
      for (int64_t c = 0; c < kTile; ++c) dst[r * dst_row + c] = block[r][c];
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) dst[r * dst_row + c] = src[r + c * src_col];
}

struct Plan {
  DimVector outer_sizes, outer_dst, outer_src; // element strides
  int64_t rows = 0, cols = 0, dst_row = 0, src_col = 0;
};

// Finds the dimension where src is contiguous (rows) and where dst is (cols); the rest is outer.
bool make_plan(const Tensor& dst, const Tensor& src, Plan& plan) {
  int64_t row_dim = -1, col_dim = -1;
  for (int64_t d = 0; d < dst.dim(); ++d) {
    if (dst.sizes()[d] == 1) continue;
    if (src.strides()[d] == 1 && row_dim < 0) row_dim = d;
    if (dst.strides()[d] == 1 && col_dim < 0) col_dim = d;
  }
  if (row_dim < 0 || col_dim < 0 || row_dim == col_dim) return false;
  plan.rows = dst.sizes()[row_dim], plan.cols = dst.sizes()[col_dim];
  if (plan.rows < 8 || plan.cols < 8) return false;
  plan.dst_row = dst.strides()[row_dim];
  plan.src_col = src.strides()[col_dim];
  for (int64_t d = 0; d < dst.dim(); ++d) {
    if (d == row_dim || d == col_dim) continue;
    plan.outer_sizes.push_back(dst.sizes()[d]);
    plan.outer_dst.push_back(dst.strides()[d]);
    plan.outer_src.push_back(src.strides()[d]);
  }
  return true;
}

template <class T> void run(const Plan& plan, T* dst, const T* src) {
  const int64_t row_bands = (plan.rows + kTile - 1) / kTile;
  int64_t outer = 1;
  for (int64_t s : plan.outer_sizes) outer *= s;
  const int64_t grain = std::max<int64_t>(1, 32768 / (kTile * plan.cols));
  parallel_for(0, outer * row_bands, grain, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      int64_t rest = item / row_bands;
      const int64_t r0 = item % row_bands * kTile;
      T* d = dst + r0 * plan.dst_row;
      const T* s = src + r0;
      for (int64_t i = static_cast<int64_t>(plan.outer_sizes.size()) - 1; i >= 0; --i) {
        const int64_t index = rest % plan.outer_sizes[i];
        rest /= plan.outer_sizes[i];
        d += index * plan.outer_dst[i];
        s += index * plan.outer_src[i];
      }
      const int64_t rows = std::min(kTile, plan.rows - r0);
      for (int64_t c0 = 0; c0 < plan.cols; c0 += kTile)
        copy_tile(d + c0, plan.dst_row, s + c0 * plan.src_col, plan.src_col, rows,
                  std::min(kTile, plan.cols - c0));
    }
  });
}
} // namespace

bool try_transposed_copy(const Tensor& dst, const Tensor& src) {
  if (dst.numel() < 1024 || dst.dim() < 2) return false;
  Plan plan;
  if (!make_plan(dst, src, plan)) return false;
  BlockingRegion unlocked;
  itemsize_switch(dst.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    run(plan, static_cast<T*>(dst.data_ptr()), static_cast<const T*>(src.data_ptr()));
  });
  return true;
}

} // namespace at::native
