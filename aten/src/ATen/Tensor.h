// ATen's name for tensors.
#pragma once
#include <ATen/core/Tensor.h>
