// c10::Half for code that links with no part of this library.
#pragma once
#include <c10/util/Half.h>

namespace torch::headeronly {
using c10::Half;
} // namespace torch::headeronly
