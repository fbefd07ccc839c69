// c10::optional is std::optional.
#pragma once
#include <optional>
#include <type_traits>

namespace c10 {
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
} // namespace c10
