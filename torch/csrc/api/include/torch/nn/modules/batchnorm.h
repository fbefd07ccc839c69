// Where programs look for batchnorm.
#pragma once
#include <torch/nn/modules/normalization.h>
