// See RowCopy.h. The general iterator pays its bookkeeping and an indirect call per row, which for
// rows of a few hundred bytes is as much as moving them; here the two innermost dimensions are
// plain loops. Rows of a few elements, which may repeat one element or step over some, are moved
// element by element: expanded copies, windows, shuffled pixels.
#include <ATen/native/copy/RowCopy.h>

#include <ATen/native/DTypeSwitch.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <cstring>

namespace at::native {
namespace {

constexpr int64_t kMinRowBytes = 64;
constexpr int64_t kMaxShortRow = 32; // elements
constexpr int64_t kGrainBytes = 1 << 17;

// Dimensions from the outermost inwards as dst lies in memory, merged where both allow it.
struct Rows {
  DimVector sizes, dst, src; // strides in bytes; the row itself is not among them
  int64_t row_bytes = 0, count = 1;
  int64_t length = 0, step = 0; // of the row: elements, and bytes between them in src
};

bool make_rows(const Tensor& dst, const Tensor& src, bool whole, Rows& rows) {
  const int64_t itemsize = dst.itemsize();
  DimVector order;
  for (int64_t d = 0; d < dst.dim(); ++d) {
    if (dst.size(d) == 1) continue;
    order.push_back(d);
    for (size_t i = order.size() - 1; i > 0 && dst.stride(order[i - 1]) < dst.stride(order[i]); --i)
      std::swap(order[i - 1], order[i]);
  }
  for (int64_t d : order) {
    const int64_t size = dst.size(d), to = dst.stride(d) * itemsize,
                  from = src.stride(d) * itemsize;
    if (!rows.sizes.empty() && rows.dst.back() == size * to && rows.src.back() == size * from) {
      rows.sizes.back() *= size;
      rows.dst.back() = to;
      rows.src.back() = from;
    } else {
      rows.sizes.push_back(size);
      rows.dst.push_back(to);
      rows.src.push_back(from);
    }
  }
  if (rows.sizes.size() < 2 || rows.dst.back() != itemsize) return false;
  rows.length = rows.sizes.back();
  rows.step = rows.src.back();
  rows.row_bytes = rows.length * itemsize;
  rows.sizes.pop_back();
  rows.dst.pop_back();
  rows.src.pop_back();
  for (int64_t size : rows.sizes) rows.count *= size;
  if (!whole) return rows.length <= kMaxShortRow;
  rows.length = 0;
  return rows.step == itemsize && rows.row_bytes >= kMinRowBytes;
}

// A row of elements of T, or, where its length is 0, of bytes.
template <class T> C10_ALWAYS_INLINE void copy_row(const Rows& rows, char* to, const char* from) {
  for (int64_t j = 0; j < rows.length; ++j)
    std::memcpy(to + j * static_cast<int64_t>(sizeof(T)), from + j * rows.step, sizeof(T));
}
struct Bytes {};
template <> C10_ALWAYS_INLINE void copy_row<Bytes>(const Rows& rows, char* to, const char* from) {
  std::memcpy(to, from, static_cast<size_t>(rows.row_bytes));
}

template <class T>
void copy_range(const Rows& rows, char* dst, const char* src, int64_t begin, int64_t end) {
  const size_t last = rows.sizes.size() - 1;
  for (int64_t item = begin; item < end;) {
    int64_t rest = item / rows.sizes[last], column = item % rows.sizes[last];
    char* to = dst + column * rows.dst[last];
    const char* from = src + column * rows.src[last];
    for (size_t d = last; d-- > 0;) {
      to += rest % rows.sizes[d] * rows.dst[d];
      from += rest % rows.sizes[d] * rows.src[d];
      rest /= rows.sizes[d];
    }
    const int64_t n = std::min(end - item, rows.sizes[last] - column);
    for (int64_t i = 0; i < n; ++i) {
      copy_row<T>(rows, to, from);
      to += rows.dst[last];
      from += rows.src[last];
    }
    item += n;
  }
}

template <class T> __attribute__((optimize("O3"))) void fill_range(T* to, T value, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}

} // namespace

bool try_splat_copy(const Tensor& dst, const Tensor& src) {
  if (!dst.is_non_overlapping_and_dense()) return false;
  for (int64_t d = 0; d < src.dim(); ++d)
    if (src.size(d) != 1 && src.stride(d) != 0) return false;
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(dst.data_ptr());
    T value; // 16-byte elements may lie at multiples of 8
    std::memcpy(&value, src.data_ptr(), sizeof(T));
    const int64_t grain = kGrainBytes / static_cast<int64_t>(sizeof(T));
    if (dst.numel() <= grain) return fill_range(to, value, dst.numel());
    BlockingRegion unlocked;
    parallel_for(0, dst.numel(), grain,
                 [&](int64_t begin, int64_t end) { fill_range(to + begin, value, end - begin); });
  };
  itemsize_switch(dst.itemsize(), run);
  return true;
}

namespace {
bool copy_by_rows(const Tensor& dst, const Tensor& src, bool whole) {
  Rows rows;
  if (!make_rows(dst, src, whole, rows)) return false;
  char* to = static_cast<char*>(dst.data_ptr());
  const char* from = static_cast<const char*>(src.data_ptr());
  auto* range = &copy_range<Bytes>;
  if (rows.length > 0)
    itemsize_switch(dst.itemsize(),
                    [&](auto tag) { range = &copy_range<typename decltype(tag)::type>; });
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / rows.row_bytes);
  if (rows.count <= grain) {
    range(rows, to, from, 0, rows.count);
    return true;
  }
  BlockingRegion unlocked;
  parallel_for(0, rows.count, grain,
               [&](int64_t begin, int64_t end) { range(rows, to, from, begin, end); });
  return true;
}
} // namespace

bool try_row_copy(const Tensor& dst, const Tensor& src) { return copy_by_rows(dst, src, true); }
bool try_short_row_copy(const Tensor& dst, const Tensor& src) {
  return copy_by_rows(dst, src, false);
}

} // namespace at::native
