// Where programs look for fold.
#pragma once
#include <torch/nn/modules/vision.h>
