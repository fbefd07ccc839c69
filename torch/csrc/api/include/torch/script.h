// What programs that load scripted modules include. Tensors, autograd and the registration of
// operators come with it; torch::jit itself does not exist in this version.
#pragma once
#include <torch/autograd.h>
#include <torch/library.h>
#include <torch/types.h>
#include <torch/utils.h>
