// See DirectPlan.h. The limits below say where the loops over columns (ConvKernels.cpp) win: output
// channels that leave registers empty, rows of a few positions, planes so small that packing the
// weight is the larger part.
#include <ATen/native/conv/DirectPlan.h>

#include <ATen/iter/CpuIsa.h>

#include <algorithm>

namespace at::native::direct {
namespace {

constexpr int64_t kMaxVolume = 512;          // taps
constexpr int64_t kMaxPhases = 4;            // per axis
constexpr int64_t kMinRow = 4;               // positions of one phase in a row
constexpr int64_t kMinPositions = 32;        // of an image
constexpr int64_t kTilePositions = 256;      // of a task
constexpr int64_t kTilePasses = 4;           // over one copy of the source's window
constexpr int64_t kFewPositions = 48;        // of a task cut for the sake of the threads
constexpr int64_t kWantedTasks = 16;         // a few for each of many threads
constexpr int64_t kBlockSteps = 768;         // multiply-adds between two visits of the sums
constexpr int64_t kMaxWeightChannels = 64;   // of a task of the weight's gradient
constexpr int64_t kMinWeightChannels = 8;    // the same, cut for the sake of the threads
constexpr int64_t kMinWeightPositions = 128; // of an image, for the weight's gradient
constexpr int64_t kWantedWeightTasks = 8;
constexpr int64_t kPartialElements = 1 << 20; // of the gradients of all runs
constexpr int64_t kMaxWindow = 1 << 18;       // elements of one channel's padded tile
constexpr int64_t kWindowElements = 1 << 16;  // of all channels of a block, as far as possible

int64_t blocks_of(int64_t total, int64_t block) { return (total + block - 1) / block; }
// The size of equal parts of `total` that are at most `most` long (the last may be shorter).
int64_t even_part(int64_t total, int64_t most) { return blocks_of(total, blocks_of(total, most)); }

Axis forward_axis(const ConvGeometry& g, int d) {
  Axis axis{g.out[d], g.in[d], 1, g.stride[d], {}};
  Axis::Phase phase;
  for (int64_t k = 0; k < g.kernel[d]; ++k) {
    phase.index.push_back(k);
    phase.place.push_back(k * g.dilation[d] - g.padding[d]);
  }
  axis.phases.push_back(std::move(phase));
  return axis;
}

// Position x of the input met output y at kernel index k where y * stride = x + padding - k *
// dilation.
Axis gradient_axis(const ConvGeometry& g, int d) {
  Axis axis{g.in[d], g.out[d], g.stride[d], 1, {}};
  for (int64_t r = 0; r < g.stride[d]; ++r) {
    Axis::Phase phase;
    for (int64_t k = 0; k < g.kernel[d]; ++k) {
      const int64_t distance = r + g.padding[d] - k * g.dilation[d];
      if (distance % g.stride[d] != 0) continue;
      phase.index.push_back(k);
      phase.place.push_back(distance / g.stride[d]);
    }
    axis.phases.push_back(std::move(phase));
  }
  return axis;
}

// Whole phases.
void cut(Plan& p, int d, int64_t most) {
  const int64_t step = p.axis[d].step;
  p.tile[d] = blocks_of(even_part(p.axis[d].count, std::max(most, step)), step) * step;
}

// Tiles of about `positions`; returns how many images one holds.
int64_t cut_positions(Plan& p, int64_t positions) {
  for (int d = 2; d >= 0; --d) {
    cut(p, d, positions);
    positions = std::max<int64_t>(1, positions / p.tile[d]);
  }
  return positions;
}

// Smaller tiles where there are too few for the threads.
void cut_tiles(Plan& p) {
  p.tile_images = even_part(p.images, cut_positions(p, kTilePositions));
  p.tile_passes = even_part(p.passes(), kTilePasses);
  while (p.tasks() < kWantedTasks) {
    const int64_t positions = p.tile_images * p.tile[0] * p.tile[1] * p.tile[2];
    if (positions < 2 * kFewPositions) {
      if (p.tile_passes == 1) break;
      p.tile_passes = even_part(p.passes(), (p.tile_passes + 1) / 2);
      continue;
    }
    if (p.tile_images > 1) {
      p.tile_images = even_part(p.images, (p.tile_images + 1) / 2);
      continue;
    }
    int d = 0;
    while (d < 2 && p.tile[d] <= p.axis[d].step) ++d;
    const int64_t before = p.tile[d];
    cut(p, d, (before + 1) / 2);
    if (p.tile[d] >= before) break;
  }
}

bool worth_it(const Plan& p) {
  const int64_t lanes = p.kernels->lanes;
  if (p.sources < 1 || p.volume > kMaxVolume) return false;
  if (p.outputs * 10 < blocks_of(p.outputs, lanes) * lanes * 7) return false;
  int64_t positions = 1;
  for (const Axis& axis : p.axis) {
    if (axis.count < 1 || axis.source_count < 1) return false;
    positions *= axis.count;
  }
  return p.axis[2].count >= kMinRow * p.axis[2].step && positions >= kMinPositions;
}

// Elements of one channel's window of a tile; none if too many.
std::optional<int64_t> window_elements(const Plan& p) {
  int64_t window = 1;
  for (int d = 0; d < 3; ++d) {
    const int64_t size = p.axis[d].reach({0, std::min(p.tile[d], p.axis[d].count)}).size();
    if (size > kMaxWindow / window) return std::nullopt;
    window *= size;
  }
  return window;
}

// All but the tiles.
std::optional<Plan> described(const ConvGeometry& g, c10::ScalarType type, bool gradient) {
  Plan p{};
  p.kernels = CRESSET_BY_ISA(, kernels)(type);
  p.volume = g.kernel_volume();
  if (p.kernels == nullptr || p.volume > kMaxVolume) return std::nullopt;
  p.images = g.n, p.groups = g.groups;
  p.sources = gradient ? g.o_per_group() : g.c_per_group();
  p.outputs = gradient ? g.c_per_group() : g.o_per_group();
  for (int d = 0; d < 3; ++d) {
    // A stride beyond the kernel leaves holes of zeros, which are cheaper to write at once.
    if (gradient && g.stride[d] > std::min(kMaxPhases, g.kernel[d])) return std::nullopt;
    p.axis[d] = gradient ? gradient_axis(g, d) : forward_axis(g, d);
  }
  if (!worth_it(p)) return std::nullopt;
  p.width = std::min<int64_t>(kVectors, blocks_of(p.outputs, p.kernels->lanes)) * p.kernels->lanes;
  return p;
}

std::optional<Plan> made(const ConvGeometry& g, c10::ScalarType type, bool gradient) {
  std::optional<Plan> p = described(g, type, gradient);
  if (!p) return p;
  cut_tiles(*p);
  const std::optional<int64_t> window = window_elements(*p);
  if (!window) return std::nullopt;
  const int64_t channels =
      std::min(kBlockSteps / p->volume, std::max<int64_t>(1, kWindowElements / *window));
  p->channel_block = even_part(p->sources, std::max<int64_t>(1, channels));
  return p;
}

} // namespace

Range Axis::within(int64_t phase, Range positions) const {
  const auto number = [&](int64_t x) { return x <= phase ? 0 : blocks_of(x - phase, step); };
  return {number(positions.begin), number(positions.end)};
}

Range Axis::reach(Range positions) const {
  bool any = false;
  Range all{0, 1};
  for (size_t r = 0; r < phases.size(); ++r) {
    const Range mine = within(static_cast<int64_t>(r), positions);
    if (mine.size() <= 0) continue;
    for (const int64_t place : phases[r].place) {
      const int64_t begin = mine.begin * source_step + place,
                    end = (mine.end - 1) * source_step + place + 1;
      all = any ? Range{std::min(all.begin, begin), std::max(all.end, end)} : Range{begin, end};
      any = true;
    }
  }
  return all;
}

int64_t Plan::passes() const { return blocks_of(outputs, width); }

int64_t Plan::tasks() const {
  int64_t count = groups * blocks_of(passes(), tile_passes) * blocks_of(images, tile_images);
  for (int d = 0; d < 3; ++d) count *= blocks_of(axis[d].count, tile[d]);
  return count;
}

std::optional<Plan> forward_plan(const ConvGeometry& g, c10::ScalarType type) {
  return made(g, type, false);
}
std::optional<Plan> input_gradient_plan(const ConvGeometry& g, c10::ScalarType type) {
  return made(g, type, true);
}

std::optional<WeightPlan> weight_gradient_plan(const ConvGeometry& g, c10::ScalarType type) {
  std::optional<Plan> made = described(g, type, false);
  if (!made || made->axis[2].source_step > 2 || g.out_plane() < kMinWeightPositions)
    return std::nullopt;
  WeightPlan w{*std::move(made), CRESSET_BY_ISA(, lines)(type), 1};
  Plan& p = w.plan;
  cut_positions(p, 2 * kTilePositions);
  const std::optional<int64_t> window = window_elements(p);
  if (!window) return std::nullopt;
  p.channel_block =
      even_part(p.sources, std::clamp<int64_t>(kWindowElements / *window, 1, kMaxWeightChannels));
  const auto tasks = [&] { return p.groups * p.passes() * w.blocks(); };
  while (tasks() * p.images < kWantedWeightTasks && p.channel_block > kMinWeightChannels)
    p.channel_block = even_part(p.sources, (p.channel_block + 1) / 2);
  const int64_t elements = p.groups * p.outputs * p.sources * p.volume;
  if (tasks() < kWantedWeightTasks)
    w.runs = std::max<int64_t>(
        1, std::min({p.images, kWantedWeightTasks / tasks(), kPartialElements / elements}));
  return w;
}

} // namespace at::native::direct
