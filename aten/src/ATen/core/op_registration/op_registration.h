// Where extensions look for the registration of operators.
#pragma once
#include <ATen/core/Library.h>
