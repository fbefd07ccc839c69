// From C++ values to the 8 bytes that operators exchange (StableIValue) and back:
// torch::stable::detail::from(value) gives away what the value owns, to<T>(bits) takes it over.
// One class template per kind of value does both.
#pragma once
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <torch/csrc/stable/tensor_struct.h>
#include <torch/headeronly/core/MemoryFormat.h>

namespace torch::stable::detail {

// Anything that is its bytes: numbers, bool, addresses.
template <class T, class = void> struct Stable {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(StableIValue),
                "a value of this type cannot be an argument or a result of a stable operator");
  static StableIValue from(const T& value) {
    StableIValue bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  }
  static T to(StableIValue bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
};

// Schemas know one integer and one floating-point type.
template <class T>
inline constexpr bool is_narrow_number = (std::is_integral_v<T> && !std::is_same_v<T, bool> &&
                                          !std::is_same_v<T, int64_t>) ||
                                         std::is_same_v<T, float>;
template <class T> struct Stable<T, std::enable_if_t<is_narrow_number<T>>> {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  static StableIValue from(T value) { return Stable<Wide>::from(static_cast<Wide>(value)); }
  static T to(StableIValue bits) { return static_cast<T>(Stable<Wide>::to(bits)); }
};

template <> struct Stable<std::nullopt_t> {
  static StableIValue from(std::nullopt_t) { return 0; }
};

// Members of enumerations go by the numbers of the library that runs, which is why these ask it.
inline int32_t number_of(ScalarType type) {
  switch (type) {
#define X(name, member, element)                                                                   \
  case ScalarType::member:                                                                         \
    return aoti_torch_dtype_##name();
    CRESSET_FORALL_SHIM_DTYPES(X)
#undef X
  default:
    STD_TORCH_CHECK(false,
                    "this dtype has no number in the stable interface: ", static_cast<int>(type));
  }
}
inline int32_t number_of(torch::headeronly::DeviceType type) {
  switch (type) {
#define X(name, member)                                                                            \
  case torch::headeronly::DeviceType::member:                                                      \
    return aoti_torch_device_type_##name();
    CRESSET_FORALL_SHIM_DEVICES(X)
#undef X
  default:
    STD_TORCH_CHECK(
        false, "this device type has no number in the stable interface: ", static_cast<int>(type));
  }
}
inline int32_t number_of(Layout layout) {
  switch (layout) {
#define X(name, member)                                                                            \
  case Layout::member:                                                                             \
    return aoti_torch_layout_##name();
    CRESSET_FORALL_SHIM_LAYOUTS(X)
#undef X
  default:
    STD_TORCH_CHECK(
        false, "this layout has no number in the stable interface: ", static_cast<int>(layout));
  }
}
inline int32_t number_of(torch::headeronly::MemoryFormat format) {
  switch (format) {
#define X(name, member)                                                                            \
  case torch::headeronly::MemoryFormat::member:                                                    \
    return aoti_torch_memory_format_##name();
    CRESSET_FORALL_SHIM_MEMORY_FORMATS(X)
#undef X
  default:
    STD_TORCH_CHECK(false, "this memory format has no number in the stable interface: ",
                    static_cast<int>(format));
  }
}

// The member with a number, by trying those there are.
template <class E> E member_of(int32_t number);
#define CRESSET_MEMBER(E, member)                                                                  \
  if (number == number_of(E::member)) return E::member;
template <> inline ScalarType member_of<ScalarType>(int32_t number) {
#define X(name, member, element) CRESSET_MEMBER(ScalarType, member)
  CRESSET_FORALL_SHIM_DTYPES(X)
#undef X
  STD_TORCH_CHECK(false, "unknown dtype number ", number);
}
template <>
inline torch::headeronly::DeviceType member_of<torch::headeronly::DeviceType>(int32_t number) {
#define X(name, member) CRESSET_MEMBER(torch::headeronly::DeviceType, member)
  CRESSET_FORALL_SHIM_DEVICES(X)
#undef X
  STD_TORCH_CHECK(false, "unknown device type number ", number);
}
template <> inline Layout member_of<Layout>(int32_t number) {
#define X(name, member) CRESSET_MEMBER(Layout, member)
  CRESSET_FORALL_SHIM_LAYOUTS(X)
#undef X
  STD_TORCH_CHECK(false, "unknown layout number ", number);
}
template <>
inline torch::headeronly::MemoryFormat member_of<torch::headeronly::MemoryFormat>(int32_t number) {
#define X(name, member) CRESSET_MEMBER(torch::headeronly::MemoryFormat, member)
  CRESSET_FORALL_SHIM_MEMORY_FORMATS(X)
#undef X
  STD_TORCH_CHECK(false, "unknown memory format number ", number);
}
#undef CRESSET_MEMBER

// The bits of a plain number, without the widening of integers in schemas.
inline StableIValue raw_bits(int32_t number) {
  StableIValue bits = 0;
  std::memcpy(&bits, &number, sizeof(number));
  return bits;
}
inline int32_t raw_number(StableIValue bits) {
  int32_t number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}
template <class E> struct Stable<E, std::enable_if_t<std::is_enum_v<E>>> {
  static StableIValue from(E member) { return raw_bits(number_of(member)); }
  static E to(StableIValue bits) { return member_of<E>(raw_number(bits)); }
};

template <> struct Stable<Device> {
  static StableIValue from(const Device& device) {
    const auto index = static_cast<uint32_t>(static_cast<int32_t>(device.index()));
    return (static_cast<StableIValue>(static_cast<uint32_t>(number_of(device.type()))) << 32) |
           index;
  }
  static Device to(StableIValue bits) {
    return Device(member_of<torch::headeronly::DeviceType>(static_cast<int32_t>(bits >> 32)),
                  static_cast<DeviceIndex>(static_cast<int32_t>(bits & 0xffffffffU)));
  }
};

template <> struct Stable<Tensor> {
  static StableIValue from(const Tensor& tensor) {
    AtenTensorHandle handle = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(tensor.get(), &handle));
    return Stable<AtenTensorHandle>::from(handle);
  }
  static Tensor to(StableIValue bits) { return Tensor(Stable<AtenTensorHandle>::to(bits)); }
};

template <> struct Stable<std::string> {
  static StableIValue from(const std::string& text) {
    StringHandle handle = nullptr;
    TORCH_ERROR_CODE_CHECK(torch_new_string_handle(text.data(), text.size(), &handle));
    return Stable<StringHandle>::from(handle);
  }
  static std::string to(StableIValue bits) {
    const auto handle = Stable<StringHandle>::to(bits);
    const char* data = nullptr;
    size_t length = 0;
    TORCH_ERROR_CODE_CHECK(torch_string_c_str(handle, &data));
    TORCH_ERROR_CODE_CHECK(torch_string_length(handle, &length));
    std::string text(data, length);
    TORCH_ERROR_CODE_CHECK(torch_delete_string(handle));
    return text;
  }
};

template <class T> struct Stable<std::optional<T>> {
  static StableIValue from(const std::optional<T>& value) {
    if (!value) return 0;
    return Stable<StableIValue*>::from(new StableIValue(Stable<T>::from(*value)));
  }
  static std::optional<T> to(StableIValue bits) {
    auto* inner = Stable<StableIValue*>::to(bits);
    if (inner == nullptr) return std::nullopt;
    const StableIValue taken = *inner;
    delete inner;
    return Stable<T>::to(taken);
  }
};

template <class List> StableIValue list_bits(const List& list) {
  StableListHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(torch_new_list_reserve_size(list.size(), &handle));
  for (const auto& item : list)
    TORCH_ERROR_CODE_CHECK(
        torch_list_push_back(handle, Stable<std::decay_t<decltype(item)>>::from(item)));
  return Stable<StableListHandle>::from(handle);
}
template <class T> struct Stable<torch::headeronly::HeaderOnlyArrayRef<T>> {
  static StableIValue from(torch::headeronly::HeaderOnlyArrayRef<T> list) {
    return list_bits(list);
  }
};
template <class T> struct Stable<std::vector<T>> {
  static StableIValue from(const std::vector<T>& list) { return list_bits(list); }
  static std::vector<T> to(StableIValue bits) {
    const auto handle = Stable<StableListHandle>::to(bits);
    size_t size = 0;
    TORCH_ERROR_CODE_CHECK(torch_list_size(handle, &size));
    std::vector<T> list;
    list.reserve(size);
    for (size_t i = 0; i < size; ++i) {
      StableIValue item = 0;
      TORCH_ERROR_CODE_CHECK(torch_list_get_item(handle, i, &item));
      list.push_back(Stable<T>::to(item));
    }
    TORCH_ERROR_CODE_CHECK(torch_delete_list(handle));
    return list;
  }
};

template <class T> StableIValue from(const T& value) { return Stable<T>::from(value); }
template <class T> T to(StableIValue bits) { return Stable<std::decay_t<T>>::to(bits); }

} // namespace torch::stable::detail

// What the classes declare and only conversions can say.
namespace torch::stable {
inline Device::Device(const std::string& text) : type_(DeviceType::CPU), index_(-1) {
  uint32_t type = 0;
  int32_t index = -1;
  TORCH_ERROR_CODE_CHECK(torch_parse_device_string(text.c_str(), &type, &index));
  type_ = detail::member_of<DeviceType>(static_cast<int32_t>(type));
  index_ = static_cast<DeviceIndex>(index);
}
inline ScalarType Tensor::scalar_type() const {
  return detail::member_of<ScalarType>(ask<int32_t>(aoti_torch_get_dtype));
}
inline Layout Tensor::layout() const {
  return detail::member_of<Layout>(ask<int32_t>(aoti_torch_get_layout));
}
inline Device Tensor::device() const {
  return Device(detail::member_of<DeviceType>(kind()), get_device_index());
}
} // namespace torch::stable

// By these names code written for earlier versions calls them.
using torch::stable::detail::from;
using torch::stable::detail::to;
