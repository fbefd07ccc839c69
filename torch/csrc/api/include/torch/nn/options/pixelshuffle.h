// Where programs look for options of pixelshuffle.
#pragma once
#include <torch/nn/options/vision.h>
