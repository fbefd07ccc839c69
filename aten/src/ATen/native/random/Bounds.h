// Whether numbers in double precision are bounds that a floating dtype can hold: the same check,
// with PyTorch's texts, before a uniform fill on any device.
#pragma once
#include <cmath>

#include <ATen/core/Tensor.h>

namespace at::native {

// The largest finite element of a floating dtype, and its name in C++.
struct FloatingRange {
  double largest;
  const char* name;
};

inline FloatingRange floating_range(ScalarType type) {
  switch (type) {
  case kHalf:
    return {65504.0, "c10::Half"};
  case kBFloat16:
    return {3.3895313892515355e38, "c10::BFloat16"};
  case kDouble:
    return {std::numeric_limits<double>::max(), "double"};
  default:
    return {std::numeric_limits<float>::max(), "float"};
  }
}

inline void check_uniform_bounds(const Tensor& self, double from, double to) {
  const FloatingRange range = floating_range(self.scalar_type());
  TORCH_CHECK(std::abs(from) <= range.largest, "from is out of bounds for ", range.name);
  TORCH_CHECK(std::abs(to) <= range.largest, "to is out of bounds for ", range.name);
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from,
              " > to=", to);
  TORCH_CHECK(to - from <= range.largest, "uniform_ expects to-from <= std::numeric_limits<",
              self.scalar_type(), ">::max(), but found to=", to, " and from=", from,
              " which result in to-from to exceed the limit");
}

} // namespace at::native
