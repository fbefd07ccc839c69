// On the device an integer division by zero has no one to raise to: like the peer's, its result is
// unspecified. Included by device programs in place of the host's header of the same name.
#pragma once

namespace at::native::fn {
__device__ __forceinline__ void throw_zero_division() {}
} // namespace at::native::fn
