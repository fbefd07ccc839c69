// torch::stable::Device.
#pragma once
#include <torch/csrc/stable/stableivalue_conversions.h>
