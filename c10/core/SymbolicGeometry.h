// Helpers around the geometry of symbolic tensors, for the few places that build them.
#pragma once
#include <c10/core/SymNumbers.h>
#include <c10/core/TensorImpl.h>

namespace c10 {

// Bytes that a strided tensor reaches from the start of its storage.
C10_API SymInt sym_storage_bytes(SymIntArrayRef sizes, SymIntArrayRef strides, int64_t itemsize,
                                 SymInt storage_offset);

// The strides of a contiguous tensor. A size that depends on data may be 0, so the strides outside
// it count it as at least 1.
C10_API std::vector<SymInt> sym_contiguous_strides(SymIntArrayRef sizes);

// A symbolic number that passes for a tensor has the value of the traced run as its element and
// keeps the handle: of a 0-dim tensor, the list of symbolic sizes has room for it.
C10_API void set_symbolic_number(TensorImpl& wrapped, int64_t handle);
// The handle, or 0.
inline int64_t symbolic_number(const TensorImpl& tensor) {
  const ExtraMeta* extra = tensor.extra();
  if (C10_LIKELY(extra == nullptr) || tensor.dim() != 0 || extra->symbolic_sizes.empty()) return 0;
  return extra->symbolic_sizes[0];
}

} // namespace c10
