// torch::fft.
#pragma once
#include <torch/csrc/autograd/generated/fft_namespace.h>
#include <torch/types.h>
