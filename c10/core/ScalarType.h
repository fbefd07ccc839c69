// Element types. The numbering is part of the checkpoint and operator interfaces. Types below
// "storage types" can be stored, moved and viewed but have no arithmetic of their own.
#pragma once
#include <cstdint>
#include <string>

#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Float8.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

namespace c10 {

enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  ComplexHalf = 8,
  ComplexFloat = 9,
  ComplexDouble = 10,
  Bool = 11,
  QInt8 = 12,
  QUInt8 = 13,
  QInt32 = 14,
  BFloat16 = 15,
  QUInt4x2 = 16,
  QUInt2x4 = 17,
  Bits1x8 = 18,
  Bits2x4 = 19,
  Bits4x2 = 20,
  Bits8 = 21,
  Bits16 = 22,
  Float8_e5m2 = 23,
  Float8_e4m3fn = 24,
  Float8_e5m2fnuz = 25,
  Float8_e4m3fnuz = 26,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
  UInt1 = 30,
  UInt2 = 31,
  UInt3 = 32,
  UInt4 = 33,
  UInt5 = 34,
  UInt6 = 35,
  UInt7 = 36,
  Int1 = 37,
  Int2 = 38,
  Int3 = 39,
  Int4 = 40,
  Int5 = 41,
  Int6 = 42,
  Int7 = 43,
  Float8_e8m0fnu = 44,
  Float4_e2m1fn_x2 = 45,
  Undefined = 46,
  NumOptions = 47,
};
constexpr int NumScalarTypes = static_cast<int>(ScalarType::NumOptions);

constexpr ScalarType kByte = ScalarType::Byte, kChar = ScalarType::Char, kShort = ScalarType::Short,
                     kInt = ScalarType::Int, kLong = ScalarType::Long, kHalf = ScalarType::Half,
                     kFloat = ScalarType::Float, kDouble = ScalarType::Double,
                     kComplexHalf = ScalarType::ComplexHalf,
                     kComplexFloat = ScalarType::ComplexFloat,
                     kComplexDouble = ScalarType::ComplexDouble, kBool = ScalarType::Bool,
                     kBFloat16 = ScalarType::BFloat16, kUInt16 = ScalarType::UInt16,
                     kUInt32 = ScalarType::UInt32, kUInt64 = ScalarType::UInt64,
                     kUInt8 = ScalarType::Byte, kInt8 = ScalarType::Char,
                     kInt16 = ScalarType::Short, kInt32 = ScalarType::Int,
                     kInt64 = ScalarType::Long, kFloat16 = ScalarType::Half,
                     kFloat32 = ScalarType::Float, kFloat64 = ScalarType::Double;

struct ScalarTypeInfo {
  const char* name;        // "float32": the Python attribute of torch
  const char* legacy_name; // "float", "half", ...: the second attribute, or ""
  const char* cpp_name;    // "Float": as error messages of PyTorch spell it
  uint8_t itemsize;
  enum Kind : uint8_t { Integral, Floating, Complex, Boolean, Storage } kind;
  bool is_signed;
};
C10_API extern const ScalarTypeInfo kScalarTypeInfo[NumScalarTypes];

inline const ScalarTypeInfo& info(ScalarType t) { return kScalarTypeInfo[static_cast<int>(t)]; }
inline int64_t elementSize(ScalarType t) { return info(t).itemsize; }
inline const char* toString(ScalarType t) { return info(t).cpp_name; }
inline bool isFloatingType(ScalarType t) { return info(t).kind == ScalarTypeInfo::Floating; }
inline bool isComplexType(ScalarType t) { return info(t).kind == ScalarTypeInfo::Complex; }
inline bool isIntegralType(ScalarType t, bool include_bool) {
  return info(t).kind == ScalarTypeInfo::Integral || (include_bool && t == ScalarType::Bool);
}
inline bool isStorageOnlyType(ScalarType t) { return info(t).kind == ScalarTypeInfo::Storage; }
inline bool isReducedFloatingType(ScalarType t) { return t == kHalf || t == kBFloat16; }
inline bool isFloat8Type(ScalarType t) {
  return (t >= ScalarType::Float8_e5m2 && t <= ScalarType::Float8_e4m3fnuz) ||
         t == ScalarType::Float8_e8m0fnu;
}
inline bool isSignedType(ScalarType t) { return info(t).is_signed; }
// complex64 for float32, ...; Error for others.
C10_API ScalarType toComplexType(ScalarType t);
C10_API ScalarType toRealValueType(ScalarType t); // float32 for complex64; itself for real types
// The type in which low-precision types accumulate and compute: float for Half and BFloat16.
C10_API ScalarType toOpMathType(ScalarType t);
// The common type of two operands of the same category rank; see at::result_type for scalars.
C10_API ScalarType promoteTypes(ScalarType a, ScalarType b);
// PyTorch's rule for writing a result of type `from` into an out= tensor of type `to`.
C10_API bool canCast(ScalarType from, ScalarType to);

inline void append(std::string& out, ScalarType t) { out += toString(t); }

// ---- C++ type <-> ScalarType
// ---------------------------------------------------------------------- The list of types with
// arithmetic: X(C++ type, ScalarType name).
// clang-format off
#define CRESSET_FORALL_ARITHMETIC_TYPES(X)                                                         \
  X(uint8_t, Byte) X(int8_t, Char) X(int16_t, Short) X(int32_t, Int) X(int64_t, Long)              \
  X(c10::Half, Half) X(float, Float) X(double, Double) X(c10::complex<c10::Half>, ComplexHalf)     \
  X(c10::complex<float>, ComplexFloat) X(c10::complex<double>, ComplexDouble) X(bool, Bool)        \
  X(c10::BFloat16, BFloat16) X(uint16_t, UInt16) X(uint32_t, UInt32) X(uint64_t, UInt64)
// clang-format on
// clang-format off
#define CRESSET_FORALL_FLOAT8_TYPES(X)                                                             \
  X(c10::Float8_e5m2, Float8_e5m2) X(c10::Float8_e4m3fn, Float8_e4m3fn)                            \
  X(c10::Float8_e5m2fnuz, Float8_e5m2fnuz) X(c10::Float8_e4m3fnuz, Float8_e4m3fnuz)
// clang-format on

template <class T> struct CppTypeToScalarType;
template <ScalarType> struct ScalarTypeToCpp;
#define CRESSET_MAP(T, Name)                                                                       \
  template <> struct CppTypeToScalarType<T> {                                                      \
    CRESSET_USER_MEMBERS(TypeNumber) static constexpr ScalarType value = ScalarType::Name;         \
  };                                                                                               \
  template <> struct ScalarTypeToCpp<ScalarType::Name> { using type = T; };
CRESSET_FORALL_ARITHMETIC_TYPES(CRESSET_MAP)
CRESSET_FORALL_FLOAT8_TYPES(CRESSET_MAP)
#undef CRESSET_MAP
template <> struct CppTypeToScalarType<long long> {
  static constexpr ScalarType value = ScalarType::Long;
};
template <class T> constexpr ScalarType scalar_type_of = CppTypeToScalarType<T>::value;

// A tag to pass a C++ type to a generic lambda: [&](auto tag) { using T = typename
// decltype(tag)::type; }
template <class T> struct TypeTag { using type = T; };

} // namespace c10
