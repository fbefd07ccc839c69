// Python numbers as operands of pointwise operators. A number does not take part in the choice of
// the dtype beyond its category, so it may be one that the dtype cannot hold; what happens then
// differs by operator.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::iter {

enum class NumberRule : uint8_t {
  Wrap,    // integers wrap around, floating numbers round or become infinite
  Wide,    // the same, but beside float16 and bfloat16 the number stays a float32: x * 0.1
  Checked, // out of range is an error
};

// By the operator's name in its PointwiseSpec.
NumberRule number_rule(const char* op);

// Whether the number is an element of `type`: exactly for float16 and bfloat16, up to rounding for
// wider floating types, within the range for integers.
bool number_fits(const Scalar& value, ScalarType type);

// Writes the number as an element of `type`. Throws what Scalar::to throws under Checked.
void store_number(const Scalar& value, ScalarType type, NumberRule rule, void* where);

} // namespace at::iter
