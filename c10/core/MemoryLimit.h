#pragma once

// How much memory this process can possibly have.

#include <cstdint>

namespace c10::detail {

/// Physical memory plus swap, or the cgroup's limit where that is lower. Read once.
int64_t memory_limit();

} // namespace c10::detail
