// Convolutions as matrix products over tiles of windows, and the choice between these, the direct
// loops (Direct.h) and those of depthwise convolutions. The cut into tasks depends on the shape
// only, and each output element is summed by one task in a fixed order, so the bits do not depend
// on the threads.
#include <ATen/native/conv/ConvKernels.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/conv/Columns.h>
#include <ATen/native/conv/Depthwise.h>
#include <ATen/native/conv/DepthwisePadded.h>
#include <ATen/native/conv/Direct.h>
#include <ATen/native/matmul/gemm/Gemm.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {
namespace {

// Elements of scratch for one tile of columns: half a megabyte of floats, within a second-level
// cache.
constexpr int64_t kTileElements = 1 << 17;

using ExactTypes = Types<float, double, c10::complex<float>, c10::complex<double>, int8_t, int16_t,
                         int32_t, int64_t, uint8_t>;
using ForwardTypes = Concat<ExactTypes, ReducedFloatingTypes>::type;

int64_t tile_width(int64_t rows, int64_t positions) {
  const int64_t width = std::max<int64_t>(64, kTileElements / std::max<int64_t>(rows, 1) / 16 * 16);
  return std::max<int64_t>(1, std::min(width, positions));
}
// Channels whose windows make about 144 rows, but at least a few blocks where there are many
// channels.
int64_t channel_block(int64_t channels, int64_t volume) {
  const int64_t full = (143 + volume) / volume;
  return std::max<int64_t>(1,
                           std::min({full, std::max<int64_t>(16, (channels + 3) / 4), channels}));
}
int64_t blocks_of(int64_t total, int64_t block) { return (total + block - 1) / block; }

template <class T> Tensor scratch(int64_t elements) {
  return detail::empty({elements}, c10::scalar_type_of<T>);
}

template <class T> void forward_tile(const ConvGeometry& g, const T* input, const T* weight,
                                     const T* bias, T* out, const PlaneStrides& s, int64_t p0,
                                     int64_t p1, T* columns) {
  const int64_t rows = g.c_per_group() * g.kernel_volume(), width = p1 - p0;
  const T* b = input + p0;
  int64_t b_rs = g.in_plane();
  if (columns) {
    image_to_columns(g, input, g.c_per_group(), p0, p1, columns);
    b = columns;
    b_rs = width;
  }
  T* c = out + p0 * s.position;
  if (bias) {
    for (int64_t o = 0; o < g.o_per_group(); ++o)
      for (int64_t p = 0; p < width; ++p) c[o * s.channel + p * s.position] = bias[o];
  }
  using A = gemm::acc_t<T>;
  gemm::gemm<T>(g.o_per_group(), width, rows, A(1), weight, rows, 1, b, b_rs, 1, A(bias ? 1 : 0), c,
                s.channel, s.position);
}

template <class T> void forward(const ConvGeometry& g, const T* input, const T* weight,
                                const T* bias, T* out, const PlaneStrides& s) {
  const int64_t cg = g.c_per_group(), og = g.o_per_group(), rows = cg * g.kernel_volume(),
                positions = g.out_plane();
  const int64_t width = tile_width(rows, positions), tiles = blocks_of(positions, width);
  const bool pointwise = g.is_pointwise();
  parallel_for(0, g.n * g.groups * tiles, 1, [&](int64_t begin, int64_t end) {
    const Tensor memory = pointwise ? Tensor() : scratch<T>(rows * width);
    T* columns = pointwise ? nullptr : static_cast<T*>(memory.data_ptr());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t tile = i % tiles, group = i / tiles % g.groups, n = i / tiles / g.groups;
      forward_tile(g, input + (n * g.c + group * cg) * g.in_plane(), weight + group * og * rows,
                   bias ? bias + group * og : nullptr, out + n * s.sample + group * og * s.channel,
                   s, tile * width, std::min(positions, (tile + 1) * width), columns);
    }
  });
}

template <class T> void forward_best(const ConvGeometry& g, const T* input, const T* weight,
                                     const T* bias, T* out, const PlaneStrides& s) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (!g.is_pointwise()) {
      if (const auto plan = direct::forward_plan(g, c10::scalar_type_of<T>))
        return direct::run<T>(*plan, {input, weight, bias, out, s, false});
    }
  }
  forward<T>(g, input, weight, bias, out, s);
}

template <class T> void input_gradient(const ConvGeometry& g, const T* grad_out,
                                       const PlaneStrides& s, const T* weight, T* grad_in) {
  const int64_t cg = g.c_per_group(), og = g.o_per_group(), volume = g.kernel_volume(),
                rows = cg * volume;
  const int64_t positions = g.out_plane(), block = channel_block(cg, volume),
                blocks = blocks_of(cg, block);
  const int64_t width = tile_width(block * volume, positions);
  const bool pointwise = g.is_pointwise();
  parallel_for(0, g.n * g.groups * blocks, 1, [&](int64_t begin, int64_t end) {
    const Tensor memory = pointwise ? Tensor() : scratch<T>(block * volume * width);
    T* columns = pointwise ? nullptr : static_cast<T*>(memory.data_ptr());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c0 = i % blocks * block, channels = std::min(block, cg - c0),
                    group = i / blocks % g.groups;
      const int64_t n = i / blocks / g.groups, mine = channels * volume;
      T* image = grad_in + (n * g.c + group * cg + c0) * g.in_plane();
      const T* w = weight + group * og * rows + c0 * volume;
      const T* source = grad_out + n * s.sample + group * og * s.channel;
      if (pointwise) {
        gemm::gemm<T>(mine, positions, og, T(1), w, 1, rows, source, s.channel, s.position, T(0),
                      image, g.in_plane(), 1);
        continue;
      }
      std::fill(image, image + channels * g.in_plane(), T(0));
      for (int64_t p0 = 0; p0 < positions; p0 += width) {
        const int64_t p1 = std::min(positions, p0 + width);
        gemm::gemm<T>(mine, p1 - p0, og, T(1), w, 1, rows, source + p0 * s.position, s.channel,
                      s.position, T(0), columns, p1 - p0, 1);
        if (keeps_rows(g))
          columns_to_image_shifted(g, columns, channels, p0, p1, image);
        else
          columns_to_image(g, columns, channels, p0, p1, image);
      }
    }
  });
}

std::optional<direct::Plan> input_gradient_plan(const ConvGeometry& g, ScalarType type) {
  if (g.is_pointwise() || g.is_depthwise()) return std::nullopt;
  return direct::input_gradient_plan(g, type);
}
template <class T> void run_input_gradient(const direct::Plan& plan, const ConvGeometry& g,
                                           const T* grad_out, const T* weight, T* grad_in) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    const PlaneStrides large{g.c * g.in_plane(), g.in_plane(), 1};
    direct::run<T>(plan, {grad_out, weight, nullptr, grad_in, large, true});
  }
}

// One block of channels of the weight's gradient, over the samples [n0, n1).
template <class T> void weight_gradient_block(const ConvGeometry& g, const T* grad_out,
                                              const PlaneStrides& s, const T* input, T* grad_weight,
                                              int64_t n0, int64_t n1, int64_t channels,
                                              int64_t width, T* columns) {
  const int64_t rows = g.c_per_group() * g.kernel_volume(), mine = channels * g.kernel_volume(),
                positions = g.out_plane();
  bool first = true;
  for (int64_t n = n0; n < n1; ++n) {
    const T* image = input + n * g.c * g.in_plane();
    for (int64_t p0 = 0; p0 < positions; p0 += width) {
      const int64_t p1 = std::min(positions, p0 + width);
      if (columns) image_to_columns(g, image, channels, p0, p1, columns);
      const T* b = columns ? columns : image + p0;
      gemm::gemm<T>(g.o_per_group(), mine, p1 - p0, T(1), grad_out + n * s.sample + p0 * s.position,
                    s.channel, s.position, b, 1, columns ? p1 - p0 : g.in_plane(), T(first ? 0 : 1),
                    grad_weight, rows, 1);
      first = false;
    }
  }
}

// Into how many runs the samples are cut, each with a gradient of its own that is added up at the
// end: a few where the channels alone make too few tasks for the threads. By shape only.
int64_t sample_runs(const ConvGeometry& g, int64_t tasks, int64_t elements) {
  constexpr int64_t kTasks = 8, kPartialElements = 1 << 20;
  if (tasks >= kTasks) return 1;
  return std::max<int64_t>(1, std::min({g.n, kTasks / tasks, kPartialElements / elements}));
}

template <class T> void weight_gradient(const ConvGeometry& g, const T* grad_out,
                                        const PlaneStrides& s, const T* input, T* grad_weight) {
  const int64_t cg = g.c_per_group(), og = g.o_per_group(), volume = g.kernel_volume(),
                rows = cg * volume;
  const int64_t block = channel_block(cg, volume), blocks = blocks_of(cg, block);
  const bool pointwise = g.is_pointwise();
  const int64_t width = tile_width(block * volume, g.out_plane());
  const int64_t elements = g.groups * og * rows, tasks = g.groups * blocks,
                runs = sample_runs(g, tasks, elements);
  const Tensor partial = runs > 1 ? scratch<T>((runs - 1) * elements) : Tensor();
  T* others = runs > 1 ? static_cast<T*>(partial.data_ptr()) : nullptr;
  parallel_for(0, runs * tasks, 1, [&](int64_t begin, int64_t end) {
    const Tensor memory = pointwise ? Tensor() : scratch<T>(block * volume * width);
    T* columns = pointwise ? nullptr : static_cast<T*>(memory.data_ptr());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c0 = i % blocks * block, group = i / blocks % g.groups, run = i / tasks;
      T* target = run == 0 ? grad_weight : others + (run - 1) * elements;
      weight_gradient_block(g, grad_out + group * og * s.channel, s,
                            input + (group * cg + c0) * g.in_plane(),
                            target + group * og * rows + c0 * volume, g.n * run / runs,
                            g.n * (run + 1) / runs, std::min(block, cg - c0), width, columns);
    }
  });
  for (int64_t run = 1; run < runs; ++run)
    add_range(grad_weight, others + (run - 1) * elements, elements);
}

template <class T> void weight_gradient_best(const ConvGeometry& g, const T* grad_out,
                                             const PlaneStrides& s, const T* input,
                                             T* grad_weight) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (!g.is_pointwise()) {
      if (const auto plan = direct::weight_gradient_plan(g, c10::scalar_type_of<T>))
        return direct::run_weight_gradient<T>(*plan, grad_out, s, input, grad_weight);
    }
  }
  weight_gradient<T>(g, grad_out, s, input, grad_weight);
}

template <class T> void depthwise_forward_best(const ConvGeometry& g, const T* input,
                                               const T* weight, const T* bias, T* out,
                                               const PlaneStrides& s) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (padded_depthwise_fits(g, s))
      return padded_depthwise_forward<T>(g, input, weight, bias, out, s);
  }
  depthwise_forward<T>(g, input, weight, bias, out, s);
}
template <class T> void depthwise_input_gradient_best(const ConvGeometry& g, const T* grad_out,
                                                      const PlaneStrides& s, const T* weight,
                                                      T* grad_in) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (padded_depthwise_turns_round(g, s))
      return padded_depthwise_input_gradient<T>(g, grad_out, s, weight, grad_in);
  }
  depthwise_input_gradient<T>(g, grad_out, s, weight, grad_in);
}
template <class T> void depthwise_weight_gradient_best(const ConvGeometry& g, const T* grad_out,
                                                       const PlaneStrides& s, const T* input,
                                                       T* grad_weight) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (padded_depthwise_fits(g, s))
      return padded_depthwise_weight_gradient<T>(g, grad_out, s, input, grad_weight);
  }
  depthwise_weight_gradient<T>(g, grad_out, s, input, grad_weight);
}

template <class T> T* data(const Tensor& t) {
  return t.defined() ? static_cast<T*>(t.data_ptr()) : nullptr;
}

} // namespace

PlaneStrides plane_strides(const Tensor& t) {
  int64_t plane = 1;
  for (int64_t d = 2; d < t.dim(); ++d) plane *= t.size(d);
  const int64_t c = t.size(1);
  if (t.is_contiguous()) return {c * plane, plane, 1};
  return {c * plane, 1, c};
}

void conv_forward(const ConvGeometry& g, const Tensor& input, const Tensor& weight,
                  const Tensor& bias, const Tensor& output, const char* name) {
  dtype_switch<ForwardTypes>(input.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (output.numel() == 0) return;
    const BlockingRegion unlocked;
    if (g.is_depthwise()) {
      depthwise_forward_best<T>(g, data<T>(input), data<T>(weight), data<T>(bias), data<T>(output),
                                plane_strides(output));
    } else {
      forward_best<T>(g, data<T>(input), data<T>(weight), data<T>(bias), data<T>(output),
                      plane_strides(output));
    }
  });
}

void conv_input_gradient(const ConvGeometry& g, const Tensor& grad_output, const Tensor& weight,
                         const Tensor& grad_input, const char* name) {
  dtype_switch<ExactTypes>(grad_output.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (grad_input.numel() == 0) return;
    if (grad_output.numel() == 0) {
      grad_input.zero_();
      return;
    }
    const auto plan = input_gradient_plan(g, grad_output.scalar_type());
    const Tensor small = plan ? grad_output.contiguous() : grad_output;
    const BlockingRegion unlocked;
    if (plan) {
      run_input_gradient<T>(*plan, g, data<T>(small), data<T>(weight), data<T>(grad_input));
    } else if (g.is_depthwise()) {
      depthwise_input_gradient_best<T>(g, data<T>(grad_output), plane_strides(grad_output),
                                       data<T>(weight), data<T>(grad_input));
    } else {
      input_gradient<T>(g, data<T>(grad_output), plane_strides(grad_output), data<T>(weight),
                        data<T>(grad_input));
    }
  });
}

void conv_weight_gradient(const ConvGeometry& g, const Tensor& grad_output, const Tensor& input,
                          const Tensor& grad_weight, const char* name) {
  dtype_switch<ExactTypes>(grad_output.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (grad_weight.numel() == 0) return;
    if (grad_output.numel() == 0 || input.numel() == 0) {
      grad_weight.zero_();
      return;
    }
    const BlockingRegion unlocked;
    if (g.is_depthwise()) {
      depthwise_weight_gradient_best<T>(g, data<T>(grad_output), plane_strides(grad_output),
                                        data<T>(input), data<T>(grad_weight));
    } else {
      weight_gradient_best<T>(g, data<T>(grad_output), plane_strides(grad_output), data<T>(input),
                              data<T>(grad_weight));
    }
  });
}

} // namespace at::native
