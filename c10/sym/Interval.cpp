// See Interval.h. Ends are computed one by one; infinities stay where they are.
#include <c10/sym/Interval.h>

#include <algorithm>

#include <c10/sym/Expr.h>

namespace c10::sym {

namespace {
constexpr int64_t kLow = INT64_MIN, kHigh = INT64_MAX;
bool infinite(int64_t x) { return x == kLow || x == kHigh; }

// `other` infinity never meets the opposite one at the same end of two ranges.
int64_t end_add(int64_t a, int64_t b) {
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  int64_t out;
  return __builtin_add_overflow(a, b, &out) ? (a < 0 ? kLow : kHigh) : out;
}

int64_t end_mul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  const int64_t limit = (a < 0) == (b < 0) ? kHigh : kLow;
  if (infinite(a) || infinite(b)) return limit;
  int64_t out;
  return __builtin_mul_overflow(a, b, &out) ? limit : out;
}

int64_t end_floordiv(int64_t a, int64_t b) {
  if (infinite(b)) return a == 0 ? 0 : ((a < 0) == (b < 0) ? 0 : -1);
  if (infinite(a)) return (a < 0) == (b < 0) ? kHigh : kLow;
  return floor_divide(a, b);
}

template <class F> Interval over_corners(Interval a, Interval b, F f) {
  const int64_t corners[] = {f(a.low, b.low), f(a.low, b.high), f(a.high, b.low),
                             f(a.high, b.high)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}
} // namespace

Interval Interval::intersect(Interval other) const {
  return {std::max(low, other.low), std::min(high, other.high)};
}
Interval Interval::hull(Interval other) const {
  return {std::min(low, other.low), std::max(high, other.high)};
}
Interval Interval::add(Interval a, Interval b) {
  return {end_add(a.low, b.low), end_add(a.high, b.high)};
}
Interval Interval::mul(Interval a, Interval b) { return over_corners(a, b, end_mul); }
Interval Interval::floordiv(Interval a, Interval b) {
  if (b.contains(0)) return {};
  return over_corners(a, b, end_floordiv);
}
Interval Interval::mod(Interval a, Interval b) {
  if (b.contains(0)) return {};
  if (b.low > 0) {
    if (a.low >= 0 && a.high < b.low) return a;
    return {0, b.high == kHigh ? kHigh : b.high - 1};
  }
  return {b.low == kLow ? kLow : b.low + 1, 0};
}
Interval Interval::min(Interval a, Interval b) {
  return {std::min(a.low, b.low), std::min(a.high, b.high)};
}
Interval Interval::max(Interval a, Interval b) {
  return {std::max(a.low, b.low), std::max(a.high, b.high)};
}
Interval Interval::power(Interval a, uint32_t exponent) {
  Interval out = point(1);
  for (uint32_t i = 0; i < exponent; ++i) out = mul(out, a);
  if (exponent % 2 == 0) {
    // The product of corners mixes the ends; a value meets only itself.
    const Interval ends{end_mul(a.low, a.low), end_mul(a.high, a.high)};
    out.low = std::max<int64_t>(out.low, 0);
    if (exponent == 2 && !a.contains(0)) out.low = std::min(ends.low, ends.high);
  }
  return out;
}

} // namespace c10::sym
