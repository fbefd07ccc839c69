// Where programs look for torch::jit::load.
#pragma once
#include <torch/jit.h>
