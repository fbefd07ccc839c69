// Names of dimensions, as C++ code spells them. Tensors have none in this library; what would give
// them names raises NotImplementedError.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace c10 {
class Symbol {
 public:
  static Symbol dimname(std::string name) { return Symbol(std::move(name)); }
  const std::string& toUnqualString() const { return name_; }

 private:
  explicit Symbol(std::string name) : name_(std::move(name)) {}
  std::string name_;
};
} // namespace c10

namespace at {
using c10::Symbol;

class Dimname {
 public:
  static Dimname fromSymbol(Symbol symbol) { return Dimname(std::move(symbol)); }
  static Dimname wildcard() { return Dimname(Symbol::dimname("*")); }
  const Symbol& symbol() const { return symbol_; }

 private:
  explicit Dimname(Symbol symbol) : symbol_(std::move(symbol)) {}
  Symbol symbol_;
};
using DimnameList = ArrayRef<Dimname>;

} // namespace at
