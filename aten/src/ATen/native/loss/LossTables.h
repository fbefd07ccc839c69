// Names of the tables in Loss.simd.cpp, by instruction set.
#pragma once
#include <ATen/iter/LoopTable.h>

// clang-format off
#define CRESSET_FORALL_LOSS_TABLES(X)                                                              \
  X(Mse)                                                                                           \
  X(MseBackward)                                                                                   \
  X(SmoothL1) X(SmoothL1Backward) X(Huber) X(HuberBackward) X(SoftMargin) X(SoftMarginBackward)    \
      X(Bce) X(BceBackward) X(BceLogits) X(BceLogitsWeighted)
// clang-format on

#define CRESSET_DECLARE_LOSS(Name) extern const LoopTable loss_##Name;
namespace at::native::base {
CRESSET_FORALL_LOSS_TABLES(CRESSET_DECLARE_LOSS)
}
namespace at::native::avx2 {
CRESSET_FORALL_LOSS_TABLES(CRESSET_DECLARE_LOSS)
}
namespace at::native::avx512 {
CRESSET_FORALL_LOSS_TABLES(CRESSET_DECLARE_LOSS)
}
#undef CRESSET_DECLARE_LOSS
