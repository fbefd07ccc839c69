// Process-wide settings that operators consult. Plain atomics: a setting takes effect with the next
// operator on any thread.
#pragma once
#include <atomic>
#include <cstdint>

#include <c10/macros/Macros.h>

namespace at {

// How float32 matrix products may be computed: exactly, or with inputs rounded.
enum class Float32MatmulPrecision : uint8_t { Highest, High, Medium };

struct TORCH_API Context {
  CRESSET_USER_MEMBERS(Context) std::atomic<bool> deterministic_algorithms{false};
  std::atomic<bool> deterministic_warn_only{false};
  std::atomic<bool> deterministic_fill_uninitialized{true};
  std::atomic<Float32MatmulPrecision> float32_matmul_precision{Float32MatmulPrecision::Highest};
  std::atomic<bool> warn_always{false};

  // Errors, or warns, that `operation` has no deterministic implementation when one is required.
  void alert_not_deterministic(const char* operation) const;
};

TORCH_API Context& globalContext();

} // namespace at
