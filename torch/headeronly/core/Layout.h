// Layouts for code that links with no part of this library.
#pragma once
#include <c10/core/Layout.h>

namespace torch::headeronly {
using c10::Layout;
} // namespace torch::headeronly
