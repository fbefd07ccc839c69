// Products with 4-bit weights on the tensor cores, for the few rows of a model that writes one
// token at a time: the time is that of reading the weights, a quarter of 16-bit ones. The weights
// are the left operand, 16 of their rows at a time, and up to eight rows of x the right one.
//
// The order of the levels: eight rows and 32 kWords values of each form a tile, in which lane
// 4g + t owns kWords consecutive words; word j holds values 32j + 8t to 32j + 8t + 7 of row g, as
// the instruction wants them: one shift and one mask give two neighbours, in the two halves of a
// word. Tiles of a row of tiles lie one after the other. So a lane reads its words by one access,
// and the same lane's part of x is 16 consecutive bytes.
//
// Sums are taken of the plain levels, and of x alone by a second product with ones, and each group
// is scaled once: scale * sum((level - 8) x) + zero * sum(x). Levels less 8 are exact in bfloat16.
#include <ATen/cuda/device/Mma.cuh>
#include <ATen/native/quantized/Int4Product.args.h>

namespace at::device {

constexpr int kInt4Rows = 16;  // rows of weights of a block
constexpr int kInt4Warps = 16; // the most of a block
constexpr unsigned kBFloat16Ones = 0x3f803f80u;

// Levels 2s and 2s + 1 of a word, less 8, as two bfloat16. 128 + level is written by its bits.
CRESSET_DEVICE_FN unsigned level_pair(unsigned word, int s) {
  const unsigned levels = (word >> (4 * s)) & 0x000f000fu;
#if defined(CRESSET_EMULATOR)
  return pack_pair<BFloat16>(static_cast<float>(levels & 15) - 8.0f,
                             static_cast<float>(levels >> 16) - 8.0f);
#else
  constexpr unsigned kMinus136 = 0xc308c308u;
  unsigned pair;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(pair)
      : "r"(levels | 0x43004300u), "r"(kBFloat16Ones), "r"(kMinus136));
  return pair;
#endif
}

CRESSET_DEVICE_FN float low_half(unsigned pair) { return __uint_as_float(pair << 16); }
CRESSET_DEVICE_FN float high_half(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

// One tile of 16 rows: the words of both halves, x, and scale and zero of each word's group.
template <int kWords> struct Int4Tile {
  Pack<unsigned, kWords> words[2];
  uint4 x[kWords];
  unsigned pairs[kWords][2];
};

template <int kWords> struct Int4Walk {
  const unsigned* words[2];
  const uint4* x; // null: this lane's column of the result is outside
  const unsigned* pairs[2];
  int n, words_per_group;

  CRESSET_DEVICE_FN void load(Int4Tile<kWords>& tile, int index) const {
    CRESSET_UNROLL
    for (int half = 0; half < 2; ++half)
      tile.words[half] = load_pack<kWords>(words[half] + static_cast<long>(index) * 32 * kWords);
    CRESSET_UNROLL
    for (int j = 0; j < kWords; ++j) {
      const int word = index * kWords + j; // 32 values are 4 packs of x
      tile.x[j] = x != nullptr ? x[word * 4] : uint4{0, 0, 0, 0};
      const long row = static_cast<long>(word / words_per_group) * n;
      CRESSET_UNROLL
      for (int half = 0; half < 2; ++half) tile.pairs[j][half] = pairs[half][row];
    }
  }

  CRESSET_DEVICE_FN void add(float (&sum)[4], const Int4Tile<kWords>& tile) const {
    const unsigned ones[4] = {kBFloat16Ones, kBFloat16Ones, kBFloat16Ones, kBFloat16Ones};
    const int run = words_per_group < kWords ? words_per_group : kWords; // a power of two
    float part[4] = {0, 0, 0, 0}, plain[4] = {0, 0, 0, 0};
    CRESSET_UNROLL
    for (int j = 0; j < kWords; ++j) {
      const uint4 x = tile.x[j];
      const unsigned top = tile.words[0].v[j], bottom = tile.words[1].v[j];
      const unsigned first[4] = {level_pair(top, 0), level_pair(bottom, 0), level_pair(top, 1),
                                 level_pair(bottom, 1)};
      const unsigned second[4] = {level_pair(top, 2), level_pair(bottom, 2), level_pair(top, 3),
                                  level_pair(bottom, 3)};
      mma<BFloat16>(part, first, x.x, x.y);
      mma<BFloat16>(part, second, x.z, x.w);
      mma<BFloat16>(plain, ones, x.x, x.y);
      mma<BFloat16>(plain, ones, x.z, x.w);
      if (((j + 1) & (run - 1)) != 0) continue;
      CRESSET_UNROLL
      for (int e = 0; e < 4; ++e) {
        const unsigned pair = tile.pairs[j][e / 2];
        sum[e] += low_half(pair) * part[e] + high_half(pair) * plain[e];
        part[e] = plain[e] = 0;
      }
    }
  }
};

// Block (i, r): rows 16i to 16i + 15 of the weights and 8r to 8r + 7 of x; its warps take every
// n-th tile, and their sums are added in order.
template <int kWords> CRESSET_DEVICE_FN void int4_product(const Int4ProductArgs& a) {
  constexpr int kAhead = 8 / kWords; // tiles in flight
  CRESSET_SHARED float sums[kInt4Warps][128];
  const int lane = lane_id(), warps = static_cast<int>(blockDim.x >> 5);
  const int tiles = a.k / (32 * kWords);
  const int row = static_cast<int>(blockIdx.x) * kInt4Rows;
  // Where there are no rows 8 to 15 the first eight are read twice and nothing is written.
  const int below = row + 8 < a.n ? 8 : 0;
  const int from = static_cast<int>(blockIdx.y) * 8 + lane / 4;
  Int4Walk<kWords> walk;
  const long band = static_cast<long>(tiles) * 32 * kWords; // words of eight rows
  walk.words[0] = static_cast<const unsigned*>(a.words) + row / 8 * band + lane * kWords;
  walk.words[1] = walk.words[0] + (below ? band : 0);
  walk.x = nullptr;
  if (from < a.m)
    walk.x = static_cast<const uint4*>(a.x) + static_cast<long>(from) * (a.k / 8) + lane % 4;
  walk.pairs[0] = static_cast<const unsigned*>(a.pairs) + row + lane / 4;
  walk.pairs[1] = walk.pairs[0] + below;
  walk.n = a.n;
  walk.words_per_group = a.group / 32;
  float sum[4] = {0, 0, 0, 0};
  for (int first = warp_id(); first < tiles; first += warps * kAhead) {
    Int4Tile<kWords> ahead[kAhead];
    CRESSET_UNROLL
    for (int u = 0; u < kAhead; ++u)
      if (first + u * warps < tiles) walk.load(ahead[u], first + u * warps);
    CRESSET_UNROLL
    for (int u = 0; u < kAhead; ++u)
      if (first + u * warps < tiles) walk.add(sum, ahead[u]);
  }
  CRESSET_UNROLL
  for (int e = 0; e < 4; ++e) sums[warp_id()][lane * 4 + e] = sum[e];
  __syncthreads();
  for (int i = threadIdx.x; i < 128; i += static_cast<int>(blockDim.x)) {
    const int owner = i / 4, e = i % 4;
    const int r = row + owner / 4 + e / 2 * 8;
    const int column = static_cast<int>(blockIdx.y) * 8 + owner % 4 * 2 + e % 2;
    if (r >= a.n || column >= a.m) continue;
    float total = 0;
    for (int w = 0; w < warps; ++w) total += sums[w][i];
    static_cast<BFloat16*>(a.y)[static_cast<long>(column) * a.n + r] = convert<BFloat16>(total);
  }
}

// The row and the first of the eight values of a word.
struct Int4Place {
  long row, value;
};
template <int kWords> CRESSET_DEVICE_FN Int4Place int4_place(long word, long k) {
  const long j = word % kWords, lane = word / kWords % 32, tile = word / (32 * kWords);
  const long tiles = k / (32 * kWords);
  return {tile / tiles * 8 + lane / 4, tile % tiles * 32 * kWords + j * 32 + lane % 4 * 8};
}

template <int kWords> CRESSET_DEVICE_FN void int4_pack(const Int4PackArgs& a) {
  const long word = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (word >= a.count) return;
  const Int4Place place = int4_place<kWords>(word, a.k);
  const unsigned char* bytes = a.bytes + (place.row * a.k + place.value) / 2;
  unsigned packed = 0;
  CRESSET_UNROLL
  for (int i = 0; i < 4; ++i) {
    const unsigned byte = bytes[i];
    packed |= (byte >> 4) << (4 * i) | (byte & 15) << (16 + 4 * i);
  }
  a.words[word] = packed;
}

// All weights in bfloat16, for products that are better done by a library. `y` is [n][k].
template <int kWords> CRESSET_DEVICE_FN void int4_unpack(const Int4ProductArgs& a) {
  const long word = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (word >= static_cast<long>(a.n) * a.k / 8) return;
  const Int4Place place = int4_place<kWords>(word, a.k);
  const unsigned levels = static_cast<const unsigned*>(a.words)[word];
  const unsigned pair =
      static_cast<const unsigned*>(a.pairs)[place.value / a.group * a.n + place.row];
  Pack<BFloat16, 8> out;
  CRESSET_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int level = static_cast<int>(levels >> (4 * (i / 2 + i % 2 * 4)) & 15) - 8;
    out.v[i] = convert<BFloat16>(static_cast<float>(level) * low_half(pair) + high_half(pair));
  }
  store_pack<8>(static_cast<BFloat16*>(a.y) + place.row * a.k + place.value, out);
}

} // namespace at::device

#define CRESSET_INT4(words)                                                                        \
  CRESSET_KERNEL(512) int4_product_##words(const at::device::Int4ProductArgs a) {                  \
    at::device::int4_product<words>(a);                                                            \
  }                                                                                                \
  CRESSET_KERNEL(256) int4_pack_##words(const at::device::Int4PackArgs a) {                        \
    at::device::int4_pack<words>(a);                                                               \
  }                                                                                                \
  CRESSET_KERNEL(256) int4_unpack_##words(const at::device::Int4ProductArgs a) {                   \
    at::device::int4_unpack<words>(a);                                                             \
  }
CRESSET_INT4(1)
CRESSET_INT4(2)
CRESSET_INT4(4)
