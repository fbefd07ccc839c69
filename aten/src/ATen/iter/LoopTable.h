// The contract between the iterator, which is compiled once, and the element loops, which are
// compiled per operator, element type and instruction set: a plain function pointer per type. All
// templates stay on the kernels' side of this line.
#pragma once

#include <cstdint>

#include <c10/core/ScalarType.h>

namespace at::native {

// data[0] is the output (multi-output operators: outputs first), then the inputs. strides are in
// bytes, in the same order; 0 repeats one element. n >= 0 elements.
// Inputs and a `Same` output have the loop's type T. params points to the operator's scalar
// parameters, in order, each of the type T computes in: float for Half and BFloat16, complex<float>
// for complex<Half>, T itself otherwise; nullptr where the operator has none.
// An output may be one of the inputs (same address and stride); other overlap is the caller's
// error.
using Loop1d = void (*)(char* const* data, const int64_t* strides, int64_t n, const void* params);

// What the output holds: the loop's type, bool, or the real type of the loop's type.
enum class OutKind : uint8_t { Same, Bool, Real };

// One operator for one instruction set; nullptr = the operator is not defined for that type.
struct LoopTable {
  Loop1d loop[c10::NumScalarTypes];
};

} // namespace at::native
