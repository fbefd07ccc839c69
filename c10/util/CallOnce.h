// c10::call_once: the standard library's, which is as quick where it matters.
#pragma once
#include <mutex>

namespace c10 {
using std::call_once;
using std::once_flag;
} // namespace c10
