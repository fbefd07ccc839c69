// ATen's name for accessors.
#pragma once
#include <c10/core/TensorAccessor.h>
