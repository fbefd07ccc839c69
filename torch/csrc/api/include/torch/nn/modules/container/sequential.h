// Modules in a row: the result of each is the argument of the next.
#pragma once
#include <torch/nn/modules/container/named_any.h>

namespace torch::nn {

class TORCH_API SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  using ConstIterator = std::vector<AnyModule>::const_iterator;

  SequentialImpl() = default;
  template <class... Modules, class = std::enable_if_t<!(
                                  sizeof...(Modules) == 1 &&
                                  (std::is_same_v<std::decay_t<Modules>, SequentialImpl> || ...))>>
  explicit SequentialImpl(Modules&&... modules) {
    modules_.reserve(sizeof...(Modules));
    (push_back(std::forward<Modules>(modules)), ...);
  }
  explicit SequentialImpl(OrderedDict<std::string, AnyModule>&& ordered_dict);
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> named_modules);
  SequentialImpl(const SequentialImpl&) = default;

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  // A sequence has no parameters of its own.
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  template <class Result = Tensor, class... Args> Result forward(Args&&... inputs) {
    TORCH_CHECK(!is_empty(), "Cannot call forward() on an empty Sequential");
    AnyValue value = modules_[0].any_forward(std::forward<Args>(inputs)...);
    for (size_t i = 1; i < modules_.size(); ++i) value = modules_[i].any_forward(std::move(value));
    if (auto* result = value.template try_get<Result>()) return std::move(*result);
    TORCH_CHECK(false, "The type of the return value is ", c10::demangle(value.type_info().name()),
                ", but you asked for type ", c10::demangle(typeid(Result).name()));
    __builtin_unreachable();
  }

  template <class M> void push_back(std::shared_ptr<M> module) {
    push_back(std::to_string(modules_.size()), std::move(module));
  }
  template <class M> void push_back(std::string name, std::shared_ptr<M> module) {
    push_back(std::move(name), AnyModule(std::move(module)));
  }
  template <class M, class = torch::detail::enable_if_module_t<M>> void push_back(M&& module) {
    push_back(std::to_string(modules_.size()), std::forward<M>(module));
  }
  template <class M, class = torch::detail::enable_if_module_t<M>>
  void push_back(std::string name, M&& module) {
    push_back(std::move(name), AnyModule(std::forward<M>(module)));
  }
  template <class M> void push_back(const ModuleHolder<M>& holder) { push_back(holder.ptr()); }
  template <class M> void push_back(std::string name, const ModuleHolder<M>& holder) {
    push_back(std::move(name), holder.ptr());
  }
  void push_back(AnyModule any_module) {
    push_back(std::to_string(modules_.size()), std::move(any_module));
  }
  void push_back(std::string name, AnyModule any_module);
  void push_back(const NamedAnyModule& named) { push_back(named.name(), named.module()); }
  template <class Container> void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }

  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator begin() const { return modules_.begin(); }
  ConstIterator end() const { return modules_.end(); }
  template <class T> T& at(size_t index) {
    TORCH_CHECK(index < size(), "Index out of range");
    return modules_[index].get<T>();
  }
  template <class T> const T& at(size_t index) const {
    TORCH_CHECK(index < size(), "Index out of range");
    return modules_[index].get<T>();
  }
  std::shared_ptr<Module> ptr(size_t index) const {
    TORCH_CHECK(index < size(), "Index out of range");
    return modules_[index].ptr();
  }
  template <class T> std::shared_ptr<T> ptr(size_t index) const {
    TORCH_CHECK(index < size(), "Index out of range");
    return modules_[index].ptr<T>();
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  std::vector<AnyModule> modules_;
};

CRESSET_LIBRARY_CLONE(SequentialImpl);
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential() = default;
  Sequential(std::initializer_list<NamedAnyModule> named_modules)
      : ModuleHolder(std::make_shared<SequentialImpl>(named_modules)) {}
};

} // namespace torch::nn
