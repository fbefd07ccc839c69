// AT_DISPATCH_V2: the dispatch whose types are a list of any length, written after the body.
//
//   AT_DISPATCH_V2(x.scalar_type(), "my_kernel", AT_WRAP([&] { kernel<scalar_t>(x); }),
//                  AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_COMPLEX_TYPES), kHalf, kBool);
//
// AT_WRAP keeps the commas of the body together, AT_EXPAND spreads a list of types.
#pragma once
#include <ATen/Dispatch.h>

#define AT_WRAP(...) __VA_ARGS__
#define AT_EXPAND(X) X

// ---- lists of types
#define AT_INTEGRAL_TYPES                                                                          \
  ::at::ScalarType::Byte, ::at::ScalarType::Char, ::at::ScalarType::Int, ::at::ScalarType::Long,   \
      ::at::ScalarType::Short
#define AT_FLOATING_TYPES ::at::ScalarType::Double, ::at::ScalarType::Float
#define AT_BAREBONES_UNSIGNED_TYPES                                                                \
  ::at::ScalarType::UInt16, ::at::ScalarType::UInt32, ::at::ScalarType::UInt64
#define AT_COMPLEX_TYPES ::at::ScalarType::ComplexDouble, ::at::ScalarType::ComplexFloat
#define AT_REDUCED_FLOATING_TYPES ::at::ScalarType::Half, ::at::ScalarType::BFloat16
#define AT_FLOAT8_TYPES                                                                            \
  ::at::ScalarType::Float8_e5m2, ::at::ScalarType::Float8_e5m2fnuz,                                \
      ::at::ScalarType::Float8_e4m3fn, ::at::ScalarType::Float8_e4m3fnuz
#define AT_INTEGRAL_TYPES_V2 AT_EXPAND(AT_INTEGRAL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES)
#define AT_ALL_TYPES AT_EXPAND(AT_INTEGRAL_TYPES), AT_EXPAND(AT_FLOATING_TYPES)
#define AT_ALL_TYPES_AND_COMPLEX AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_COMPLEX_TYPES)

// ---- one case for each type of a list. The number of types picks the macro that writes them.
#define CRESSET_EACH_1(body, A) AT_DISPATCH_CASE(A, AT_WRAP body)
#define CRESSET_EACH_2(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_1(body, __VA_ARGS__)
#define CRESSET_EACH_3(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_2(body, __VA_ARGS__)
#define CRESSET_EACH_4(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_3(body, __VA_ARGS__)
#define CRESSET_EACH_5(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_4(body, __VA_ARGS__)
#define CRESSET_EACH_6(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_5(body, __VA_ARGS__)
#define CRESSET_EACH_7(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_6(body, __VA_ARGS__)
#define CRESSET_EACH_8(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_7(body, __VA_ARGS__)
#define CRESSET_EACH_9(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_8(body, __VA_ARGS__)
#define CRESSET_EACH_10(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_9(body, __VA_ARGS__)
#define CRESSET_EACH_11(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_10(body, __VA_ARGS__)
#define CRESSET_EACH_12(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_11(body, __VA_ARGS__)
#define CRESSET_EACH_13(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_12(body, __VA_ARGS__)
#define CRESSET_EACH_14(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_13(body, __VA_ARGS__)
#define CRESSET_EACH_15(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_14(body, __VA_ARGS__)
#define CRESSET_EACH_16(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_15(body, __VA_ARGS__)
#define CRESSET_EACH_17(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_16(body, __VA_ARGS__)
#define CRESSET_EACH_18(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_17(body, __VA_ARGS__)
#define CRESSET_EACH_19(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_18(body, __VA_ARGS__)
#define CRESSET_EACH_20(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_19(body, __VA_ARGS__)
#define CRESSET_EACH_21(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_20(body, __VA_ARGS__)
#define CRESSET_EACH_22(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_21(body, __VA_ARGS__)
#define CRESSET_EACH_23(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_22(body, __VA_ARGS__)
#define CRESSET_EACH_24(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_23(body, __VA_ARGS__)
#define CRESSET_EACH_25(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_24(body, __VA_ARGS__)
#define CRESSET_EACH_26(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_25(body, __VA_ARGS__)
#define CRESSET_EACH_27(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_26(body, __VA_ARGS__)
#define CRESSET_EACH_28(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_27(body, __VA_ARGS__)
#define CRESSET_EACH_29(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_28(body, __VA_ARGS__)
#define CRESSET_EACH_30(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_29(body, __VA_ARGS__)
#define CRESSET_EACH_31(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_30(body, __VA_ARGS__)
#define CRESSET_EACH_32(body, A, ...) CRESSET_EACH_1(body, A) CRESSET_EACH_31(body, __VA_ARGS__)
#define CRESSET_PICK(...) CRESSET_PICK_(__VA_ARGS__)
#define CRESSET_PICK_(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17,  \
                      _18, _19, _20, _21, _22, _23, _24, _25, _26, _27, _28, _29, _30, _31, _32,   \
                      name, ...)                                                                   \
  name
#define CRESSET_EACH(body, ...)                                                                    \
  CRESSET_PICK(__VA_ARGS__, CRESSET_EACH_32, CRESSET_EACH_31, CRESSET_EACH_30, CRESSET_EACH_29,    \
               CRESSET_EACH_28, CRESSET_EACH_27, CRESSET_EACH_26, CRESSET_EACH_25,                 \
               CRESSET_EACH_24, CRESSET_EACH_23, CRESSET_EACH_22, CRESSET_EACH_21,                 \
               CRESSET_EACH_20, CRESSET_EACH_19, CRESSET_EACH_18, CRESSET_EACH_17,                 \
               CRESSET_EACH_16, CRESSET_EACH_15, CRESSET_EACH_14, CRESSET_EACH_13,                 \
               CRESSET_EACH_12, CRESSET_EACH_11, CRESSET_EACH_10, CRESSET_EACH_9, CRESSET_EACH_8,  \
               CRESSET_EACH_7, CRESSET_EACH_6, CRESSET_EACH_5, CRESSET_EACH_4, CRESSET_EACH_3,     \
               CRESSET_EACH_2, CRESSET_EACH_1)                                                     \
  (body, __VA_ARGS__)

#define AT_DISPATCH_V2(TYPE, NAME, BODY, ...)                                                      \
  AT_DISPATCH_SWITCH(TYPE, NAME, CRESSET_EACH((BODY), __VA_ARGS__))
