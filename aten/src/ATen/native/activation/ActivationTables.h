// Names of the tables in Activation.simd.cpp, by instruction set.
#pragma once
#include <ATen/iter/LoopTable.h>

// clang-format off
#define CRESSET_FORALL_ACTIVATION_TABLES(X)                                                        \
  X(Gelu)                                                                                          \
  X(GeluTanh)                                                                                      \
  X(GeluBackward) X(GeluTanhBackward) X(EluBackward) X(EluBackwardFromResult) X(LeakyReluBackward) \
      X(LogSigmoid) X(LogSigmoidBackward) X(LogitBackward) X(Glu) X(GluGate) X(PreluSlope)         \
          X(PreluInput)
// clang-format on

#define CRESSET_DECLARE_ACTIVATION(Name) extern const LoopTable activation_##Name;
namespace at::native::base {
CRESSET_FORALL_ACTIVATION_TABLES(CRESSET_DECLARE_ACTIVATION)
}
namespace at::native::avx2 {
CRESSET_FORALL_ACTIVATION_TABLES(CRESSET_DECLARE_ACTIVATION)
}
namespace at::native::avx512 {
CRESSET_FORALL_ACTIVATION_TABLES(CRESSET_DECLARE_ACTIVATION)
}
#undef CRESSET_DECLARE_ACTIVATION
