// unique and unique_consecutive, over all elements or over the slices of a dimension. Results are
// always sorted; NaNs are all different from each other.
#define CRESSET_KERNEL_TU
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/sort/Native.h>
#include <ATen/native/sort/SortKeys.h>
#include <ATen/ops/movedim.h>
#include <ATen/ops/unique_dim_consecutive.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace at::native {
namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;

Tensor from_vector(const std::vector<int64_t>& v) {
  const Tensor t = detail::empty({static_cast<int64_t>(v.size())}, kLong);
  if (!v.empty()) parallel_copy(t.data_ptr(), v.data(), static_cast<int64_t>(v.size()) * 8);
  return t;
}

// Walks positions in an order in which equal things are neighbours, and notes where a new one
// begins.
struct Groups {
  std::vector<int64_t> first; // position of the representative
  std::vector<int64_t> counts;
  std::vector<int64_t> inverse; // group of each position
  bool wants_inverse;

  Groups(int64_t n, bool with_inverse) : wants_inverse(with_inverse) {
    if (with_inverse) inverse.resize(static_cast<size_t>(n));
  }
  template <class Same, class Position>
  void collect(int64_t n, const Position& position, const Same& same) {
    Steps steps;
    for (int64_t i = 0; i < n; ++i) {
      steps.add(8);
      const int64_t p = position(i);
      if (i == 0 || !same(position(i - 1), p)) {
        first.push_back(p);
        counts.push_back(0);
      }
      ++counts.back();
      if (wants_inverse) inverse[static_cast<size_t>(p)] = static_cast<int64_t>(first.size()) - 1;
    }
  }
};

template <class T>
Tensor pick(const T* data, const std::vector<int64_t>& positions, ScalarType dtype) {
  const Tensor t = detail::empty({static_cast<int64_t>(positions.size())}, dtype);
  T* out = static_cast<T*>(t.data_ptr());
  const int64_t* from = positions.data();
  parallel_for(0, t.numel(), kRowGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = data[from[i]];
  });
  return t;
}

Triple finish(const Tensor& values, const Groups& groups, IntArrayRef inverse_sizes, bool counts) {
  const Tensor none = detail::empty({0}, kLong);
  return {values, groups.wants_inverse ? from_vector(groups.inverse).view(inverse_sizes) : none,
          counts ? from_vector(groups.counts) : detail::empty({0}, kLong)};
}

Triple unique_flat(const Tensor& self, bool sort, bool return_inverse, bool return_counts) {
  const Tensor flat = self.contiguous();
  const int64_t n = flat.numel();
  Groups groups(n, return_inverse);
  Tensor values;
  dtype_switch<SortTypes>(self.scalar_type(), "unique", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = static_cast<const T*>(flat.data_ptr());
    std::optional<BlockingRegion> unlocked;
    if (n > kRowGrain) unlocked.emplace();
    const auto same = [data](int64_t a, int64_t b) { return data[a] == data[b]; };
    if (!sort) {
      groups.collect(
          n, [](int64_t i) { return i; }, same);
    } else {
      entry_switch<T>(n, [&](auto entry_tag) {
        using Entry = typename decltype(entry_tag)::type;
        const std::unique_ptr<Entry[]> entries(new Entry[static_cast<size_t>(2 * n)]);
        make_entries(data, 1, n, false, entries.get());
        sort_entries(entries.get(), entries.get() + n, n, key_bits<T>());
        groups.collect(
            n, [&](int64_t i) { return position_of(entries[i]); }, same);
      });
    }
    values = pick(data, groups.first, self.scalar_type());
  });
  return finish(values, groups, self.sizes(), return_counts);
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
  const Tensor rows = at::movedim(self, d, 0).contiguous();
  const int64_t width = rows.numel() / n;
  Groups groups(n, return_inverse);
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
    groups.collect(
        n, [&](int64_t i) { return order[static_cast<size_t>(i)]; },
        [=, &steps](int64_t a, int64_t b) {
          for (int64_t j = 0; j < width; ++j) {
            steps.add(1);
            if (!(data[a * width + j] == data[b * width + j])) return false;
          }
          return true;
        });
  });
  DimVector sizes(rows.sizes());
  sizes[0] = static_cast<int64_t>(groups.first.size());
  const Tensor values = detail::empty(sizes, self.scalar_type());
  const int64_t bytes = width * rows.itemsize();
  Steps steps;
  for (int64_t i = 0; i < sizes[0]; ++i) {
    parallel_copy(static_cast<char*>(values.data_ptr()) + i * bytes,
                  static_cast<const char*>(rows.data_ptr()) +
                      groups.first[static_cast<size_t>(i)] * bytes,
                  bytes);
    steps.add(16 + bytes / 16);
  }
  return finish(at::movedim(values, 0, d), groups, {n}, return_counts);
}

} // namespace

std::tuple<Tensor, Tensor> unique_cpu(const Tensor& self, bool sorted, bool return_inverse) {
  static_cast<void>(sorted);
  const Triple all = unique_flat(self, true, return_inverse, false);
  return {std::get<0>(all), std::get<1>(all)};
}

Triple unique2_cpu(const Tensor& self, bool sorted, bool return_inverse, bool return_counts) {
  static_cast<void>(sorted);
  return unique_flat(self, true, return_inverse, return_counts);
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
  return unique_flat(self, false, return_inverse, return_counts);
}

} // namespace at::native
