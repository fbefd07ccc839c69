// c10::BFloat16 for code that links with no part of this library.
#pragma once
#include <c10/util/BFloat16.h>

namespace torch::headeronly {
using c10::BFloat16;
} // namespace torch::headeronly
