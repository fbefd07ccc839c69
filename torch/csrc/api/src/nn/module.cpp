// The tree of modules: names, traversal, conversion, saving and printing; AnyModule's messages.
#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>

#include <ostream>

namespace torch::nn {

Module::Module() = default;
Module::Module(std::string name) : name_(std::move(name)) {}
Module::Module(const Module&) = default;
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(const Module&) = default;
Module& Module::operator=(Module&&) noexcept = default;
Module::~Module() = default;

const std::string& Module::name() const noexcept {
  // The class is known only after construction.
  if (!name_) name_ = c10::demangle(typeid(*this).name());
  return *name_;
}

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  TORCH_CHECK(false, "clone() has not been implemented for ", name(),
              ". Subclass torch::nn::Cloneable<", name(),
              "> instead of torch::nn::Module to "
              "inherit the ability to clone.");
  return nullptr;
}
void Module::clone_(Module&, const std::optional<Device>&) {}

// ---- traversal
namespace {
std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}
} // namespace

void Module::visit_below(const std::string& prefix, const Visit& visit) const {
  for (const auto& child : children_) {
    const std::string path = joined(prefix, child.key());
    visit(path, child.value());
    child.value()->visit_below(path, visit);
  }
}

std::shared_ptr<Module> Module::shared_self() const {
  // A module on the stack, or in its constructor, has no owner to share with.
  std::shared_ptr<const Module> self = weak_from_this().lock();
  TORCH_CHECK(self != nullptr,
              "It looks like you attempted to retrieve your top-level module as a shared_ptr, but "
              "it is not stored in a shared_ptr. Use std::make_shared<",
              name(),
              "> instead of creating your module on the stack, or alternatively do not try to "
              "access your top-level module at all by passing /*include_self=*/false to "
              "modules() or named_modules()");
  return std::const_pointer_cast<Module>(self);
}

void Module::apply(const ModuleApplyFunction& function) {
  apply(NamedModuleApplyFunction([&](const std::string&, Module& m) { function(m); }));
}
void Module::apply(const ConstModuleApplyFunction& function) const {
  apply(ConstNamedModuleApplyFunction([&](const std::string&, const Module& m) { function(m); }));
}
void Module::apply(const NamedModuleApplyFunction& function, const std::string& name_prefix) {
  function(name_prefix, *this);
  visit_below(name_prefix, [&](const std::string& path, const auto& m) { function(path, *m); });
}
void Module::apply(const ConstNamedModuleApplyFunction& function,
                   const std::string& name_prefix) const {
  // Nothing is changed, so that the form above may walk the tree.
  const_cast<Module*>(this)->apply(NamedModuleApplyFunction(function), name_prefix);
}
void Module::apply(const ModulePointerApplyFunction& function) const {
  apply(NamedModulePointerApplyFunction(
      [&](const std::string&, const std::shared_ptr<Module>& m) { function(m); }));
}
void Module::apply(const NamedModulePointerApplyFunction& function,
                   const std::string& name_prefix) const {
  function(name_prefix, shared_self());
  visit_below(name_prefix, function);
}

std::vector<Tensor> Module::parameters(bool recurse) const {
  return named_parameters(recurse).values();
}
OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  OrderedDict<std::string, Tensor> out;
  const auto add = [&](const std::string& prefix, const Module& module) {
    for (const auto& item : module.parameters_)
      if (item.value().defined()) out.insert(joined(prefix, item.key()), item.value());
  };
  add({}, *this);
  if (recurse)
    visit_below({},
                [&](const std::string& path, const std::shared_ptr<Module>& m) { add(path, *m); });
  return out;
}
std::vector<Tensor> Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }
OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  OrderedDict<std::string, Tensor> out;
  const auto add = [&](const std::string& prefix, const Module& module) {
    for (const auto& item : module.buffers_)
      if (item.value().defined()) out.insert(joined(prefix, item.key()), item.value());
  };
  add({}, *this);
  if (recurse)
    visit_below({},
                [&](const std::string& path, const std::shared_ptr<Module>& m) { add(path, *m); });
  return out;
}
std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  return named_modules({}, include_self).values();
}
OrderedDict<std::string, std::shared_ptr<Module>>
Module::named_modules(const std::string& name_prefix, bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> out;
  if (include_self) out.insert(name_prefix, shared_self());
  visit_below(name_prefix, [&](const std::string& path, const std::shared_ptr<Module>& m) {
    out.insert(path, m);
  });
  return out;
}
std::vector<std::shared_ptr<Module>> Module::children() const { return children_.values(); }
OrderedDict<std::string, std::shared_ptr<Module>> Module::named_children() const {
  return children_;
}

// ---- state
void Module::train(bool on) {
  for (auto& child : children_) child.value()->train(on);
  is_training_ = on;
}

void Module::to(Device device, Dtype dtype, bool non_blocking) {
  // Children may be of classes that do more than convert their tensors.
  for (auto& child : children_) child.value()->to(device, dtype, non_blocking);
  for (auto* tensors : {&parameters_, &buffers_})
    for (auto& item : *tensors)
      if (item->defined()) item->set_data(item->data().to(device, dtype, non_blocking));
}
void Module::to(Dtype dtype, bool non_blocking) {
  for (auto& child : children_) child.value()->to(dtype, non_blocking);
  for (auto* tensors : {&parameters_, &buffers_})
    for (auto& item : *tensors)
      if (item->defined()) item->set_data(item->data().to(dtype, non_blocking));
}
void Module::to(Device device, bool non_blocking) {
  for (auto& child : children_) child.value()->to(device, non_blocking);
  for (auto* tensors : {&parameters_, &buffers_})
    for (auto& item : *tensors)
      if (item->defined()) item->set_data(item->data().to(device, non_blocking));
}
void Module::zero_grad(bool set_to_none) {
  for (auto& child : children_) child.value()->zero_grad(set_to_none);
  for (auto& item : parameters_) {
    if (!item->defined() || !item->mutable_grad().defined()) continue;
    if (set_to_none)
      item->mutable_grad().reset();
    else
      item->mutable_grad().detach_().zero_();
  }
}

// ---- registration
namespace {
void check_name(const char* kind, const std::string& name) {
  TORCH_CHECK(!name.empty(), kind, " name must not be empty");
  TORCH_CHECK(name.find('.') == std::string::npos, kind, " name must not contain a dot (got '",
              name, "')");
}
} // namespace

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  check_name("Parameter", name);
  if (tensor.defined()) {
    tensor.set_requires_grad(requires_grad);
  } else if (requires_grad) {
    TORCH_WARN("An undefined tensor cannot require grad. Ignoring the `requires_grad=true` "
               "function parameter.");
  }
  return parameters_.insert(std::move(name), std::move(tensor));
}
Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  check_name("Buffer", name);
  return buffers_.insert(std::move(name), std::move(tensor));
}
void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name("Submodule", name);
  TORCH_CHECK(module != nullptr, "Submodule '", name, "' must not be null");
  children_.insert(std::move(name), std::move(module));
}
std::shared_ptr<Module>& Module::child(const std::string& name) { return children_[name]; }
void Module::unregister_module(const std::string& name) {
  TORCH_CHECK(children_.contains(name), "No Module with name `", name, "` is registered");
  children_.erase(name);
}

// ---- files and text
void Module::save(serialize::OutputArchive& archive) const {
  for (const auto& item : parameters_) archive.write(item.key(), item.value());
  for (const auto& item : buffers_) archive.write(item.key(), item.value(), /*is_buffer=*/true);
  for (const auto& child : children_) {
    if (!child.value()->is_serializable()) continue;
    serialize::OutputArchive nested;
    child.value()->save(nested);
    archive.write(child.key(), nested);
  }
}
void Module::load(serialize::InputArchive& archive) {
  for (auto& item : parameters_) archive.read(item.key(), item.value());
  for (auto& item : buffers_) archive.read(item.key(), item.value(), /*is_buffer=*/true);
  for (const auto& child : children_) {
    if (!child.value()->is_serializable()) continue;
    // A state_dict of Python does not name modules that hold nothing.
    serialize::InputArchive nested;
    if (archive.try_read(child.key(), nested))
      child.value()->load(nested);
    else if (!child.value()->parameters().empty() || !child.value()->buffers().empty())
      archive.read(child.key(), nested); // raises, with the name
  }
}
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const std::shared_ptr<Module>& module) {
  TORCH_CHECK(module != nullptr, "Cannot serialize empty module");
  module->save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                    const std::shared_ptr<Module>& module) {
  TORCH_CHECK(module != nullptr, "Cannot deserialize empty module");
  module->load(archive);
  return archive;
}

void Module::pretty_print(std::ostream& stream) const { stream << name(); }
void Module::print_tree(std::ostream& stream, const std::string& indentation) const {
  pretty_print(stream);
  if (children_.is_empty()) return;
  stream << "(\n";
  const std::string inner = indentation + "  ";
  for (const auto& child : children_) {
    stream << inner << "(" << child.key() << "): ";
    child.value()->print_tree(stream, inner);
    stream << '\n';
  }
  stream << indentation << ")";
}
std::ostream& operator<<(std::ostream& stream, const Module& module) {
  module.print_tree(stream, "");
  return stream;
}

// ---- default arguments and AnyModule
unsigned int Module::_forward_num_required_args() {
  TORCH_CHECK(false, "torch::nn::Module subclass that has default arguments in `forward` method "
                     "must override `_forward_num_required_args` method. Please use "
                     "`FORWARD_HAS_DEFAULT_ARGS` macro to do so.");
  return 0;
}
std::vector<AnyValue> Module::_forward_populate_default_args(std::vector<AnyValue>&&) {
  TORCH_CHECK(false, "torch::nn::Module subclass that has default arguments in `forward` method "
                     "must override `_forward_populate_default_args` method. Please use "
                     "`FORWARD_HAS_DEFAULT_ARGS` macro to do so.");
  return {};
}

AnyModulePlaceholder::~AnyModulePlaceholder() = default;

namespace detail {
void throw_argument_count(const std::string& module, size_t required, size_t taken, size_t received,
                          bool has_defaults) {
  TORCH_CHECK(!has_defaults, module, "'s forward() method expects at least ", required,
              " argument(s) and at most ", taken, " argument(s), but received ", received, ".");
  TORCH_CHECK(received > taken, module, "'s forward() method expects ", taken,
              " argument(s), but received ", received, ". If ", module,
              "'s forward() method has default arguments, please make sure the forward() method "
              "is declared with a corresponding `FORWARD_HAS_DEFAULT_ARGS` macro.");
  TORCH_CHECK(false, module, "'s forward() method expects ", taken, " argument(s), but received ",
              received, ".");
  __builtin_unreachable();
}
void throw_argument_type(size_t index, const std::type_info& wanted,
                         const std::type_info& received) {
  TORCH_CHECK(false, "Expected argument #", index, " to be of type ", c10::demangle(wanted.name()),
              ", but received value of type ", c10::demangle(received.name()));
  __builtin_unreachable();
}
void throw_module_cast(const std::type_info& from, const std::type_info& to) {
  TORCH_CHECK(false, "Attempted to cast module of type ", c10::demangle(from.name()), " to type ",
              c10::demangle(to.name()));
  __builtin_unreachable();
}
unsigned first_default(std::initializer_list<std::pair<unsigned, AnyValue>> defaults) {
  return defaults.size() == 0 ? 0 : defaults.begin()->first;
}
std::vector<AnyValue>
fill_arguments(std::vector<AnyValue>&& given,
               std::initializer_list<std::pair<unsigned, AnyValue>> defaults) {
  std::vector<AnyValue> out = std::move(given);
  for (const auto& [position, value] : defaults)
    if (position == out.size()) out.push_back(value);
  return out;
}
} // namespace detail

} // namespace torch::nn
