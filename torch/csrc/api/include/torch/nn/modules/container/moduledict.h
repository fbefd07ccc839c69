// Modules by name, which the dictionary does not call.
#pragma once
#include <c10/util/Type.h>
#include <torch/nn/cloneable.h>

namespace torch::nn {

class TORCH_API ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Item = OrderedDict<std::string, std::shared_ptr<Module>>::Item;
  using Iterator = OrderedDict<std::string, std::shared_ptr<Module>>::Iterator;
  using ConstIterator = OrderedDict<std::string, std::shared_ptr<Module>>::ConstIterator;

  ModuleDictImpl() = default;
  explicit ModuleDictImpl(
      const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    update(modules);
  }
  explicit ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) {
    update(modules);
  }
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  std::vector<std::pair<std::string, std::shared_ptr<Module>>> items() const {
    return children_.pairs();
  }
  std::vector<std::string> keys() const { return children_.keys(); }
  std::vector<std::shared_ptr<Module>> values() const { return children_.values(); }
  Iterator begin() { return children_.begin(); }
  Iterator end() { return children_.end(); }
  ConstIterator begin() const { return children_.begin(); }
  ConstIterator end() const { return children_.end(); }
  size_t size() const noexcept { return children_.size(); }
  bool empty() const noexcept { return children_.is_empty(); }
  bool contains(const std::string& key) const noexcept { return children_.contains(key); }
  void clear() { children_.clear(); }
  std::shared_ptr<Module> operator[](const std::string& key) const { return children_[key]; }
  template <class T> T& at(const std::string& key) {
    T* module = children_[key]->as<T>();
    TORCH_CHECK(module != nullptr, "Unable to cast module[", key, "] to ",
                c10::demangle(typeid(T).name()));
    return *module;
  }
  template <class T> const T& at(const std::string& key) const {
    return const_cast<ModuleDictImpl*>(this)->at<T>(key);
  }
  std::shared_ptr<Module> pop(const std::string& key) {
    std::shared_ptr<Module> module = children_[key];
    children_.erase(key);
    return module;
  }
  void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    for (const auto& item : modules) insert(item.first, item.second);
  }
  template <class Container> void update(const Container& container) {
    for (const auto& item : container) insert(item.key(), item.value());
  }

 private:
  void insert(const std::string& key, std::shared_ptr<Module> module) {
    if (contains(key))
      children_[key] = std::move(module);
    else
      register_module(key, std::move(module));
  }
};
CRESSET_LIBRARY_MODULE(ModuleDict);

} // namespace torch::nn
