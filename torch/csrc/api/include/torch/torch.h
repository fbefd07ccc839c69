// The C++ side in one include: tensors with their operators, factories that heed requires_grad,
// autograd, and the registration of operators, all reachable as torch::.
#pragma once
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Library.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/generated/factories.h>
#include <torch/csrc/autograd/grad_mode.h>

namespace torch {
using namespace at; // NOLINT: that torch:: offers what at:: has is the interface
using at::Device;
using at::Tensor;
using at::TensorList;
using at::TensorOptions;
using autograd::AutoGradMode;
using autograd::NoGradGuard;
} // namespace torch
