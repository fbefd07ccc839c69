// torch::special.
#pragma once
#include <torch/csrc/autograd/generated/special_namespace.h>
#include <torch/types.h>
