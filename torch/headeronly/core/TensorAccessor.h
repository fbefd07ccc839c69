// Elements of a tensor as nested arrays, for code that links with no part of this library:
//   HeaderOnlyTensorAccessor<float, 2> a(data, sizes, strides);  a[i][j]
#pragma once
#include <c10/core/TensorAccessor.h>

namespace torch::headeronly {
template <class T> using DefaultPtrTraits = at::DefaultPtrTraits<T>;
template <class T> using RestrictPtrTraits = at::RestrictPtrTraits<T>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
using HeaderOnlyTensorAccessor = at::TensorAccessor<T, N, Traits, Index>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
using HeaderOnlyGenericPackedTensorAccessor = at::GenericPackedTensorAccessor<T, N, Traits, Index>;
} // namespace torch::headeronly
