// See alloc_cpu.h.
#include <c10/core/impl/alloc_cpu.h>

#include <cstdlib>

#include <c10/util/Exception.h>

namespace c10 {

void* alloc_cpu(size_t bytes) {
  constexpr size_t kAlignment = 64;
  if (bytes == 0) return nullptr;
  void* data = nullptr;
  const bool fits = bytes <= static_cast<size_t>(PTRDIFF_MAX);
  if (!fits || posix_memalign(&data, kAlignment, bytes) != 0)
    throw OutOfMemoryError(str("alloc_cpu: not enough memory for ", bytes, " bytes"));
  return data;
}

void free_cpu(void* data) { std::free(data); }

} // namespace c10
