// Which dimensions a reduction is over, and what shape it leaves.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/native/reduce/ReduceDriver.h>

namespace at::native::reduce {

// The bits of all dimensions. Error when there are more than 64.
DimMask all_dims(int64_t ndim);
// `dims` wrapped and each named once; none given, or an empty list when `empty_is_all`, means all.
DimMask dims_mask(OptionalIntArrayRef dims, int64_t ndim, bool empty_is_all = true);
inline DimMask dim_mask(int64_t dim, int64_t ndim) { return dims_mask(IntArrayRef(&dim, 1), ndim); }
inline DimMask dim_mask(std::optional<int64_t> dim, int64_t ndim) {
  return dim ? dim_mask(*dim, ndim) : all_dims(ndim);
}
DimVector reduced_shape(IntArrayRef sizes, DimMask mask, bool keepdim);
// For reductions without identity: errors when a result would have no element. `fn` starts the
// message.
void check_not_empty(const Tensor& self, OptionalIntArrayRef dims, const char* fn);

} // namespace at::native::reduce
