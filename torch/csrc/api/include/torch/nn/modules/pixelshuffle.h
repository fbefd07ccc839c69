// Where programs look for pixelshuffle.
#pragma once
#include <torch/nn/modules/vision.h>
