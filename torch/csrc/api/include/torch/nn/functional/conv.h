// Where programs look for conv.
#pragma once
#include <torch/nn/functional/linear.h>
