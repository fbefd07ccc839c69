// The 1-d loop of where(): data[0] the output, data[1] bools, data[2] and data[3] the choices, all
// of `itemsize` bytes but the bools.
#pragma once
#include <ATen/iter/LoopTable.h>

namespace at::native {
Loop1d where_loop(int64_t itemsize);
} // namespace at::native
