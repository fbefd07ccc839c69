// AT_DISPATCH_*: runs a lambda with `scalar_t` as the C++ type of a dtype.
//
//   AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "my_kernel", [&] { kernel<scalar_t>(x); });
//
// Every form is one switch over a list of dtypes; a dtype that is not listed raises
// NotImplementedError.
#pragma once
#include <ATen/core/DeprecatedTypeProperties.h>
#include <c10/util/Exception.h>

namespace at::detail {
inline ScalarType scalar_type(ScalarType type) { return type; }
inline ScalarType scalar_type(const DeprecatedTypeProperties& type) { return type.scalarType(); }
[[noreturn]] inline void throw_not_dispatched(const char* name, ScalarType type) {
  throw c10::NotImplementedError(
      c10::str('"', name, "\" not implemented for '", c10::toString(type), "'"));
}
} // namespace at::detail

#define AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, HINT, ...)                                      \
  case enum_type: {                                                                                \
    using HINT [[maybe_unused]] = typename ::c10::ScalarTypeToCpp<enum_type>::type;                \
    return __VA_ARGS__();                                                                          \
  }
#define AT_DISPATCH_CASE(enum_type, ...)                                                           \
  AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_INDEX_CASE(enum_type, ...)                                                     \
  AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, index_t, __VA_ARGS__)

#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                        \
  [&] {                                                                                            \
    const auto& the_type = TYPE;                                                                   \
    constexpr const char* at_dispatch_name = NAME;                                                 \
    const ::at::ScalarType _st = ::at::detail::scalar_type(the_type);                              \
    switch (_st) {                                                                                 \
      __VA_ARGS__                                                                                  \
    default:                                                                                       \
      ::at::detail::throw_not_dispatched(at_dispatch_name, _st);                                   \
    }                                                                                              \
  }()

// ---- lists of cases
#define AT_DISPATCH_CASE_FLOATING_TYPES(...)                                                       \
  AT_DISPATCH_CASE(::at::ScalarType::Double, __VA_ARGS__)                                          \
  AT_DISPATCH_CASE(::at::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...)                                                        \
  AT_DISPATCH_CASE(::at::ScalarType::ComplexDouble, __VA_ARGS__)                                   \
  AT_DISPATCH_CASE(::at::ScalarType::ComplexFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)                                                       \
  AT_DISPATCH_CASE(::at::ScalarType::Byte, __VA_ARGS__)                                            \
  AT_DISPATCH_CASE(::at::ScalarType::Char, __VA_ARGS__)                                            \
  AT_DISPATCH_CASE(::at::ScalarType::Int, __VA_ARGS__)                                             \
  AT_DISPATCH_CASE(::at::ScalarType::Long, __VA_ARGS__)                                            \
  AT_DISPATCH_CASE(::at::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)                                                            \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)                                                     \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...)                                              \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                                     \
  AT_DISPATCH_CASE(::at::ScalarType::Half, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(...)                                           \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                                     \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(...)                                                \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                                          \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...)                                               \
  AT_DISPATCH_CASE(::at::ScalarType::BFloat16, __VA_ARGS__)                                        \
  AT_DISPATCH_CASE(::at::ScalarType::Half, __VA_ARGS__)
#define CRESSET_CASES_1(A, ...) AT_DISPATCH_CASE(A, __VA_ARGS__)
#define CRESSET_CASES_2(A, B, ...)                                                                 \
  CRESSET_CASES_1(A, __VA_ARGS__)                                                                  \
  AT_DISPATCH_CASE(B, __VA_ARGS__)
#define CRESSET_CASES_3(A, B, C, ...)                                                              \
  CRESSET_CASES_2(A, B, __VA_ARGS__)                                                               \
  AT_DISPATCH_CASE(C, __VA_ARGS__)
#define CRESSET_CASES_4(A, B, C, D, ...)                                                           \
  CRESSET_CASES_3(A, B, C, __VA_ARGS__)                                                            \
  AT_DISPATCH_CASE(D, __VA_ARGS__)
#define CRESSET_CASES_5(A, B, C, D, E, ...)                                                        \
  CRESSET_CASES_4(A, B, C, D, __VA_ARGS__)                                                         \
  AT_DISPATCH_CASE(E, __VA_ARGS__)
#define CRESSET_CASES_6(A, B, C, D, E, F, ...)                                                     \
  CRESSET_CASES_5(A, B, C, D, E, __VA_ARGS__)                                                      \
  AT_DISPATCH_CASE(F, __VA_ARGS__)
#define CRESSET_CASES_7(A, B, C, D, E, F, G, ...)                                                  \
  CRESSET_CASES_6(A, B, C, D, E, F, __VA_ARGS__)                                                   \
  AT_DISPATCH_CASE(G, __VA_ARGS__)
#define CRESSET_CASES_8(A, B, C, D, E, F, G, H, ...)                                               \
  CRESSET_CASES_7(A, B, C, D, E, F, G, __VA_ARGS__)                                                \
  AT_DISPATCH_CASE(H, __VA_ARGS__)

// ---- the forms. The types named before TYPE are dispatched besides those of the list.
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...)                                                \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND(A, ...)                                                \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                                     \
  CRESSET_CASES_1(A, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...)                                         \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND(A, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND2(A, B, ...)                                            \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                                     \
  CRESSET_CASES_2(A, B, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...)                                     \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND3(A, B, C, ...)                                         \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                                     \
  CRESSET_CASES_3(A, B, C, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(A, B, C, TYPE, NAME, ...)                                  \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND3(A, B, C, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND4(A, B, C, D, ...)                                      \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                                     \
  CRESSET_CASES_4(A, B, C, D, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND4(A, B, C, D, TYPE, NAME, ...)                               \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND4(A, B, C, D, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND5(A, B, C, D, E, ...)                                   \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                                     \
  CRESSET_CASES_5(A, B, C, D, E, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND5(A, B, C, D, E, TYPE, NAME, ...)                            \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND5(A, B, C, D, E, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND6(A, B, C, D, E, F, ...)                                \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                                     \
  CRESSET_CASES_6(A, B, C, D, E, F, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND6(A, B, C, D, E, F, TYPE, NAME, ...)                         \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES_AND6(A, B, C, D, E, F, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND7(A, B, C, D, E, F, G, ...)                             \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                                     \
  CRESSET_CASES_7(A, B, C, D, E, F, G, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND7(A, B, C, D, E, F, G, TYPE, NAME, ...)                      \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES_AND7(A, B, C, D, E, F, G, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND8(A, B, C, D, E, F, G, H, ...)                          \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                                                     \
  CRESSET_CASES_8(A, B, C, D, E, F, G, H, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND8(A, B, C, D, E, F, G, H, TYPE, NAME, ...)                   \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES_AND8(A, B, C, D, E, F, G, H, __VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES(TYPE, NAME, ...)                                                 \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_COMPLEX_TYPES_AND(A, ...)                                                 \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)                                                      \
  CRESSET_CASES_1(A, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES_AND(A, TYPE, NAME, ...)                                          \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_COMPLEX_TYPES_AND(A, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...)                                                \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(A, ...)                                                \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)                                                     \
  CRESSET_CASES_1(A, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(A, TYPE, NAME, ...)                                         \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(A, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...)                                        \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...)                                                     \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND(A, ...)                                                     \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                                          \
  CRESSET_CASES_1(A, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...)                                              \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND(A, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND2(A, B, ...)                                                 \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                                          \
  CRESSET_CASES_2(A, B, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...)                                          \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND3(A, B, C, ...)                                              \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                                          \
  CRESSET_CASES_3(A, B, C, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(A, B, C, TYPE, NAME, ...)                                       \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND3(A, B, C, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND4(A, B, C, D, ...)                                           \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                                          \
  CRESSET_CASES_4(A, B, C, D, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND4(A, B, C, D, TYPE, NAME, ...)                                    \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND4(A, B, C, D, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND5(A, B, C, D, E, ...)                                        \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                                          \
  CRESSET_CASES_5(A, B, C, D, E, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND5(A, B, C, D, E, TYPE, NAME, ...)                                 \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND5(A, B, C, D, E, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND6(A, B, C, D, E, F, ...)                                     \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                                          \
  CRESSET_CASES_6(A, B, C, D, E, F, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND6(A, B, C, D, E, F, TYPE, NAME, ...)                              \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND6(A, B, C, D, E, F, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND7(A, B, C, D, E, F, G, ...)                                  \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                                          \
  CRESSET_CASES_7(A, B, C, D, E, F, G, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND7(A, B, C, D, E, F, G, TYPE, NAME, ...)                           \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND7(A, B, C, D, E, F, G, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND8(A, B, C, D, E, F, G, H, ...)                               \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                                                          \
  CRESSET_CASES_8(A, B, C, D, E, F, G, H, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND8(A, B, C, D, E, F, G, H, TYPE, NAME, ...)                        \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_ALL_TYPES_AND8(A, B, C, D, E, F, G, H, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, NAME, ...)                                    \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND1(A, ...)                                   \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                                         \
  CRESSET_CASES_1(A, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(A, TYPE, NAME, ...)                            \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND1(A, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND(A, ...)                                    \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                                         \
  CRESSET_CASES_1(A, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND(A, TYPE, NAME, ...)                             \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND(A, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2(A, B, ...)                                \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                                         \
  CRESSET_CASES_2(A, B, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(A, B, TYPE, NAME, ...)                         \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND3(A, B, C, ...)                             \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                                         \
  CRESSET_CASES_3(A, B, C, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND3(A, B, C, TYPE, NAME, ...)                      \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND3(A, B, C, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND4(A, B, C, D, ...)                          \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                                         \
  CRESSET_CASES_4(A, B, C, D, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND4(A, B, C, D, TYPE, NAME, ...)                   \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND4(A, B, C, D, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND5(A, B, C, D, E, ...)                       \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                                         \
  CRESSET_CASES_5(A, B, C, D, E, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND5(A, B, C, D, E, TYPE, NAME, ...)                \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND5(A, B, C, D, E, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND6(A, B, C, D, E, F, ...)                    \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                                         \
  CRESSET_CASES_6(A, B, C, D, E, F, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND6(A, B, C, D, E, F, TYPE, NAME, ...)             \
  AT_DISPATCH_SWITCH(                                                                              \
      TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND6(A, B, C, D, E, F, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND7(A, B, C, D, E, F, G, ...)                 \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                                         \
  CRESSET_CASES_7(A, B, C, D, E, F, G, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND7(A, B, C, D, E, F, G, TYPE, NAME, ...)          \
  AT_DISPATCH_SWITCH(                                                                              \
      TYPE, NAME,                                                                                  \
      AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND7(A, B, C, D, E, F, G, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND8(A, B, C, D, E, F, G, H, ...)              \
  AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)                                         \
  CRESSET_CASES_8(A, B, C, D, E, F, G, H, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND8(A, B, C, D, E, F, G, H, TYPE, NAME, ...)       \
  AT_DISPATCH_SWITCH(                                                                              \
      TYPE, NAME,                                                                                  \
      AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND8(A, B, C, D, E, F, G, H, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(TYPE, NAME, ...)                                         \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND(A, ...)                                         \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                                              \
  CRESSET_CASES_1(A, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(A, TYPE, NAME, ...)                                  \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND(A, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2(A, B, ...)                                     \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                                              \
  CRESSET_CASES_2(A, B, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(A, B, TYPE, NAME, ...)                              \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2(A, B, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3(A, B, C, ...)                                  \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                                              \
  CRESSET_CASES_3(A, B, C, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(A, B, C, TYPE, NAME, ...)                           \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3(A, B, C, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND4(A, B, C, D, ...)                               \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                                              \
  CRESSET_CASES_4(A, B, C, D, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(A, B, C, D, TYPE, NAME, ...)                        \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND4(A, B, C, D, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND5(A, B, C, D, E, ...)                            \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                                              \
  CRESSET_CASES_5(A, B, C, D, E, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND5(A, B, C, D, E, TYPE, NAME, ...)                     \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND5(A, B, C, D, E, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND6(A, B, C, D, E, F, ...)                         \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                                              \
  CRESSET_CASES_6(A, B, C, D, E, F, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND6(A, B, C, D, E, F, TYPE, NAME, ...)                  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND6(A, B, C, D, E, F, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND7(A, B, C, D, E, F, G, ...)                      \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                                              \
  CRESSET_CASES_7(A, B, C, D, E, F, G, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND7(A, B, C, D, E, F, G, TYPE, NAME, ...)               \
  AT_DISPATCH_SWITCH(                                                                              \
      TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND7(A, B, C, D, E, F, G, __VA_ARGS__))
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND8(A, B, C, D, E, F, G, H, ...)                   \
  AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)                                              \
  CRESSET_CASES_8(A, B, C, D, E, F, G, H, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND8(A, B, C, D, E, F, G, H, TYPE, NAME, ...)            \
  AT_DISPATCH_SWITCH(                                                                              \
      TYPE, NAME,                                                                                  \
      AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND8(A, B, C, D, E, F, G, H, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...)                                       \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(__VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                   \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_INDEX_CASE(::at::ScalarType::Int, __VA_ARGS__)                    \
                         AT_DISPATCH_INDEX_CASE(::at::ScalarType::Long, __VA_ARGS__))
