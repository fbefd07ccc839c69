// Element types for code that links with no part of this library: the numbering never changes.
#pragma once
#include <c10/core/ScalarType.h>

namespace torch::headeronly {
using c10::ScalarType;
constexpr ScalarType kBool = c10::kBool, kByte = c10::kByte, kChar = c10::kChar,
                     kShort = c10::kShort, kInt = c10::kInt, kLong = c10::kLong,
                     kUInt16 = c10::kUInt16, kUInt32 = c10::kUInt32, kUInt64 = c10::kUInt64,
                     kHalf = c10::kHalf, kBFloat16 = c10::kBFloat16, kFloat = c10::kFloat,
                     kDouble = c10::kDouble, kComplexFloat = c10::kComplexFloat,
                     kComplexDouble = c10::kComplexDouble;
} // namespace torch::headeronly
