// Where programs look for OptionalArrayRef.
#pragma once
#include <c10/util/ArrayRef.h>
