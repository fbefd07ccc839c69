// Where programs look for dropout.
#pragma once
#include <torch/nn/modules/normalization.h>
