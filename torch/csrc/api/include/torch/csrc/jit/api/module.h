// Where programs look for torch::jit::Module.
#pragma once
#include <torch/jit.h>
