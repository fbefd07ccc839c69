// c10::Float8_e4m3fnuz for code that links with no part of this library.
#pragma once
#include <c10/util/Float8.h>

namespace torch::headeronly {
using c10::Float8_e4m3fnuz;
} // namespace torch::headeronly
