// torch::nn::functional.
#pragma once
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/linear.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/functional/normalization.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/functional/vision.h>
