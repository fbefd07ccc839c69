// Where programs look for dispatch keys.
#pragma once
#include <c10/core/DispatchKeySet.h>
