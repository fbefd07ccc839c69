// Where programs look for fold.
#pragma once
#include <torch/nn/functional/linear.h>
