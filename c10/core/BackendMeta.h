// Data that a backend of someone else hangs on a tensor.
#pragma once
#include <c10/util/intrusive_ptr.h>

namespace c10 {

class BackendMeta : public intrusive_ptr_target {
 public:
  // For a shallow copy of the tensor: shared unless a class says otherwise.
  virtual intrusive_ptr<BackendMeta> clone(const intrusive_ptr<BackendMeta>& ptr) const {
    return ptr;
  }
};

} // namespace c10
