#pragma once

// How many threads this process may use: what the user asked for, else what the machine really
// gives it. A pool larger than the affinity mask or the container's quota only adds throttling.

namespace at::detail {

/// At least 1, at most 1024. Reads the environment and the system each time.
int default_num_threads();

} // namespace at::detail
