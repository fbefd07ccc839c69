// What can be known about a module's type at compile time.
#pragma once
#include <memory>
#include <type_traits>
#include <utility>

namespace torch::nn {
class Module;
template <class Contained> class ModuleHolder;
struct ModuleHolderIndicator;
} // namespace torch::nn

namespace torch::detail {

template <class T, class = void> struct has_forward : std::false_type {};
template <class T> struct has_forward<T, std::void_t<decltype(&T::forward)>> : std::true_type {};

template <class T> using is_module = std::is_base_of<nn::Module, std::decay_t<T>>;
template <class T> using is_module_holder =
    std::is_base_of<nn::ModuleHolderIndicator, std::decay_t<T>>;
template <class T, class R = void> using enable_if_module_t =
    std::enable_if_t<is_module<T>::value, R>;
template <class T, class R = void> using enable_if_module_holder_t =
    std::enable_if_t<is_module_holder<T>::value, R>;
template <class T, class R = void> using disable_if_module_holder_t =
    std::enable_if_t<!is_module_holder<T>::value, R>;

template <class M, class... Args> struct return_type_of_forward {
  template <class X> static auto test(int)
      -> decltype(std::declval<X&>().forward(std::declval<Args>()...));
  template <class X> static void test(...);
  using type = decltype(test<M>(0));
};
template <class M, class... Args> using return_type_of_forward_t =
    typename return_type_of_forward<M, Args...>::type;

template <class... Ts> constexpr bool check_not_lvalue_references() {
  return (!(std::is_lvalue_reference_v<Ts> && !std::is_const_v<std::remove_reference_t<Ts>>)&&...);
}

} // namespace torch::detail
