// The table of element types and the promotion rules between them.
#include <c10/core/ScalarType.h>

namespace c10 {
using I = ScalarTypeInfo;
const ScalarTypeInfo kScalarTypeInfo[NumScalarTypes] = {
    {"uint8", "", "Byte", 1, I::Integral, false},
    {"int8", "", "Char", 1, I::Integral, true},
    {"int16", "short", "Short", 2, I::Integral, true},
    {"int32", "int", "Int", 4, I::Integral, true},
    {"int64", "long", "Long", 8, I::Integral, true},
    {"float16", "half", "Half", 2, I::Floating, true},
    {"float32", "float", "Float", 4, I::Floating, true},
    {"float64", "double", "Double", 8, I::Floating, true},
    {"complex32", "chalf", "ComplexHalf", 4, I::Complex, true},
    {"complex64", "cfloat", "ComplexFloat", 8, I::Complex, true},
    {"complex128", "cdouble", "ComplexDouble", 16, I::Complex, true},
    {"bool", "", "Bool", 1, I::Boolean, false},
    {"qint8", "", "QInt8", 1, I::Storage, true},
    {"quint8", "", "QUInt8", 1, I::Storage, false},
    {"qint32", "", "QInt32", 4, I::Storage, true},
    {"bfloat16", "", "BFloat16", 2, I::Floating, true},
    {"quint4x2", "", "QUInt4x2", 1, I::Storage, false},
    {"quint2x4", "", "QUInt2x4", 1, I::Storage, false},
    {"bits1x8", "", "Bits1x8", 1, I::Storage, false},
    {"bits2x4", "", "Bits2x4", 1, I::Storage, false},
    {"bits4x2", "", "Bits4x2", 1, I::Storage, false},
    {"bits8", "", "Bits8", 1, I::Storage, false},
    {"bits16", "", "Bits16", 2, I::Storage, false},
    {"float8_e5m2", "", "Float8_e5m2", 1, I::Floating, true},
    {"float8_e4m3fn", "", "Float8_e4m3fn", 1, I::Floating, true},
    {"float8_e5m2fnuz", "", "Float8_e5m2fnuz", 1, I::Floating, true},
    {"float8_e4m3fnuz", "", "Float8_e4m3fnuz", 1, I::Floating, true},
    {"uint16", "", "UInt16", 2, I::Integral, false},
    {"uint32", "", "UInt32", 4, I::Integral, false},
    {"uint64", "", "UInt64", 8, I::Integral, false},
    {"uint1", "", "UInt1", 1, I::Storage, false},
    {"uint2", "", "UInt2", 1, I::Storage, false},
    {"uint3", "", "UInt3", 1, I::Storage, false},
    {"uint4", "", "UInt4", 1, I::Storage, false},
    {"uint5", "", "UInt5", 1, I::Storage, false},
    {"uint6", "", "UInt6", 1, I::Storage, false},
    {"uint7", "", "UInt7", 1, I::Storage, false},
    {"int1", "", "Int1", 1, I::Storage, true},
    {"int2", "", "Int2", 1, I::Storage, true},
    {"int3", "", "Int3", 1, I::Storage, true},
    {"int4", "", "Int4", 1, I::Storage, true},
    {"int5", "", "Int5", 1, I::Storage, true},
    {"int6", "", "Int6", 1, I::Storage, true},
    {"int7", "", "Int7", 1, I::Storage, true},
    {"float8_e8m0fnu", "", "Float8_e8m0fnu", 1, I::Floating, false},
    {"float4_e2m1fn_x2", "", "Float4_e2m1fn_x2", 1, I::Storage, true},
    {"undefined", "", "Undefined", 0, I::Storage, false},
};

ScalarType toComplexType(ScalarType t) {
  switch (t) {
  case kHalf:
    return kComplexHalf;
  case kBFloat16:
  case kFloat:
    return kComplexFloat;
  case kDouble:
    return kComplexDouble;
  case kComplexHalf:
  case kComplexFloat:
  case kComplexDouble:
    return t;
  default:
    TORCH_CHECK(false, "Unknown Complex ScalarType for ", t);
  }
  return t;
}

ScalarType toRealValueType(ScalarType t) {
  switch (t) {
  case kComplexHalf:
    return kHalf;
  case kComplexFloat:
    return kFloat;
  case kComplexDouble:
    return kDouble;
  default:
    return t;
  }
}

ScalarType toOpMathType(ScalarType t) {
  if (isReducedFloatingType(t) || isFloat8Type(t)) return kFloat;
  return t == kComplexHalf ? kComplexFloat : t;
}

namespace {
// Unsigned types wider than a byte mix with floating point types only: with anything else PyTorch
// raises.
bool is_wide_unsigned(ScalarType t) { return t == kUInt16 || t == kUInt32 || t == kUInt64; }

ScalarType promote_integral(ScalarType a, ScalarType b) {
  if (a == kBool) return b;
  if (b == kBool) return a;
  if (a == kByte || b == kByte) {
    const ScalarType other = a == kByte ? b : a;
    return other == kChar ? kShort : other;
  }
  return elementSize(a) >= elementSize(b) ? a : b;
}

ScalarType promote_floating(ScalarType a, ScalarType b) {
  TORCH_CHECK(!isFloat8Type(a) && !isFloat8Type(b),
              "Promotion for Float8 Types is not supported, attempted to promote ", a, " and ", b);
  if (isReducedFloatingType(a) && isReducedFloatingType(b)) return kFloat;
  return elementSize(a) >= elementSize(b) ? a : b;
}
} // namespace

ScalarType promoteTypes(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (a == ScalarType::Undefined || b == ScalarType::Undefined) return ScalarType::Undefined;
  TORCH_CHECK(!isStorageOnlyType(a) && !isStorageOnlyType(b), "promoteTypes with ", a, " and ", b,
              " is not handled: these types have storage but no arithmetic");
  const ScalarType beside = is_wide_unsigned(a) ? b : a;
  TORCH_CHECK((!is_wide_unsigned(a) && !is_wide_unsigned(b)) || isFloatingType(beside),
              "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ",
              a, " and ", b);
  const bool a_complex = isComplexType(a), b_complex = isComplexType(b);
  const bool a_float = isFloatingType(a), b_float = isFloatingType(b);
  if (a_complex || b_complex) {
    if (!a_complex && !a_float) return b;
    if (!b_complex && !b_float) return a;
    const ScalarType real_a = toRealValueType(a), real_b = toRealValueType(b);
    return toComplexType(real_a == real_b ? real_a : promote_floating(real_a, real_b));
  }
  if (a_float && b_float) return promote_floating(a, b);
  if (a_float) return a;
  if (b_float) return b;
  return promote_integral(a, b);
}

bool canCast(ScalarType from, ScalarType to) {
  if (isComplexType(from) && !isComplexType(to)) return false;
  if (isFloatingType(from) && isIntegralType(to, false)) return false;
  return !(from != kBool && to == kBool);
}

} // namespace c10
