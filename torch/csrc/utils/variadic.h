// Helpers for packs of arguments.
#pragma once
#include <type_traits>
#include <utility>

namespace torch {

template <bool... values> using all_of = std::bool_constant<(values && ...)>;
template <bool... values> using any_of = std::bool_constant<(values || ...)>;

// Calls `function` with each argument in turn.
template <class Function, class... Ts> void apply(Function function, Ts&&... values) {
  (static_cast<void>(function(std::forward<Ts>(values))), ...);
}

} // namespace torch
