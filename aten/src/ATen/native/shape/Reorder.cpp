// Copies with the elements in another order: flip, roll, rot90 and what is made of them. Only
// element sizes matter, so each kernel exists once per size.
#include <ATen/core/EmptyTensor.h>
#ifndef CRESSET_NO_CUDA
#include <ATen/cuda/Pointwise.h>
#endif
#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>
#include <ATen/native/shape/Reverse.h>

#include <cstring>

#include <ATen/ops/flip.h>

namespace at {
namespace meta {

namespace {
// As large as the argument and, where that is dense, in its order.
void set_symbolic(OutputBuilder& out, const Tensor& self) {
  const bool dense = self.is_non_overlapping_and_dense();
  out.set_symint(0, self.sym_sizes(), self.scalar_type(),
                 dense ? OptionalSymIntArrayRef(self.sym_strides()) : std::nullopt);
}
} // namespace

void meta_flip(OutputBuilder& out, const Tensor& self, IntArrayRef dims) {
  native::dim_flags(dims, self.dim());
  if (native::is_symbolic(self)) return set_symbolic(out, self);
  out.set_on(0, self.sizes(), self.scalar_type(), self.device(),
             IntArrayRef(c10::infer_dense_strides(self.sizes(), self.strides())));
}

void meta_roll(OutputBuilder& out, const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  const bool whole = dims.empty() && shifts.size() == 1;
  TORCH_CHECK(whole || shifts.size() == dims.size(),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  for (int64_t dim : dims) {
    TORCH_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim,
                      " but tensor has no dimensions");
    native::wrap_dim(dim, self.dim());
  }
  if (native::is_symbolic(self)) {
    out.set_symint(0, self.sym_sizes(), self.scalar_type());
    return;
  }
  const IntArrayRef sizes = self.sizes();
  const DimVector strides = self.numel() == 0 ? c10::infer_dense_strides(sizes, self.strides())
                            : whole           ? c10::contiguous_strides(sizes)
                                    : native::format_strides(sizes, self.suggest_memory_format());
  out.set_on(0, sizes, self.scalar_type(), self.device(), IntArrayRef(strides));
}

} // namespace meta

namespace native {
namespace {

// Byte strides of a tensor.
DimVector byte_strides(const Tensor& t) {
  DimVector out(t.strides());
  for (int64_t& s : out) s *= t.itemsize();
  return out;
}

template <class T>
void copy_row(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  constexpr int64_t size = sizeof(T);
  if constexpr (size <= 8) {
    static const reverse::CopyFn reversed =
        CRESSET_BY_ISA(reverse::, table)().copy[__builtin_ctz(sizeof(T))];
    if (to_step == size && from_step == -size) return reversed(to, from, n);
  }
  if (to_step == size && from_step == size) {
    std::memcpy(to, from, static_cast<size_t>(n * size));
    return;
  }
  for (; n > 0; --n, to += to_step, from += from_step) std::memcpy(to, from, sizeof(T));
}

// out = the elements at `from` walked with `strides` (bytes, may be negative).
void copy_walked(const Tensor& out, const char* from, IntArrayRef strides) {
#ifndef CRESSET_NO_CUDA
  if (out.is_cuda()) return cuda::copy_walked_on_device(out, from, strides);
#endif
  TensorIterator iter(out.sizes());
  iter.add_output(out);
  iter.add_raw(const_cast<char*>(from), strides, out.scalar_type(), false);
  iter.build();
  itemsize_switch(out.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    iter.for_each([](char* const* data, const int64_t* step, int64_t n) {
      copy_row<T>(data[0], step[0], data[1], step[1], n);
    });
  });
}

} // namespace

void flip_cpu(const Tensor& self, IntArrayRef dims, const Tensor& out) {
  if (self.numel() == 0) return;
  const DimFlags flags = dim_flags(dims, self.dim());
  DimVector strides = byte_strides(self);
  const char* from = static_cast<const char*>(self.const_data_ptr());
  for (size_t d = 0; d < strides.size(); ++d) {
    if (!flags[d]) continue;
    from += (self.sizes()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  copy_walked(out, from, strides);
}

Tensor fliplr(const Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "Input must be >= 2-d.");
  return at::flip(self, {1});
}
Tensor flipud(const Tensor& self) {
  TORCH_CHECK(self.dim() >= 1, "Input must be >= 1-d.");
  return at::flip(self, {0});
}

namespace {

// Copies the blocks of a roll: dimension after dimension, the part that stays and the part that
// wraps.
void roll_blocks(const Tensor& from, const Tensor& to, IntArrayRef shifts, int64_t dim) {
  if (dim == from.dim()) {
    const DimVector strides = byte_strides(from);
    copy_walked(to, static_cast<const char*>(from.const_data_ptr()), strides);
    return;
  }
  const int64_t shift = shifts[dim], size = from.size(dim);
  if (shift == 0) return roll_blocks(from, to, shifts, dim + 1);
  auto part = [dim](const Tensor& t, int64_t start, int64_t length) {
    DimVector sizes(t.sizes());
    sizes[dim] = length;
    return detail::view_of(t, sizes, t.strides(), t.storage_offset() + start * t.stride(dim));
  };
  roll_blocks(part(from, 0, size - shift), part(to, shift, size - shift), shifts, dim + 1);
  roll_blocks(part(from, size - shift, shift), part(to, 0, shift), shifts, dim + 1);
}

int64_t wrapped_shift(int64_t shift, int64_t size) {
  const int64_t r = shift % size;
  return r < 0 ? r + size : r;
}

} // namespace

void roll_cpu(const Tensor& self, IntArrayRef shifts, IntArrayRef dims, const Tensor& out) {
  if (self.numel() == 0) return;
  if (dims.empty()) {
    // All elements as one row; the output is row-major.
    const Tensor row = self.contiguous();
    const int64_t n = row.numel();
    const int64_t shift = wrapped_shift(shifts[0], n);
    roll_blocks(detail::view_of(row, {n}, {1}, row.storage_offset()),
                detail::view_of(out, {n}, {1}, out.storage_offset()), {shift}, 0);
    return;
  }
  DimVector by_dim(static_cast<size_t>(self.dim()), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], self.dim());
    const int64_t size = self.size(d);
    by_dim[d] = (by_dim[d] + wrapped_shift(shifts[i], size)) % size;
  }
  roll_blocks(self, out, by_dim, 0);
}

namespace {
// The transposed form of a temporary, which is no view of it: callers may write to the result.
Tensor turned(const Tensor& flipped, int64_t a, int64_t b) {
  return Tensor(native::transpose(flipped, a, b).unsafeGetTensorImpl()->shallow_copy());
}
} // namespace

Tensor rot90(const Tensor& self, int64_t k, IntArrayRef dims) {
  const int64_t ndim = self.dim();
  TORCH_CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  TORCH_CHECK(ndim >= 2, "expected total dims >= 2, but got total dims = ", ndim);
  const int64_t a = wrap_dim(dims[0], ndim), b = wrap_dim(dims[1], ndim);
  TORCH_CHECK(a != b, "expected rotation dims to be different, but got dim0 = ", dims[0],
              " and dim1 = ", dims[1]);
  switch (((k % 4) + 4) % 4) {
  case 1:
    return turned(at::flip(self, {b}), a, b);
  case 2:
    return at::flip(self, {a, b});
  case 3:
    return turned(at::flip(self, {a}), a, b);
  default:
    return self.clone(MemoryFormat::Contiguous);
  }
}

} // namespace native
} // namespace at
