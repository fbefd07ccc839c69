// Where programs look for dropout.
#pragma once
#include <torch/nn/functional/normalization.h>
