// The order in which an iteration over several operands goes through their dimensions.
#pragma once
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

namespace at {

// Dimensions from the innermost outwards, by the strides of the first operand that tells two of
// them apart; ties keep row-major order. Each list of strides is as long as the shape, 0 where an
// operand does not move.
c10::DimVector dimension_order(c10::IntArrayRef shape, c10::ArrayRef<c10::IntArrayRef> strides);

} // namespace at
