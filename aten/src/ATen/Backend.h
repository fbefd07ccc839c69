// Where programs look for at::Backend.
#pragma once
#include <ATen/core/DeprecatedTypeProperties.h>
