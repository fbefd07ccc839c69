// See SortKeys.h. Long rows are sorted by radix, digit by digit from the lowest, passing over
// digits that are the same in all keys; short ones too where few digits are left, else by
// comparison. A very long row is shared between
// threads, and can be interrupted: each chunk counts its own digits, which tells it where its
// entries go, in the order they would have in a plain loop.
#include <ATen/native/sort/SortKeys.h>

#include <ATen/iter/TensorIterator.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <vector>

namespace at::native {
namespace {

constexpr int kDigitBits = 8;
constexpr int kBuckets = 1 << kDigitBits;
constexpr int64_t kLeastRadix = 32;
// Rows worth sharing, and the least that a thread takes of one.
constexpr int64_t kSharedFrom = int64_t(1) << 18, kSharedGrain = int64_t(1) << 16;

// Digits in which keys differ, as shifts.
template <class Entry> int varying_digits(const Entry* entries, int64_t n, int bits, int* shifts) {
  uint64_t any = 0, all = ~uint64_t(0);
  for (int64_t i = 0; i < n; ++i) {
    any |= key_of(entries[i]);
    all &= key_of(entries[i]);
  }
  int count = 0;
  for (int shift = 0; shift < bits; shift += kDigitBits)
    if (((any ^ all) >> shift) & (kBuckets - 1)) shifts[count++] = shift;
  return count;
}

template <class Entry>
void radix_sort(Entry* entries, Entry* scratch, int64_t n, const int* shifts, int digits) {
  // All digits are counted in one reading. n is below kSharedFrom.
  uint32_t counts[64 / kDigitBits * kBuckets];
  std::fill(counts, counts + digits * kBuckets, 0);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t key = key_of(entries[i]);
    for (int d = 0; d < digits; ++d) ++counts[d * kBuckets + ((key >> shifts[d]) & (kBuckets - 1))];
  }
  Entry* from = entries;
  Entry* to = scratch;
  for (int d = 0; d < digits; ++d) {
    uint32_t* count = counts + d * kBuckets;
    const int shift = shifts[d];
    uint32_t next = 0;
    for (int b = 0; b < kBuckets; ++b) {
      const uint32_t own = count[b];
      count[b] = next;
      next += own;
    }
    for (int64_t i = 0; i < n; ++i)
      to[count[(key_of(from[i]) >> shift) & (kBuckets - 1)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(entries, from, static_cast<size_t>(n) * sizeof(Entry));
}

// Digits in which keys differ, as shifts; see radix_sort.
template <class Entry>
int shared_varying_digits(const Entry* entries, int64_t n, int bits, int* shifts) {
  struct Seen {
    uint64_t any, all;
  };
  const Seen seen = parallel_reduce(
      0, n, kSharedGrain, Seen{0, ~uint64_t(0)},
      [=](int64_t begin, int64_t end, Seen own) {
        for (int64_t i = begin; i < end; ++i) {
          own.any |= key_of(entries[i]);
          own.all &= key_of(entries[i]);
        }
        return own;
      },
      [](Seen a, Seen b) {
        return Seen{a.any | b.any, a.all & b.all};
      });
  int count = 0;
  for (int shift = 0; shift < bits; shift += kDigitBits)
    if (((seen.any ^ seen.all) >> shift) & (kBuckets - 1)) shifts[count++] = shift;
  return count;
}

template <class Entry> void shared_radix_sort(Entry* entries, Entry* scratch, int64_t n, int bits) {
  int shifts[64 / kDigitBits];
  const int digits = shared_varying_digits(entries, n, bits, shifts);
  const int64_t chunks = chunk_count(n, kSharedGrain), size = chunk_size(n, kSharedGrain);
  std::vector<int64_t> places(static_cast<size_t>(chunks) * kBuckets);
  Entry *from = entries, *to = scratch;
  for (int d = 0; d < digits; ++d) {
    const int shift = shifts[d];
    const auto digit = [shift](const Entry& e) { return (key_of(e) >> shift) & (kBuckets - 1); };
    parallel_for(0, n, kSharedGrain, [&](int64_t begin, int64_t end) {
      int64_t* own = places.data() + begin / size * kBuckets;
      std::fill(own, own + kBuckets, 0);
      for (int64_t i = begin; i < end; ++i) ++own[digit(from[i])];
    });
    int64_t next = 0;
    for (int b = 0; b < kBuckets; ++b) {
      for (int64_t c = 0; c < chunks; ++c) {
        const int64_t own = places[c * kBuckets + b];
        places[c * kBuckets + b] = next;
        next += own;
      }
    }
    parallel_for(0, n, kSharedGrain, [&](int64_t begin, int64_t end) {
      int64_t* own = places.data() + begin / size * kBuckets;
      serial_for(begin, end, 8, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) to[own[digit(from[i])]++] = from[i];
      });
    });
    std::swap(from, to);
  }
  if (from != entries) parallel_copy(entries, from, n * static_cast<int64_t>(sizeof(Entry)));
}

template <class Entry> void sort_any(Entry* entries, Entry* scratch, int64_t n, int bits) {
  if (n >= kSharedFrom) return shared_radix_sort(entries, scratch, n, bits);
  if (n < kLeastRadix) return std::sort(entries, entries + n);
  int shifts[64 / kDigitBits];
  const int digits = varying_digits(entries, n, bits, shifts);
  // A digit costs two walks and its buckets; a comparison about three steps of a walk.
  int levels = 0;
  while ((n >> levels) > 1) ++levels;
  if (digits * (2 * n + kBuckets) <= 3 * n * levels)
    radix_sort(entries, scratch, n, shifts, digits);
  else
    std::sort(entries, entries + n);
}

} // namespace

void sort_entries(NarrowEntry* entries, NarrowEntry* scratch, int64_t n, int bits) {
  sort_any(entries, scratch, n, bits);
}

void sort_entries(WideEntry* entries, WideEntry* scratch, int64_t n, int bits) {
  sort_any(entries, scratch, n, bits);
}

Rows::Rows(const Tensor& t, int64_t dim) : sizes_(t.sizes()) {
  if (t.dim() == 0) return;
  length_ = sizes_[dim];
  sizes_[dim] = 1;
  for (int64_t s : sizes_) count_ *= s;
}

int64_t Rows::offset(IntArrayRef strides, int64_t row) const {
  int64_t offset = 0;
  for (size_t d = sizes_.size(); d-- > 0;) {
    offset += row % sizes_[d] * strides[d];
    row /= sizes_[d];
  }
  return offset;
}

DimVector like_strides(const Tensor& t) {
  if (t.is_non_overlapping_and_dense()) return DimVector(t.strides());
  const Tensor* one = &t;
  return pointwise_output_strides(t.sizes(), ArrayRef<const Tensor*>(&one, 1));
}

} // namespace at::native
