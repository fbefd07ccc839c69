// Ranges of integers with infinite ends. The smallest and the largest int64_t stand for minus and
// plus infinity; arithmetic that leaves 64 bits ends there, which only widens a range.
#pragma once
#include <cstdint>

#include <c10/macros/Macros.h>

namespace c10::sym {

struct C10_API Interval {
  int64_t low = INT64_MIN;
  int64_t high = INT64_MAX;

  static Interval point(int64_t value) { return {value, value}; }
  bool is_point() const { return low == high && low != INT64_MIN && high != INT64_MAX; }
  bool is_empty() const { return low > high; }
  bool contains(int64_t value) const { return low <= value && value <= high; }
  Interval intersect(Interval other) const;
  Interval hull(Interval other) const;
  bool operator==(Interval other) const { return low == other.low && high == other.high; }
  bool operator!=(Interval other) const { return !(*this == other); }

  static Interval add(Interval a, Interval b);
  static Interval mul(Interval a, Interval b);
  static Interval scale(Interval a, int64_t factor) { return mul(a, point(factor)); }
  // An unbounded range where the divisor may be 0.
  static Interval floordiv(Interval a, Interval b);
  static Interval mod(Interval a, Interval b);
  static Interval min(Interval a, Interval b);
  static Interval max(Interval a, Interval b);
  // Of one value with itself: not negative where the power is even.
  static Interval power(Interval a, uint32_t exponent);
};

} // namespace c10::sym
