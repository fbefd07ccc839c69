// The size of a ragged dimension as programs make it.
#pragma once
#include <c10/core/NestedInt.h>
#include <c10/core/SymNodeImpl.h>

namespace c10 {

class NestedIntSymNodeImpl final : public DescribedSymNode {
 public:
  NestedIntSymNodeImpl(int64_t number, int64_t factor) : number_(number), factor_(factor) {}
  SymInt number() const override { return nested_int(number_, factor_); }

 private:
  int64_t number_, factor_;
};

} // namespace c10
