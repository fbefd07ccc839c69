// The check of binary_cross_entropy's input inside its functor. On the CPU it was made before the
// loop, which stays free of branches; device programs have their own form of this header, which
// reports.
#pragma once

#include <c10/macros/Macros.h>

namespace at::native::fn {

template <class V> C10_ALWAYS_INLINE void check_probability(const V&) {}

} // namespace at::native::fn
