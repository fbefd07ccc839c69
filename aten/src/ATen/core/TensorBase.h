// TensorBase is Tensor here.
#pragma once
#include <ATen/core/Tensor.h>
