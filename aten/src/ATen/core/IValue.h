// A value of any type an operator can take or return: what boxed kernels find on their stack.
#pragma once
#include <string>

#include <ATen/core/Tensor.h>

namespace at {

struct TORCH_API IValue {
  enum class Tag : uint8_t {
    None,
    Tensor,
    Int,
    Double,
    Bool,
    Complex,
    String,
    Device,
    ScalarType,
    Layout,
    MemoryFormat,
    Generator,
    Storage,
    IntList,
    DoubleList,
    BoolList,
    TensorList,
    OptionalTensorList,
    ScalarList,
    List,
    Opaque,
    Symbol, // the handle of a symbolic number of any sort
  };
  // Keeps a list or string alive behind the counted pointer.
  template <class T> struct Holder final : c10::intrusive_ptr_target {
    explicit Holder(T v) : value(std::move(v)) {}
    T value;
  };
  CRESSET_USER_MEMBERS(IValue)
  IValue() = default;
  IValue(at::Tensor t) : tag(t.defined() ? Tag::Tensor : Tag::None), ref(t.take_impl()) {}
  IValue(int64_t v) : tag(Tag::Int) { bits.i = v; }
  IValue(int v) : IValue(int64_t(v)) {}
  IValue(SymInt v) : tag(v.is_symbolic() ? Tag::Symbol : Tag::Int) { bits.i = v.raw(); }
  IValue(double v) : tag(Tag::Double) { bits.d[0] = v; }
  IValue(bool v) : tag(Tag::Bool) { bits.i = v; }
  IValue(c10::complex<double> v) : tag(Tag::Complex) { bits.d[0] = v.real_, bits.d[1] = v.imag_; }
  IValue(const Scalar& s);
  IValue(std::string v) : tag(Tag::String), ref(hold(std::move(v))) {}
  IValue(std::string_view v) : IValue(std::string(v)) {}
  IValue(const char* v) : IValue(std::string(v)) {}
  IValue(at::Device v) : tag(Tag::Device) {
    bits.i = static_cast<uint8_t>(v.type()) | int64_t(v.index()) << 8;
  }
  IValue(at::ScalarType v) : tag(Tag::ScalarType) { bits.i = static_cast<int>(v); }
  IValue(at::Layout v) : tag(Tag::Layout) { bits.i = static_cast<int>(v); }
  IValue(at::MemoryFormat v) : tag(Tag::MemoryFormat) { bits.i = static_cast<int>(v); }
  IValue(c10::Generator v) : tag(v ? Tag::Generator : Tag::None), ref(std::move(v)) {}
  IValue(at::Storage v) : tag(v ? Tag::Storage : Tag::None), ref(std::move(v)) {}
  IValue(std::vector<int64_t> v) : tag(Tag::IntList), ref(hold(std::move(v))) {}
  IValue(IntArrayRef v) : IValue(v.vec()) {}
  IValue(SymIntArrayRef v)
      : IValue(IntArrayRef(reinterpret_cast<const int64_t*>(v.data()), v.size())) {}
  IValue(std::vector<double> v) : tag(Tag::DoubleList), ref(hold(std::move(v))) {}
  IValue(ArrayRef<double> v) : IValue(v.vec()) {}
  IValue(std::vector<bool> v) : tag(Tag::BoolList), ref(hold(std::move(v))) {}
  IValue(std::vector<at::Tensor> v) : tag(Tag::TensorList), ref(hold(std::move(v))) {}
  IValue(at::TensorList v) : IValue(v.vec()) {}
  IValue(std::vector<std::optional<at::Tensor>> v)
      : tag(Tag::OptionalTensorList), ref(hold(std::move(v))) {}
  IValue(at::OptionalTensorList v) : IValue(v.vec()) {}
  IValue(std::vector<Scalar> v) : tag(Tag::ScalarList), ref(hold(std::move(v))) {}
  IValue(ArrayRef<Scalar> v) : IValue(v.vec()) {}
  IValue(std::vector<IValue> v) : tag(Tag::List), ref(hold(std::move(v))) {}
  template <size_t N> IValue(const std::array<bool, N>& v)
      : IValue(std::vector<bool>(v.begin(), v.end())) {}
  template <class T> IValue(const std::optional<T>& v) {
    if (v) *this = IValue(*v);
  }
  IValue(std::nullopt_t) {}
  // Something only its maker understands (a Python object).
  static IValue opaque(c10::intrusive_ptr<c10::intrusive_ptr_target> object) {
    IValue v;
    v.tag = Tag::Opaque;
    v.ref = std::move(object);
    return v;
  }

  bool isNone() const { return tag == Tag::None; }
  bool isTensor() const { return tag == Tag::Tensor; }
  bool isInt() const { return tag == Tag::Int; }
  bool isSymbol() const { return tag == Tag::Symbol; }
  bool isDouble() const { return tag == Tag::Double; }
  bool isBool() const { return tag == Tag::Bool; }
  bool isString() const { return tag == Tag::String; }
  bool isTensorList() const { return tag == Tag::TensorList; }
  bool isOptionalTensorList() const { return tag == Tag::OptionalTensorList; }
  bool isIntList() const { return tag == Tag::IntList; }
  bool isList() const { return tag == Tag::List; }

  // Accessors: Error when the value is of another kind. None reads as an undefined tensor, a
  // symbolic number where a plain one is wanted as its guarded value.
  at::Tensor toTensor() const;
  int64_t toInt() const;
  SymInt toSymInt() const { return isSymbol() ? SymInt::from_raw(bits.i) : SymInt(toInt()); }
  double toDouble() const;
  bool toBool() const;
  Scalar toScalar() const;
  c10::complex<double> toComplexDouble() const { return toScalar().toComplexDouble(); }
  const std::string& toStringRef() const { return holder<std::string>(Tag::String); }
  at::Device toDevice() const;
  at::ScalarType toScalarType() const;
  at::Layout toLayout() const;
  at::MemoryFormat toMemoryFormat() const;
  c10::Generator toGenerator() const;
  at::Storage toStorage() const;
  const std::vector<int64_t>& toIntList() const {
    return holder<std::vector<int64_t>>(Tag::IntList);
  }
  std::vector<double> toDoubleList() const;
  std::vector<bool> toBoolList() const;
  const std::vector<at::Tensor>& toTensorList() const {
    return holder<std::vector<at::Tensor>>(Tag::TensorList);
  }
  std::vector<std::optional<at::Tensor>> toOptionalTensorList() const;
  std::vector<Scalar> toScalarList() const;
  CRESSET_IVALUE_TO_LIST
  const char* kind() const;

  Tag tag = Tag::None;
  union {
    int64_t i;
    double d[2];
  } bits{};
  c10::intrusive_ptr<c10::intrusive_ptr_target> ref;

 private:
  template <class T> static c10::intrusive_ptr<c10::intrusive_ptr_target> hold(T v) {
    return c10::make_intrusive<Holder<T>>(std::move(v));
  }
  template <class T> const T& holder(Tag wanted) const {
    if (tag != wanted) throw_kind(wanted);
    return static_cast<Holder<T>*>(ref.get())->value;
  }
  [[noreturn]] void throw_kind(Tag wanted) const;
};

using Stack = std::vector<IValue>;

} // namespace at
