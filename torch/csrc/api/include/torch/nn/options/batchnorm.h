// Where programs look for options of batchnorm.
#pragma once
#include <torch/nn/options/normalization.h>
