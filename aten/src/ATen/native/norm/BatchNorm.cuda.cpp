// The host side of BatchNorm.cuh. Contiguous and channels-last tensors are read as they lie; others
// are copied first. Parameters and statistics are brought to the compute type, in which the kernels
// take them.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/norm/BatchNorm.args.h>
#include <ATen/native/norm/BatchNormNeighbours.h>
#include <ATen/native/norm/Native.h>
#include <ATen/native/norm/NormUtil.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/threshold_backward.h>

#include <algorithm>
#include <limits>

namespace at::native {
namespace {
using cuda::blocks_for;
using cuda::Kernel;
using device::BackwardPointers;
using device::ChannelNumbers;
using device::ForwardPointers;
using device::GradientPointers;
using device::SlopePointers;

constexpr const char* kProgram = "native/norm/BatchNorm.cuh";
#define CRESSET_PAIR(name)                                                                         \
  {                                                                                                \
    {kProgram, name}, { kProgram, name "_packed" }                                                 \
  }
#define CRESSET_TYPES(name)                                                                        \
  {                                                                                                \
    CRESSET_PAIR(name "_f32"), CRESSET_PAIR(name "_f64"), CRESSET_PAIR(name "_f16"),               \
        CRESSET_PAIR(name "_bf16")                                                                 \
  }
const Kernel kMomentsOfPlanes[4][2] = CRESSET_TYPES("moments_planes");
const Kernel kMomentsOfRows[4][2] = CRESSET_TYPES("moments_rows");
const Kernel kSumsOfPlanes[4][2] = CRESSET_TYPES("sums_planes");
const Kernel kSumsOfRows[4][2] = CRESSET_TYPES("sums_rows");
const Kernel kApplyForward[4][2] = CRESSET_TYPES("apply_forward");
const Kernel kApplyBackward[4][2] = CRESSET_TYPES("apply_backward");
const Kernel kForwardCoefficients[2] = {{kProgram, "forward_coefficients_f32"},
                                        {kProgram, "forward_coefficients_f64"}};
const Kernel kBackwardCoefficients[2] = {{kProgram, "backward_coefficients_f32"},
                                         {kProgram, "backward_coefficients_f64"}};
constexpr int kThreads = 256, kJoinThreads = 32 * device::kJoiningThreads;
constexpr int kPacks[4] = {4, 2, 8, 8}; // values of 16 bytes, in the order of floating_slot

// One tensor, or two of the same layout, with everything the launches need to know of them.
struct Channels {
  ChannelNumbers n{};
  int slot = 0;
  bool packed = true;
  bool last = false;

  Channels(const Tensor& x, const char* name) : slot(cuda::floating_slot(x.scalar_type(), name)) {
    last = x.suggest_memory_format() != MemoryFormat::Contiguous;
    n.samples = x.size(0);
    n.channels = x.dim() > 1 ? x.size(1) : 0;
    n.plane = 1;
    for (int64_t d = 2; d < x.dim(); ++d) n.plane *= x.size(d);
    last = last || n.plane == 1;
    n.channels_last = last;
    n.small = x.numel() <= std::numeric_limits<int32_t>::max();
    n.by_plane = fast(n.plane);
    n.by_channels = fast(n.channels);
    packed = (last ? n.channels : n.plane) % kPacks[slot] == 0;
  }
  void add(const Tensor& x) { packed = packed && cuda::is_aligned16(x.const_data_ptr()); }

  // Cuts channels so that enough blocks have work, and each block enough of it.
  void cut() {
    constexpr int64_t kBlocks = 1024, kLeast = 2048, kMostParts = 512;
    const int64_t packs = n.channels / (packed ? kPacks[slot] : 1);
    const bool whole = packs > 0 && packs < 32 && (packs & (packs - 1)) == 0;
    n.row_lanes = whole ? packs : 32;
    const int64_t values = n.samples * n.plane;
    const int64_t across = last ? (n.channels + lane_channels() - 1) / lane_channels() : n.channels;
    const int64_t least = last ? kLeast / 32 : kLeast;
    n.parts = std::clamp<int64_t>(std::min((kBlocks + across - 1) / across, values / least), 1,
                                  kMostParts);
    const int64_t step = kPacks[slot];
    n.part = ((values + n.parts - 1) / n.parts + step - 1) / step * step;
    n.parts = (values + n.part - 1) / n.part;
  }
  cuda::Dim3 fold_grid() const {
    const int64_t across = last ? (n.channels + lane_channels() - 1) / lane_channels() : n.channels;
    return {static_cast<unsigned>(across), static_cast<unsigned>(n.parts)};
  }
  unsigned apply_blocks() const {
    const int64_t rows = n.samples * n.plane;
    const int64_t applied = last ? (rows + device::kAppliedRows - 1) / device::kAppliedRows : rows;
    return blocks_for(applied * n.channels / (packed ? kPacks[slot] : 1), kThreads);
  }
  bool wide() const { return slot == 1; }

 private:
  int64_t lane_channels() const { return packed ? 32 * kPacks[slot] : 32; }
  device::Divider fast(int64_t d) const {
    return device::Divider(n.small ? static_cast<uint32_t>(std::max<int64_t>(d, 1)) : 1);
  }
};

Tensor laid_out(const Tensor& x) { return x.contiguous(x.suggest_memory_format()); }

// A parameter or statistic in the compute type; undefined where there is none.
Tensor values_of(const std::optional<Tensor>& t, ScalarType compute) {
  return has(t) ? t->to(compute).contiguous() : Tensor();
}
void* mutable_or_null(const Tensor& t) { return t.defined() ? t.mutable_data_ptr() : nullptr; }
// Statistics of another type were changed in a copy.
void store(const std::optional<Tensor>& to, const Tensor& from) {
  if (has(to) && !to->is_same(from)) to->copy_(from);
}
// `count` vectors of one value per channel.
Tensor room(const Channels& c, const Tensor& like, ScalarType compute, int64_t count) {
  return detail::empty({count, c.n.channels}, compute, like.device());
}

bool lies_as(const Tensor& t, const Tensor& like) {
  return t.scalar_type() == like.scalar_type() && t.device() == like.device() &&
         t.sizes() == like.sizes() && t.strides() == like.strides();
}

void training_coefficients(Channels& c, const Tensor& x, ForwardPointers to, ScalarType compute) {
  c.cut();
  const Tensor parts = detail::empty({c.n.parts, c.n.channels, 3}, compute, x.device());
  const auto stream = cuda::current_stream();
  void* const folded = parts.mutable_data_ptr();
  const auto& fold = c.last ? kMomentsOfRows : kMomentsOfPlanes;
  cuda::launch(fold[c.slot][c.packed], c.fold_grid(), kThreads, 0, stream,
               device::MomentArgs<void>{x.const_data_ptr()}, folded, c.n);
  cuda::launch(kForwardCoefficients[c.wide()], blocks_for(c.n.channels, 32), kJoinThreads, 0,
               stream, folded, to, c.n);
}

} // namespace

void batch_norm_cuda(const Tensor& input, const std::optional<Tensor>& weight,
                     const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                     const std::optional<Tensor>& running_var, bool training, double momentum,
                     double eps, const Tensor& out, const Tensor& save_mean,
                     const Tensor& save_invstd) {
  BatchNormNeighbours* const near = take_neighbours();
  Channels c(input, "batch_norm_cuda");
  cuda::check_same_device({&input, cuda::given(weight), cuda::given(bias),
                           cuda::given(running_mean), cuda::given(running_var)});
  if (input.numel() == 0) {
    save_mean.zero_();
    save_invstd.zero_();
    return;
  }
  const ScalarType compute = compute_type(input.scalar_type());
  const Tensor x = laid_out(input), y = laid_out(out);
  c.add(x);
  c.add(y);
  const Tensor w = values_of(weight, compute), b = values_of(bias, compute);
  const Tensor scratch = room(c, x, compute, 4);
  const Tensor scale = scratch.select(0, 0), shift = scratch.select(0, 1);
  Tensor mean = values_of(running_mean, compute), spread = values_of(running_var, compute);
  if (training) {
    const bool direct = save_mean.scalar_type() == compute;
    const Tensor means = direct ? save_mean : scratch.select(0, 2),
                 invstds = direct ? save_invstd : scratch.select(0, 3);
    training_coefficients(c, x,
                          {data_or_null(w), data_or_null(b), mutable_or_null(mean),
                           mutable_or_null(spread), means.mutable_data_ptr(),
                           invstds.mutable_data_ptr(), scale.mutable_data_ptr(),
                           shift.mutable_data_ptr(), eps, momentum},
                          compute);
    store(running_mean, mean);
    store(running_var, spread);
    store(save_mean, means);
    store(save_invstd, invstds);
  } else {
    const Tensor invstd = at::rsqrt(at::add(spread, eps));
    scale.copy_(w.defined() ? at::mul(invstd, w) : invstd);
    const Tensor centre = at::neg(at::mul(mean, scale));
    shift.copy_(b.defined() ? at::add(centre, b) : centre);
  }
  const bool joins = near && y.is_same(out) && (!near->added.defined() || lies_as(near->added, y));
  const Tensor added = joins ? near->added : Tensor();
  if (added.defined()) c.add(added);
  if (joins) near->is_done = true;
  const void *from = x.const_data_ptr(), *scales = scale.const_data_ptr(),
             *shifts = shift.const_data_ptr();
  cuda::launch(kApplyForward[c.slot][c.packed], c.apply_blocks(), kThreads, 0,
               cuda::current_stream(), from, data_or_null(added), y.mutable_data_ptr(), scales,
               shifts, joins && near->rectifies, c.n);
  if (!y.is_same(out)) out.copy_(y);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_cuda(
    const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight,
    const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
    const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, bool train,
    double eps, std::array<bool, 3> output_mask) {
  TORCH_CHECK(input.dim() >= 2 && grad_out.sizes() == input.sizes(),
              "Expected the gradient to have the shape of the input, ", input.sizes(), ", but got ",
              grad_out.sizes());
  const BatchNormNeighbours* const near = take_neighbours();
  Channels c(input, "batch_norm_backward_cuda");
  const std::optional<Tensor>&given_mean = train ? save_mean : running_mean,
        &given_spread = train ? save_invstd : running_var;
  TORCH_CHECK(has(given_mean) && has(given_spread), "batch_norm_backward: ",
              train ? "save_mean and save_invstd must be defined in training mode"
                    : "running_mean and running_var must be defined in evaluation mode");
  for (const std::optional<Tensor>* each : {&given_mean, &given_spread, &weight})
    TORCH_CHECK(!has(*each) || (*each)->numel() == c.n.channels, "batch_norm_backward: expected ",
                c.n.channels, " values per parameter and statistic, but got ",
                has(*each) ? (*each)->numel() : 0);
  cuda::check_same_device({&input, &grad_out, cuda::given(weight), cuda::given(given_mean)});
  const ScalarType dtype = input.scalar_type(), compute = compute_type(dtype);
  const ScalarType type = has(weight) ? weight->scalar_type() : dtype;
  const Tensor w = values_of(weight, compute), mean = values_of(given_mean, compute);
  Tensor invstd = values_of(given_spread, compute);
  if (!train) invstd = at::rsqrt(at::add(invstd, eps));
  const auto wanted = [&](int place, const Tensor& values) {
    return output_mask[static_cast<size_t>(place)] ? values.to(type) : Tensor();
  };
  const Tensor x = laid_out(input);
  Tensor g = grad_out.contiguous(input.suggest_memory_format()), rectified;
  if (near && lies_as(near->rectified, g))
    rectified = near->rectified;
  else if (near)
    g = at::threshold_backward(g, near->rectified, 0).contiguous(input.suggest_memory_format());
  const Tensor grads = room(c, x, compute, 5);
  if (input.numel() == 0) {
    grads.zero_();
    return {output_mask[0] ? detail::empty(input.sizes(), dtype, input.device()) : Tensor(),
            wanted(1, grads.select(0, 0)), wanted(2, grads.select(0, 1))};
  }
  c.add(x);
  c.add(g);
  if (rectified.defined()) c.add(rectified);
  c.cut();
  const auto row = [&](int64_t i) { return grads.select(0, i).mutable_data_ptr(); };
  const Tensor parts = detail::empty({c.n.parts, c.n.channels, 3}, compute, x.device());
  const auto stream = cuda::current_stream();
  void* const folded = parts.mutable_data_ptr();
  const auto& fold = c.last ? kSumsOfRows : kSumsOfPlanes;
  cuda::launch(fold[c.slot][c.packed], c.fold_grid(), kThreads, 0, stream,
               GradientPointers{x.const_data_ptr(), g.const_data_ptr(), data_or_null(rectified),
                                mean.const_data_ptr()},
               folded, c.n);
  const BackwardPointers to{data_or_null(w),
                            mean.const_data_ptr(),
                            invstd.const_data_ptr(),
                            row(0),
                            row(1),
                            row(2),
                            row(3),
                            row(4),
                            static_cast<int64_t>(train)};
  cuda::launch(kBackwardCoefficients[c.wide()], blocks_for(c.n.channels, 32), kJoinThreads, 0,
               stream, folded, to, c.n);
  Tensor to_input;
  if (output_mask[0]) {
    to_input = detail::empty_strided(x.sizes(), x.strides(), dtype, x.device());
    c.add(to_input);
    const void *values = x.const_data_ptr(), *slope = g.const_data_ptr();
    cuda::launch(kApplyBackward[c.slot][c.packed], c.apply_blocks(), kThreads, 0, stream, values,
                 slope, data_or_null(rectified), to_input.mutable_data_ptr(),
                 SlopePointers{mean.const_data_ptr(), row(2), row(3), row(4)}, c.n);
  }
  return {to_input, wanted(1, grads.select(0, 0)), wanted(2, grads.select(0, 1))};
}

} // namespace at::native
