// Tables of loops that a *.simd.cpp file fills once per instruction set. A family's header declares
// its table with CRESSET_ISA_TABLE, and one of its ordinary sources defines which one this machine
// uses with CRESSET_DEFINE_ISA_TABLE: not the header, whose inline functions the linker would take
// from whichever instruction set it meets first.
#pragma once

#include <ATen/iter/CpuIsa.h>

// In the family's namespace: fill(table) of each instruction set, and table(), this machine's.
#define CRESSET_ISA_TABLE(Table)                                                                   \
  namespace base {                                                                                 \
  void fill(Table& table);                                                                         \
  }                                                                                                \
  namespace avx2 {                                                                                 \
  void fill(Table& table);                                                                         \
  }                                                                                                \
  namespace avx512 {                                                                               \
  void fill(Table& table);                                                                         \
  }                                                                                                \
  const Table& table()

// In the same namespace. Filled at the first call; safe from any thread.
#define CRESSET_DEFINE_ISA_TABLE(Table)                                                            \
  const Table& table() {                                                                           \
    static const Table* const made = [] {                                                          \
      auto* t = new Table();                                                                       \
      CRESSET_BY_ISA(, fill)(*t);                                                                  \
      return t;                                                                                    \
    }();                                                                                           \
    return *made;                                                                                  \
  }                                                                                                \
  static_assert(true)
