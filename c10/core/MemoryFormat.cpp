// Stride arithmetic shared by factories, views and the iterator.
#include <c10/core/MemoryFormat.h>

#include <algorithm>

namespace c10 {

void contiguous_strides(IntArrayRef sizes, int64_t* strides) {
  int64_t step = 1;
  for (int64_t i = static_cast<int64_t>(sizes.size()) - 1; i >= 0; --i) {
    strides[i] = step;
    // An overflow here means the element count overflows as well, which is checked where it is
    // used.
    __builtin_mul_overflow(step, std::max<int64_t>(sizes[i], 1), &step);
  }
}

DimVector channels_last_strides(IntArrayRef sizes) {
  const size_t n = sizes.size();
  TORCH_CHECK(n == 4 || n == 5,
              "channels_last needs a tensor of rank 4, channels_last_3d of rank 5; got rank ", n);
  DimVector strides(n);
  int64_t step = 1;
  auto place = [&](size_t dim) {
    strides[dim] = step;
    __builtin_mul_overflow(step, std::max<int64_t>(sizes[dim], 1), &step);
  };
  place(1);
  for (size_t dim = n - 1; dim >= 2; --dim) place(dim);
  strides[0] = step;
  return strides;
}

bool is_contiguous_strides(IntArrayRef sizes, IntArrayRef strides) {
  int64_t expected = 1;
  for (int64_t i = static_cast<int64_t>(sizes.size()) - 1; i >= 0; --i) {
    if (sizes[i] == 0) return true;
  }
  for (int64_t i = static_cast<int64_t>(sizes.size()) - 1; i >= 0; --i) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

bool is_channels_last_strides(IntArrayRef sizes, IntArrayRef strides) {
  const size_t n = sizes.size();
  if (n != 4 && n != 5) return false;
  int64_t least = 0;
  if (strides[1] == 0) return false;
  auto step = [&](size_t dim) {
    if (sizes[dim] == 0 || strides[dim] < least) return false;
    // An NHWC tensor with one channel and a plain N-C-1-1 tensor look alike; strides decide.
    if (dim == 0 && least == strides[1]) return false;
    least = strides[dim] * std::max<int64_t>(sizes[dim], 1);
    return true;
  };
  if (!step(1)) return false;
  for (size_t dim = n - 1; dim >= 2; --dim)
    if (!step(dim)) return false;
  return step(0);
}

namespace {
// Dimensions from the innermost outwards. Row-major order is kept unless two non-zero strides ask
// for another; equal strides put the smaller dimension inside.
DimVector order_by_stride(IntArrayRef sizes, IntArrayRef strides) {
  const int64_t n = static_cast<int64_t>(sizes.size());
  DimVector order(n);
  for (int64_t i = 0; i < n; ++i) order[i] = n - 1 - i;
  auto lies_outside = [&](int64_t a, int64_t b) {
    if (strides[a] == 0 || strides[b] == 0) return 0;
    if (strides[a] != strides[b]) return strides[a] > strides[b] ? 1 : -1;
    return sizes[a] > sizes[b] ? 1 : 0;
  };
  for (int64_t i = 1; i < n; ++i) {
    int64_t at = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      const int decision = lies_outside(order[j], order[at]);
      if (decision < 0) break;
      if (decision > 0) {
        std::swap(order[j], order[at]);
        at = j;
      }
    }
  }
  return order;
}
} // namespace

bool is_non_overlapping_and_dense(IntArrayRef sizes, IntArrayRef strides) {
  for (int64_t s : sizes)
    if (s == 0) return true;
  DimVector order;
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i)
    if (sizes[i] != 1) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (int64_t dim : order) {
    if (strides[dim] != expected) return false;
    expected *= sizes[dim];
  }
  return true;
}

DimVector infer_dense_strides(IntArrayRef sizes, IntArrayRef strides) {
  if (is_non_overlapping_and_dense(sizes, strides)) return DimVector(strides);
  DimVector out(sizes.size());
  int64_t step = 1;
  for (int64_t dim : order_by_stride(sizes, strides)) {
    out[dim] = step;
    __builtin_mul_overflow(step, std::max<int64_t>(sizes[dim], 1), &step);
  }
  return out;
}

} // namespace c10
