// Conversions between element types as 1-d loops: data[0] destination, data[1] source.
#pragma once
#include <ATen/iter/LoopTable.h>
#include <c10/macros/Macros.h>

namespace at {
// Null when one of the types has no conversion. The same type gives a plain copy.
TORCH_API native::Loop1d cast_loop(c10::ScalarType to, c10::ScalarType from);
} // namespace at
