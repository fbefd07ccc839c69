// Where programs look for padding.
#pragma once
#include <torch/nn/modules/vision.h>
