// Everything of at:: under torch::, with factories that heed requires_grad.
#pragma once
#include <cassert>
#include <climits>
#include <cmath>
#include <iostream>

#include <ATen/ATen.h>
#include <ATen/NativeFunctions.h>
#include <c10/core/DeviceType.h>
#include <c10/core/GradMode.h>
#include <c10/util/complex_abs.h>
#include <torch/csrc/autograd/generated/factories.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/from_blob.h>
#include <torch/tensor.h>

namespace c10 {
using torch::autograd::AutoGradMode;
using torch::autograd::NoGradGuard;
} // namespace c10
namespace at {
using c10::AutoGradMode;
using c10::NoGradGuard;
} // namespace at
namespace torch::autograd {
using c10::GradMode;
using c10::InferenceMode;
} // namespace torch::autograd

namespace torch {

using namespace at; // NOLINT: that torch:: offers what at:: has is the interface
using at::Device;
using at::Tensor;
using at::TensorList;
using at::TensorOptions;
using at::WarningHandler; // c10::WarningHandler is another type
using c10::nullopt;
using c10::optional;
using Dtype = at::ScalarType;

using autograd::AutoGradMode;
using autograd::NoGradGuard;

// ---- dtypes by their Python names
constexpr auto kU8 = at::kByte;
constexpr auto kI8 = at::kChar;
constexpr auto kI16 = at::kShort;
constexpr auto kI32 = at::kInt;
constexpr auto kI64 = at::kLong;
constexpr auto kF16 = at::kHalf;
constexpr auto kF32 = at::kFloat;
constexpr auto kF64 = at::kDouble;

} // namespace torch
