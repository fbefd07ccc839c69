// Where programs look for options of upsampling.
#pragma once
#include <torch/nn/options/vision.h>
