// Data that a backend of someone else hangs on a tensor.
#pragma once
#include <c10/core/TensorImpl.h>

namespace c10 {

class BackendMeta : public intrusive_ptr_target {
 public:
  // For a shallow copy of the tensor: shared unless a class says otherwise.
  virtual intrusive_ptr<BackendMeta> clone(const intrusive_ptr<BackendMeta>& ptr) const {
    return ptr;
  }
};

inline intrusive_ptr<BackendMeta> TensorImpl::get_backend_meta_intrusive_ptr() const {
  refuse_backend_meta();
  return nullptr;
}

} // namespace c10
