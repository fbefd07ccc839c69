// The names that programs know views of text by.
#pragma once
#include <string_view>

namespace c10 {
using string_view = std::string_view;
} // namespace c10
