// Where the dispatcher finds the kernels of sparse tensors that are not in the operator list: they
// are named in a table of ATen/native/sparse, which lies above this folder and defines this.
#pragma once
#include <ATen/core/Dispatcher.h>

namespace at::sparse {

// The boxed kernel of an operator for COO tensors, or for compressed ones (`csr`); null where there
// is none.
TORCH_API c10::intrusive_ptr<BoxedKernel> sparse_fallback(const OperatorEntry& op, bool csr);

} // namespace at::sparse
