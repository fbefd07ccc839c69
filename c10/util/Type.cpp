// Demangling by the C++ ABI's own function.
#include <c10/util/Type.h>

#include <cxxabi.h>

#include <cstdlib>

namespace c10 {
std::string demangle(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = status == 0 && text ? text : name;
  std::free(text);
  return out;
}
} // namespace c10
