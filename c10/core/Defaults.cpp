// Process-wide defaults of factory functions.
#include <atomic>

#include <c10/core/TensorOptions.h>

namespace c10 {

namespace {
std::atomic<ScalarType> default_dtype{kFloat};
}

ScalarType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(ScalarType dtype) {
  // Integers too: C++ programs may choose them, Python's binding takes floating-point types alone.
  TORCH_CHECK_TYPE(!isStorageOnlyType(dtype) && !isFloat8Type(dtype), dtype,
                   " is not supported as the default type");
  default_dtype.store(dtype);
}

} // namespace c10
