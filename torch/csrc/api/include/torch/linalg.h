// torch::linalg.
#pragma once
#include <torch/csrc/autograd/generated/linalg_namespace.h>
#include <torch/types.h>
