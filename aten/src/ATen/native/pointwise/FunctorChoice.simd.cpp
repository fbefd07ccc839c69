// Loop tables of the operators in FunctorChoice.cpp, which choose between functors at run time.
#include <ATen/iter/Loops.h>
#include <ATen/native/pointwise/Arithmetic.h>
#include <ATen/native/pointwise/Clamp.h>
#include <ATen/native/pointwise/Frexp.h>
#include <ATen/native/pointwise/FunctorChoiceTables.h>
#include <ATen/native/pointwise/Round.h>
#include <ATen/native/pointwise/Unary.h>

namespace at::native::CRESSET_ISA {
const LoopTable choice_DivTrunc =
    make_loop_table<fn::DivTrunc, 2, 0, OutKind::Same>(types::real_nobool{});
const LoopTable choice_DivFloor =
    make_loop_table<fn::DivFloor, 2, 0, OutKind::Same>(types::real_nobool{});
const LoopTable choice_Clamp = make_loop_table<fn::Clamp, 3, 0, OutKind::Same>(types::real{});
const LoopTable choice_ClampMin = make_loop_table<fn::ClampMin, 2, 0, OutKind::Same>(types::real{});
const LoopTable choice_ClampMax = make_loop_table<fn::ClampMax, 2, 0, OutKind::Same>(types::real{});
const LoopTable choice_ClampNumbers =
    make_loop_table<fn::ClampNumbers, 3, 0, OutKind::Same>(types::real{});
const LoopTable choice_ClampMinNumber =
    make_loop_table<fn::ClampMinNumber, 2, 0, OutKind::Same>(types::real{});
const LoopTable choice_ClampMaxNumber =
    make_loop_table<fn::ClampMaxNumber, 2, 0, OutKind::Same>(types::real{});
const LoopTable choice_Pow = make_loop_table<fn::Pow, 2, 0, OutKind::Same>(types::pow{});
const LoopTable choice_PowWhole =
    make_loop_table<fn::PowWhole, 1, 1, OutKind::Same>(types::complex{});
const LoopTable choice_Square =
    make_loop_table<fn::Square, 1, 0, OutKind::Same>(types::all_nobool{});
const LoopTable choice_Cube = make_loop_table<fn::Cube, 1, 0, OutKind::Same>(types::all_nobool{});
const LoopTable choice_Sqrt =
    make_loop_table<fn::Sqrt, 1, 0, OutKind::Same>(types::floating_complex{});
const LoopTable choice_Reciprocal =
    make_loop_table<fn::Reciprocal, 1, 0, OutKind::Same>(types::floating_complex{});
const LoopTable choice_Round =
    make_loop_table<fn::Round, 1, 0, OutKind::Same>(types::real_nobool{});
const LoopTable choice_RoundUp =
    make_loop_table<fn::RoundDecimalsUp, 1, 1, OutKind::Same>(types::floating{});
const LoopTable choice_RoundDown =
    make_loop_table<fn::RoundDecimalsDown, 1, 1, OutKind::Same>(types::floating{});
const LoopTable choice_Logit = make_loop_table<fn::Logit, 1, 1, OutKind::Same>(types::floating{});
const LoopTable choice_NanToNum = make_loop_table<fn::NanToNum, 1, 3, OutKind::Same>(types::all{});
const LoopTable choice_Frexp = make_frexp_table(types::floating{});
} // namespace at::native::CRESSET_ISA
