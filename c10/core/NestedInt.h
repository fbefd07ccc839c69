// Sizes of ragged dimensions: `factor * j`, where j stands for the lengths of all components of a
// nested tensor at once. Such a number can be compared and multiplied by a positive integer, and
// has no value. Every length is taken to be 2 or more, so some comparisons with numbers are
// decided; the others raise.
#pragma once
#include <c10/core/SymInt.h>

namespace c10 {

// The symbol j of this number, times `factor`, which is positive. The same arguments give the same
// handle, which lives as long as the process.
C10_API SymInt nested_int(int64_t number, int64_t factor);

} // namespace c10
