// Where programs look for ArrayRef.
#pragma once
#include <c10/util/ArrayRef.h>
