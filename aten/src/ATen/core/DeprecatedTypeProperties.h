// `tensor.type()`: device, layout and dtype in one object, as old C++ code asks for them. New code
// uses options(), device() and scalar_type().
#pragma once
#include <string>

#include <ATen/core/Tensor.h>

namespace c10 {
enum class Backend { CPU, CUDA, SparseCPU, SparseCUDA, Meta, PrivateUse1, QuantizedCPU, Undefined };
} // namespace c10

namespace at {
using c10::Backend;

class TORCH_API DeprecatedTypeProperties {
 public:
  // One object for each combination; lives until the process ends.
  static DeprecatedTypeProperties& of(DeviceType device, Layout layout, ScalarType dtype);

  ScalarType scalarType() const { return dtype_; }
  ScalarType typeMeta() const { return dtype_; }
  DeviceType device_type() const { return device_; }
  Layout layout() const { return layout_; }
  Backend backend() const;
  bool is_cuda() const { return device_ == kCUDA; }
  bool is_sparse() const { return layout_ == Layout::Sparse; }
  std::string toString() const; // "CPUFloatType"
  TensorOptions options(c10::DeviceIndex index = -1) const {
    return TensorOptions(dtype_).device(device_, index).layout(layout_);
  }
  operator TensorOptions() const { return options(); }
  bool operator==(const DeprecatedTypeProperties& o) const { return this == &o; }
  bool operator!=(const DeprecatedTypeProperties& o) const { return this != &o; }

 private:
  DeprecatedTypeProperties(DeviceType device, Layout layout, ScalarType dtype)
      : device_(device), layout_(layout), dtype_(dtype) {}
  DeviceType device_;
  Layout layout_;
  ScalarType dtype_;
};

TORCH_API DeprecatedTypeProperties& getDeprecatedTypeProperties(Backend backend, ScalarType dtype);
inline DeprecatedTypeProperties& CPU(ScalarType dtype) {
  return getDeprecatedTypeProperties(Backend::CPU, dtype);
}
inline DeprecatedTypeProperties& CUDA(ScalarType dtype) {
  return getDeprecatedTypeProperties(Backend::CUDA, dtype);
}

} // namespace at
