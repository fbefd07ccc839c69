// unique and unique_consecutive, over all elements or over the slices of a dimension. Results are
// always sorted; NaNs are all different from each other.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/PrivateCopy.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/sort/Native.h>
#include <ATen/native/sort/SortKeys.h>
#include <ATen/ops/movedim.h>
#include <ATen/ops/unique_dim_consecutive.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace at::native {
namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;

// Walks positions in an order in which equal things are neighbours, and notes where a new one
// begins. The first pass only counts, so that the second can be shared between threads.
struct Groups {
  Tensor first; // position of the representative
  Tensor counts;
  Tensor inverse; // group of each position, where it is wanted

  template <class Same, class Position>
  Groups(int64_t n, bool wants_inverse, const Position& position, const Same& same) {
    const auto begins = [&](int64_t i) { return i == 0 || !same(position(i - 1), position(i)); };
    const int64_t size = n > 0 ? chunk_size(n, kRowGrain) : 1;
    std::vector<int64_t> before(static_cast<size_t>(chunk_count(n, kRowGrain)) + 1, 0);
    parallel_for(0, n, kRowGrain, [&](int64_t begin, int64_t end) {
      int64_t own = 0;
      for (int64_t i = begin; i < end; ++i) own += begins(i);
      before[static_cast<size_t>(begin / size) + 1] = own;
    });
    for (size_t c = 1; c < before.size(); ++c) before[c] += before[c - 1];
    const int64_t groups = before.back();
    first = detail::empty({groups}, kLong);
    counts = detail::empty({groups}, kLong);
    inverse = detail::empty({wants_inverse ? n : 0}, kLong);
    if (n == 0) return;
    int64_t* const place = first.data_ptr<int64_t>();
    int64_t* const count = counts.data_ptr<int64_t>(); // where groups begin, at first
    int64_t* const group = wants_inverse ? inverse.data_ptr<int64_t>() : nullptr;
    parallel_for(0, n, kRowGrain, [&](int64_t begin, int64_t end) {
      int64_t next = before[static_cast<size_t>(begin / size)];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t p = position(i);
        if (begins(i)) {
          place[next] = p;
          count[next++] = i;
        }
        if (group != nullptr) group[p] = next - 1;
      }
    });
    serial_for(0, groups, 1, [&](int64_t b, int64_t e) {
      for (int64_t g = b; g < e; ++g) count[g] = (g + 1 < groups ? count[g + 1] : n) - count[g];
    });
  }
};

template <class T> Tensor pick(const T* data, const Tensor& positions, ScalarType dtype) {
  const Tensor t = detail::empty(positions.sizes(), dtype);
  if (t.numel() == 0) return t;
  T* out = static_cast<T*>(t.data_ptr());
  const int64_t* from = positions.data_ptr<int64_t>();
  parallel_for(0, t.numel(), kRowGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = data[from[i]];
  });
  return t;
}

Triple finish(const Tensor& values, const Groups& groups, bool inverse, IntArrayRef inverse_sizes,
              bool counts) {
  return {values, inverse ? groups.inverse.view(inverse_sizes) : detail::empty({0}, kLong),
          counts ? groups.counts : detail::empty({0}, kLong)};
}

constexpr int64_t kWord = 64;

// Bit j tells whether element i + j differs from the one before it; the first of all does. `count`
// elements, at most kWord.
template <class T> uint64_t run_starts(const T* data, int64_t i, int64_t count) {
  unsigned char differs[kWord];
  if (i > 0 && count == kWord) {
    for (int64_t j = 0; j < kWord; ++j) differs[j] = data[i + j - 1] != data[i + j];
  } else {
    for (int64_t j = 0; j < kWord; ++j)
      differs[j] = j < count && (i + j == 0 || data[i + j - 1] != data[i + j]);
  }
  uint64_t bits = 0;
  for (int64_t j = 0; j < kWord; j += 8) {
    uint64_t eight;
    std::memcpy(&eight, differs + j, 8);
    bits |= (eight * 0x0102040810204080 >> 56) << j; // the lowest bits of eight bytes, side by side
  }
  return bits;
}

// The runs of equal elements, as they stand. Where they begin is read once and kept, so that
// elements that another thread changes meanwhile do no harm.
template <class T> Triple runs(const T* data, int64_t n, ScalarType dtype, bool return_inverse,
                               IntArrayRef inverse_sizes, bool return_counts) {
  const int64_t words = (n + kWord - 1) / kWord, grain = kRowGrain / kWord;
  const int64_t size = n > 0 ? chunk_size(words, grain) : 1;
  std::vector<uint64_t> starts(static_cast<size_t>(words));
  std::vector<int64_t> before(static_cast<size_t>(chunk_count(words, grain)) + 1, 0);
  parallel_for(0, words, grain, [&](int64_t begin, int64_t end) {
    int64_t own = 0;
    for (int64_t w = begin; w < end; ++w) {
      starts[w] = run_starts(data, w * kWord, std::min(kWord, n - w * kWord));
      own += __builtin_popcountll(starts[w]);
    }
    before[static_cast<size_t>(begin / size) + 1] = own;
  });
  for (size_t c = 1; c < before.size(); ++c) before[c] += before[c - 1];
  const int64_t groups = before.back();
  const Tensor values = detail::empty({groups}, dtype);
  const Tensor counts = detail::empty({return_counts ? groups : 0}, kLong);
  const Tensor inverse = detail::empty(return_inverse ? inverse_sizes : IntArrayRef(0), kLong);
  if (n == 0) return {values, inverse, counts};
  T* const value = static_cast<T*>(values.data_ptr());
  int64_t* const start = return_counts ? counts.data_ptr<int64_t>() : nullptr;
  int64_t* const group = return_inverse ? inverse.data_ptr<int64_t>() : nullptr;
  parallel_for(0, words, grain, [&](int64_t begin, int64_t end) {
    int64_t next = before[static_cast<size_t>(begin / size)];
    for (int64_t w = begin; w < end; ++w) {
      const int64_t first = w * kWord, last = std::min(first + kWord, n);
      if (group != nullptr) {
        int64_t id = next - 1;
        for (int64_t i = first; i < last; ++i) group[i] = id += starts[w] >> (i - first) & 1;
      }
      for (uint64_t left = starts[w]; left != 0; left &= left - 1, ++next) {
        const int64_t i = first + __builtin_ctzll(left);
        value[next] = data[i];
        if (start != nullptr) start[next] = i;
      }
    }
  });
  for (int64_t g = 0; start != nullptr && g < groups; ++g)
    start[g] = (g + 1 < groups ? start[g + 1] : n) - start[g];
  return {values, inverse, counts};
}

Triple unique_flat(const Tensor& self, bool return_inverse, bool return_counts) {
  const Tensor flat = private_copy(self);
  const int64_t n = flat.numel();
  Triple result;
  dtype_switch<SortTypes>(self.scalar_type(), "unique", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = static_cast<const T*>(flat.data_ptr());
    std::optional<BlockingRegion> unlocked;
    if (n > kRowGrain) unlocked.emplace();
    const auto same = [data](int64_t a, int64_t b) { return data[a] == data[b]; };
    const auto finished = [&](const auto& position) {
      const Groups groups(n, return_inverse, position, same);
      result = finish(pick(data, groups.first, self.scalar_type()), groups, return_inverse,
                      flat.sizes(), return_counts);
    };
    entry_switch<T>(n, [&](auto entry_tag) {
      using Entry = typename decltype(entry_tag)::type;
      const std::unique_ptr<Entry[]> entries(new Entry[static_cast<size_t>(2 * n)]);
      make_entries(data, 1, n, false, entries.get());
      sort_entries(entries.get(), entries.get() + n, n, key_bits<T>());
      finished([&](int64_t i) { return position_of(entries[i]); });
    });
  });
  return result;
}

// Whether two rows have the same elements.
template <class T> bool equal_rows(const T* a, const T* b, int64_t width) {
  Steps steps;
  for (int64_t j = 0; j < width; ++j, steps.add(1))
    if (!(a[j] == b[j])) return false;
  return true;
}

Triple unique_slices(const Tensor& self, int64_t dim, bool sort, bool return_inverse,
                     bool return_counts) {
  TORCH_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim,
                    " but tensor has no dimensions");
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t n = self.size(d);
  if (self.numel() == 0) {
    for (int64_t i = 0; i < self.dim(); ++i)
      TORCH_CHECK(i == d || self.size(i) != 0, "There are 0 sized dimensions, and they aren't "
                                               "selected, so unique cannot be applied");
    const Tensor none = detail::empty({0}, kLong);
    return {self.clone(MemoryFormat::Contiguous), none, detail::empty({0}, kLong)};
  }
  const Tensor rows = private_copy(at::movedim(self, d, 0));
  const int64_t width = rows.numel() / n;
  std::optional<Groups> groups;
  dtype_switch<SortTypes>(self.scalar_type(), "unique_dim", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = static_cast<const T*>(rows.data_ptr());
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), int64_t(0));
    Steps steps;
    if (sort) {
      // Keys give an order even where there are NaNs.
      std::stable_sort(order.begin(), order.end(), [=, &steps](int64_t a, int64_t b) {
        for (int64_t j = 0; j < width; ++j) {
          steps.add(1);
          const uint64_t x = sort_key(data[a * width + j]), y = sort_key(data[b * width + j]);
          if (x != y) return x < y;
        }
        return false;
      });
    }
    groups.emplace(
        n, return_inverse, [&](int64_t i) { return order[static_cast<size_t>(i)]; },
        [=](int64_t a, int64_t b) {
          return equal_rows(data + a * width, data + b * width, width);
        });
  });
  DimVector sizes(rows.sizes());
  sizes[0] = groups->first.numel();
  const int64_t* from = groups->first.data_ptr<int64_t>();
  const Tensor values = detail::empty(sizes, self.scalar_type());
  const int64_t bytes = width * rows.itemsize();
  Steps steps;
  for (int64_t i = 0; i < sizes[0]; ++i) {
    parallel_copy(static_cast<char*>(values.data_ptr()) + i * bytes,
                  static_cast<const char*>(rows.data_ptr()) + from[i] * bytes, bytes);
    steps.add(16 + bytes / 16);
  }
  return finish(at::movedim(values, 0, d), *groups, return_inverse, {n}, return_counts);
}

} // namespace

std::tuple<Tensor, Tensor> unique_cpu(const Tensor& self, bool sorted, bool return_inverse) {
  static_cast<void>(sorted);
  const Triple all = unique_flat(self, return_inverse, false);
  return {std::get<0>(all), std::get<1>(all)};
}

Triple unique2_cpu(const Tensor& self, bool sorted, bool return_inverse, bool return_counts) {
  static_cast<void>(sorted);
  return unique_flat(self, return_inverse, return_counts);
}

Triple unique_dim_cpu(const Tensor& self, int64_t dim, bool sorted, bool return_inverse,
                      bool return_counts) {
  static_cast<void>(sorted);
  return unique_slices(self, dim, true, return_inverse, return_counts);
}

Triple unique_dim_consecutive_cpu(const Tensor& self, int64_t dim, bool return_inverse,
                                  bool return_counts) {
  return unique_slices(self, dim, false, return_inverse, return_counts);
}

Triple unique_consecutive_cpu(const Tensor& self, bool return_inverse, bool return_counts,
                              std::optional<int64_t> dim) {
  if (dim) return at::unique_dim_consecutive(self, *dim, return_inverse, return_counts);
  // A bool may be any byte; a copy has 0 and 1.
  const Tensor flat = self.scalar_type() == kBool ? private_copy(self) : self.contiguous();
  Triple result;
  dtype_switch<SortTypes>(self.scalar_type(), "unique", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::optional<BlockingRegion> unlocked;
    if (flat.numel() > kRowGrain) unlocked.emplace();
    result = runs(static_cast<const T*>(flat.data_ptr()), flat.numel(), self.scalar_type(),
                  return_inverse, flat.sizes(), return_counts);
  });
  return result;
}

} // namespace at::native
