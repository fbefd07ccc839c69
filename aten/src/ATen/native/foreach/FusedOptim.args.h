// The arguments of FusedOptim.cuh: tables of tensors, and the numbers of an optimizer step.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

inline constexpr int64_t kChunk = 8192; // elements of a block

// A list of tensors with kOperands buffers each. `first[i]` is the first block of tensor i.
template <int kOperands, int kTensors> struct TensorTable {
  void* data[kOperands][kTensors];
  int64_t sizes[kTensors];
  uint32_t first[kTensors];
  int32_t count = 0;
#if defined(CRESSET_DEVICE)
  CRESSET_DEVICE_FN int tensor_of(unsigned block) const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (first[middle] <= block)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
#endif
};
using SmallNormTable = TensorTable<1, 48>;
CRESSET_LAYOUT(SmallNormTable, 968, count, 960);

struct AdamSettings {
  double lr, beta1, beta2, weight_decay, eps;
  double correction1, correction2;     // 1 - beta^step
  const float *grad_scale, *found_inf; // on the device; null: none
  int32_t amsgrad, maximize, decoupled;
};
CRESSET_LAYOUT(AdamSettings, 88, decoupled, 80);

struct AdagradSettings {
  double step_size, weight_decay, eps; // the learning rate of this step
  const float *grad_scale, *found_inf;
  int32_t maximize;
};
CRESSET_LAYOUT(AdagradSettings, 48, maximize, 40);

struct SgdSettings {
  double lr, momentum, weight_decay, dampening;
  const float *grad_scale, *found_inf;
  int32_t nesterov, maximize, first_step, buffered;
};
CRESSET_LAYOUT(SgdSettings, 64, buffered, 60);

} // namespace at::device
