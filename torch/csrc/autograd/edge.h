// Where programs look for edges of the autograd graph.
#pragma once
#include <torch/csrc/autograd/node.h>
