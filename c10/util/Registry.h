// A table from keys to makers of objects of one base class, filled before main by the files that
// define the classes. Two entries of one key are an error where the second is made.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <c10/util/Exception.h>

namespace c10 {

template <class Key, class Pointer, class... Args> class Registry {
 public:
  using Maker = std::function<Pointer(Args...)>;
  void Register(const Key& key, Maker make, std::string help = "") {
    TORCH_CHECK(makers_.emplace(key, std::move(make)).second, "Registry: the key '", key,
                "' is registered twice");
    help_[key] = std::move(help);
  }
  bool Has(const Key& key) const { return makers_.count(key) != 0; }
  // Null where the key has no maker.
  Pointer Create(const Key& key, Args... args) const {
    const auto found = makers_.find(key);
    if (found == makers_.end()) return Pointer(nullptr);
    return found->second(args...);
  }
  std::vector<Key> Keys() const {
    std::vector<Key> keys;
    for (const auto& each : makers_) keys.push_back(each.first);
    return keys;
  }
  const std::map<Key, std::string>& HelpMessage() const { return help_; }

 private:
  std::map<Key, Maker> makers_;
  std::map<Key, std::string> help_;
};

template <class Key, class Pointer, class... Args> struct Registerer {
  Registerer(const Key& key, Registry<Key, Pointer, Args...>* registry,
             typename Registry<Key, Pointer, Args...>::Maker make, std::string help = "") {
    registry->Register(key, std::move(make), std::move(help));
  }
  template <class Derived> static Pointer DefaultCreator(Args... args) {
    return Pointer(new Derived(args...));
  }
};

} // namespace c10

#define C10_DECLARE_TYPED_REGISTRY(name, Key, Base, Pointer, ...)                                  \
  ::c10::Registry<Key, Pointer<Base>, ##__VA_ARGS__>* name();                                      \
  using Registerer##name = ::c10::Registerer<Key, Pointer<Base>, ##__VA_ARGS__>
#define C10_DEFINE_TYPED_REGISTRY(name, Key, Base, Pointer, ...)                                   \
  ::c10::Registry<Key, Pointer<Base>, ##__VA_ARGS__>* name() {                                     \
    static auto* registry = new ::c10::Registry<Key, Pointer<Base>, ##__VA_ARGS__>();              \
    return registry;                                                                               \
  }
#define C10_DECLARE_REGISTRY(name, Base, ...)                                                      \
  C10_DECLARE_TYPED_REGISTRY(name, std::string, Base, std::unique_ptr, ##__VA_ARGS__)
#define TORCH_DECLARE_REGISTRY(name, Base, ...) C10_DECLARE_REGISTRY(name, Base, ##__VA_ARGS__)
#define C10_DEFINE_REGISTRY(name, Base, ...)                                                       \
  C10_DEFINE_TYPED_REGISTRY(name, std::string, Base, std::unique_ptr, ##__VA_ARGS__)
#define C10_DECLARE_SHARED_REGISTRY(name, Base, ...)                                               \
  C10_DECLARE_TYPED_REGISTRY(name, std::string, Base, std::shared_ptr, ##__VA_ARGS__)
#define C10_DEFINE_SHARED_REGISTRY(name, Base, ...)                                                \
  C10_DEFINE_TYPED_REGISTRY(name, std::string, Base, std::shared_ptr, ##__VA_ARGS__)
#define C10_REGISTER_TYPED_CLASS(name, key, ...)                                                   \
  static const Registerer##name C10_CONCATENATE(cresset_registered_, __LINE__)(                    \
      key, name(), Registerer##name::DefaultCreator<__VA_ARGS__>);
#define C10_REGISTER_CLASS(name, key, ...) C10_REGISTER_TYPED_CLASS(name, #key, __VA_ARGS__)
