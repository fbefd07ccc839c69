// See Direct.h. A task goes over its source channels block by block: it copies its window of the
// source with the padding around it (or reads it where it lies when there is none) and adds to the
// sums of its positions, pass after pass of output channels; then it writes them out. All of that
// stays in the second-level cache.
#include <ATen/native/conv/Direct.h>

#include <ATen/native/conv/DirectWindow.h>
#include <ATen/native/matmul/gemm/Scratch.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>

namespace at::native::direct {
namespace {

int64_t blocks_of(int64_t total, int64_t block) { return (total + block - 1) / block; }

// What one task computes.
struct Tile {
  Range images, axis[3], passes;
  int64_t group;
  int64_t positions() const { return axis[0].size() * axis[1].size() * axis[2].size(); }
};

Tile tile_of(const Plan& p, int64_t index) {
  // Equal parts, of whole steps.
  const auto next = [&](int64_t total, int64_t part, int64_t step = 1) {
    const int64_t parts = blocks_of(total, part), units = blocks_of(total, step),
                  share = index % parts;
    index /= parts;
    return Range{units * share / parts * step, std::min(total, units * (share + 1) / parts * step)};
  };
  Tile t;
  t.passes = next(p.passes(), p.tile_passes);
  for (int d = 2; d >= 0; --d) t.axis[d] = next(p.axis[d].count, p.tile[d], p.axis[d].step);
  t.group = next(p.groups, 1).begin;
  t.images = next(p.images, p.tile_images);
  return t;
}

// The output channels of a pass, and the columns of its packed weight: whole registers.
struct Pass {
  Range outputs;
  int64_t columns;
  Pass(const Plan& p, int64_t index)
      : outputs{index * p.width, std::min(p.outputs, (index + 1) * p.width)},
        columns(blocks_of(outputs.size(), p.kernels->lanes) * p.kernels->lanes) {}
};

// f(taps, taps before them, phase numbers) for each phase.
template <class F> void for_phases(const Plan& p, const F& f) {
  int64_t before = 0;
  for (size_t z = 0; z < p.axis[0].phases.size(); ++z)
    for (size_t y = 0; y < p.axis[1].phases.size(); ++y)
      for (size_t x = 0; x < p.axis[2].phases.size(); ++x) {
        const int64_t taps = static_cast<int64_t>(p.axis[0].phases[z].index.size() *
                                                  p.axis[1].phases[y].index.size() *
                                                  p.axis[2].phases[x].index.size());
        const size_t phase[3] = {z, y, x};
        f(taps, before, phase);
        before += taps;
      }
}

// The weight in the order of the loops: for each group, pass and block of source channels the
// phases one after the other.
template <class T> class Weights {
 public:
  // Packs all of it where that is worth its memory: for many tiles, or a few if it is of the size
  // that scratch memory is kept for.
  Weights(const Plan& plan, const Operands<T>& operands)
      : p(plan), x(operands), memory(pack_first() ? bytes() : 0),
        all(reinterpret_cast<T*>(memory.get())) {
    if (!packed()) return;
    parallel_for(0, p.groups * p.passes(), std::max<int64_t>(1, (1 << 14) / p.pass_elements()),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     for (int64_t c = 0; c < p.sources; c += p.channel_block)
                       pack(i / p.passes(), Pass(p, i % p.passes()), block(c),
                            piece(i / p.passes(), i % p.passes(), c));
                 });
  }
  bool packed() const { return all != nullptr; }
  Range block(int64_t c) const { return {c, std::min(p.sources, c + p.channel_block)}; }
  // Where the constructor put a block.
  T* piece(int64_t group, int64_t pass, int64_t channel) const {
    return all + (group * p.passes() + pass) * p.pass_elements() +
           channel * p.volume * Pass(p, pass).columns;
  }

  void pack(int64_t group, const Pass& pass, Range channels, T* to) const {
    const int64_t inner = x.gradient ? p.outputs : p.sources; // of the weight's two channels
    const int64_t channel_step = x.gradient ? inner * p.volume : p.volume,
                  column_step = x.gradient ? p.volume : inner * p.volume,
                  group_step = p.outputs * p.sources * p.volume;
    WeightPiece piece{};
    piece.weight = x.weight + group * group_step + channels.begin * channel_step +
                   pass.outputs.begin * column_step;
    piece.channels = channels.size(), piece.channel_step = channel_step;
    piece.columns = pass.outputs.size(), piece.column_step = column_step;
    piece.end = x.weight + p.groups * group_step;
    for_phases(p, [&](int64_t taps, int64_t before, const size_t(&phase)[3]) {
      const DimVector list = tap_indices(phase);
      piece.count = taps, piece.taps = list.data();
      piece.dst = to + channels.size() * before * pass.columns;
      p.kernels->pack(piece);
    });
  }

 private:
  size_t bytes() const {
    return static_cast<size_t>(p.groups * p.passes() * p.pass_elements()) * sizeof(T);
  }
  bool pack_first() const {
    constexpr size_t kKept = size_t{8} << 20;
    const int64_t tiles = p.tasks() / (p.groups * blocks_of(p.passes(), p.tile_passes));
    return tiles >= (bytes() <= kKept ? 2 : 8);
  }
  int64_t kernel_size(int d) const {
    int64_t count = 0;
    for (const Axis::Phase& phase : p.axis[d].phases)
      count += static_cast<int64_t>(phase.index.size());
    return count;
  }
  DimVector tap_indices(const size_t (&phase)[3]) const {
    DimVector list;
    for (const int64_t z : p.axis[0].phases[phase[0]].index)
      for (const int64_t y : p.axis[1].phases[phase[1]].index)
        for (const int64_t w : p.axis[2].phases[phase[2]].index)
          list.push_back((z * kernel_size(1) + y) * kernel_size(2) + w);
    return list;
  }

  const Plan& p;
  const Operands<T>& x;
  const gemm::Scratch memory;
  T* const all;
};

// The positions of a tile that share their taps.
struct TilePhase {
  int64_t taps, taps_before;
  Range number[3];
  int64_t first[3]; // position, within the tile
  DimVector offsets;

  TilePhase(const Plan& p, const Tile& t, const Window& window, int64_t count, int64_t before,
            const size_t (&phase)[3])
      : taps(count), taps_before(before) {
    for (int d = 0; d < 3; ++d) {
      const int64_t r = static_cast<int64_t>(phase[d]);
      number[d] = p.axis[d].within(r, t.axis[d]);
      first[d] = r + number[d].begin * p.axis[d].step - t.axis[d].begin;
    }
    for (const int64_t z : p.axis[0].phases[phase[0]].place)
      for (const int64_t y : p.axis[1].phases[phase[1]].place)
        for (const int64_t w : p.axis[2].phases[phase[2]].place)
          offsets.push_back(z * window.plane + y * window.row + w);
  }
  bool empty() const {
    return number[0].size() <= 0 || number[1].size() <= 0 || number[2].size() <= 0;
  }
};

template <class T> class Worker {
 public:
  Worker(const Plan& plan, const Operands<T>& operands, const Weights<T>& weights_,
         const Tile& tile)
      : p(plan), x(operands), t(tile), weights(weights_), window(plan, tile.axis),
        pass_sums(t.images.size() * t.positions() * p.width),
        memory(static_cast<size_t>(elements()) * sizeof(T)),
        sums(reinterpret_cast<T*>(memory.get())), start(sums + t.passes.size() * pass_sums),
        packed(start + t.passes.size() * p.width), padded(packed + packed_elements()) {
    for_phases(p, [&](int64_t taps, int64_t before, const size_t(&phase)[3]) {
      TilePhase mine(p, t, window, taps, before, phase);
      if (!mine.empty()) phases.push_back(std::move(mine));
    });
    const int64_t channel = t.passes.begin * p.width;
    for (int64_t i = 0; i < t.passes.size() * p.width; ++i)
      start[i] = x.bias != nullptr && channel + i < p.outputs
                     ? x.bias[t.group * p.outputs + channel + i]
                     : T(0);
    window.clear(p.channel_block, padded);
  }

  void run() {
    for (int64_t c = 0; c < p.sources; c += p.channel_block) {
      const Range channels = weights.block(c);
      // With the weights packed beforehand each image is copied once for all passes; else each pass
      // packs its own once for all images.
      if (weights.packed()) {
        for (int64_t n = t.images.begin; n < t.images.end; ++n) {
          const T* base = source_base(n, channels);
          for (int64_t i = t.passes.begin; i < t.passes.end; ++i)
            add(n, Pass(p, i), base, channels, weights.piece(t.group, i, c));
        }
        continue;
      }
      for (int64_t i = t.passes.begin; i < t.passes.end; ++i) {
        const Pass pass(p, i);
        weights.pack(t.group, pass, channels, packed);
        for (int64_t n = t.images.begin; n < t.images.end; ++n) {
          const bool again = i > t.passes.begin && t.images.size() == 1;
          add(n, pass, again ? held_base : source_base(n, channels), channels, packed);
        }
      }
    }
    for (int64_t n = t.images.begin; n < t.images.end; ++n)
      for (int64_t i = t.passes.begin; i < t.passes.end; ++i) write(n, Pass(p, i));
  }

 private:
  int64_t packed_elements() const {
    return weights.packed() ? 0 : p.channel_block * p.volume * p.width;
  }
  int64_t elements() const {
    return t.passes.size() * (pass_sums + p.width) + packed_elements() +
           window.elements(p.channel_block);
  }
  int64_t pass_offset(const Pass& pass) const {
    return pass.outputs.begin - t.passes.begin * p.width;
  }
  T* sums_of(int64_t n, const Pass& pass) const {
    return sums + pass_offset(pass) / p.width * pass_sums +
           (n - t.images.begin) * t.positions() * pass.columns;
  }

  // Of the place of source position (0, 0, 0) of the block's first channel.
  const T* source_base(int64_t n, Range channels) {
    const int64_t volume = p.axis[0].source_count * p.axis[1].source_count * p.axis[2].source_count;
    held_base = x.source + ((n * p.groups + t.group) * p.sources + channels.begin) * volume;
    if (!window.in_place) {
      window.fill(p, held_base, channels.size(), padded);
      held_base = padded + window.origin;
    }
    return held_base;
  }

  void add(int64_t n, const Pass& pass, const T* base, Range channels, const T* weight) {
    const int64_t row = t.axis[2].size(), plane = row * t.axis[1].size();
    const Axis* axis = p.axis;
    for (const TilePhase& phase : phases) {
      const auto& number = phase.number;
      const auto& first = phase.first;
      Sweep s{};
      s.channels = channels.size(), s.channel_step = window.channel;
      s.taps = phase.taps, s.offsets = phase.offsets.data();
      s.rows = number[1].size(), s.row_step = axis[1].source_step * window.row;
      s.cols = number[2].size(), s.col_step = axis[2].source_step;
      s.weight = weight + channels.size() * phase.taps_before * pass.columns;
      s.vectors = static_cast<int>(pass.columns / p.kernels->lanes);
      s.sum_row = axis[1].step * row * pass.columns, s.sum_col = axis[2].step * pass.columns;
      s.start = channels.begin == 0 ? start + pass_offset(pass) : nullptr;
      for (int64_t z = 0; z < number[0].size(); ++z) {
        s.source = base + (number[0].begin + z) * axis[0].source_step * window.plane +
                   number[1].begin * s.row_step + number[2].begin * s.col_step;
        s.sums = sums_of(n, pass) +
                 ((first[0] + z * axis[0].step) * plane + first[1] * row + first[2]) * pass.columns;
        p.kernels->sweep(s);
      }
    }
  }

  // Rows that follow each other in the output are written together.
  void write(int64_t n, const Pass& pass) const {
    const PlaneStrides& o = x.out_strides;
    const int64_t row = p.axis[2].count, plane = row * p.axis[1].count;
    const bool whole = t.axis[2].size() == row;
    const int64_t rows = whole ? 1 : t.axis[1].size(),
                  count = whole ? t.axis[1].size() * row : t.axis[2].size();
    const int64_t channel = t.group * p.outputs + pass.outputs.begin;
    const T* from = sums_of(n, pass);
    for (int64_t z = t.axis[0].begin; z < t.axis[0].end; ++z)
      for (int64_t y = 0; y < rows; ++y, from += count * pass.columns) {
        const int64_t position = z * plane + (t.axis[1].begin + y) * row + t.axis[2].begin;
        T* to = x.out + n * o.sample + channel * o.channel + position * o.position;
        const auto move = o.position == 1 ? p.kernels->transpose : p.kernels->copy;
        move(count, pass.outputs.size(), from, pass.columns, to,
             o.position == 1 ? o.channel : o.position);
      }
  }

  const Plan& p;
  const Operands<T>& x;
  const Tile& t;
  const Weights<T>& weights;
  const Window window;
  const int64_t pass_sums; // elements
  const gemm::Scratch memory;
  T* const sums;
  T* const start; // what the sums begin with
  T* const packed;
  T* const padded;
  const T* held_base = nullptr;
  c10::SmallVector<TilePhase, 1> phases;
};

} // namespace

template <class T> void run(const Plan& plan, const Operands<T>& operands) {
  // Tasks of a chunk together are worth waking a thread for.
  constexpr int64_t kChunkSteps = 1 << 20;
  const Weights<T> weights(plan, operands);
  const int64_t steps = plan.tile_images * plan.tile[0] * plan.tile[1] * plan.tile[2] *
                        plan.sources * plan.volume * plan.width * plan.tile_passes;
  parallel_for(0, plan.tasks(), std::max<int64_t>(1, kChunkSteps / steps),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const Tile tile = tile_of(plan, i);
                   Worker<T>(plan, operands, weights, tile).run();
                 }
               });
}
template void run<float>(const Plan&, const Operands<float>&);
template void run<double>(const Plan&, const Operands<double>&);

} // namespace at::native::direct
