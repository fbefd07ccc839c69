// The host side of DenseIndex.cuh: gather and scatter_add of dense tensors, for which the general
// plan (IndexPlan.h) computes too much per element and sorts. Both run on the current device and
// stream, take tensors of at least rank 1, and answer false where the layout does not fit.
#pragma once

#include <ATen/core/Tensor.h>

namespace at::native::cuda_index {

// out[..., i, ...] = self[..., index[..., i, ...], ...] along `dim`.
bool gather_dense(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out);

// self[..., index[..., i, ...], ...] += source[..., i, ...] along `dim`, in the order of i.
bool scatter_add_dense(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                       const char* op);

} // namespace at::native::cuda_index
