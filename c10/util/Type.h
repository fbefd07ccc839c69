// Names of types as people write them.
#pragma once
#include <string>
#include <typeinfo>

#include <c10/macros/Macros.h>

namespace c10 {
// "float" for "f"; the text itself where it is no mangled name.
C10_API std::string demangle(const char* name);
template <class T> const char* demangle_type() {
  static const std::string* const name = new std::string(demangle(typeid(T).name()));
  return name->c_str();
}
} // namespace c10
