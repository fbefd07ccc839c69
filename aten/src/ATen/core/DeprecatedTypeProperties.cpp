// The table behind tensor.type().
#include <ATen/core/DeprecatedTypeProperties.h>

#include <memory>
#include <mutex>
#include <unordered_map>

namespace at {

DeprecatedTypeProperties& DeprecatedTypeProperties::of(DeviceType device, Layout layout,
                                                       ScalarType dtype) {
  static std::mutex mutex;
  static auto* made = new std::unordered_map<int, std::unique_ptr<DeprecatedTypeProperties>>;
  const int key =
      static_cast<int>(device) << 16 | static_cast<int>(layout) << 8 | static_cast<int>(dtype);
  const std::lock_guard<std::mutex> lock(mutex);
  auto& slot = (*made)[key];
  if (!slot) slot.reset(new DeprecatedTypeProperties(device, layout, dtype));
  return *slot;
}

Backend DeprecatedTypeProperties::backend() const {
  const bool sparse = is_sparse();
  switch (device_) {
  case DeviceType::CPU:
    return sparse ? Backend::SparseCPU : Backend::CPU;
  case DeviceType::CUDA:
    return sparse ? Backend::SparseCUDA : Backend::CUDA;
  case DeviceType::Meta:
    return Backend::Meta;
  case DeviceType::PrivateUse1:
    return Backend::PrivateUse1;
  default:
    return Backend::Undefined;
  }
}

std::string DeprecatedTypeProperties::toString() const {
  std::string device = c10::device_type_name(device_);
  for (char& c : device) c = static_cast<char>(std::toupper(c));
  return c10::str(is_sparse() ? "Sparse" : "", device, c10::toString(dtype_), "Type");
}

DeprecatedTypeProperties& getDeprecatedTypeProperties(Backend backend, ScalarType dtype) {
  const bool sparse = backend == Backend::SparseCPU || backend == Backend::SparseCUDA;
  DeviceType device = DeviceType::CPU;
  if (backend == Backend::CUDA || backend == Backend::SparseCUDA) device = DeviceType::CUDA;
  if (backend == Backend::Meta) device = DeviceType::Meta;
  if (backend == Backend::PrivateUse1) device = DeviceType::PrivateUse1;
  return DeprecatedTypeProperties::of(device, sparse ? Layout::Sparse : Layout::Strided, dtype);
}

} // namespace at
