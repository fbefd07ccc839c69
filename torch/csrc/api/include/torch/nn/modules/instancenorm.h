// Where programs look for instancenorm.
#pragma once
#include <torch/nn/modules/normalization.h>
