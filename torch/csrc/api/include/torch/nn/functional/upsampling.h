// Where programs look for upsampling.
#pragma once
#include <torch/nn/functional/vision.h>
