// See ScatterWalk.h. Threads share one dimension of the index: any for reading, one that is not the
// indexed dimension for writing, so that all positions that may meet are on one thread.
#include <ATen/native/index/ScatterWalk.h>

#include <ATen/native/index/IndexUtil.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>

namespace at::native {
namespace {
constexpr int64_t kGrainElements = 16384;
// Indices that are taken at a time: few enough to stay in the first-level cache.
constexpr int64_t kRow = 2048;

// Whether one of n indices lies outside [0, size). The sign bit of v | (size - 1 - v) says it for
// one of them, and needs no comparison of 64-bit numbers, which older vector units lack.
__attribute__((optimize("O3"))) bool any_outside(const int64_t* index, int64_t n, int64_t step,
                                                 int64_t size) {
  const uint64_t last = static_cast<uint64_t>(size) - 1;
  uint64_t signs = 0;
  if (size == 0) return n > 0;
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t v = static_cast<uint64_t>(index[i]);
      signs |= v | (last - v);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t v = static_cast<uint64_t>(index[i * step]);
      signs |= v | (last - v);
    }
  }
  return static_cast<int64_t>(signs) < 0;
}
// Copies n indices and says whether one of them lies outside.
__attribute__((optimize("O3"))) bool copy_outside(const int64_t* index, int64_t n, int64_t step,
                                                  int64_t size, int64_t* to) {
  const uint64_t last = static_cast<uint64_t>(size) - 1;
  uint64_t signs = size == 0 ? ~uint64_t(0) : 0;
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t v = static_cast<uint64_t>(index[i]);
      to[i] = static_cast<int64_t>(v);
      signs |= v | (last - v);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t v = static_cast<uint64_t>(index[i * step]);
      to[i] = static_cast<int64_t>(v);
      signs |= v | (last - v);
    }
  }
  return static_cast<int64_t>(signs) < 0;
}
} // namespace

void ScatterWalk::check_row(const int64_t* index, int64_t n, int64_t step) const {
  if (C10_LIKELY(!any_outside(index, step == 0 ? 1 : n, step, dim_size_))) return;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t v = index[i * step];
    if (v < 0 || v >= dim_size_) throw_runtime_out_of_bounds(v, dim_, dim_size_);
  }
}

// Another thread or process may write to the index meanwhile: what the loop uses is a copy, and it
// is the copy that is checked.
void ScatterWalk::run_row(char* self, const int64_t* index, char* other, int64_t n,
                          int64_t self_stride, int64_t index_stride, int64_t other_stride,
                          ScatterLoop loop, const void* context) const {
  int64_t held[kRow];
  const int64_t step = n == 1 || index_stride != 0 ? 1 : 0;
  const int64_t count = step == 0 ? 1 : n;
  if (C10_UNLIKELY(copy_outside(index, count, index_stride, dim_size_, held)))
    check_row(held, count, 1);
  loop(self, held, other, n, self_stride, step, other_stride, dim_stride_, context);
}

ScatterWalk::ScatterWalk(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& other)
    : index_(index.scalar_type() == kLong ? index : index.to(kLong)), self_data_(bytes_of(self)),
      other_data_(bytes_of(other)),
      index_data_(index_.numel() > 0 ? index_.data_ptr<int64_t>() : nullptr), dim_(dim),
      dim_size_(self.dim() == 0 ? 1 : self.size(dim)),
      dim_stride_((self.dim() == 0 ? 1 : self.stride(dim)) * self.itemsize()) {
  const int64_t itemsize = self.itemsize();
  numel_ = index_.numel();
  // An index without elements may have any shape.
  for (int64_t d = 0; numel_ > 0 && d < index_.dim(); ++d) {
    const bool is_dim = d == dim;
    const int64_t own = is_dim || self.dim() == 0 ? 0 : self.stride(d) * itemsize;
    const int64_t partner = other.dim() == 0 ? 0 : other.stride(d) * itemsize;
    add(index_.size(d), own, index_.stride(d), partner, is_dim);
  }
}

void ScatterWalk::add(int64_t size, int64_t self_stride, int64_t index_stride, int64_t other_stride,
                      bool is_dim) {
  if (size == 1) return;
  if (!sizes_.empty() && !is_dim && !is_dim_.back() && self_.back() == size * self_stride &&
      index_strides_.back() == size * index_stride && other_.back() == size * other_stride) {
    sizes_.back() *= size;
    self_.back() = self_stride;
    index_strides_.back() = index_stride;
    other_.back() = other_stride;
    return;
  }
  sizes_.push_back(size);
  self_.push_back(self_stride);
  index_strides_.push_back(index_stride);
  other_.push_back(other_stride);
  is_dim_.push_back(is_dim);
}

void ScatterWalk::check_indices() const {
  if (numel_ == 0) return;
  // Dimensions along which the index repeats itself need one look.
  DimVector sizes, strides;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    if (index_strides_[d] == 0) continue;
    if (!sizes.empty() && strides.back() == sizes_[d] * index_strides_[d]) {
      sizes.back() *= sizes_[d];
      strides.back() = index_strides_[d];
    } else {
      sizes.push_back(sizes_[d]);
      strides.push_back(index_strides_[d]);
    }
  }
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < sizes.size(); ++d) rows *= sizes[d];
  const int64_t n = sizes.empty() ? 1 : sizes.back();
  const int64_t step = sizes.empty() ? 0 : strides.back();
  if (rows == 1) {
    parallel_for(0, n, kGrainElements, [&](int64_t begin, int64_t end) {
      check_row(index_data_ + begin * step, end - begin, step);
    });
    return;
  }
  parallel_for(0, rows, std::max<int64_t>(1, kGrainElements / n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t rest = r, offset = 0;
      for (size_t d = sizes.size() - 1; d-- > 0;) {
        offset += rest % sizes[d] * strides[d];
        rest /= sizes[d];
      }
      check_row(index_data_ + offset, n, step);
    }
  });
}

void ScatterWalk::run_box(int64_t cut, int64_t begin, int64_t end, ScatterLoop loop,
                          const void* context) const {
  DimVector sizes(sizes_);
  char* self = self_data_;
  char* other = other_data_;
  const int64_t* index = index_data_;
  if (cut >= 0) {
    sizes[cut] = end - begin;
    self += begin * self_[cut];
    other += begin * other_[cut];
    index += begin * index_strides_[cut];
  }
  const int64_t last = static_cast<int64_t>(sizes.size()) - 1;
  if (last < 0) {
    run_row(self, index, other, 1, 0, 1, 0, loop, context);
    return;
  }
  DimVector coordinates(static_cast<size_t>(last), 0);
  // In stretches, because an expanded index can be larger than memory: Ctrl-C is seen between them.
  constexpr int64_t kStretch = 1 << 20;
  for (int64_t walked = 0;;) {
    for (int64_t i = 0; i < sizes[last]; i += kRow) {
      const int64_t n = std::min(kRow, sizes[last] - i);
      run_row(self + i * self_[last], index + i * index_strides_[last], other + i * other_[last], n,
              self_[last], index_strides_[last], other_[last], loop, context);
      walked += n;
      if (walked >= kStretch) {
        walked = 0;
        check_interrupt();
      }
    }
    int64_t d = last - 1;
    for (; d >= 0; --d) {
      self += self_[d];
      other += other_[d];
      index += index_strides_[d];
      if (++coordinates[d] < sizes[d]) break;
      self -= sizes[d] * self_[d];
      other -= sizes[d] * other_[d];
      index -= sizes[d] * index_strides_[d];
      coordinates[d] = 0;
    }
    if (d < 0) return;
  }
}

// The first of the largest dimensions to share between threads; -1 when there is none.
int64_t ScatterWalk::widest(bool may_be_dim) const {
  int64_t best = -1;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    if (is_dim_[d] && !may_be_dim) continue;
    if (best < 0 || sizes_[d] > sizes_[best]) best = static_cast<int64_t>(d);
  }
  return best;
}

void ScatterWalk::run_independent_checked(ScatterLoop loop, const void* context) const {
  if (numel_ == 0) return;
  const int64_t cut = numel_ <= kGrainElements ? -1 : widest(true);
  if (cut < 0) {
    run_box(-1, 0, 0, loop, context);
    return;
  }
  const BlockingRegion region;
  const int64_t grain = std::max<int64_t>(1, kGrainElements / (numel_ / sizes_[cut]));
  parallel_for(0, sizes_[cut], grain,
               [&](int64_t begin, int64_t end) { run_box(cut, begin, end, loop, context); });
}

void ScatterWalk::run_ordered(ScatterLoop loop, const void* context) const {
  if (numel_ == 0) return;
  const int64_t cut = numel_ <= kGrainElements ? -1 : widest(false);
  // Narrow pieces of the innermost dimension would share cache lines and be all loop overhead.
  const int64_t narrowest = cut == static_cast<int64_t>(sizes_.size()) - 1 ? 256 : 1;
  if (cut < 0 || sizes_[cut] < 2 * narrowest || get_num_threads() == 1) {
    run_box(-1, 0, 0, loop, context);
    return;
  }
  const BlockingRegion region;
  const int64_t grain = std::max<int64_t>(narrowest, kGrainElements / (numel_ / sizes_[cut]));
  parallel_for(0, sizes_[cut], grain,
               [&](int64_t begin, int64_t end) { run_box(cut, begin, end, loop, context); });
}

} // namespace at::native
