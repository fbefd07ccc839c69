// The properties a factory function is asked for, each possibly left open.
#pragma once
#include <optional>

#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

namespace c10 {

// The dtype of floating point factories and of `torch.tensor(1.5)`: float32 unless changed.
C10_API ScalarType get_default_dtype();
C10_API void set_default_dtype(ScalarType dtype);
inline ScalarType get_default_complex_dtype() { return toComplexType(get_default_dtype()); }

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType dtype) : dtype_(dtype) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType type) : device_(Device(type)) {}
  TensorOptions(Layout layout) : layout_(layout) {}
  TensorOptions(MemoryFormat format) : memory_format_(format) {}

  TensorOptions dtype(std::optional<ScalarType> v) const {
    auto o = *this;
    o.dtype_ = v;
    return o;
  }
  TensorOptions device(std::optional<Device> v) const {
    auto o = *this;
    o.device_ = v;
    return o;
  }
  TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(Device(type, index));
  }
  TensorOptions layout(std::optional<Layout> v) const {
    auto o = *this;
    o.layout_ = v;
    return o;
  }
  TensorOptions memory_format(std::optional<MemoryFormat> v) const {
    auto o = *this;
    o.memory_format_ = v;
    return o;
  }
  TensorOptions pinned_memory(std::optional<bool> v) const {
    auto o = *this;
    o.pinned_ = v;
    return o;
  }
  TensorOptions requires_grad(std::optional<bool> v) const {
    auto o = *this;
    o.requires_grad_ = v;
    return o;
  }

  ScalarType dtype() const { return dtype_ ? *dtype_ : get_default_dtype(); }
  Device device() const { return device_ ? *device_ : Device(); }
  Layout layout() const { return layout_ ? *layout_ : Layout::Strided; }
  bool requires_grad() const { return requires_grad_ && *requires_grad_; }
  CRESSET_USER_MEMBERS(TensorOptions) bool pinned_memory() const { return pinned_ && *pinned_; }
  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<Layout> layout_opt() const { return layout_; }
  std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }
  std::optional<bool> pinned_memory_opt() const { return pinned_; }
  std::optional<bool> requires_grad_opt() const { return requires_grad_; }

 private:
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<MemoryFormat> memory_format_;
  std::optional<bool> pinned_;
  std::optional<bool> requires_grad_;
};

inline TensorOptions dtype(ScalarType v) { return TensorOptions(v); }
inline TensorOptions device(Device v) { return TensorOptions(v); }

} // namespace c10

#ifndef CRESSET_KERNEL_TU
#include <c10/core/TensorOptionsUser.h>
#endif
