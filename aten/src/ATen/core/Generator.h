// ATen's name for generators.
#pragma once
#include <c10/core/Generator.h>
