// Where programs look for upsampling.
#pragma once
#include <torch/nn/modules/vision.h>
