// Where programs look for parameterdict.
#pragma once
#include <torch/nn/modules/container/parameters.h>
