// Integer division by zero: the loops call this cold function, which raises RuntimeError with the
// text programs look for.
#pragma once

#include <c10/macros/Macros.h>

namespace at::native::fn {

[[noreturn]] TORCH_API void throw_zero_division();

} // namespace at::native::fn
