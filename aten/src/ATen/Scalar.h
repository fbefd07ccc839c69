// ATen's name for numbers.
#pragma once
#include <c10/core/Scalar.h>
