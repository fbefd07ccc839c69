#pragma once

// Long loops that respond to Ctrl-C. A loop that cannot be cut into independent chunks goes through
// its range in stretches and asks in between; clearing and copying memory can be cut, and is. Kept
// apart from Parallel.h, which every kernel includes.

#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace at {

/// Simple steps between two questions: about a millisecond of work.
constexpr int64_t kStretch = int64_t(1) << 18;

/// Calls f(b, e) for stretches of [begin, end), in order, on this thread. `cost` is the number of
/// simple steps that one element takes.
template <class F> void serial_for(int64_t begin, int64_t end, int64_t cost, const F& f) {
  const int64_t stretch = std::max<int64_t>(1, kStretch / std::max<int64_t>(cost, 1));
  for (int64_t b = begin; b < end;) {
    const int64_t e = end - b <= stretch ? end : b + stretch;
    f(b, e);
    b = e;
    if (b < end) check_interrupt();
  }
}

/// For loops without one range: counts steps, and asks every kStretch of them.
class Steps {
 public:
  void add(int64_t steps) {
    left_ -= steps;
    if (left_ > 0) return;
    left_ = kStretch;
    check_interrupt();
  }

 private:
  int64_t left_ = kStretch;
};

constexpr int64_t kByteGrain = int64_t(1) << 20;

inline void parallel_zero(void* data, int64_t bytes) {
  parallel_for(0, bytes, kByteGrain, [=](int64_t b, int64_t e) {
    std::memset(static_cast<char*>(data) + b, 0, static_cast<size_t>(e - b));
  });
}

/// The two do not overlap.
inline void parallel_copy(void* to, const void* from, int64_t bytes) {
  parallel_for(0, bytes, kByteGrain, [=](int64_t b, int64_t e) {
    std::memcpy(static_cast<char*>(to) + b, static_cast<const char*>(from) + b,
                static_cast<size_t>(e - b));
  });
}

} // namespace at
