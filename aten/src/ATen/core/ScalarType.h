// Where programs look for ScalarType.
#pragma once
#include <c10/core/ScalarType.h>
