// ATen's name for dtypes.
#pragma once
#include <c10/core/ScalarType.h>
