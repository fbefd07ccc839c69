// Sorting and selecting within rows that one block takes whole. An element becomes a number whose
// unsigned order is the element's; how is said by the host in a few masks (KeyMasks), so that a
// kernel serves all element types of a width. Rows of up to 8192 elements are sorted in shared
// memory, digit by digit from the lowest, each pass stable: every warp ranks its elements among
// those of the same digit by votes, and the counts of all warps give their places. Few elements of
// a row are selected without sorting it: see select_rows.
#include <ATen/cuda/device/Block.cuh>
#include <ATen/native/sort/RowSort.args.h>

namespace at::device {

struct KeyForm : KeyMasks {
  // f(word) with an unsigned number of the element's size: loops over elements go inside, so that
  // no load is behind a branch.
  template <class F> CRESSET_DEVICE_FN void by_size(const F& f) const {
    if (bytes == 4)
      f(0u);
    else if (bytes == 8)
      f(0ul);
    else if (bytes == 2)
      f(static_cast<unsigned short>(0));
    else
      f(static_cast<unsigned char>(0));
  }
  CRESSET_DEVICE_FN unsigned long raw(const void* row, long i) const {
    if (bytes == 4) return static_cast<const unsigned*>(row)[i];
    if (bytes == 8) return static_cast<const unsigned long*>(row)[i];
    if (bytes == 2) return static_cast<const unsigned short*>(row)[i];
    return static_cast<const unsigned char*>(row)[i];
  }
  CRESSET_DEVICE_FN void put(void* row, long i, unsigned long bits) const {
    if (bytes == 4)
      static_cast<unsigned*>(row)[i] = static_cast<unsigned>(bits);
    else if (bytes == 8)
      static_cast<unsigned long*>(row)[i] = bits;
    else if (bytes == 2)
      static_cast<unsigned short*>(row)[i] = static_cast<unsigned short>(bits);
    else
      static_cast<unsigned char*>(row)[i] = static_cast<unsigned char>(bits);
  }
  // NaN comes last, -0 is 0.
  template <class Key> CRESSET_DEVICE_FN Key key(Key bits) const {
    const Key top = static_cast<Key>(sign), all = static_cast<Key>(mask);
    if (kind == kKeyFloat) {
      const Key size = bits & ~top;
      const Key ordered = bits & top ? ~bits & all : bits | top;
      bits = size > static_cast<Key>(infinity) ? all : size == 0 ? top : ordered;
    } else if (kind == kKeySigned) {
      bits ^= top;
    } else if (kind == kKeyBool) {
      bits = bits != 0;
    }
    return flip ? bits ^ all : bits;
  }
  // The element of a key; false where several elements share it.
  template <class Key> CRESSET_DEVICE_FN bool element(Key key, Key& bits) const {
    const Key top = static_cast<Key>(sign), all = static_cast<Key>(mask);
    bits = flip ? key ^ all : key;
    if (kind == kKeyFloat) {
      if (bits == all || bits == top) return false;
      bits = bits & top ? bits & ~top : ~bits & all;
    } else if (kind == kKeySigned) {
      bits ^= top;
    }
    return true;
  }
};

// ---- sorting
// kThreads * kItems elements; what a row lacks of that is filled with the last key.
template <class Key, int kThreads, int kItems> struct RowSort {
  static constexpr int kSize = kThreads * kItems, kWarps = kThreads / 32, kDigits = 256;

  Key* keys;              // [kSize]
  unsigned short* from;   // [kSize] positions in the row
  unsigned short* places; // [kWarps][kDigits]
  Key key[kItems];        // the warp's elements, every 32nd
  unsigned short position[kItems], rank[kItems];

  CRESSET_DEVICE_FN explicit RowSort(unsigned char* shared)
      : keys(reinterpret_cast<Key*>(shared)), from(reinterpret_cast<unsigned short*>(keys + kSize)),
        places(from + kSize) {}

  CRESSET_DEVICE_FN int slot(int item) const {
    return warp_id() * (kSize / kWarps) + item * 32 + lane_id();
  }

  // The lanes whose element has the same digit.
  CRESSET_DEVICE_FN static unsigned same_digit(int digit) {
    unsigned same = kAllLanes;
    CRESSET_UNROLL
    for (int bit = 0; bit < 8; ++bit) {
      const bool set = digit >> bit & 1;
      const unsigned votes = __ballot_sync(kAllLanes, set);
      same &= set ? votes : ~votes;
    }
    return same;
  }

  // Ranks the elements among the warp's of the same digit, and leaves the counts in `places`.
  CRESSET_DEVICE_FN void rank_items(int shift) {
    unsigned short* const mine = places + warp_id() * kDigits;
    CRESSET_UNROLL
    for (int d = lane_id(); d < kDigits; d += 32) mine[d] = 0;
    __syncwarp();
    CRESSET_UNROLL
    for (int k = 0; k < kItems; ++k) {
      const int digit = static_cast<int>(key[k] >> shift) & 255;
      const unsigned same = same_digit(digit);
      const unsigned before = same & ((1u << lane_id()) - 1);
      const unsigned short base = mine[digit];
      __syncwarp();
      if (before == 0) mine[digit] = static_cast<unsigned short>(base + __popc(same));
      __syncwarp();
      rank[k] = static_cast<unsigned short>(base + __popc(before));
    }
  }

  // Counts of digits become places: of all smaller digits, and of the warps before.
  CRESSET_DEVICE_FN void scan_places() {
    CRESSET_SHARED unsigned totals[kWarps];
    constexpr int kShare = kDigits > kThreads ? kDigits / kThreads : 1;
    const int first = threadIdx.x * kShare;
    const bool takes_part = first < kDigits;
    unsigned count[kShare];
    unsigned own = 0;
    CRESSET_UNROLL
    for (int s = 0; s < kShare; ++s) {
      count[s] = 0;
      if (takes_part)
        for (int w = 0; w < kWarps; ++w) count[s] += places[w * kDigits + first + s];
      own += count[s];
    }
    unsigned sum = own;
    CRESSET_UNROLL
    for (int step = 1; step < 32; step *= 2) {
      const unsigned below = __shfl_up_sync(kAllLanes, sum, step);
      if (lane_id() >= step) sum += below;
    }
    if (lane_id() == 31) totals[warp_id()] = sum;
    __syncthreads();
    unsigned place = sum - own;
    for (int w = 0; w < warp_id(); ++w) place += totals[w];
    CRESSET_UNROLL
    for (int s = 0; s < kShare; ++s) {
      if (!takes_part) continue;
      for (int w = 0; w < kWarps; ++w) {
        unsigned short& here = places[w * kDigits + first + s];
        const unsigned found = here;
        here = static_cast<unsigned short>(place);
        place += found;
      }
    }
  }

  CRESSET_DEVICE_FN void pass(int shift) {
    rank_items(shift);
    __syncthreads();
    scan_places();
    __syncthreads();
    CRESSET_UNROLL
    for (int k = 0; k < kItems; ++k) {
      const int digit = static_cast<int>(key[k] >> shift) & 255;
      const int to = places[warp_id() * kDigits + digit] + rank[k];
      keys[to] = key[k];
      from[to] = position[k];
    }
    __syncthreads();
  }

  CRESSET_DEVICE_FN void run(const void* in, void* values, long* indices, int n, long kept,
                             const KeyForm& form) {
    const char* row = static_cast<const char*>(in) + static_cast<long>(blockIdx.x) * n * form.bytes;
    form.by_size([&](auto word) {
      const auto* elements = reinterpret_cast<const decltype(word)*>(row);
      CRESSET_UNROLL
      for (int k = 0; k < kItems; ++k) key[k] = slot(k) < n ? Key(elements[slot(k)]) : Key(0);
    });
    CRESSET_UNROLL
    for (int k = 0; k < kItems; ++k) {
      const int i = slot(k);
      key[k] = i < n ? form.key(key[k]) : ~Key(0);
      position[k] = static_cast<unsigned short>(i);
    }
    for (int shift = 0; shift < 8 * form.bytes; shift += 8) {
      if (shift > 0) {
        CRESSET_UNROLL
        for (int k = 0; k < kItems; ++k) {
          key[k] = keys[slot(k)];
          position[k] = from[slot(k)];
        }
      }
      pass(shift);
    }
    const long start = blockIdx.x * kept;
    for (int i = threadIdx.x; i < kept; i += kThreads) {
      Key bits;
      if (!form.element(keys[i], bits)) bits = static_cast<Key>(form.raw(row, from[i]));
      form.put(values, start + i, bits);
      indices[start + i] = from[i];
    }
  }
};

// ---- selecting
// The k first of a row in order, for k up to the number of threads. Of the threads' best elements
// the k-th is a bound: k elements are at least as good. What reaches it, which only threads with
// such a best can hold, is collected and ranked by comparing all with all. Where more reaches it
// than there is room for, the elements are found one after the other. Among equals the earlier
// wins, whatever the threads' order: keys carry the position.
constexpr int kSelectRoom = 512;

struct LargerWord {
  CRESSET_DEVICE_FN unsigned long operator()(unsigned long a, unsigned long b) const {
    return a > b ? a : b;
  }
};

struct Selection {
  const void* row;
  const KeyForm& form;
  unsigned* staged; // the row's keys, or null
  int n;

  CRESSET_DEVICE_FN unsigned key(int i) const {
    return staged ? staged[i] : form.key(static_cast<unsigned>(form.raw(row, i)));
  }
  CRESSET_DEVICE_FN static unsigned long word(unsigned key, int i) {
    return static_cast<unsigned long>(key) << 32 | (0xffffffffu - static_cast<unsigned>(i));
  }
  CRESSET_DEVICE_FN static unsigned place(unsigned long word) {
    return 0xffffffffu - static_cast<unsigned>(word);
  }

  // The best of the thread's elements, which are staged on the way.
  CRESSET_DEVICE_FN unsigned long own_best() const {
    unsigned long best = 0;
    form.by_size([&](auto word) {
      if constexpr (sizeof(word) <= 4) best = own_best_of(static_cast<const decltype(word)*>(row));
    });
    return best;
  }
  template <class Word> CRESSET_DEVICE_FN unsigned long own_best_of(const Word* elements) const {
    constexpr int kAhead = 8;
    const int step = static_cast<int>(blockDim.x);
    unsigned best = 0;
    int place_of_best = -1;
    int i = threadIdx.x;
    const auto take = [&](unsigned bits, int where) {
      const unsigned k = form.key(bits);
      if (staged) staged[where] = k;
      if (place_of_best < 0 || k > best) {
        best = k;
        place_of_best = where;
      }
    };
    for (; i + (kAhead - 1) * step < n; i += kAhead * step) {
      unsigned bits[kAhead];
      CRESSET_UNROLL
      for (int u = 0; u < kAhead; ++u) bits[u] = elements[i + u * step];
      CRESSET_UNROLL
      for (int u = 0; u < kAhead; ++u) take(bits[u], i + u * step);
    }
    for (; i < n; i += step) take(elements[i], i);
    return place_of_best < 0 ? 0ul : word(best, place_of_best);
  }

  CRESSET_DEVICE_FN void store(void* values, long* indices, long to, unsigned long winner) const {
    const unsigned source = place(winner);
    form.put(values, to, form.raw(row, source));
    indices[to] = source;
  }

  CRESSET_DEVICE_FN void one_by_one(void* values, long* indices, int k, unsigned long* scratch) {
    unsigned long last = ~0ul;
    for (int j = 0; j < k; ++j) {
      unsigned long best = 0;
      for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const unsigned long w = word(key(i), i);
        if (w < last && w > best) best = w;
      }
      last = block_fold(best, LargerWord(), 0ul, scratch);
      if (threadIdx.x == 0) store(values, indices, static_cast<long>(blockIdx.x) * k + j, last);
    }
  }
};

CRESSET_DEVICE_FN void select_rows(const void* in, void* values, long* indices, int n, int k,
                                   int staging, const KeyForm& form) {
  CRESSET_DYNAMIC_SHARED(unsigned long, best); // of each thread; then the staged keys
  CRESSET_SHARED unsigned long found[kSelectRoom];
  CRESSET_SHARED unsigned long bound;
  CRESSET_SHARED int count;
  const char* row = static_cast<const char*>(in) + static_cast<long>(blockIdx.x) * n * form.bytes;
  unsigned* const staged = reinterpret_cast<unsigned*>(best + blockDim.x);
  Selection s = {row, form, staging ? staged : nullptr, n};
  const unsigned long mine = s.own_best();
  best[threadIdx.x] = mine;
  if (threadIdx.x == 0) {
    bound = 0;
    count = 0;
  }
  __syncthreads();
  const int threads = static_cast<int>(blockDim.x);
  int better = 0;
  CRESSET_NO_UNROLL
  for (int t = 0; t < threads; t += 4) {
    better += best[t] > mine;
    better += best[t + 1] > mine;
    better += best[t + 2] > mine;
    better += best[t + 3] > mine;
  }
  // Zero marks a thread without elements; of those there may be several.
  if (better == k - 1 && mine != 0) bound = mine;
  __syncthreads();
  const unsigned long least = bound;
  if (mine >= least) {
    for (int i = threadIdx.x; i < n; i += threads) {
      const unsigned long w = Selection::word(s.key(i), i);
      if (w < least) continue;
      const int slot = atomicAdd(&count, 1);
      if (slot < kSelectRoom) found[slot] = w;
    }
  }
  __syncthreads();
  const int all = count;
  if (all > kSelectRoom) {
    s.one_by_one(values, indices, k, best);
    return;
  }
  for (int c = threadIdx.x; c < all; c += threads) {
    const unsigned long w = found[c];
    int rank = 0;
    for (int t = 0; t < all; ++t) rank += found[t] > w;
    if (rank < k) s.store(values, indices, static_cast<long>(blockIdx.x) * k + rank, w);
  }
}

} // namespace at::device

// Sorts rows of n elements; the first `kept` of each are written.
#define CRESSET_ROW_SORT(name, Key, threads, items)                                                \
  CRESSET_KERNEL(threads)                                                                          \
  row_sort_##name(const void* in, void* values, long* indices, int n, long kept,                   \
                  const __grid_constant__ at::device::KeyForm form) {                              \
    CRESSET_DYNAMIC_SHARED(unsigned char, shared);                                                 \
    at::device::RowSort<Key, threads, items>(shared).run(in, values, indices, n, kept, form);      \
  }
CRESSET_ROW_SORT(w32_512, unsigned, 128, 4)
CRESSET_ROW_SORT(w32_2048, unsigned, 256, 8)
CRESSET_ROW_SORT(w32_4096, unsigned, 512, 8)
CRESSET_ROW_SORT(w32_8192, unsigned, 512, 16)
CRESSET_ROW_SORT(w64_512, unsigned long, 128, 4)
CRESSET_ROW_SORT(w64_2048, unsigned long, 256, 8)
CRESSET_ROW_SORT(w64_4096, unsigned long, 512, 8)
CRESSET_ROW_SORT(w64_8192, unsigned long, 512, 16)

CRESSET_KERNEL(1024)
row_select(const void* in, void* values, long* indices, int n, int k, int staging,
           const __grid_constant__ at::device::KeyForm form) {
  at::device::select_rows(in, values, indices, n, k, staging, form);
}
