// Text from anything with a stream operator: what lets c10::str and TORCH_CHECK take parts that
// have no `append` of their own.
#pragma once
#include <sstream>
#include <string>
#include <vector>

#include <c10/util/Exception.h>

namespace c10 {

namespace detail {
template <class T> struct StreamPart {
  static void append(std::string& out, const T& part) {
    std::ostringstream text;
    text << part;
    out += text.str();
  }
};
template <class T, class A> struct StreamPart<std::vector<T, A>> {
  static void append(std::string& out, const std::vector<T, A>& list) {
    const char* separator = "[";
    for (const T& value : list) {
      out += separator;
      append_part(out, value);
      separator = ", ";
    }
    out += list.empty() ? "[]" : "]";
  }
};
} // namespace detail

// The elements with `separator` between them.
template <class Container> std::string Join(const std::string& separator, const Container& parts) {
  std::string out;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) out += separator;
    first = false;
    detail::append_part(out, part);
  }
  return out;
}

} // namespace c10

namespace torch {
using c10::str;
} // namespace torch
