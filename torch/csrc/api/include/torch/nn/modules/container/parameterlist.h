// Where programs look for parameterlist.
#pragma once
#include <torch/nn/modules/container/parameters.h>
