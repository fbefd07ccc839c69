// Where programs look for Half.
#pragma once
#include <c10/util/Half.h>
