// Where programs look for nodes of the autograd graph.
#pragma once
#include <torch/csrc/autograd/node.h>
