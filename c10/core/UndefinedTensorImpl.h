// The type that templates of PyTorch programs name as the null of a counted pointer to a tensor.
// A counted pointer without an object is null here; nothing is ever made of this type.
#pragma once
#include <c10/core/TensorImpl.h>

namespace c10 {

struct UndefinedTensorImpl final {
  static constexpr TensorImpl* singleton() { return nullptr; }
};

// make_intrusive<TensorImpl, UndefinedTensorImpl>(...): the null type changes nothing.
template <class T, class Null, class... Args,
          class = std::enable_if_t<std::is_same_v<Null, UndefinedTensorImpl>>>
intrusive_ptr<T> make_intrusive(Args&&... args) {
  return make_intrusive<T>(std::forward<Args>(args)...);
}

} // namespace c10

namespace at {
using c10::UndefinedTensorImpl;
} // namespace at
