// Where programs look for options of instancenorm.
#pragma once
#include <torch/nn/options/normalization.h>
