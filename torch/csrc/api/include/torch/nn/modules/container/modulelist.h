// Modules in a list, which the list does not call.
#pragma once
#include <c10/util/Type.h>
#include <torch/nn/cloneable.h>

namespace torch::nn {

class TORCH_API ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  using Iterator = std::vector<std::shared_ptr<Module>>::iterator;
  using ConstIterator = std::vector<std::shared_ptr<Module>>::const_iterator;

  ModuleListImpl() = default;
  template <class... Modules, class = std::enable_if_t<!(
                                  sizeof...(Modules) == 1 &&
                                  (std::is_same_v<std::decay_t<Modules>, ModuleListImpl> || ...))>>
  explicit ModuleListImpl(Modules&&... modules) {
    (push_back(std::forward<Modules>(modules)), ...);
  }
  ModuleListImpl(const ModuleListImpl&) = default;
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  void push_back(std::shared_ptr<Module> module) {
    modules_.push_back(std::move(module));
    register_module(std::to_string(modules_.size() - 1), modules_.back());
  }
  template <class M, class = torch::detail::enable_if_module_t<M>> void push_back(M&& module) {
    push_back(std::static_pointer_cast<Module>(
        std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }
  template <class M> void push_back(const ModuleHolder<M>& holder) {
    push_back(std::static_pointer_cast<Module>(holder.ptr()));
  }
  template <class Container> void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }
  // Before the module at `index`; those behind it move up.
  void insert(size_t index, std::shared_ptr<Module> module);
  template <class M> void insert(size_t index, const ModuleHolder<M>& holder) {
    insert(index, std::static_pointer_cast<Module>(holder.ptr()));
  }
  template <class M, class = torch::detail::enable_if_module_t<M>>
  void insert(size_t index, M&& module) {
    insert(index, std::static_pointer_cast<Module>(
                      std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }

  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator begin() const { return modules_.begin(); }
  ConstIterator end() const { return modules_.end(); }
  template <class T> T& at(size_t index) {
    TORCH_CHECK(index < size(), "Index out of range");
    T* module = modules_[index]->as<T>();
    TORCH_CHECK(module != nullptr, "Unable to cast module[", index, "] to ",
                c10::demangle(typeid(T).name()));
    return *module;
  }
  template <class T> const T& at(size_t index) const {
    return const_cast<ModuleListImpl*>(this)->at<T>(index);
  }
  std::shared_ptr<Module> ptr(size_t index) const {
    TORCH_CHECK(index < size(), "Index out of range");
    return modules_[index];
  }
  template <class T> std::shared_ptr<T> ptr(size_t index) const {
    TORCH_CHECK(index < size(), "Index out of range");
    return std::dynamic_pointer_cast<T>(modules_[index]);
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};
CRESSET_LIBRARY_MODULE(ModuleList);

} // namespace torch::nn
