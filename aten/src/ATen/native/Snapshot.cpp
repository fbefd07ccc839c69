// See Snapshot.h.
#include <ATen/native/Snapshot.h>

namespace at::native {

Tensor snapshot(const Tensor& t) {
  return t.defined() ? Tensor(t.unsafeGetTensorImpl()->shallow_copy()) : Tensor();
}

std::optional<Tensor> snapshot(const std::optional<Tensor>& t) {
  return t ? std::optional<Tensor>(snapshot(*t)) : std::nullopt;
}

} // namespace at::native
