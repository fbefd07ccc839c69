// A header that programs include for autograd's own functions. The formulas of the operators' nodes
// are internal; what programs may call is in variable.h and engine.h.
#pragma once
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>
