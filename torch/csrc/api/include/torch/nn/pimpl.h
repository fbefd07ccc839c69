// ModuleHolder: a module with the copying behaviour of a shared pointer. TORCH_MODULE(Net) makes
// the holder Net for the class NetImpl.
#pragma once
#include <memory>
#include <type_traits>
#include <utility>

#include <c10/util/Exception.h>
#include <torch/detail/static.h>

namespace torch {
namespace serialize {
class InputArchive;
class OutputArchive;
} // namespace serialize

namespace nn {

struct ModuleHolderIndicator {};

template <class Contained> class ModuleHolder : ModuleHolderIndicator {
 public:
  using ContainedType = Contained;
  std::shared_ptr<Contained> impl_;

  ModuleHolder() : impl_(make_default()) {}
  ModuleHolder(std::nullptr_t) {}
  template <class Head, class... Tail,
            class = std::enable_if_t<
                !(std::is_base_of_v<ModuleHolder, std::decay_t<Head>> && sizeof...(Tail) == 0) &&
                !(std::is_convertible_v<Head, std::shared_ptr<Contained>> && sizeof...(Tail) == 0)>>
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : impl_(new Contained(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}

  explicit operator bool() const noexcept { return !is_empty(); }
  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  const std::shared_ptr<Contained>& ptr() const {
    TORCH_CHECK(!is_empty(), "Accessing empty ModuleHolder");
    return impl_;
  }
  Contained* get() { return ptr().get(); }
  const Contained* get() const { return ptr().get(); }
  template <class... Args, class C = Contained> auto operator()(Args&&... args)
      -> decltype(std::declval<C&>().forward(std::forward<Args>(args)...)) {
    return ptr()->forward(std::forward<Args>(args)...);
  }
  template <class Arg> decltype(auto) operator[](Arg&& arg) {
    return (*ptr())[std::forward<Arg>(arg)];
  }
  bool is_empty() const noexcept { return impl_ == nullptr; }

 private:
  static std::shared_ptr<Contained> make_default() {
    if constexpr (std::is_default_constructible_v<Contained>) {
      return std::shared_ptr<Contained>(new Contained());
    } else {
      static_assert(sizeof(Contained) == 0,
                    "You are trying to default construct a module which has no default "
                    "constructor. Use = nullptr to give it the empty state (e.g. `Linear linear = "
                    "nullptr;` instead of `Linear linear;`).");
      return nullptr;
    }
  }
};

template <class Contained>
std::ostream& operator<<(std::ostream& out, const ModuleHolder<Contained>& module) {
  return out << *module;
}
template <class Contained> serialize::OutputArchive&
operator<<(serialize::OutputArchive& archive, const ModuleHolder<Contained>& module) {
  return archive << module.ptr();
}
template <class Contained> serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                                               ModuleHolder<Contained>& module) {
  return archive >> module.ptr();
}

} // namespace nn
} // namespace torch

#define TORCH_MODULE_IMPL(Name, ImplType)                                                          \
  class Name : public torch::nn::ModuleHolder<ImplType> {                                          \
   public:                                                                                         \
    using torch::nn::ModuleHolder<ImplType>::ModuleHolder;                                         \
    using Impl = ImplType;                                                                         \
  }
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)
