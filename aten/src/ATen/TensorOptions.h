// ATen's name for options.
#pragma once
#include <c10/core/TensorOptions.h>
