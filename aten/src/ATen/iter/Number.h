// Python numbers as operands of pointwise operators. A number does not take part in the choice of
// the dtype beyond its category, so it may be one that the dtype cannot hold; what happens then
// differs by operator (NumberRule).
#pragma once
#include <ATen/iter/Pointwise.h>

namespace at::iter {

// Whether the number is an element of `type`: exactly for float16 and bfloat16, up to rounding for
// wider floating types, within the range for integers.
bool number_fits(const Scalar& value, ScalarType type);

// Writes the number as an element of `type`. Throws what Scalar::to throws under Checked.
void store_number(const Scalar& value, ScalarType type, NumberRule rule, void* where);

// The dtype of a loop: a number that float16 or bfloat16 cannot hold asks for float32 beside them,
// and so does a tensor of no dimensions of a wider type.
ScalarType loop_dtype(const PointwiseSpec& spec, Operands operands, ScalarType compute);

} // namespace at::iter
