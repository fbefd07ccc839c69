// The base of all modules: a tree of parameters, buffers and children with names. A module that
// overrides nothing but forward() works; one that is to be cloned derives from Cloneable.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/detail/static.h>
#include <torch/nn/pimpl.h>
#include <torch/ordered_dict.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

namespace torch::nn {

class AnyValue;

class TORCH_API Module : public std::enable_shared_from_this<Module> {
 public:
  using ModuleApplyFunction = std::function<void(Module&)>;
  using ConstModuleApplyFunction = std::function<void(const Module&)>;
  using NamedModuleApplyFunction = std::function<void(const std::string&, Module&)>;
  using ConstNamedModuleApplyFunction = std::function<void(const std::string&, const Module&)>;
  using ModulePointerApplyFunction = std::function<void(const std::shared_ptr<Module>&)>;
  using NamedModulePointerApplyFunction =
      std::function<void(const std::string&, const std::shared_ptr<Module>&)>;

  Module();
  explicit Module(std::string name);
  Module(const Module&);
  Module(Module&&) noexcept;
  Module& operator=(const Module&);
  Module& operator=(Module&&) noexcept;
  virtual ~Module();

  // The name given, or that of the class.
  const std::string& name() const noexcept;
  // A deep copy, on `device` if given. Error unless the class is Cloneable.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const;

  // Calls `function` with this module and everything below it, parents first. Forms with a name
  // give the path of each; forms with a pointer need a module that a shared_ptr owns.
  void apply(const ModuleApplyFunction& function);
  void apply(const ConstModuleApplyFunction& function) const;
  void apply(const NamedModuleApplyFunction& function, const std::string& name_prefix = {});
  void apply(const ConstNamedModuleApplyFunction& function,
             const std::string& name_prefix = {}) const;
  void apply(const ModulePointerApplyFunction& function) const;
  void apply(const NamedModulePointerApplyFunction& function,
             const std::string& name_prefix = {}) const;

  std::vector<Tensor> parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::string, std::shared_ptr<Module>>
  named_modules(const std::string& name_prefix = {}, bool include_self = true) const;
  std::vector<std::shared_ptr<Module>> children() const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const;

  virtual void train(bool on = true);
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return is_training_; }

  virtual void to(Device device, Dtype dtype, bool non_blocking = false);
  virtual void to(Dtype dtype, bool non_blocking = false);
  virtual void to(Device device, bool non_blocking = false);
  virtual void zero_grad(bool set_to_none = true);

  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);
  // False for modules of functions, which have nothing to save.
  virtual bool is_serializable() const { return true; }
  virtual void pretty_print(std::ostream& stream) const;

  // This module as another class, or null. Holders may be named as well.
  template <class T, std::enable_if_t<!torch::detail::is_module_holder<T>::value, int> = 0>
  T* as() noexcept {
    return dynamic_cast<T*>(this);
  }
  template <class T, std::enable_if_t<!torch::detail::is_module_holder<T>::value, int> = 0>
  const T* as() const noexcept {
    return dynamic_cast<const T*>(this);
  }
  template <class T, std::enable_if_t<torch::detail::is_module_holder<T>::value, int> = 0>
  typename T::ContainedType* as() noexcept {
    return as<typename T::ContainedType>();
  }
  template <class T, std::enable_if_t<torch::detail::is_module_holder<T>::value, int> = 0>
  const typename T::ContainedType* as() const noexcept {
    return as<typename T::ContainedType>();
  }

  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor tensor);
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class M> std::shared_ptr<M> register_module(std::string name, ModuleHolder<M> holder) {
    return register_module(std::move(name), holder.ptr());
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, std::shared_ptr<M> module) {
    TORCH_CHECK(module != nullptr, "Submodule '", name, "' must not be null");
    child(name) = module;
    return module;
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, ModuleHolder<M> holder) {
    return replace_module(name, holder.ptr());
  }
  void unregister_module(const std::string& name);

 protected:
  // For FORWARD_HAS_DEFAULT_ARGS: which arguments of forward() may be left out.
  virtual bool _forward_has_default_args() { return false; }
  virtual unsigned int _forward_num_required_args();
  virtual std::vector<AnyValue> _forward_populate_default_args(std::vector<AnyValue>&& arguments);

  // For Cloneable: drops parameters, buffers and children; copies the values of this module's into
  // those of `copy`, which must have the same names.
  static void forget_members(Module& module);
  void copy_values(Module& copy, const std::optional<Device>& device) const;

  OrderedDict<std::string, Tensor> parameters_{"Parameter"};
  OrderedDict<std::string, Tensor> buffers_{"Buffer"};
  OrderedDict<std::string, std::shared_ptr<Module>> children_{"Submodule"};

 private:
  friend class AnyModule;
  template <class M, class... Args> friend struct AnyModuleHolder;
  friend TORCH_API std::ostream& operator<<(std::ostream& stream, const Module& module);

  virtual void clone_(Module& other, const std::optional<Device>& device);
  void add_child(std::string name, std::shared_ptr<Module> module);
  std::shared_ptr<Module>& child(const std::string& name);
  void print_tree(std::ostream& stream, const std::string& indentation) const;
  std::shared_ptr<Module> shared_self() const;
  using Visit = std::function<void(const std::string& path, const std::shared_ptr<Module>&)>;
  void visit_below(const std::string& prefix, const Visit& visit) const;

  mutable std::optional<std::string> name_;
  bool is_training_ = true;
};

TORCH_API std::ostream& operator<<(std::ostream& stream, const Module& module);
TORCH_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                               const std::shared_ptr<Module>& module);
TORCH_API serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                              const std::shared_ptr<Module>& module);

} // namespace torch::nn
