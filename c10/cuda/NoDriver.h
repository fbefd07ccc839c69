// What is raised, and asked, about a machine without an NVIDIA driver.
#pragma once

#include <c10/util/Exception.h>

namespace c10::cuda {

// This machine has no NVIDIA driver. In Python both an AssertionError, as a build without CUDA
// raises, and a RuntimeError, as one with CUDA does, because this build is the one or the other by
// the machine it runs on.
class C10_API NoDriverError : public Error {
 public:
  using Error::Error;
  ~NoDriverError() override;
};

// Whether the driver's library is there, usable or not. The first call loads it.
C10_API bool driver_found() noexcept;

} // namespace c10::cuda
