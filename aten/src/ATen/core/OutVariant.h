// Operators of a backend that has only the variant which writes into a given tensor (`out=`): the
// sizes and dtype of the result come from the meta device, the backend's `empty` makes it.
#pragma once
#include <ATen/core/Dispatcher.h>

namespace at::detail {

// The built-in operator that takes what `op` takes and the result besides; null where there is
// none.
const OperatorEntry* find_out_variant(const OperatorEntry& op);
// A kernel for `op` that calls `out`.
c10::intrusive_ptr<BoxedKernel> kernel_by_out_variant(const OperatorEntry& out);

} // namespace at::detail
