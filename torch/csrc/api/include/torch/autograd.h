// torch::autograd.
#pragma once
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
