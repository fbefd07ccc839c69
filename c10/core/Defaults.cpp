// Process-wide defaults of factory functions, and the vtable of generators.
#include <atomic>

#include <c10/core/Generator.h>
#include <c10/core/TensorOptions.h>

namespace c10 {

GeneratorImpl::~GeneratorImpl() = default;

namespace {
std::atomic<ScalarType> default_dtype{kFloat};
}

ScalarType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(ScalarType dtype) {
  TORCH_CHECK_TYPE(isFloatingType(dtype) && !isFloat8Type(dtype),
                   "only floating-point types are supported as the default type, got ", dtype);
  default_dtype.store(dtype);
}

} // namespace c10
