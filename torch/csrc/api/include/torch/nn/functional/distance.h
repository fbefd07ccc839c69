// Where programs look for distance.
#pragma once
#include <torch/nn/functional/normalization.h>
