// Names of the tables in FunctorChoice.simd.cpp, by instruction set.
#pragma once
#include <ATen/iter/LoopTable.h>

// clang-format off
#define CRESSET_FORALL_CHOICE_TABLES(X)                                                            \
  X(DivTrunc) X(DivFloor) X(Clamp) X(ClampMin) X(ClampMax) X(Pow) X(Square) X(Cube) X(Sqrt)        \
  X(ClampNumbers) X(ClampMinNumber) X(ClampMaxNumber) X(PowWhole)                                  \
  X(Reciprocal) X(Round) X(RoundUp) X(RoundDown) X(Logit) X(NanToNum) X(Frexp)
// clang-format on

#define CRESSET_DECLARE_CHOICE(Name) extern const LoopTable choice_##Name;
namespace at::native::base {
CRESSET_FORALL_CHOICE_TABLES(CRESSET_DECLARE_CHOICE)
}
namespace at::native::avx2 {
CRESSET_FORALL_CHOICE_TABLES(CRESSET_DECLARE_CHOICE)
}
namespace at::native::avx512 {
CRESSET_FORALL_CHOICE_TABLES(CRESSET_DECLARE_CHOICE)
}
#undef CRESSET_DECLARE_CHOICE
