// What a Python function gave back as the result of a built-in operator. Kernels in C++ that call
// the operator trust its shape function: a result of another size or dtype, or without memory,
// would send them outside of it.
#pragma once
#include <ATen/core/Dispatcher.h>

namespace torch::python {

// Throws c10::Error unless the results have the geometry that the operator's own shape function
// gives for `arguments`. Operators without one, and those whose sizes depend on values, pass.
void check_results(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack arguments,
                   const at::Stack& results);

} // namespace torch::python
