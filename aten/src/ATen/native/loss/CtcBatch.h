// The arguments of a CTC loss, checked, for the kernels of all devices.
#pragma once

#include <algorithm>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/PrivateCopy.h>

namespace at::native {

// The checked sizes of one call, and where each sample's labels begin.
struct CtcBatch {
  CtcBatch(const Tensor& log_probs, const Tensor& targets, IntArrayRef inputs, IntArrayRef labels,
           int64_t blank_label)
      : blank(blank_label), input_lengths(inputs.begin(), inputs.end()),
        target_lengths(labels.begin(), labels.end()) {
    TORCH_CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty");
    TORCH_CHECK(log_probs.dim() == 3,
                "log_probs must have 3 dimensions (frames, batch, labels), got ", log_probs.dim());
    frames = log_probs.size(0), samples = log_probs.size(1), classes = log_probs.size(2);
    const size_t n = static_cast<size_t>(samples);
    TORCH_CHECK(blank >= 0 && blank < classes, "blank must be in label range");
    TORCH_CHECK(input_lengths.size() == n, "input_lengths must be of size batch_size");
    TORCH_CHECK(target_lengths.size() == n, "target_lengths must be of size batch_size");
    TORCH_CHECK(targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == samples),
                "Expected targets of shape (sum of target_lengths) or (batch_size, S), got ",
                targets.sizes());
    check_lengths(targets);
    if (targets.is_meta()) return;
    values = targets.is_cpu() ? long_copy(targets) : host_copy(targets);
    const int64_t* label = static_cast<const int64_t*>(values.const_data_ptr());
    for (size_t i = 0; i < n; ++i)
      for (int64_t s = 0; s < target_lengths[i]; ++s) {
        const int64_t c = label[offsets[i] + s];
        TORCH_CHECK(c >= 0 && c < classes, "ctc_loss: label ", c, " of sample ", i,
                    " is outside [0, ", classes, ")");
      }
  }
  static Tensor host_copy(const Tensor& targets) {
    const Tensor copy = at::detail::empty(targets.sizes(), kLong);
    copy.copy_(targets);
    return copy;
  }
  // Also finds the longest target and the offsets.
  void check_lengths(const Tensor& targets) {
    int64_t total = 0;
    for (size_t i = 0; i < target_lengths.size(); ++i) {
      const int64_t input = input_lengths[i], length = target_lengths[i];
      TORCH_CHECK(input >= 0, "Expected input_lengths to have value at least 0, but got value ",
                  input, " (while checking arguments for ctc_loss_allocate_outputs)");
      TORCH_CHECK(input <= frames, "Expected input_lengths to have value at most ", frames,
                  ", but got value ", input,
                  " (while checking arguments for ctc_loss_allocate_outputs)");
      TORCH_CHECK(length >= 0, "Expected target_lengths to have value at least 0, but got value ",
                  length, " (while checking arguments for ctc_loss_allocate_outputs)");
      const int64_t room = targets.dim() == 2 ? targets.size(1) : targets.numel() - total;
      TORCH_CHECK(length <= room, "Expected tensor to have size at least ", length,
                  " at dimension ", targets.dim() - 1, ", but got size ", room,
                  " for argument #2 'targets' (while checking arguments for "
                  "ctc_loss_allocate_outputs)");
      offsets.push_back(targets.dim() == 2 ? static_cast<int64_t>(i) * targets.size(1) : total);
      longest = std::max(longest, length);
      total += length;
    }
    TORCH_CHECK(
        targets.dim() == 2 || targets.numel() == total, "Expected tensor to have size ", total,
        " at dimension 0, but got size ", targets.numel(),
        " for argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)");
  }
  int64_t states() const { return 2 * longest + 1; }
  // The label of state s of sample i.
  int64_t label(int64_t i, int64_t s) const {
    if (s % 2 == 0) return blank;
    return static_cast<const int64_t*>(
        values.const_data_ptr())[offsets[static_cast<size_t>(i)] + s / 2];
  }
  // True when state s may follow s - 2: two different labels without the blank between them.
  bool skips(int64_t i, int64_t s) const {
    return s % 2 == 1 && s >= 2 && label(i, s) != label(i, s - 2);
  }

  int64_t blank, frames = 0, samples = 0, classes = 0, longest = 0;
  std::vector<int64_t> input_lengths, target_lengths, offsets;
  Tensor values; // on the CPU
};

} // namespace at::native
