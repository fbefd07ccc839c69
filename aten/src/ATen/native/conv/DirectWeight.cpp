// The weight's gradient of Direct.h. A task turns the gradient at the output, tile after tile, to
// [position][channel], and sums its products with the windows of its source channels; it writes its
// part of the weight at the end. Runs of images have gradients of their own, added in order.
#include <ATen/native/conv/Direct.h>

#include <ATen/native/conv/Columns.h>
#include <ATen/native/conv/DirectWindow.h>
#include <ATen/native/matmul/gemm/Scratch.h>
#include <ATen/parallel/Parallel.h>

namespace at::native::direct {
namespace {

int64_t blocks_of(int64_t total, int64_t block) { return (total + block - 1) / block; }

struct Tile {
  Range axis[3];
  int64_t positions() const { return axis[0].size() * axis[1].size() * axis[2].size(); }
};

template <class F> void for_tiles(const Plan& p, const F& f) {
  const auto part = [&](int d, int64_t begin) {
    return Range{begin, std::min(p.axis[d].count, begin + p.tile[d])};
  };
  for (int64_t z = 0; z < p.axis[0].count; z += p.tile[0])
    for (int64_t y = 0; y < p.axis[1].count; y += p.tile[1])
      for (int64_t x = 0; x < p.axis[2].count; x += p.tile[2])
        f(Tile{{part(0, z), part(1, y), part(2, x)}});
}

// f(first tap, taps) for the runs of taps along a row that neighbouring elements meet.
template <class F> void for_runs(const Axis& axis, const F& f) {
  const DimVector& place = axis.phases[0].place;
  const int64_t count = static_cast<int64_t>(place.size());
  const bool dense = count > 1 && place[1] == place[0] + 1;
  for (int64_t k = 0; k < count;) {
    const int64_t left = dense ? count - k : 1;
    // Four taps are two and two: a single one is the dearest.
    const int64_t run = left == 4 ? 2 : std::min<int64_t>(left, kLongestRun);
    f(k, run);
    k += run;
  }
}

template <class T> class Task {
 public:
  Task(const WeightPlan& plan, int64_t group_, int64_t pass, int64_t block)
      : w(plan), p(plan.plan),
        group(group_), outputs{pass * p.width, std::min(p.outputs, (pass + 1) * p.width)},
        channels{block * p.channel_block, std::min(p.sources, (block + 1) * p.channel_block)},
        columns(blocks_of(outputs.size(), p.kernels->lanes) * p.kernels->lanes),
        memory(static_cast<size_t>(elements()) * sizeof(T)),
        sums(reinterpret_cast<T*>(memory.get())),
        turned(sums + channels.size() * p.volume * columns),
        padded(turned + tile_positions() * columns) {
    std::fill(sums, padded, T(0)); // columns beyond the outputs too
  }

  void add(const T* grad_out, const PlaneStrides& s, const T* input, Range images) {
    const int64_t volume = p.axis[0].source_count * p.axis[1].source_count * p.axis[2].source_count;
    for_tiles(p, [&](const Tile& t) {
      const Window window(p, t.axis);
      window.clear(channels.size(), padded);
      list_lines(window);
      for (int64_t n = images.begin; n < images.end; ++n) {
        turn(grad_out + n * s.sample + (group * p.outputs + outputs.begin) * s.channel, s, t);
        const T* source = input + ((n * p.groups + group) * p.sources + channels.begin) * volume;
        if (!window.in_place) window.fill(p, source, channels.size(), padded);
        sweep(window, window.in_place ? source : padded + window.origin, t);
      }
    });
  }

  void write(T* grad_weight) const {
    const int64_t row = p.sources * p.volume;
    p.kernels->transpose(
        channels.size() * p.volume, outputs.size(), sums, columns,
        grad_weight + (group * p.outputs + outputs.begin) * row + channels.begin * p.volume, row);
  }

 private:
  int64_t tile_positions() const { return p.tile[0] * p.tile[1] * p.tile[2]; }
  int64_t elements() const {
    int64_t window = 0;
    for_tiles(p, [&](const Tile& t) {
      window = std::max(window, Window(p, t.axis).elements(channels.size()));
    });
    return (channels.size() * p.volume + tile_positions()) * columns + window;
  }

  void list_lines(const Window& window) {
    for (auto& list : lines) list.clear();
    const Axis::Phase &z = p.axis[0].phases[0], &y = p.axis[1].phases[0], &x = p.axis[2].phases[0];
    const int64_t row = static_cast<int64_t>(x.place.size());
    for (int64_t c = 0; c < channels.size(); ++c) {
      int64_t tap = c * p.volume;
      for (const int64_t at_z : z.place)
        for (const int64_t at_y : y.place) {
          for_runs(p.axis[2], [&](int64_t k, int64_t run) {
            lines[run - 1].push_back({c * window.channel + at_z * window.plane + at_y * window.row +
                                          x.place[static_cast<size_t>(k)],
                                      (tap + k) * columns});
          });
          tap += row;
        }
    }
  }

  // The tile's gradient, from its first channel.
  void turn(const T* grad, const PlaneStrides& s, const Tile& t) {
    const int64_t row = p.axis[2].count, plane = row * p.axis[1].count;
    const bool whole = t.axis[2].size() == row;
    const int64_t rows = whole ? 1 : t.axis[1].size(),
                  count = whole ? t.axis[1].size() * row : t.axis[2].size();
    T* to = turned;
    for (int64_t z = t.axis[0].begin; z < t.axis[0].end; ++z)
      for (int64_t y = 0; y < rows; ++y, to += count * columns) {
        const int64_t position = z * plane + (t.axis[1].begin + y) * row + t.axis[2].begin;
        if (s.position == 1)
          p.kernels->transpose(outputs.size(), count, grad + position, s.channel, to, columns);
        else
          p.kernels->copy(count, outputs.size(), grad + position * s.position, s.position, to,
                          columns);
      }
  }

  void sweep(const Window& window, const T* base, const Tile& t) {
    const Axis* axis = p.axis;
    LineSweep s{};
    s.rows = t.axis[1].size(), s.row_step = axis[1].source_step * window.row;
    s.cols = t.axis[2].size(), s.col_step = axis[2].source_step;
    s.vectors = static_cast<int>(columns / p.kernels->lanes);
    s.sums = sums;
    for (int64_t z = 0; z < t.axis[0].size(); ++z) {
      s.source = base + (t.axis[0].begin + z) * axis[0].source_step * window.plane +
                 t.axis[1].begin * s.row_step + t.axis[2].begin * s.col_step;
      s.grad = turned + z * s.rows * s.cols * columns;
      for (int run = 1; run <= kLongestRun; ++run) {
        s.run = run;
        s.lines = lines[run - 1].data(), s.count = static_cast<int64_t>(lines[run - 1].size());
        w.lines(s);
      }
    }
  }

  const WeightPlan& w;
  const Plan& p;
  const int64_t group;
  const Range outputs, channels;
  const int64_t columns;
  const gemm::Scratch memory;
  T* const sums;   // [channel][tap][output]
  T* const turned; // [position][output]
  T* const padded;
  c10::SmallVector<Line, 64> lines[kLongestRun];
};

} // namespace

template <class T> void run_weight_gradient(const WeightPlan& w, const T* grad_out,
                                            const PlaneStrides& strides, const T* input,
                                            T* grad_weight) {
  const Plan& p = w.plan;
  const int64_t elements = p.groups * p.outputs * p.sources * p.volume, blocks = w.blocks(),
                passes = p.passes();
  const gemm::Scratch memory(static_cast<size_t>((w.runs - 1) * elements) * sizeof(T));
  T* others = reinterpret_cast<T*>(memory.get());
  parallel_for(0, w.runs * p.groups * passes * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t run = i / blocks / passes / p.groups;
      Task<T> task(w, i / blocks / passes % p.groups, i / blocks % passes, i % blocks);
      task.add(grad_out, strides, input, {p.images * run / w.runs, p.images * (run + 1) / w.runs});
      task.write(run == 0 ? grad_weight : others + (run - 1) * elements);
    }
  });
  if (w.runs == 1) return;
  parallel_for(0, elements, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t run = 1; run < w.runs; ++run)
      add_range(grad_weight + begin, others + (run - 1) * elements + begin, end - begin);
  });
}
template void run_weight_gradient<float>(const WeightPlan&, const float*, const PlaneStrides&,
                                         const float*, float*);
template void run_weight_gradient<double>(const WeightPlan&, const double*, const PlaneStrides&,
                                          const double*, double*);

} // namespace at::native::direct
