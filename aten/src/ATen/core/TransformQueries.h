// What a kernel may ask about function transforms (vmap, grad, jvp) without knowing them: kernels
// lie below ATen/functorch, which defines these functions beside its levels.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::functorch {

// Whether the tensor belongs to a level of a transform.
TORCH_API bool is_transformed(const Tensor& t);

// Whether a vmap level, at any depth, gives the tensor another value for each sample: nothing may
// then be decided by its value.
TORCH_API bool varies_by_sample(const Tensor& t);

// Whether more than one derivative of the tensor may be taken: operators whose gradient has none
// itself had better be replaced by others.
TORCH_API bool is_differentiated_twice(const Tensor& t);

} // namespace at::functorch
