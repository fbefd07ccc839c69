// What C++ programs write around dtypes, devices and options, beside the classes themselves.
#pragma once
#include <functional>
#include <iosfwd>

#include <c10/core/TensorAccessor.h>
#include <c10/core/TensorOptions.h>
#include <c10/core/TensorUserTypes.h>
#include <c10/core/TypeMeta.h>

namespace c10 {

constexpr DeviceType kHIP = DeviceType::HIP;
constexpr DeviceType kXLA = DeviceType::XLA;
constexpr DeviceType kXPU = DeviceType::XPU;
constexpr DeviceType kMPS = DeviceType::MPS;
constexpr Layout kSparseCsc = Layout::SparseCsc;
constexpr Layout kSparseBsr = Layout::SparseBsr;
constexpr Layout kSparseBsc = Layout::SparseBsc;
constexpr Layout kMkldnn = Layout::Mkldnn;
constexpr Layout kJagged = Layout::Jagged;
constexpr ScalarType kQInt8 = ScalarType::QInt8;
constexpr ScalarType kQUInt8 = ScalarType::QUInt8;
constexpr ScalarType kQInt32 = ScalarType::QInt32;
constexpr ScalarType kFloat8_e5m2 = ScalarType::Float8_e5m2;
constexpr ScalarType kFloat8_e4m3fn = ScalarType::Float8_e4m3fn;

inline ScalarType dtype_or_default(std::optional<ScalarType> dtype) {
  return dtype.value_or(get_default_dtype());
}
inline Device device_or_default(std::optional<Device> device) {
  return device.value_or(Device(kCPU));
}
inline Layout layout_or_default(std::optional<Layout> layout) { return layout.value_or(kStrided); }
inline bool pinned_memory_or_default(std::optional<bool> pinned) { return pinned.value_or(false); }

template <class T> TensorOptions dtype() { return TensorOptions(scalar_type_of<T>); }
inline TensorOptions device_index(DeviceIndex index) { return TensorOptions(Device(kCUDA, index)); }
inline TensorOptions layout(Layout v) { return TensorOptions(v); }
inline TensorOptions memory_format(MemoryFormat v) { return TensorOptions(v); }
inline TensorOptions requires_grad(bool v = true) { return TensorOptions().requires_grad(v); }

// As streams show layouts and formats; layout_name and memory_format_name are Python's names.
inline const char* stream_name(Layout layout) {
  static const char* const names[] = {"Strided",   "Sparse",    "SparseCsr", "Mkldnn",
                                      "SparseCsc", "SparseBsr", "SparseBsc", "Jagged"};
  return names[static_cast<int>(layout)];
}
inline const char* stream_name(MemoryFormat format) {
  static const char* const names[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
  return names[static_cast<int>(format)];
}

#define CRESSET_STREAM_OPERATOR(Type, expression)                                                  \
  template <class Traits> std::basic_ostream<char, Traits>& operator<<(                            \
      std::basic_ostream<char, Traits>& out, Type value) {                                         \
    return out << expression;                                                                      \
  }
CRESSET_STREAM_OPERATOR(const Device&, value.str())
CRESSET_STREAM_OPERATOR(DeviceType, device_type_name(value))
CRESSET_STREAM_OPERATOR(ScalarType, toString(value))
CRESSET_STREAM_OPERATOR(Layout, stream_name(value))
CRESSET_STREAM_OPERATOR(MemoryFormat, stream_name(value))
#undef CRESSET_STREAM_OPERATOR

} // namespace c10

template <> struct std::hash<c10::Device> {
  size_t operator()(c10::Device device) const noexcept {
    return size_t(uint8_t(device.type())) << 8 | uint8_t(device.index());
  }
};
