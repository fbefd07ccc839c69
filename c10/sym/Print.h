// Expressions as text: as PyTorch prints them, as Python and as C++ that compute them.
#pragma once
#include <functional>

#include <c10/sym/Expr.h>

namespace c10::sym {

enum class Dialect : uint8_t {
  Torch,  // s0*s1 + 2, (s0//2), Mod(s0, 2), Eq(s0, 4): what logs, errors and graphs show
  Python, // (s0 // 2), s0 % 2, s0 == 4: guards as code
  Cpp,    // floor_div(s0, 2LL), ...: for generated kernels, which bring these functions
};

C10_API std::string print(const Arena& arena, Expr e, Dialect dialect = Dialect::Torch);
// With other names for the symbols: expressions such as L['x'].size()[0].
C10_API std::string print(const Arena& arena, Expr e, Dialect dialect,
                          const std::function<std::string(const std::string&)>& rename);

} // namespace c10::sym
