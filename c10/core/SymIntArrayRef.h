// Where programs look for SymIntArrayRef.
#pragma once
#include <c10/core/SymInt.h>
