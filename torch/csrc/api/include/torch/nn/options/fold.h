// Where programs look for options of fold.
#pragma once
#include <torch/nn/options/vision.h>
