// Accessors of IValue.
#include <ATen/core/IValue.h>

namespace at {
namespace {
const char* const kKinds[] = {"None",         "Tensor",    "int",       "float",      "bool",
                              "complex",      "str",       "Device",    "ScalarType", "Layout",
                              "MemoryFormat", "Generator", "Storage",   "int[]",      "float[]",
                              "bool[]",       "Tensor[]",  "Tensor?[]", "Scalar[]",   "list",
                              "object",       "symbol"};
}

const char* IValue::kind() const { return kKinds[static_cast<int>(tag)]; }

void IValue::throw_kind(Tag wanted) const {
  throw c10::TypeError(c10::str("expected a value of type ", kKinds[static_cast<int>(wanted)],
                                " but got one of type ", kind()));
}

IValue::IValue(const Scalar& s) {
  switch (s.tag()) {
  case Scalar::Tag::SymInt:
  case Scalar::Tag::SymFloat:
  case Scalar::Tag::SymBool:
    *this = IValue(SymInt::from_raw(s.symbolic_raw()));
    break;
  case Scalar::Tag::Double:
    *this = IValue(s.to<double>());
    break;
  case Scalar::Tag::Bool:
    *this = IValue(s.to<bool>());
    break;
  case Scalar::Tag::Complex:
    *this = IValue(s.toComplexDouble());
    break;
  case Scalar::Tag::UInt:
    *this = IValue(s.to<double>());
    break;
  default:
    *this = IValue(s.to<int64_t>());
    break;
  }
}

at::Tensor IValue::toTensor() const {
  if (tag == Tag::None) return {};
  if (tag != Tag::Tensor) throw_kind(Tag::Tensor);
  return at::Tensor(
      c10::intrusive_ptr<TensorImpl>::unsafe_retain(static_cast<TensorImpl*>(ref.get())));
}
int64_t IValue::toInt() const {
  if (tag == Tag::Symbol) return c10::symbolic_node(bits.i)->guard_int("an int", 0);
  if (tag != Tag::Int && tag != Tag::Bool) throw_kind(Tag::Int);
  return bits.i;
}
double IValue::toDouble() const {
  if (tag == Tag::Symbol) return toScalar().toDouble();
  if (tag == Tag::Int) return static_cast<double>(bits.i);
  if (tag != Tag::Double) throw_kind(Tag::Double);
  return bits.d[0];
}
bool IValue::toBool() const {
  if (tag == Tag::Symbol) return toScalar().toBool();
  if (tag != Tag::Bool) throw_kind(Tag::Bool);
  return bits.i != 0;
}
Scalar IValue::toScalar() const {
  switch (tag) {
  case Tag::Symbol:
    return Scalar::of_handle(bits.i);
  case Tag::Int:
    return Scalar(bits.i);
  case Tag::Double:
    return Scalar(bits.d[0]);
  case Tag::Bool:
    return Scalar(bits.i != 0);
  case Tag::Complex:
    return Scalar(c10::complex<double>(bits.d[0], bits.d[1]));
  case Tag::Tensor:
    return toTensor().item();
  default:
    throw_kind(Tag::Double);
  }
}
at::Device IValue::toDevice() const {
  if (tag != Tag::Device) throw_kind(Tag::Device);
  return at::Device(static_cast<DeviceType>(bits.i & 0xff),
                    static_cast<c10::DeviceIndex>(bits.i >> 8));
}
at::ScalarType IValue::toScalarType() const {
  if (tag != Tag::ScalarType && tag != Tag::Int) throw_kind(Tag::ScalarType);
  TORCH_CHECK(bits.i >= 0 && bits.i < c10::NumScalarTypes, "invalid dtype number ", bits.i);
  return static_cast<at::ScalarType>(bits.i);
}
at::Layout IValue::toLayout() const {
  if (tag != Tag::Layout && tag != Tag::Int) throw_kind(Tag::Layout);
  TORCH_CHECK(bits.i >= 0 && bits.i < static_cast<int>(at::Layout::NumOptions),
              "invalid layout number ", bits.i);
  return static_cast<at::Layout>(bits.i);
}
at::MemoryFormat IValue::toMemoryFormat() const {
  if (tag != Tag::MemoryFormat && tag != Tag::Int) throw_kind(Tag::MemoryFormat);
  TORCH_CHECK(bits.i >= 0 && bits.i < static_cast<int>(at::MemoryFormat::NumOptions),
              "invalid memory format number ", bits.i);
  return static_cast<at::MemoryFormat>(bits.i);
}
c10::Generator IValue::toGenerator() const {
  if (tag == Tag::None) return {};
  if (tag != Tag::Generator) throw_kind(Tag::Generator);
  return c10::Generator::unsafe_retain(static_cast<c10::GeneratorImpl*>(ref.get()));
}
at::Storage IValue::toStorage() const {
  if (tag != Tag::Storage) throw_kind(Tag::Storage);
  return at::Storage::unsafe_retain(static_cast<c10::StorageImpl*>(ref.get()));
}
std::vector<double> IValue::toDoubleList() const {
  if (tag == Tag::IntList) {
    const std::vector<int64_t>& ints = toIntList();
    return std::vector<double>(ints.begin(), ints.end());
  }
  return holder<std::vector<double>>(Tag::DoubleList);
}
std::vector<bool> IValue::toBoolList() const {
  if (tag == Tag::IntList) {
    const std::vector<int64_t>& ints = toIntList();
    return std::vector<bool>(ints.begin(), ints.end());
  }
  return holder<std::vector<bool>>(Tag::BoolList);
}
std::vector<std::optional<at::Tensor>> IValue::toOptionalTensorList() const {
  if (tag == Tag::TensorList) {
    std::vector<std::optional<at::Tensor>> out;
    for (const at::Tensor& t : toTensorList()) out.emplace_back(t);
    return out;
  }
  return holder<std::vector<std::optional<at::Tensor>>>(Tag::OptionalTensorList);
}
std::vector<Scalar> IValue::toScalarList() const {
  std::vector<Scalar> out;
  if (tag == Tag::IntList) {
    for (int64_t v : toIntList()) out.emplace_back(v);
    return out;
  }
  if (tag == Tag::DoubleList) {
    for (double v : toDoubleList()) out.emplace_back(v);
    return out;
  }
  return holder<std::vector<Scalar>>(Tag::ScalarList);
}

} // namespace at
