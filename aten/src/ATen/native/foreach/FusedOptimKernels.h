// One pass over a parameter and its optimizer state, per instruction set.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>
#include <c10/core/ScalarType.h>

namespace at::native::optim {

struct AdamSettings {
  double lr, beta1, beta2, weight_decay, eps, step;
  bool amsgrad, maximize, decoupled; // decoupled: AdamW's weight decay
};
struct SgdSettings {
  double lr, momentum, weight_decay, dampening;
  bool nesterov, maximize, first_step;
};
struct AdagradSettings {
  double rate, weight_decay, eps; // rate: after the decay
  bool maximize;
};

// Buffers of n elements of the table's dtype; max_exp_avg_sq may be null.
using AdamFn = void (*)(void* param, const void* grad, void* exp_avg, void* exp_avg_sq,
                        void* max_exp_avg_sq, int64_t n, const AdamSettings& settings);
// momentum_buffer may be null.
using SgdFn = void (*)(void* param, const void* grad, void* momentum_buffer, int64_t n,
                       const SgdSettings& settings);
using AdagradFn = void (*)(void* param, const void* grad, void* state_sum, int64_t n,
                           const AdagradSettings& settings);

struct Table {
  AdamFn adam[c10::NumScalarTypes] = {};
  AdagradFn adagrad[c10::NumScalarTypes] = {};
  SgdFn sgd[c10::NumScalarTypes] = {};
};

CRESSET_ISA_TABLE(Table);

} // namespace at::native::optim
