// The cold parts of Scalar.
#include <c10/core/Scalar.h>

namespace c10 {

void Scalar::throw_overflow(ScalarType to) {
  const ScalarTypeInfo& type = info(to);
  const char* cpp = type.cpp_name;
  switch (to) {
  case kByte:
    cpp = "uint8_t";
    break;
  case kUInt16:
    cpp = "uint16_t";
    break;
  case kUInt32:
    cpp = "uint32_t";
    break;
  case kUInt64:
    cpp = "uint64_t";
    break;
  case kChar:
    cpp = "int8_t";
    break;
  case kShort:
    cpp = "int16_t";
    break;
  case kInt:
    cpp = "int";
    break;
  case kLong:
    cpp = "int64_t";
    break;
  case kHalf:
    cpp = "c10::Half";
    break;
  case kBFloat16:
    cpp = "c10::BFloat16";
    break;
  case kFloat:
    cpp = "float";
    break;
  case kDouble:
    cpp = "double";
    break;
  case kComplexHalf:
    cpp = "c10::complex<c10::Half>";
    break;
  case kComplexFloat:
    cpp = "c10::complex<float>";
    break;
  default:
    break;
  }
  throw Error(str("value cannot be converted to type ", cpp, " without overflow"));
}

Scalar Scalar::operator-() const {
  switch (tag_) {
  case Tag::Double:
    return Scalar(-v_.d[0]);
  case Tag::Complex:
    return Scalar(complex<double>(-v_.d[0], -v_.d[1]));
  case Tag::Bool:
    TORCH_CHECK(false, "tried to call neg() on a bool Scalar");
    break;
  default:
    break;
  }
  return Scalar(static_cast<int64_t>(-static_cast<uint64_t>(v_.i)));
}

void append(std::string& out, const Scalar& value) {
  switch (value.tag()) {
  case Scalar::Tag::Bool:
    append(out, value.to<bool>());
    break;
  case Scalar::Tag::Double:
    append(out, value.to<double>());
    break;
  case Scalar::Tag::Complex: {
    const complex<double> z = value.toComplexDouble();
    append(out, "(");
    append(out, z.real_);
    append(out, z.imag_ < 0 ? "" : "+");
    append(out, z.imag_);
    append(out, "j)");
    break;
  }
  case Scalar::Tag::UInt:
    append(out, value.to<uint64_t>());
    break;
  default:
    append(out, value.to<int64_t>());
    break;
  }
}

} // namespace c10
