// Where programs look for instancenorm.
#pragma once
#include <torch/nn/functional/normalization.h>
