// sort, argsort, msort and topk. Every row is turned into entries (SortKeys.h); rows are
// shared between threads.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/sort/Native.h>
#include <ATen/native/sort/SortKeys.h>
#include <ATen/ops/sort.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <memory>

namespace at {
namespace native {
namespace {

void check_out_dtype(const OutputBuilder& out, int i, ScalarType dtype) {
  const Tensor& given = out.given(i);
  TORCH_CHECK(!given.defined() || given.scalar_type() == dtype,
              "Expected out tensor to have dtype ", dtype, ", but got ",
              given.defined() ? given.scalar_type() : dtype, " instead");
}

void set_pair(OutputBuilder& out, const Tensor& self, IntArrayRef sizes,
              OptionalIntArrayRef strides) {
  check_out_dtype(out, 0, self.scalar_type());
  check_out_dtype(out, 1, kLong);
  out.set_on(0, sizes, self.scalar_type(), self.device(), strides);
  out.set_on(1, sizes, kLong, self.device(), strides);
}

void set_symbolic_pair(OutputBuilder& out, const Tensor& self, SymIntArrayRef sizes,
                       const OptionalSymIntArrayRef& strides) {
  out.set_symint(0, sizes, self.scalar_type(), strides);
  out.set_symint(1, sizes, kLong, strides);
}

void meta_sort_pair(OutputBuilder& out, const Tensor& self, int64_t dim) {
  wrap_dim(dim, self.dim());
  TORCH_CHECK(!self.is_complex(), " Sort does not support complex dtypes on ",
              self.is_cpu() ? "CPU" : "this device");
  if (is_symbolic(self)) {
    const SymDimVector strides = symbolic_dense_strides(self);
    set_symbolic_pair(out, self, self.sym_sizes(), SymIntArrayRef(strides));
    return;
  }
  const DimVector strides = like_strides(self);
  set_pair(out, self, self.sizes(), IntArrayRef(strides));
}

// f(first row, last row) over all rows, shared between threads by elements.
template <class F> void for_rows(const Rows& rows, const F& f) {
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(rows.length(), 1));
  if (rows.count() * rows.length() < 4096) {
    f(0, rows.count());
    return;
  }
  const BlockingRegion region;
  parallel_for(0, rows.count(), grain, f);
}

// Writes the first k entries as values and positions.
template <class T, class Entry>
void write_entries(const Entry* entries, int64_t k, const T* from, int64_t from_stride, T* values,
                   int64_t value_stride, int64_t* indices, int64_t index_stride) {
  parallel_for(0, k, kRowGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t p = position_of(entries[i]);
      values[i * value_stride] = from[p * from_stride];
      indices[i * index_stride] = p;
    }
  });
}

// Runs `select(entries, scratch, n)` on every row and writes its first k entries.
template <class T, class Select> void sort_rows(const Tensor& self, int64_t dim, bool descending,
                                                int64_t k, bool needs_scratch, const Tensor& values,
                                                const Tensor& indices, const Select& select) {
  const Rows rows(self, dim);
  const int64_t n = rows.length();
  const T* data = static_cast<const T*>(self.data_ptr());
  T* value_data = static_cast<T*>(values.data_ptr());
  int64_t* index_data = indices.data_ptr<int64_t>();
  const int64_t s = stride_along(self, dim), sv = stride_along(values, dim),
                si = stride_along(indices, dim);
  // As they are now: another thread may change them when the lock is gone.
  const DimVector from(self.strides()), to(values.strides()), places(indices.strides());
  entry_switch<T>(n, [&](auto tag) {
    using Entry = typename decltype(tag)::type;
    for_rows(rows, [&](int64_t begin, int64_t end) {
      const std::unique_ptr<Entry[]> entries(
          new Entry[static_cast<size_t>(needs_scratch ? 2 * n : n)]);
      for (int64_t r = begin; r < end; ++r) {
        const T* row = data + rows.offset(from, r);
        make_entries(row, s, n, descending, entries.get());
        const Entry* chosen = select(entries.get(), entries.get() + n, n);
        write_entries(chosen, k, row, s, value_data + rows.offset(to, r), sv,
                      index_data + rows.offset(places, r), si);
      }
    });
  });
}

template <class Entry> Entry* sort_in_order(Entry* entries, Entry* scratch, int64_t n, int bits) {
  sort_entries(entries, scratch, n, bits);
  return entries;
}

// Without a promise for equal elements. Where a row of moderate length has some, they stand as the
// standard library's sort leaves them: programs that came from PyTorch see the order they are used
// to.
template <class Entry> Entry* sort_freely(Entry* entries, Entry* scratch, int64_t n, int bits) {
  constexpr int64_t kStableAnyway = 16, kModerate = 16384;
  if (n <= kStableAnyway || n > kModerate) return sort_in_order(entries, scratch, n, bits);
  const auto by_key = [](const Entry& a, const Entry& b) { return key_of(a) < key_of(b); };
  // Fewer values than elements: some are equal.
  uint64_t least = key_of(entries[0]), most = least;
  for (int64_t i = 1; i < n; ++i) {
    least = std::min(least, key_of(entries[i]));
    most = std::max(most, key_of(entries[i]));
  }
  if (most - least < static_cast<uint64_t>(n - 1)) {
    std::sort(entries, entries + n, by_key);
    return entries;
  }
  const std::unique_ptr<Entry[]> before(new Entry[static_cast<size_t>(n)]);
  std::copy(entries, entries + n, before.get());
  sort_entries(entries, scratch, n, bits);
  bool ties = false;
  for (int64_t i = 1; i < n && !ties; ++i) ties = key_of(entries[i - 1]) == key_of(entries[i]);
  if (!ties) return entries;
  std::copy(before.get(), before.get() + n, entries);
  std::sort(entries, entries + n, by_key);
  return entries;
}

// The k entries with the lowest keys in front. Which of several equal ones is taken is not
// promised, and follows from the algorithms of the standard library, as in PyTorch.
template <class Entry, class Before>
void choose_first(Entry* entries, int64_t k, int64_t n, bool sorted, const Before& before) {
  std::nth_element(entries, entries + k - 1, entries + n, before);
  if (sorted) std::sort(entries, entries + k - 1, before);
}

// The k entries with the lowest keys of a row, in order, for k that is a small part of it: a heap
// of k, and of every further element only its key, which is rarely below the heap's largest. Step
// by step what the standard library's partial_sort does, so that equal elements come out as there.
template <class T, class Entry>
void choose_few(const T* row, int64_t stride, int64_t n, bool descending, int64_t k, Entry* heap) {
  constexpr int bits = key_bits<T>();
  constexpr uint64_t all = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  const uint64_t flip = descending ? all : 0;
  const auto before = [](const Entry& a, const Entry& b) { return key_of(a) < key_of(b); };
  make_entries(row, stride, k, descending, heap);
  std::make_heap(heap, heap + k, before);
  uint64_t largest = key_of(heap[0]);
  serial_for(k, n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t key = sort_key(row[i * stride]) ^ flip;
      if (C10_LIKELY(key >= largest)) continue;
      heap[k] = make_entry(key, i, static_cast<const Entry*>(nullptr));
      std::pop_heap(heap, heap + k + 1, before);
      largest = key_of(heap[0]);
    }
  });
  std::sort_heap(heap, heap + k, before);
}

template <class T> void topk_few(const Tensor& self, int64_t dim, bool largest, int64_t k,
                                 const Tensor& values, const Tensor& indices) {
  const Rows rows(self, dim);
  const int64_t n = rows.length();
  const T* data = static_cast<const T*>(self.data_ptr());
  T* value_data = static_cast<T*>(values.data_ptr());
  int64_t* index_data = indices.data_ptr<int64_t>();
  const int64_t s = stride_along(self, dim), sv = stride_along(values, dim),
                si = stride_along(indices, dim);
  entry_switch<T>(n, [&](auto tag) {
    using Entry = typename decltype(tag)::type;
    for_rows(rows, [&](int64_t begin, int64_t end) {
      const std::unique_ptr<Entry[]> heap(new Entry[static_cast<size_t>(k + 1)]);
      for (int64_t r = begin; r < end; ++r) {
        const T* row = data + rows.offset(self.strides(), r);
        choose_few(row, s, n, largest, k, heap.get());
        write_entries(heap.get(), k, row, s, value_data + rows.offset(values.strides(), r), sv,
                      index_data + rows.offset(indices.strides(), r), si);
      }
    });
  });
}

} // namespace
} // namespace native

namespace meta {

void meta_sort(OutputBuilder& out, const Tensor& self, int64_t dim, bool descending) {
  static_cast<void>(descending);
  native::meta_sort_pair(out, self, dim);
}

void meta_sort_stable(OutputBuilder& out, const Tensor& self, std::optional<bool> stable,
                      int64_t dim, bool descending) {
  static_cast<void>(stable);
  static_cast<void>(descending);
  native::meta_sort_pair(out, self, dim);
}

void meta_topk(OutputBuilder& out, const Tensor& self, int64_t k, int64_t dim, bool largest,
               bool sorted) {
  static_cast<void>(largest);
  static_cast<void>(sorted);
  const int64_t d = native::wrap_dim(dim, self.dim());
  const SymInt length = self.dim() == 0 ? SymInt(1) : self.sym_size(d);
  TORCH_CHECK(k >= 0 && c10::expect_true(c10::sym_le(k, length)), "selected index k out of range");
  TORCH_CHECK(!self.is_complex(), " topk does not support complex dtypes on CPU");
  TORCH_CHECK(self.scalar_type() != kBool, "topk does not support bool dtypes on CPU");
  if (native::is_symbolic(self)) {
    native::SymDimVector sizes(self.sym_sizes());
    sizes[d] = k;
    native::set_symbolic_pair(out, self, sizes, std::nullopt);
    return;
  }
  DimVector sizes(self.sizes());
  if (!sizes.empty()) sizes[d] = k;
  native::set_pair(out, self, sizes, std::nullopt);
}

} // namespace meta

namespace native {

namespace {

void sort_dtype(const Tensor& self, bool stable, int64_t dim, bool descending, const Tensor& values,
                const Tensor& indices) {
  if (self.numel() == 0) return;
  const int64_t d = wrap_dim(dim, self.dim());
  dtype_switch<SortTypes>(self.scalar_type(), "sort_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t n = self.dim() == 0 ? 1 : self.size(d);
    // One element repeated is in order as it stands.
    const bool in_order = stable || stride_along(self, d) == 0;
    sort_rows<T>(self, d, descending, n, true, values, indices,
                 [&](auto* entries, auto* scratch, int64_t count) {
                   return in_order ? sort_in_order(entries, scratch, count, key_bits<T>())
                                   : sort_freely(entries, scratch, count, key_bits<T>());
                 });
  });
}

} // namespace

void sort_cpu(const Tensor& self, int64_t dim, bool descending, const Tensor& values,
              const Tensor& indices) {
  sort_dtype(self, false, dim, descending, values, indices);
}

void sort_stable_cpu(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending,
                     const Tensor& values, const Tensor& indices) {
  sort_dtype(self, stable.value_or(false), dim, descending, values, indices);
}

void topk_cpu(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted,
              const Tensor& values, const Tensor& indices) {
  if (self.numel() == 0 || (k == 0 && self.dim() > 0)) return;
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t count = self.dim() == 0 ? 1 : k;
  dtype_switch<RealTypes>(self.scalar_type(), "topk_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (self.dim() > 0 && count <= self.size(d) / 64) {
      topk_few<T>(self, d, largest, count, values, indices);
      return;
    }
    sort_rows<T>(self, d, largest, count, false, values, indices,
                 [count, sorted](auto* entries, auto*, int64_t n) {
                   using Entry = std::remove_pointer_t<decltype(entries)>;
                   Steps steps;
                   if (n < kStretch)
                     choose_first(entries, count, n, sorted, [](const Entry& a, const Entry& b) {
                       return key_of(a) < key_of(b);
                     });
                   else
                     choose_first(entries, count, n, sorted, ByKey<Entry>{&steps});
                   return entries;
                 });
  });
}

Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(at::sort(self, dim, descending));
}

Tensor argsort_stable(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(at::sort(self, stable, dim, descending));
}

// The positions, and with them the order of equal elements, are not seen: the stable sort is
// quicker.
Tensor msort(const Tensor& self) { return std::get<0>(at::sort(self, 0, false)); }

} // namespace native
} // namespace at
