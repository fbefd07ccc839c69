// What programs that load scripted modules include, and most extensions that register operators.
// torch::jit::load and torch::jit::Module are in torch/jit.h; tensors, autograd and registration
// come with it.
#pragma once
#include <cassert>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <ATen/core/op_registration/op_registration.h>
#include <torch/autograd.h>
#include <torch/jit.h>
#include <torch/library.h>
#include <torch/types.h>
#include <torch/utils.h>
