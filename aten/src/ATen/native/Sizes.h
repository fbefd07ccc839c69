// Geometry in either kind of integer. A shape function written over `Int` serves plain sizes
// (int64_t, the same code as without the template) and symbolic ones (SymInt).
#pragma once
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/SymbolicTensor.h>
#include <c10/core/SymbolicGeometry.h>

namespace at::native {

template <class Int> using Ints = c10::SmallVector<Int, 6>;
using SymDimVector = Ints<SymInt>;

inline bool is_symbolic(const Tensor& t) {
  return C10_UNLIKELY(t.defined() && t.unsafeGetTensorImpl()->has_symbolic_sizes());
}
inline bool is_symbolic(const std::optional<Tensor>& t) { return t && is_symbolic(*t); }
inline bool is_symbolic(SymIntArrayRef list) { return C10_UNLIKELY(c10::has_symbolic(list)); }
inline bool is_symbolic(const OptionalSymIntArrayRef& list) { return list && is_symbolic(*list); }
inline bool is_symbolic(SymInt s) { return C10_UNLIKELY(s.is_symbolic()); }
inline bool is_symbolic(const std::optional<SymInt>& s) { return s && is_symbolic(*s); }
inline bool is_symbolic(TensorList tensors) {
  for (const Tensor& t : tensors)
    if (is_symbolic(t)) return true;
  return false;
}
// Numbers, flags and dtypes decide nothing about the kind of integer.
template <class T> constexpr bool is_symbolic(const T&) { return false; }
template <class... Args> bool any_symbolic(const Args&... args) {
  return (is_symbolic(args) || ...);
}

template <class Int> ArrayRef<Int> sizes_of(const Tensor& t) {
  if constexpr (std::is_same_v<Int, SymInt>)
    return t.sym_sizes();
  else
    return t.sizes();
}
template <class Int> ArrayRef<Int> strides_of(const Tensor& t) {
  if constexpr (std::is_same_v<Int, SymInt>)
    return t.sym_strides();
  else
    return t.strides();
}
template <class Int> Int length_of(const Tensor& t, int64_t d) {
  if constexpr (std::is_same_v<Int, SymInt>)
    return t.sym_size(d);
  else
    return t.size(d);
}
template <class Int> Int numel_of(const Tensor& t) {
  if constexpr (std::is_same_v<Int, SymInt>)
    return t.sym_numel();
  else
    return t.numel();
}
template <class Int> Int offset_of(const Tensor& t) {
  if constexpr (std::is_same_v<Int, SymInt>)
    return t.sym_storage_offset();
  else
    return t.storage_offset();
}
template <class Int> Int product_of(ArrayRef<Int> sizes) {
  if constexpr (std::is_same_v<Int, SymInt>) {
    SymInt out = 1;
    for (SymInt s : sizes) out = out * s;
    return out;
  } else {
    return c10::checked_numel(sizes);
  }
}
template <class Int> Ints<Int> contiguous_strides_of(ArrayRef<Int> sizes) {
  Ints<Int> out(sizes.size());
  if constexpr (std::is_same_v<Int, SymInt>) {
    const std::vector<SymInt> strides = c10::sym_contiguous_strides(sizes);
    std::copy(strides.begin(), strides.end(), out.begin());
  } else {
    c10::contiguous_strides(sizes, out.data());
  }
  return out;
}

// A view with a geometry that the caller derived from `self`.
template <class Int>
Tensor view_with(const Tensor& self, const Ints<Int>& sizes, const Ints<Int>& strides, Int offset) {
  if constexpr (std::is_same_v<Int, SymInt>)
    return detail::view_of_symint(self, sizes, strides, offset);
  else
    return detail::view_of(self, sizes, strides, offset);
}

} // namespace at::native
