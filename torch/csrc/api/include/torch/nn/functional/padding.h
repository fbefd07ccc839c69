// Where programs look for padding.
#pragma once
#include <torch/nn/functional/vision.h>
