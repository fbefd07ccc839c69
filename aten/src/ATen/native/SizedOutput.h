// Outputs of shape functions that are as large as an argument, or whose sizes are computed in
// either kind of integer.
#pragma once
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/Sizes.h>

namespace at::native {

inline void set_output(OutputBuilder& out, int i, ArrayRef<int64_t> sizes, ScalarType dtype) {
  out.set(i, sizes, dtype);
}
inline void set_output(OutputBuilder& out, int i, ArrayRef<SymInt> sizes, ScalarType dtype) {
  out.set_symint(i, sizes, dtype);
}
inline void set_output(OutputBuilder& out, int i, ArrayRef<int64_t> sizes, ScalarType dtype,
                       ArrayRef<int64_t> strides) {
  out.set(i, sizes, dtype, strides);
}
inline void set_output(OutputBuilder& out, int i, ArrayRef<SymInt> sizes, ScalarType dtype,
                       ArrayRef<SymInt> strides) {
  out.set_symint(i, sizes, dtype, strides);
}

// A contiguous output with the sizes of `like`, on its device.
inline void set_like(OutputBuilder& out, int i, const Tensor& like, ScalarType dtype) {
  if (is_symbolic(like))
    out.set_symint(i, like.sym_sizes(), dtype);
  else
    out.set_on(i, like.sizes(), dtype, like.device());
}

// Dense strides in the order of the strides of `self` in the traced run; its own where it is dense.
SymDimVector symbolic_dense_strides(const Tensor& self);

// The strides of a dense tensor whose channels lie innermost.
template <class Int> Ints<Int> channels_last_strides_of(ArrayRef<Int> sizes) {
  Ints<Int> out(sizes.size(), Int(1));
  if (sizes.size() < 3) return out;
  Int step = sizes[1];
  for (size_t d = sizes.size(); d-- > 2;) {
    out[d] = step;
    step = step * sizes[d];
  }
  out[0] = step;
  return out;
}

} // namespace at::native
