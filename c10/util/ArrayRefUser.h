// Streams and older names of array views, for code outside of this library.
#pragma once
#include <iosfwd>

#include <c10/util/ArrayRef.h>

namespace c10 {

using IntList = ArrayRef<int64_t>;
template <class T> ArrayRef<T> makeArrayRef(const std::vector<T>& list) { return list; }
template <class T> ArrayRef<T> makeArrayRef(const T* data, size_t size) { return {data, size}; }

// Templates over the stream's traits need no stream here.
template <class Traits, class T> std::basic_ostream<char, Traits>&
operator<<(std::basic_ostream<char, Traits>& out, ArrayRef<T> list) {
  const char* separator = "[";
  for (const T& value : list) {
    out << separator << value;
    separator = ", ";
  }
  return out << (list.empty() ? "[]" : "]");
}

} // namespace c10
