// How a write to a view is carried back to the tensor that it views. The entry of each view
// operator in native_functions.yaml names its function (`inverse: select`); torchgen checks that
// the fact is there and emits the table.
#pragma once
#include <ATen/functional/Engine.h>

namespace at::functional {

// One view that was written.
struct ViewCall {
  const Stack& args;    // of the view operator; args[0] is empty
  size_t output;        // which of its results
  const Tensor& before; // what it viewed
  const Tensor& now;    // what the view has to be
  bool copies;          // whether view operators are run in their copying form
};

// `before` with `now` where the view is.
using Inverse = Tensor (*)(const ViewCall&);

// The inverse of a view operator; null when a write to its result cannot be carried back.
TORCH_API Inverse inverse_of(const OperatorEntry& op);

namespace inverse {
Tensor select(const ViewCall&);
Tensor slice(const ViewCall&);
Tensor diagonal(const ViewCall&);
Tensor transpose(const ViewCall&);
Tensor t(const ViewCall&);
Tensor permute(const ViewCall&);
Tensor unbind(const ViewCall&);
Tensor split(const ViewCall&);
Tensor split_with_sizes(const ViewCall&);
Tensor as_strided(const ViewCall&);
Tensor view(const ViewCall&);
Tensor squeeze(const ViewCall&);
Tensor unsqueeze(const ViewCall&);
Tensor expand(const ViewCall&);
Tensor unfold(const ViewCall&);
Tensor same(const ViewCall&);
Tensor view_dtype(const ViewCall&);
Tensor view_as_real(const ViewCall&);
Tensor view_as_complex(const ViewCall&);
Tensor conj(const ViewCall&);
Tensor neg(const ViewCall&);
} // namespace inverse

namespace detail {
struct InverseRow {
  const OperatorEntry* op;
  Inverse inverse;
};
// Generated (ViewInverses.cpp).
ArrayRef<InverseRow> inverse_table();
} // namespace detail

} // namespace at::functional
