// Errors of processes that work together. Python sees them as torch.distributed.DistError and its
// subclasses, all RuntimeErrors.
#pragma once
#include <c10/util/Exception.h>

namespace c10d::engine {

// The name is PyTorch's: C++ programs catch these.
class TORCH_API DistError : public c10::Error {
 public:
  using c10::Error::Error;
  ~DistError() override;
};
// A backend could not do its work.
class TORCH_API DistBackendError : public DistError {
 public:
  using DistError::DistError;
  ~DistBackendError() override;
};
// A connection could not be made or was lost.
class TORCH_API DistNetworkError : public DistError {
 public:
  using DistError::DistError;
  ~DistNetworkError() override;
};
// A key did not appear in a store in time.
class TORCH_API DistStoreError : public DistError {
 public:
  using DistError::DistError;
  ~DistStoreError() override;
};
// A queue of a store was empty.
class TORCH_API DistQueueEmptyError : public DistStoreError {
 public:
  using DistStoreError::DistStoreError;
  ~DistQueueEmptyError() override;
};

} // namespace c10d::engine

namespace c10d {
using engine::DistBackendError;
using engine::DistError;
using engine::DistNetworkError;
using engine::DistQueueEmptyError;
using engine::DistStoreError;
} // namespace c10d
