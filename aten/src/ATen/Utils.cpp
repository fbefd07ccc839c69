// at::tensor and at::manual_seed.
#undef CRESSET_KERNEL_TU // methods of Tensor for users
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/ops/to.h>
#include <c10/core/DeviceHooks.h>

namespace at {
namespace {

template <class T> Tensor from_values(ArrayRef<T> values, const TensorOptions& options) {
  constexpr ScalarType own = c10::scalar_type_of<T>;
  const ScalarType dtype = options.has_dtype() ? options.dtype() : own;
  TORCH_CHECK_NOT_IMPLEMENTED(!c10::isComplexType(own) || c10::isComplexType(dtype),
                              "\"tensor_cpu\" not implemented for '", c10::toString(dtype), "'");
  const Tensor made = detail::empty({int64_t(values.size())}, own);
  if (!values.empty()) std::copy(values.begin(), values.end(), made.data_ptr<T>());
  return made.to(options.device(), dtype);
}

} // namespace

#define CRESSET_TENSOR(T)                                                                          \
  Tensor tensor(ArrayRef<T> values, const TensorOptions& options) {                                \
    return from_values(values, options);                                                           \
  }
CRESSET_TENSOR(uint8_t)
CRESSET_TENSOR(int8_t)
CRESSET_TENSOR(int16_t)
CRESSET_TENSOR(int32_t)
CRESSET_TENSOR(int64_t)
CRESSET_TENSOR(c10::Half)
CRESSET_TENSOR(c10::BFloat16)
CRESSET_TENSOR(float)
CRESSET_TENSOR(double)
CRESSET_TENSOR(c10::complex<float>)
CRESSET_TENSOR(c10::complex<double>)
#undef CRESSET_TENSOR

void manual_seed(uint64_t seed) {
  const Generator cpu = detail::getDefaultCPUGenerator();
  {
    const std::lock_guard<std::mutex> lock(cpu->mutex);
    cpu->set_current_seed(seed);
  }
  for (const DeviceType type : {DeviceType::CUDA, DeviceType::PrivateUse1})
    if (c10::DeviceHooks* hooks = c10::device_hooks(type)) hooks->seed_all(seed);
}

} // namespace at
