// Guards, threads and seeds under torch::.
#pragma once
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/types.h>

namespace torch {

using autograd::AutoGradMode;
using autograd::NoGradGuard;
// Gradient recording is off, and may be assumed to stay off for what was made meanwhile.
using InferenceMode = c10::InferenceMode;

using at::get_num_interop_threads;
using at::get_num_threads;
using at::manual_seed;
using at::set_num_interop_threads;
using at::set_num_threads;
// A tensor of zeros without memory: autograd's own kind of tensor, which does not exist here.
inline Tensor _efficientzerotensor(IntArrayRef, const TensorOptions& = {}) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "torch::_efficientzerotensor is not implemented");
  return {};
}
inline void init_num_threads() { at::get_num_threads(); }

} // namespace torch
