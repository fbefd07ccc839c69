// How a direct convolution is cut: which source elements each output position meets, and the
// tiles that are computed as one task. One description serves the convolution and the gradient of
// its input, which with stride s falls into s interleaved convolutions per axis ("phases") of
// stride 1, each with its own part of the kernel. Everything follows from the shape alone.
#pragma once
#include <ATen/native/conv/ConvGeometry.h>
#include <ATen/native/conv/DirectKernels.h>

#include <optional>

namespace at::native::direct {

// Half-open.
struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// Positions r, r + step, ... of an axis form phase r. The j-th of them meets, for each entry of its
// phase, the source position j * source_step + place with the kernel's index.
struct Axis {
  struct Phase {
    DimVector index, place;
  };
  int64_t count, source_count, step, source_step;
  c10::SmallVector<Phase, 2> phases;

  // The positions of a phase that lie within `positions`, as numbers j.
  Range within(int64_t phase, Range positions) const;
  // The source positions that `positions` meet, outside the source too; never empty.
  Range reach(Range positions) const;
};

struct Plan {
  Axis axis[3];
  int64_t images, groups, sources, outputs; // channels are per group
  int64_t volume;                           // of the kernel
  const Kernels* kernels;
  int64_t width;         // output channels of a pass
  int64_t channel_block; // source channels between two visits of the sums
  int64_t tile[3], tile_images, tile_passes;

  int64_t passes() const;
  int64_t tasks() const;
  // Of the packed weight: each pass has room for `width` channels.
  int64_t pass_elements() const { return sources * volume * width; }
};

// The weight's gradient sums over the output positions of runs of images. Its tasks are a pass of
// output channels, a block of source channels, and a run; the tiles (of one image) only bound the
// scratch memory of a task.
struct WeightPlan {
  Plan plan;
  LineFn lines;
  int64_t runs;
  int64_t blocks() const { return (plan.sources + plan.channel_block - 1) / plan.channel_block; }
};

// None where the loops over columns are better or the type is not float or double.
std::optional<Plan> forward_plan(const ConvGeometry& g, c10::ScalarType type);
std::optional<Plan> input_gradient_plan(const ConvGeometry& g, c10::ScalarType type);
std::optional<WeightPlan> weight_gradient_plan(const ConvGeometry& g, c10::ScalarType type);

} // namespace at::native::direct
