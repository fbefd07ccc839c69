// Where programs look for embedding.
#pragma once
#include <torch/nn/functional/linear.h>
