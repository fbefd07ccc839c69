// Modules that can be copied: reset() makes the parameters, clone() calls it on a copy and then
// copies their values.
#pragma once
#include <torch/nn/module.h>

namespace torch::nn {

template <class Derived> class Cloneable : public Module {
 public:
  using Module::Module;
  // (Re)makes all parameters, buffers and children. Constructors call it.
  virtual void reset() = 0;

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    const NoGradGuard no_grad;
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    copy->parameters_.clear();
    copy->buffers_.clear();
    copy->children_.clear();
    copy->reset();
    copy_values(*copy, device);
    return copy;
  }

 private:
  void clone_(Module& other, const std::optional<Device>& device) final {
    auto source = std::dynamic_pointer_cast<Derived>(other.clone(device));
    TORCH_CHECK(source != nullptr, "Attempted to clone submodule, but it is of a different type "
                                   "than the submodule it was to be cloned into");
    static_cast<Derived&>(*this) = *source;
  }
  void copy_values(Module& copy, const std::optional<Device>& device) const {
    check_same_size(copy.parameters_.size(), parameters_.size(), "parameter(s)");
    check_same_size(copy.buffers_.size(), buffers_.size(), "buffer(s)");
    check_same_size(copy.children_.size(), children_.size(), "child module(s)");
    copy_tensors(parameters_, copy.parameters_, device);
    copy_tensors(buffers_, copy.buffers_, device);
    for (const auto& child : children_) copy.children_[child.key()]->clone_(*child.value(), device);
  }
  static void check_same_size(size_t made, size_t wanted, const char* what) {
    TORCH_CHECK(made == wanted, "The cloned module does not have the same number of ", what,
                " as the original module after calling reset(). Are you sure you called "
                "register_parameter(), register_buffer() or register_module() inside reset() and "
                "not the constructor?");
  }
  static void copy_tensors(const OrderedDict<std::string, Tensor>& from,
                           OrderedDict<std::string, Tensor>& to,
                           const std::optional<Device>& device) {
    for (const auto& item : from) {
      const Tensor& tensor = item.value();
      if (!tensor.defined()) continue;
      const bool moved = device && tensor.device() != *device;
      to[item.key()].set_data(moved ? tensor.to(*device) : tensor.clone());
    }
  }
};

} // namespace torch::nn
