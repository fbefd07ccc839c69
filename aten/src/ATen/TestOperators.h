// Functions with which programs test the choice between overloads: the defaults of the first could
// be those of the second.
#pragma once
#include <string_view>

#include <ATen/Functions.h>

namespace at {

inline Tensor _test_ambiguous_defaults(const Tensor&, int64_t a = 1, int64_t b = 1) {
  TORCH_CHECK(a == 1 && b == 1, "_test_ambiguous_defaults: expected 1 and 1, got ", a, " and ", b);
  return at::scalar_tensor(1);
}
inline Tensor _test_ambiguous_defaults(const Tensor&, int64_t a, std::string_view b) {
  TORCH_CHECK(a == 2 && b == "2", "_test_ambiguous_defaults: expected 2 and \"2\", got ", a,
              " and \"", b, "\"");
  return at::scalar_tensor(2);
}

} // namespace at
