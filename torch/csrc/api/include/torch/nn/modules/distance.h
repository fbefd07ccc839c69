// Where programs look for distance.
#pragma once
#include <torch/nn/modules/normalization.h>
