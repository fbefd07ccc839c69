// c10::complex for code that links with no part of this library.
#pragma once
#include <c10/util/complex.h>

namespace torch::headeronly {
using c10::complex;
} // namespace torch::headeronly
