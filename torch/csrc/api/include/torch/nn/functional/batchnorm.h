// Where programs look for batchnorm.
#pragma once
#include <torch/nn/functional/normalization.h>
