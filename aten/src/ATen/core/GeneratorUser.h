// How programs make generators of their own classes, and how their kernels get at them again.
#pragma once
#include <optional>
#include <utility>

#include <c10/core/Generator.h>

namespace at {

template <class Impl, class... Args> Generator make_generator(Args&&... args) {
  return c10::make_intrusive<Impl>(std::forward<Args>(args)...);
}

// The generator as an object of its class, which says by device_type() where it draws. Error where
// there is none or another one.
template <class Impl> Impl* check_generator(std::optional<Generator> generator) {
  TORCH_CHECK(generator.has_value(), "Expected Generator but received nullopt");
  TORCH_CHECK(generator->defined(), "Generator with undefined implementation is not allowed");
  GeneratorImpl* const impl = generator->operator->();
  TORCH_CHECK(impl->device().type() == Impl::device_type(), "Expected a '", Impl::device_type(),
              "' device type for generator but found '", impl->device().type(), "'");
  auto* const own = dynamic_cast<Impl*>(impl);
  TORCH_CHECK(own != nullptr, "the generator is of another class than the kernel expects");
  return own;
}

template <class Impl> Impl* get_generator_or_default(const std::optional<Generator>& generator,
                                                     const Generator& otherwise) {
  return check_generator<Impl>(generator && generator->defined() ? generator
                                                                 : std::optional(otherwise));
}

} // namespace at
