// Modules that can be copied: reset() makes the parameters, clone() calls it on a copy and then
// copies their values.
#pragma once
#include <torch/nn/module.h>

namespace torch::nn {

// `Base` is Module, or a class between it and the module. The members are defined outside of the
// class: what is not inline is not compiled again in each program for the modules of the library
// (CRESSET_LIBRARY_MODULE).
template <class Derived, class Base = Module> class Cloneable : public Base {
 public:
  using Base::Base;
  // (Re)makes all parameters, buffers and children. Constructors call it.
  virtual void reset() = 0;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

 private:
  void clone_(Module& other, const std::optional<Device>& device) final;
};

template <class Derived, class Base>
std::shared_ptr<Module> Cloneable<Derived, Base>::clone(const std::optional<Device>& device) const {
  const NoGradGuard no_grad;
  auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
  Module::forget_members(*copy);
  copy->reset();
  this->copy_values(*copy, device);
  return copy;
}

template <class Derived, class Base>
void Cloneable<Derived, Base>::clone_(Module& other, const std::optional<Device>& device) {
  auto source = std::dynamic_pointer_cast<Derived>(other.clone(device));
  TORCH_CHECK(source != nullptr, "Attempted to clone submodule, but it is of a different type "
                                 "than the submodule it was to be cloned into");
  static_cast<Derived&>(*this) = *source;
}

} // namespace torch::nn

// The code of clone() for a module of the library is in the library:
// torch/csrc/api/src/nn/cloneable.cpp defines CRESSET_COMPILE_MODULES and so compiles it.
#ifdef CRESSET_COMPILE_MODULES
#define CRESSET_LIBRARY_CLONE(...) template class Cloneable<__VA_ARGS__>
#else
#define CRESSET_LIBRARY_CLONE(...) extern template class Cloneable<__VA_ARGS__>
#endif
// TORCH_MODULE for such a module.
#define CRESSET_LIBRARY_MODULE(Name)                                                               \
  CRESSET_LIBRARY_CLONE(Name##Impl);                                                               \
  TORCH_MODULE(Name)
