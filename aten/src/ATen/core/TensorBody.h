// ATen's other name for tensors.
#pragma once
#include <ATen/core/Tensor.h>
