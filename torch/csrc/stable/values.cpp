// Values of operators as 8 bytes each. See values.h.
#include <torch/csrc/stable/values.h>

#include <cstring>
#include <memory>

namespace torch::stable {
namespace {

using at::IValue;
using at::SchemaType;
using Kind = at::SchemaType::Kind;
using List = std::vector<StableIValue>;

template <class T> StableIValue bits_of(const T& value) {
  static_assert(sizeof(T) <= sizeof(StableIValue));
  StableIValue bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T> T value_of(StableIValue bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

thread_local std::string last_error;

[[noreturn]] void unknown_kind(const SchemaType& type) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "values of type ", type.str(),
                              " have no form in the stable interface");
}

SchemaType plain(SchemaType type) {
  type.optional = false;
  return type;
}
SchemaType element_of(const SchemaType& list) {
  if (list.kind == Kind::List) return list.contained.at(0);
  SchemaType element = list;
  element.is_list = false;
  element.list_size = -1;
  element.optional = list.element_optional;
  element.element_optional = false;
  return element;
}
bool is_list(const SchemaType& type) { return type.is_list || type.kind == Kind::List; }

template <class Items> StableIValue list_to_stable(const Items& items, const SchemaType& element) {
  auto list = std::make_unique<List>();
  for (const auto& item : items) list->push_back(to_stable(IValue(item), element));
  return bits_of(list.release());
}

StableIValue any_list_to_stable(const IValue& value, const SchemaType& element) {
  switch (value.tag) {
  case IValue::Tag::TensorList:
    return list_to_stable(value.toTensorList(), element);
  case IValue::Tag::IntList:
    return list_to_stable(value.toIntList(), element);
  case IValue::Tag::DoubleList:
    return list_to_stable(value.toDoubleList(), element);
  case IValue::Tag::BoolList: {
    auto list = std::make_unique<List>();
    for (const bool item : value.toBoolList()) list->push_back(bits_of(item));
    return bits_of(list.release());
  }
  case IValue::Tag::OptionalTensorList: {
    auto list = std::make_unique<List>();
    for (const std::optional<at::Tensor>& item : value.toOptionalTensorList())
      list->push_back(to_stable(item ? IValue(*item) : IValue(), element));
    return bits_of(list.release());
  }
  default:
    return list_to_stable(value.toList(), element);
  }
}

template <class T, class Read>
IValue typed_list(const List& items, const SchemaType& element, Read read) {
  std::vector<T> out;
  out.reserve(items.size());
  for (const StableIValue item : items) out.push_back(read(from_stable(item, element)));
  return out;
}

IValue list_from_stable(StableIValue bits, const SchemaType& element) {
  const std::unique_ptr<List> items(value_of<List*>(bits));
  TORCH_CHECK(items != nullptr, "the handle of a list is null");
  if (element.kind == Kind::Tensor && element.optional)
    return typed_list<std::optional<at::Tensor>>(*items, element, [](const IValue& v) {
      return v.isNone() ? std::nullopt : std::optional<at::Tensor>(v.toTensor());
    });
  if (!element.optional && !is_list(element)) {
    switch (element.kind) {
    case Kind::Tensor:
      return typed_list<at::Tensor>(*items, element, [](const IValue& v) { return v.toTensor(); });
    case Kind::Int:
    case Kind::SymInt:
      return typed_list<int64_t>(*items, element, [](const IValue& v) { return v.toInt(); });
    case Kind::Float:
      return typed_list<double>(*items, element, [](const IValue& v) { return v.toDouble(); });
    case Kind::Bool:
      return typed_list<bool>(*items, element, [](const IValue& v) { return v.toBool(); });
    default:
      break;
    }
  }
  return typed_list<IValue>(*items, element, [](const IValue& v) { return v; });
}

StableIValue device_bits(c10::Device device) {
  const auto index = static_cast<uint32_t>(static_cast<int32_t>(device.index()));
  return (static_cast<StableIValue>(static_cast<uint32_t>(device.type())) << 32) | index;
}
c10::Device device_of(StableIValue bits) {
  const int64_t type = static_cast<int64_t>(bits >> 32);
  const int32_t index = static_cast<int32_t>(bits & 0xffffffffU);
  TORCH_CHECK(type < c10::kNumDeviceTypes && index >= -1 && index <= 127, "no such device: type ",
              type, ", index ", index);
  return c10::Device(static_cast<c10::DeviceType>(type), static_cast<c10::DeviceIndex>(index));
}

int32_t enum_number(StableIValue bits, int32_t end, const char* what) {
  const auto number = value_of<int32_t>(bits);
  TORCH_CHECK(number >= 0 && number < end, "no such ", what, ": ", number);
  return number;
}

} // namespace

void set_last_error(const char* text) noexcept {
  try {
    last_error = text;
  } catch (const std::exception&) { // no memory for the text
    last_error.clear();
  }
}

StableIValue to_stable(const IValue& value, const SchemaType& type) {
  if (type.optional) {
    if (value.isNone()) return 0;
    return bits_of(std::make_unique<StableIValue>(to_stable(value, plain(type))).release());
  }
  if (is_list(type)) return any_list_to_stable(value, element_of(type));
  switch (type.kind) {
  case Kind::Tensor:
    return bits_of(new_handle(value.toTensor()));
  case Kind::Int:
  case Kind::SymInt:
    return bits_of(value.toInt());
  case Kind::Float:
    return bits_of(value.toDouble());
  case Kind::Bool:
    return bits_of(value.toBool());
  case Kind::ScalarType:
    return bits_of(static_cast<int32_t>(value.toScalarType()));
  case Kind::Layout:
    return bits_of(static_cast<int32_t>(value.toLayout()));
  case Kind::MemoryFormat:
    return bits_of(static_cast<int32_t>(value.toMemoryFormat()));
  case Kind::Device:
    return device_bits(value.toDevice());
  case Kind::Str:
    return bits_of(new std::string(value.toStringRef()));
  default:
    unknown_kind(type);
  }
}

IValue from_stable(StableIValue bits, const SchemaType& type) {
  if (type.optional) {
    const std::unique_ptr<StableIValue> inner(value_of<StableIValue*>(bits));
    return inner == nullptr ? IValue() : from_stable(*inner, plain(type));
  }
  if (is_list(type)) return list_from_stable(bits, element_of(type));
  switch (type.kind) {
  case Kind::Tensor: {
    const std::unique_ptr<at::Tensor> tensor(value_of<at::Tensor*>(bits));
    TORCH_CHECK(tensor != nullptr, "the handle of a tensor is null");
    return *tensor;
  }
  case Kind::Int:
  case Kind::SymInt:
    return value_of<int64_t>(bits);
  case Kind::Float:
    return value_of<double>(bits);
  case Kind::Bool:
    return value_of<bool>(bits);
  case Kind::ScalarType:
    return static_cast<at::ScalarType>(enum_number(bits, c10::NumScalarTypes, "dtype"));
  case Kind::Layout:
    return static_cast<at::Layout>(
        enum_number(bits, static_cast<int32_t>(at::Layout::NumOptions), "layout"));
  case Kind::MemoryFormat:
    return static_cast<at::MemoryFormat>(
        enum_number(bits, static_cast<int32_t>(at::MemoryFormat::NumOptions), "memory format"));
  case Kind::Device:
    return device_of(bits);
  case Kind::Str: {
    const std::unique_ptr<std::string> text(value_of<std::string*>(bits));
    TORCH_CHECK(text != nullptr, "the handle of a string is null");
    return *text;
  }
  default:
    unknown_kind(type);
  }
}

// ---- the C functions of values ------------------------------------------------------------------
namespace {
List& list_of(StableListHandle handle) {
  TORCH_CHECK(handle != nullptr, "the handle of a list is null");
  return *reinterpret_cast<List*>(handle);
}
StableIValue& item_of(StableListHandle handle, size_t index) {
  List& list = list_of(handle);
  TORCH_CHECK_INDEX(index < list.size(), "index ", index, " is out of range of a list of ",
                    list.size());
  return list[index];
}
std::string& string_of(StringHandle handle) {
  TORCH_CHECK(handle != nullptr, "the handle of a string is null");
  return *reinterpret_cast<std::string*>(handle);
}
} // namespace
} // namespace torch::stable

using namespace torch::stable; // NOLINT: the C functions lie outside of every namespace

const char* torch_last_error_message() { return last_error.c_str(); }

AOTITorchError torch_new_list_reserve_size(size_t size, StableListHandle* ret) {
  return shim([&] {
    auto list = std::make_unique<std::vector<StableIValue>>();
    list->reserve(size);
    *ret = reinterpret_cast<StableListHandle>(list.release());
  });
}
AOTITorchError torch_list_size(StableListHandle list, size_t* ret) {
  return shim([&] { *ret = list_of(list).size(); });
}
AOTITorchError torch_list_get_item(StableListHandle list, size_t index, StableIValue* ret) {
  return shim([&] { *ret = item_of(list, index); });
}
AOTITorchError torch_list_set_item(StableListHandle list, size_t index, StableIValue value) {
  return shim([&] { item_of(list, index) = value; });
}
AOTITorchError torch_list_push_back(StableListHandle list, StableIValue value) {
  return shim([&] { list_of(list).push_back(value); });
}
AOTITorchError torch_delete_list(StableListHandle list) {
  return shim([&] { delete reinterpret_cast<std::vector<StableIValue>*>(list); });
}
AOTITorchError torch_new_string_handle(const char* data, size_t length, StringHandle* ret) {
  return shim([&] { *ret = reinterpret_cast<StringHandle>(new std::string(data, length)); });
}
AOTITorchError torch_delete_string(StringHandle string) {
  return shim([&] { delete reinterpret_cast<std::string*>(string); });
}
AOTITorchError torch_string_length(StringHandle string, size_t* ret) {
  return shim([&] { *ret = string_of(string).size(); });
}
AOTITorchError torch_string_c_str(StringHandle string, const char** ret) {
  return shim([&] { *ret = string_of(string).c_str(); });
}
