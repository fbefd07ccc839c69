// torch::stable::Tensor and its conversions.
#pragma once
#include <torch/csrc/stable/stableivalue_conversions.h>
