// The settings object and the one check that belongs to it.
#include <ATen/core/Context.h>

#include <c10/util/Exception.h>

namespace at {

Context& globalContext() {
  static Context context;
  return context;
}

void Context::alert_not_deterministic(const char* operation) const {
  if (!deterministic_algorithms.load(std::memory_order_relaxed)) return;
  const std::string message =
      c10::str(operation, " does not have a deterministic implementation, but you set ",
               "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for ",
               "this operation, or you can use the 'warn_only=True' option.");
  TORCH_CHECK(deterministic_warn_only.load(std::memory_order_relaxed), message);
  TORCH_WARN(message);
}

} // namespace at
