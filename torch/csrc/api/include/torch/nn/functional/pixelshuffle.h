// Where programs look for pixelshuffle.
#pragma once
#include <torch/nn/functional/vision.h>
