// What copies of modules have in common, and the code of clone() for every module of the library.
#define CRESSET_COMPILE_MODULES
#include <torch/nn/modules.h>

namespace torch::nn {
namespace {

void check_same_size(size_t made, size_t wanted, const char* what) {
  TORCH_CHECK(made == wanted, "The cloned module does not have the same number of ", what,
              " as the original module after calling reset(). Are you sure you called "
              "register_parameter(), register_buffer() or register_module() inside reset() and "
              "not the constructor?");
}

void copy_tensors(const OrderedDict<std::string, Tensor>& from,
                  OrderedDict<std::string, Tensor>& to, const std::optional<Device>& device) {
  for (const auto& item : from) {
    const Tensor& tensor = item.value();
    if (!tensor.defined()) continue;
    const bool moved = device && tensor.device() != *device;
    to[item.key()].set_data(moved ? tensor.to(*device) : tensor.clone());
  }
}

} // namespace

void Module::forget_members(Module& module) {
  module.parameters_.clear();
  module.buffers_.clear();
  module.children_.clear();
}

void Module::copy_values(Module& copy, const std::optional<Device>& device) const {
  check_same_size(copy.parameters_.size(), parameters_.size(), "parameter(s)");
  check_same_size(copy.buffers_.size(), buffers_.size(), "buffer(s)");
  check_same_size(copy.children_.size(), children_.size(), "child module(s)");
  copy_tensors(parameters_, copy.parameters_, device);
  copy_tensors(buffers_, copy.buffers_, device);
  for (const auto& child : children_) copy.children_[child.key()]->clone_(*child.value(), device);
}

} // namespace torch::nn
