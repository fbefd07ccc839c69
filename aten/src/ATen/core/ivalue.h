// The spelling C++ programs include: c10::IValue is at::IValue.
#pragma once
#include <ATen/core/IValue.h>

namespace c10 {
using at::IValue;
using at::Stack;
} // namespace c10
