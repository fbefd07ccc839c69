// The host side of FusedOptim.cuh: fills tables of pointers, in rounds of as many tensors as a
// table holds, and launches once per round. Tensors whose memory is not laid out like the
// parameter's are copied, updated and copied back.
#include <cmath>
#include <memory>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/foreach/FusedOptim.args.h>
#include <ATen/native/foreach/Native.h>

namespace at::native {
namespace {
using cuda::Kernel;

constexpr const char* kProgram = "native/foreach/FusedOptim.cuh";
constexpr int kFew = 48, kMany = 512;

// [dtype][few, many]
#define CRESSET_SIZES(name)                                                                        \
  {                                                                                                \
    {kProgram, name "_48"}, { kProgram, name "_512" }                                              \
  }
#define CRESSET_TABLE(name)                                                                        \
  {                                                                                                \
    CRESSET_SIZES(name "_f32"), CRESSET_SIZES(name "_f64"), CRESSET_SIZES(name "_f16"),            \
        CRESSET_SIZES(name "_bf16")                                                                \
  }
const Kernel kAdam[4][2] = CRESSET_TABLE("fused_adam");
const Kernel kSgd[4][2] = CRESSET_TABLE("fused_sgd");
const Kernel kAdagrad[4][2] = CRESSET_TABLE("fused_adagrad");
const Kernel kNormChunks[4][2] = CRESSET_TABLE("norm_chunks");
const Kernel kNormTotal[4] = {{kProgram, "norm_total_f32"},
                              {kProgram, "norm_total_f64"},
                              {kProgram, "norm_total_f16"},
                              {kProgram, "norm_total_bf16"}};
const Kernel kScale[4][2] = CRESSET_TABLE("scale_tensors");

using device::AdagradSettings;
using device::AdamSettings;
using device::kChunk;
using device::SgdSettings;
using device::TensorTable;

// One tensor's buffers, all laid out alike; kOperands of them, null where unused.
template <int kOperands> struct Item {
  void* data[kOperands];
  int64_t size;
};
template <int kOperands> using Items = c10::SmallVector<Item<kOperands>, 64>;

template <int kTensors, int kOperands, class Launch>
void launch_rounds(const Items<kOperands>& items, size_t begin, size_t end, const Launch& launch) {
  TensorTable<kOperands, kTensors> table;
  for (size_t next = begin; next < end;) {
    uint64_t blocks = 0;
    table.count = 0;
    for (; next < end && table.count < kTensors && blocks < (1u << 30); ++next) {
      const Item<kOperands>& item = items[next];
      for (int k = 0; k < kOperands; ++k) table.data[k][table.count] = item.data[k];
      table.sizes[table.count] = item.size;
      table.first[table.count] = static_cast<uint32_t>(blocks);
      blocks += static_cast<uint64_t>((item.size + kChunk - 1) / kChunk);
      ++table.count;
    }
    launch(table, static_cast<unsigned>(blocks));
  }
}

// launch(table, blocks, size slot) for rounds of items [begin, end).
template <int kOperands, class Launch>
void in_rounds(const Items<kOperands>& items, size_t begin, size_t end, const Launch& launch) {
  if (end - begin <= kFew)
    launch_rounds<kFew>(items, begin, end,
                        [&](const auto& table, unsigned n) { launch(table, n, 0); });
  else
    launch_rounds<kMany>(items, begin, end,
                         [&](const auto& table, unsigned n) { launch(table, n, 1); });
}

// ---- operands
void check_fits(const char* name, const Tensor& param, const Tensor& t, const char* what) {
  TORCH_CHECK(t.sizes() == param.sizes() && t.scalar_type() == param.scalar_type() &&
                  t.device() == param.device(),
              name, ": ", what, " of shape ", t.sizes(), ", dtype ", t.scalar_type(), " on ",
              t.device(), " does not fit a parameter of shape ", param.sizes(), ", dtype ",
              param.scalar_type(), " on ", param.device());
}

// Copies made for tensors that lie otherwise, to be written back after the launches.
struct Copies {
  struct Pair {
    Tensor original, used;
  };
  std::vector<Pair> pairs;

  void* data(const Tensor& t, const Tensor& like, bool written) {
    if (C10_LIKELY(t.strides() == like.strides() && t.is_non_overlapping_and_dense())) {
      if (written) t.unsafeGetTensorImpl()->bump_version();
      return t.mutable_data_ptr();
    }
    const DimVector order = like.is_non_overlapping_and_dense()
                                ? DimVector(like.strides())
                                : c10::contiguous_strides(like.sizes());
    const Tensor used = detail::empty_strided(t.sizes(), order, t.scalar_type(), t.device());
    used.copy_(t);
    pairs.push_back({t, used});
    return used.mutable_data_ptr();
  }
  void finish() {
    for (const Pair& p : pairs) p.original.copy_(p.used);
  }
};

// A number that stays on the device, as float32; null: not given.
struct DeviceNumber {
  Tensor held;
  DeviceNumber(const char* name, const std::optional<Tensor>& t, Device device) {
    if (!t || !t->defined()) return;
    TORCH_CHECK(t->numel() == 1, name, ": grad_scale and found_inf must have one element");
    held = detail::empty({}, kFloat, device);
    held.copy_(t->reshape({}));
  }
  const float* data() const { return held.defined() ? held.const_data_ptr<float>() : nullptr; }
};

void check_list(const char* name, TensorList params, TensorList list, const char* what) {
  TORCH_CHECK(list.size() == params.size(), name, ": got ", params.size(), " parameters and ",
              list.size(), " ", what);
}

// The step of a tensor. A count on the device is read back: optimizers of this library keep it on
// the host.
double step_of(const Tensor& t) {
  if (t.is_cpu() && t.scalar_type() == kFloat) return *static_cast<const float*>(t.data_ptr());
  return t.item<double>();
}

void adam_step(const char* name, TensorList self, TensorList grads, TensorList exp_avgs,
               TensorList exp_avg_sqs, TensorList max_exp_avg_sqs, TensorList state_steps,
               AdamSettings settings, const std::optional<Tensor>& grad_scale,
               const std::optional<Tensor>& found_inf) {
  check_list(name, self, grads, "gradients");
  check_list(name, self, exp_avgs, "states");
  check_list(name, self, exp_avg_sqs, "states");
  check_list(name, self, state_steps, "steps");
  if (settings.amsgrad) check_list(name, self, max_exp_avg_sqs, "states");
  if (self.empty()) return;
  const ScalarType dtype = self[0].scalar_type();
  const int slot = cuda::floating_slot(dtype, name);
  Items<5> items;
  c10::SmallVector<double, 64> steps;
  Copies copies;
  for (size_t i = 0; i < self.size(); ++i) {
    const Tensor& p = self[i];
    TORCH_CHECK(p.scalar_type() == dtype && p.device() == self[0].device(), name,
                ": all parameters must have one dtype and device");
    check_fits(name, p, grads[i], "gradient");
    check_fits(name, p, exp_avgs[i], "optimizer state");
    check_fits(name, p, exp_avg_sqs[i], "optimizer state");
    if (settings.amsgrad) check_fits(name, p, max_exp_avg_sqs[i], "optimizer state");
    if (p.numel() == 0) continue;
    items.push_back({{copies.data(p, p, true), copies.data(grads[i], p, grad_scale.has_value()),
                      copies.data(exp_avgs[i], p, true), copies.data(exp_avg_sqs[i], p, true),
                      settings.amsgrad ? copies.data(max_exp_avg_sqs[i], p, true) : nullptr},
                     p.numel()});
    steps.push_back(step_of(state_steps[i]));
  }
  const DeviceNumber scale(name, grad_scale, self[0].device()),
      skip(name, found_inf, self[0].device());
  settings.grad_scale = scale.data();
  settings.found_inf = skip.data();
  const auto stream = cuda::current_stream();
  // Tensors of one step share the corrections, hence a launch; usually all of them do.
  for (size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    while (end < items.size() && steps[end] == steps[begin]) ++end;
    settings.correction1 = 1 - std::pow(settings.beta1, steps[begin]);
    settings.correction2 = 1 - std::pow(settings.beta2, steps[begin]);
    in_rounds(items, begin, end, [&](const auto& table, unsigned blocks, int size) {
      cuda::launch(kAdam[slot][size], blocks, 256, 0, stream, table, settings);
    });
  }
  copies.finish();
}

} // namespace

void fused_adamw_cuda_(TensorList self, TensorList grads, TensorList exp_avgs,
                       TensorList exp_avg_sqs, TensorList max_exp_avg_sqs, TensorList state_steps,
                       double lr, double beta1, double beta2, double weight_decay, double eps,
                       bool amsgrad, bool maximize, const std::optional<Tensor>& grad_scale,
                       const std::optional<Tensor>& found_inf) {
  adam_step("_fused_adamw_", self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,
            {lr, beta1, beta2, weight_decay, eps, 0, 0, nullptr, nullptr, amsgrad, maximize, 1},
            grad_scale, found_inf);
}
void fused_adam_cuda_(TensorList self, TensorList grads, TensorList exp_avgs,
                      TensorList exp_avg_sqs, TensorList max_exp_avg_sqs, TensorList state_steps,
                      double lr, double beta1, double beta2, double weight_decay, double eps,
                      bool amsgrad, bool maximize, const std::optional<Tensor>& grad_scale,
                      const std::optional<Tensor>& found_inf) {
  adam_step("_fused_adam_", self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,
            {lr, beta1, beta2, weight_decay, eps, 0, 0, nullptr, nullptr, amsgrad, maximize, 0},
            grad_scale, found_inf);
}

void fused_sgd_cuda_(TensorList self, TensorList grads, TensorList momentum_buffer_list,
                     double weight_decay, double momentum, double lr, double dampening,
                     bool nesterov, bool maximize, bool is_first_step,
                     const std::optional<Tensor>& grad_scale,
                     const std::optional<Tensor>& found_inf) {
  constexpr const char* kName = "_fused_sgd_";
  check_list(kName, self, grads, "gradients");
  const bool buffered = !momentum_buffer_list.empty();
  if (buffered) check_list(kName, self, momentum_buffer_list, "momentum buffers");
  if (self.empty()) return;
  const ScalarType dtype = self[0].scalar_type();
  const int slot = cuda::floating_slot(dtype, kName);
  Items<3> items;
  Copies copies;
  for (size_t i = 0; i < self.size(); ++i) {
    const Tensor& p = self[i];
    TORCH_CHECK(p.scalar_type() == dtype && p.device() == self[0].device(), kName,
                ": all parameters must have one dtype and device");
    check_fits(kName, p, grads[i], "gradient");
    if (buffered) check_fits(kName, p, momentum_buffer_list[i], "momentum buffer");
    if (p.numel() == 0) continue;
    items.push_back({{copies.data(p, p, true), copies.data(grads[i], p, grad_scale.has_value()),
                      buffered ? copies.data(momentum_buffer_list[i], p, true) : nullptr},
                     p.numel()});
  }
  const DeviceNumber scale(kName, grad_scale, self[0].device()),
      skip(kName, found_inf, self[0].device());
  const SgdSettings settings{lr,          momentum, weight_decay, dampening,     scale.data(),
                             skip.data(), nesterov, maximize,     is_first_step, buffered};
  const auto stream = cuda::current_stream();
  in_rounds(items, 0, items.size(), [&](const auto& table, unsigned blocks, int size) {
    cuda::launch(kSgd[slot][size], blocks, 256, 0, stream, table, settings);
  });
  copies.finish();
}

void fused_adagrad_cuda_(TensorList self, TensorList grads, TensorList state_sums,
                         TensorList state_steps, double lr, double lr_decay, double weight_decay,
                         double eps, bool maximize, const std::optional<Tensor>& grad_scale,
                         const std::optional<Tensor>& found_inf) {
  constexpr const char* kName = "_fused_adagrad_";
  check_list(kName, self, grads, "gradients");
  check_list(kName, self, state_sums, "states");
  check_list(kName, self, state_steps, "steps");
  if (self.empty()) return;
  const ScalarType dtype = self[0].scalar_type();
  const int slot = cuda::floating_slot(dtype, kName);
  Items<3> items;
  c10::SmallVector<double, 64> steps;
  Copies copies;
  for (size_t i = 0; i < self.size(); ++i) {
    const Tensor& p = self[i];
    TORCH_CHECK(p.scalar_type() == dtype && p.device() == self[0].device(), kName,
                ": all parameters must have one dtype and device");
    check_fits(kName, p, grads[i], "gradient");
    check_fits(kName, p, state_sums[i], "optimizer state");
    if (p.numel() == 0) continue;
    items.push_back({{copies.data(p, p, true), copies.data(grads[i], p, grad_scale.has_value()),
                      copies.data(state_sums[i], p, true)},
                     p.numel()});
    steps.push_back(step_of(state_steps[i]));
  }
  const DeviceNumber scale(kName, grad_scale, self[0].device()),
      skip(kName, found_inf, self[0].device());
  const auto stream = cuda::current_stream();
  for (size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    while (end < items.size() && steps[end] == steps[begin]) ++end;
    const AdagradSettings settings{lr / (1 + (steps[begin] - 1) * lr_decay),
                                   weight_decay,
                                   eps,
                                   scale.data(),
                                   skip.data(),
                                   maximize};
    in_rounds(items, begin, end, [&](const auto& table, unsigned blocks, int size) {
      cuda::launch(kAdagrad[slot][size], blocks, 256, 0, stream, table, settings);
    });
  }
  copies.finish();
}

// Scales the tensors, which have one dtype and device, so that their norm together is at most
// max_norm; three launches, and nothing is read back.
Tensor fused_clip_grad_norm_cuda(TensorList self, double max_norm, double norm_type) {
  constexpr const char* kName = "_fused_clip_grad_norm";
  TORCH_CHECK(!self.empty(), kName, ": there are no tensors");
  TORCH_CHECK_NOT_IMPLEMENTED(norm_type == 1 || norm_type == 2 || std::isinf(norm_type), kName,
                              ": norms of order ", norm_type);
  const ScalarType dtype = self[0].scalar_type();
  const Device device = self[0].device();
  const int slot = cuda::floating_slot(dtype, kName);
  const int kind = norm_type == 2 ? 0 : norm_type == 1 ? 1 : 2; // enum NormKind
  Items<1> items;
  Copies copies;
  int64_t chunks = 0;
  for (const Tensor& t : self) {
    TORCH_CHECK(t.scalar_type() == dtype && t.device() == device, kName,
                ": all tensors must have one dtype and device");
    if (t.numel() == 0) continue;
    items.push_back({{copies.data(t, t, true)}, t.numel()});
    chunks += (t.numel() + kChunk - 1) / kChunk;
  }
  const ScalarType wide = dtype == kDouble ? kDouble : kFloat;
  const Tensor partial = detail::empty({chunks + 1}, wide, device);
  Tensor total = detail::empty({}, dtype, device);
  char* sums = static_cast<char*>(partial.mutable_data_ptr());
  void* factor = sums + chunks * partial.itemsize();
  const auto stream = cuda::current_stream();
  int64_t done = 0;
  in_rounds(items, 0, items.size(), [&](const auto& table, unsigned blocks, int size) {
    void* to = sums + done * partial.itemsize();
    cuda::launch(kNormChunks[slot][size], blocks, 256, 0, stream, table, to, kind);
    done += blocks;
  });
  cuda::launch(kNormTotal[slot], 1, 1024, 0, stream, static_cast<void*>(sums), chunks,
               total.mutable_data_ptr(), factor, kind, max_norm);
  in_rounds(items, 0, items.size(), [&](const auto& table, unsigned blocks, int size) {
    cuda::launch(kScale[slot][size], blocks, 256, 0, stream, table, factor);
  });
  copies.finish();
  return total;
}

} // namespace at::native
