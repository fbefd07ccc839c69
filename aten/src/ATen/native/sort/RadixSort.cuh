// Sorting of 64-bit keys with 32-bit values in rows of equal length; stable. Rows of up to 2048 are
// sorted by one block in shared memory, by (key, position). Longer rows are sorted digit by digit
// from the lowest: tiles count their digits, one block per row turns the counts into positions, and
// tiles move their elements, ranked within the tile by comparing lanes. No step depends on the
// order in which blocks run.
#include <ATen/cuda/device/Block.cuh>

namespace at::device {

constexpr int kTileThreads = 256, kTileRounds = 8, kTile = kTileThreads * kTileRounds;
constexpr int kTileWarps = kTileThreads / 32;

// ---- one block per row
// kSize is a power of two not below n; values are positions unless given.
template <int kSize>
CRESSET_DEVICE_FN void block_sort(unsigned long* keys, unsigned* values, int n, int given) {
  CRESSET_SHARED unsigned long key[kSize];
  CRESSET_SHARED unsigned place[kSize];
  CRESSET_SHARED unsigned value[kSize];
  unsigned long* row = keys + static_cast<long>(blockIdx.x) * n;
  unsigned* out = values + static_cast<long>(blockIdx.x) * n;
  for (int i = threadIdx.x; i < kSize; i += blockDim.x) {
    key[i] = i < n ? row[i] : ~0ul;
    place[i] = i;
    value[i] = given && i < n ? out[i] : i;
  }
  __syncthreads();
  for (int size = 2; size <= kSize; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      for (int t = threadIdx.x; t < kSize / 2; t += blockDim.x) {
        const int a = 2 * t - (t & (step - 1)), b = a + step;
        const bool up = (a & size) == 0;
        const bool swap = key[a] > key[b] || (key[a] == key[b] && place[a] > place[b]);
        if (swap == up) {
          const unsigned long k = key[a];
          key[a] = key[b];
          key[b] = k;
          const unsigned p = place[a];
          place[a] = place[b];
          place[b] = p;
        }
      }
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    row[i] = key[i];
    out[i] = value[place[i]];
  }
}

// ---- digits
CRESSET_DEVICE_FN int digit_of(unsigned long key, int shift) {
  return static_cast<int>(key >> shift) & 255;
}

// counts[row][digit][tile]
CRESSET_DEVICE_FN void radix_count(const unsigned long* keys, unsigned* counts, long n, int shift) {
  CRESSET_SHARED unsigned found[256];
  found[threadIdx.x] = 0;
  __syncthreads();
  const unsigned long* row = keys + blockIdx.y * n;
  CRESSET_UNROLL
  for (int r = 0; r < kTileRounds; ++r) {
    const long i = static_cast<long>(blockIdx.x) * kTile + r * kTileThreads + threadIdx.x;
    if (i < n) atomicAdd(&found[digit_of(row[i], shift)], 1u);
  }
  __syncthreads();
  counts[(static_cast<long>(blockIdx.y) * 256 + threadIdx.x) * gridDim.x + blockIdx.x] =
      found[threadIdx.x];
}

// Every element of a row of counts becomes the sum of those before it.
CRESSET_DEVICE_FN void radix_scan(unsigned* counts, long n) {
  CRESSET_SHARED unsigned totals[32];
  CRESSET_SHARED unsigned carried;
  unsigned* row = counts + blockIdx.x * n;
  if (threadIdx.x == 0) carried = 0;
  __syncthreads();
  for (long start = 0; start < n; start += blockDim.x) {
    const long i = start + threadIdx.x;
    const unsigned own = i < n ? row[i] : 0;
    unsigned sum = own;
    CRESSET_UNROLL
    for (int step = 1; step < 32; step *= 2) {
      const unsigned before = __shfl_up_sync(kAllLanes, sum, step);
      if (lane_id() >= step) sum += before;
    }
    if (lane_id() == 31) totals[warp_id()] = sum;
    __syncthreads();
    unsigned before = carried;
    for (int w = 0; w < warp_id(); ++w) before += totals[w];
    if (i < n) row[i] = before + sum - own;
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) carried = before + sum;
    __syncthreads();
  }
}

CRESSET_DEVICE_FN void radix_move(const unsigned long* keys, const unsigned* values,
                                  unsigned long* keys_out, unsigned* values_out,
                                  const unsigned* counts, long n, int shift, int given) {
  CRESSET_SHARED unsigned places[kTileWarps][256];
  CRESSET_UNROLL
  for (int w = 0; w < kTileWarps; ++w) places[w][threadIdx.x] = 0;
  __syncthreads();
  const long row = blockIdx.y * n;
  const long first = static_cast<long>(blockIdx.x) * kTile + warp_id() * (kTile / kTileWarps);
  unsigned long key[kTileRounds];
  unsigned rank[kTileRounds];
  CRESSET_UNROLL
  for (int r = 0; r < kTileRounds; ++r) {
    const long i = first + r * 32 + lane_id();
    key[r] = i < n ? keys[row + i] : 0;
    const int digit = i < n ? digit_of(key[r], shift) : 256;
    const unsigned same = __match_any_sync(kAllLanes, digit);
    const unsigned before = same & ((1u << lane_id()) - 1);
    const unsigned base = i < n ? places[warp_id()][digit] : 0;
    __syncwarp();
    if (i < n && before == 0) places[warp_id()][digit] = base + __popc(same);
    __syncwarp();
    rank[r] = base + __popc(before);
  }
  __syncthreads();
  unsigned place =
      counts[(static_cast<long>(blockIdx.y) * 256 + threadIdx.x) * gridDim.x + blockIdx.x];
  CRESSET_UNROLL
  for (int w = 0; w < kTileWarps; ++w) {
    const unsigned count = places[w][threadIdx.x];
    places[w][threadIdx.x] = place;
    place += count;
  }
  __syncthreads();
  CRESSET_UNROLL
  for (int r = 0; r < kTileRounds; ++r) {
    const long i = first + r * 32 + lane_id();
    if (i >= n) continue;
    const long to = row + places[warp_id()][digit_of(key[r], shift)] + rank[r];
    keys_out[to] = key[r];
    values_out[to] = given ? values[row + i] : static_cast<unsigned>(i);
  }
}

// ---- keys whose unsigned order is the order of the values: NaN last, -0 equal to 0
template <class T> CRESSET_DEVICE_FN unsigned long key_of(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x;
  } else if constexpr (c10::is_reduced_floating_v<T>) {
    return key_of(convert<float>(x));
  } else if constexpr (std::is_same_v<T, float>) {
    if (x != x) return 0xffffffffu;
    const unsigned bits = __builtin_bit_cast(unsigned, x == 0 ? 0.0f : x);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
  } else if constexpr (std::is_same_v<T, double>) {
    if (x != x) return ~0ul;
    const unsigned long bits = __builtin_bit_cast(unsigned long, x == 0 ? 0.0 : x);
    return bits >> 63 ? ~bits : bits | (1ul << 63);
  } else if constexpr (std::is_signed_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<unsigned long>(static_cast<U>(x)) ^ (1ul << (8 * sizeof(T) - 1));
  } else {
    return x;
  }
}
// The bits in which keys differ; host code knows them too.
template <class T> inline constexpr int kKeyBits = c10::is_reduced_floating_v<T>
                                                       ? 32
                                                       : 8 * static_cast<int>(sizeof(T));

// `flip` turns the order around.
template <class T>
CRESSET_DEVICE_FN void sort_keys(const T* in, unsigned long* keys, long n, int flip) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long key = key_of(load<T>(in + i));
  keys[i] = flip ? key ^ (~0ul >> (64 - kKeyBits<T>)) : key;
}

// The first k values of each sorted row, and where they came from.
template <class T> CRESSET_DEVICE_FN void sort_results(const T* in, const unsigned* order,
                                                       T* values, long* indices, long rows, long n,
                                                       long k) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * k) return;
  const long row = i / k, from = order[row * n + i % k];
  if (values) values[i] = in[row * n + from];
  indices[i] = from;
}

} // namespace at::device

CRESSET_KERNEL(256) radix_sort_256(unsigned long* keys, unsigned* values, int n, int given) {
  at::device::block_sort<256>(keys, values, n, given);
}
CRESSET_KERNEL(512) radix_sort_2048(unsigned long* keys, unsigned* values, int n, int given) {
  at::device::block_sort<2048>(keys, values, n, given);
}
CRESSET_KERNEL(256) radix_count(const unsigned long* keys, unsigned* counts, long n, int shift) {
  at::device::radix_count(keys, counts, n, shift);
}
CRESSET_KERNEL(1024) radix_scan(unsigned* counts, long n) { at::device::radix_scan(counts, n); }
CRESSET_KERNEL(256)
radix_move(const unsigned long* keys, const unsigned* values, unsigned long* keys_out,
           unsigned* values_out, const unsigned* counts, long n, int shift, int given) {
  at::device::radix_move(keys, values, keys_out, values_out, counts, n, shift, given);
}

#define CRESSET_SORT(T)                                                                            \
  CRESSET_KERNEL(256)                                                                              \
  sort_keys_##T(const cresset_##T* in, unsigned long* keys, long n, int flip) {                    \
    at::device::sort_keys(in, keys, n, flip);                                                      \
  }                                                                                                \
  CRESSET_KERNEL(256)                                                                              \
  sort_results_##T(const cresset_##T* in, const unsigned* order, cresset_##T* values,              \
                   long* indices, long rows, long n, long k) {                                     \
    at::device::sort_results(in, order, values, indices, rows, n, k);                              \
  }
CRESSET_SORT(f32)
CRESSET_SORT(f64)
CRESSET_SORT(f16)
CRESSET_SORT(bf16)
CRESSET_SORT(u8)
CRESSET_SORT(i8)
CRESSET_SORT(i16)
CRESSET_SORT(i32)
CRESSET_SORT(i64)
CRESSET_SORT(u16)
CRESSET_SORT(u32)
CRESSET_SORT(u64)
CRESSET_SORT(bool)
