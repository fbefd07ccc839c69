// How generators of the device kind that is left to other packages are made:
// REGISTER_GENERATOR_PRIVATEUSE1(function from a device index to a generator), once per process.
#pragma once
#include <ATen/core/GeneratorUser.h>
#include <c10/core/impl/AcceleratorHooks.h>

namespace at {

struct PrivateUse1GeneratorRegistrar {
  explicit PrivateUse1GeneratorRegistrar(c10::impl::GeneratorMaker make) {
    c10::impl::set_generator_maker(c10::DeviceType::PrivateUse1, make);
  }
};

inline Generator GetGeneratorForPrivateuse1(c10::DeviceIndex device) {
  const c10::impl::GeneratorMaker make = c10::impl::generator_maker(c10::DeviceType::PrivateUse1);
  TORCH_CHECK(make != nullptr, "Please register a generator to the PrivateUse1 dispatch key, using "
                               "the REGISTER_GENERATOR_PRIVATEUSE1 macro.");
  return make(device);
}

} // namespace at

#define REGISTER_GENERATOR_PRIVATEUSE1(make)                                                       \
  static const ::at::PrivateUse1GeneratorRegistrar C10_CONCATENATE(cresset_generator_,             \
                                                                   __LINE__)(make);
