// What programs that load scripted modules include, and most extensions that register operators.
// Tensors, autograd and registration come with it; torch::jit itself does not exist in this
// version.
#pragma once
#include <cassert>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <ATen/core/op_registration/op_registration.h>
#include <torch/autograd.h>
#include <torch/library.h>
#include <torch/types.h>
#include <torch/utils.h>
