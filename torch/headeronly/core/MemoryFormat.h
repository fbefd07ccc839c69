// Memory formats for code that links with no part of this library.
#pragma once
#include <c10/core/MemoryFormat.h>

namespace torch::headeronly {
using c10::MemoryFormat;
} // namespace torch::headeronly
