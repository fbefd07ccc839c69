// The cold parts of Scalar.
#include <c10/core/Scalar.h>

namespace c10 {

void Scalar::throw_overflow(ScalarType to) {
  const char* type = toString(to);
#define CRESSET_SPELLED(cpp, name)                                                                 \
  if (to == ScalarType::name) type = #cpp;
  CRESSET_FORALL_ARITHMETIC_TYPES(CRESSET_SPELLED)
#undef CRESSET_SPELLED
  if (to == kInt) type = "int"; // the one that programs know by its older name
  throw Error(str("value cannot be converted to type ", type, " without overflow"));
}

Scalar Scalar::guarded() const {
  switch (tag_) {
  case Tag::SymInt:
    return Scalar(symbolic_node(v_.i)->guard_int("a number", 0));
  case Tag::SymFloat:
    return Scalar(symbolic_node(v_.i)->guard_float("a number", 0));
  case Tag::SymBool:
    return Scalar(symbolic_node(v_.i)->guard_bool("a number", 0));
  default:
    return *this;
  }
}

Scalar Scalar::of_handle(int64_t raw) {
  switch (symbolic_node(raw)->sort()) {
  case SymSort::Float:
    return Scalar(c10::SymFloat::from_raw(raw));
  case SymSort::Bool:
    return Scalar(c10::SymBool::from_raw(raw));
  default:
    return Scalar(c10::SymInt::from_raw(raw));
  }
}

Scalar Scalar::operator-() const {
  switch (tag_) {
  case Tag::SymInt:
    return Scalar(-c10::SymInt::from_raw(v_.i));
  case Tag::SymFloat:
    return Scalar(c10::SymFloat::from_raw(symbolic_node(v_.i)->apply(SymOp::Neg, v_.i, 0)));
  case Tag::Double:
    return Scalar(-v_.d[0]);
  case Tag::Complex:
    return Scalar(complex<double>(-v_.d[0], -v_.d[1]));
  case Tag::Bool:
  case Tag::SymBool:
    TORCH_CHECK(false, "tried to call neg() on a bool Scalar");
    break;
  default:
    break;
  }
  return Scalar(static_cast<int64_t>(-static_cast<uint64_t>(v_.i)));
}

void append(std::string& out, const Scalar& value) {
  switch (value.tag()) {
  case Scalar::Tag::SymInt:
  case Scalar::Tag::SymFloat:
  case Scalar::Tag::SymBool:
    append(out, symbolic_node(value.symbolic_raw())->str());
    break;
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
