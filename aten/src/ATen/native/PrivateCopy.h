// Contiguous copies in memory of their own, for code that looks at elements twice: checks indices
// and uses them, counts and writes. The elements themselves another thread or process might change
// in between.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::native {

// Of any dtype; bools become 0 and 1, whatever bytes they were.
Tensor private_copy(const Tensor& t);
// As int64.
Tensor long_copy(const Tensor& index);

} // namespace at::native
