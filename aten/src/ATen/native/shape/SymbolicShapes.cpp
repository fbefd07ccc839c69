// Views, copies and gradients of views on symbolic sizes. Tensors with such sizes have no memory,
// so these functions compute geometry alone; how many tensors a split makes is a number of the
// trace.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>
#include <ATen/ops/split.h>
#include <ATen/ops/split_with_sizes.h>

namespace at::native {
namespace {

using Tensors = std::vector<Tensor>;

Tensor empty_of(SymIntArrayRef sizes, const Tensor& like) {
  return detail::empty_symint(sizes, like.scalar_type(), like.device());
}

Tensor piece(const Tensor& self, int64_t dim, SymInt start, SymInt length) {
  SymDimVector sizes(self.sym_sizes());
  const SymDimVector strides(self.sym_strides());
  sizes[dim] = length;
  return view_with<SymInt>(self, sizes, strides, self.sym_storage_offset() + start * strides[dim]);
}

Tensors several(Tensors views) {
  for (Tensor& view : views) {
    TensorImpl& impl = *view.unsafeGetTensorImpl();
    if (impl.view_origin == TensorImpl::ViewOrigin::Default)
      impl.view_origin = TensorImpl::ViewOrigin::MultiOutput;
  }
  return views;
}

} // namespace

Tensor repeat_symbolic(const Tensor& self, SymIntArrayRef repeats) {
  const size_t rank = repeats.size(), ndim = static_cast<size_t>(self.dim());
  TORCH_CHECK(
      rank >= ndim,
      "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  SymDimVector sizes(repeats);
  for (size_t i = rank - ndim; i < rank; ++i)
    sizes[i] = sizes[i] * self.sym_sizes()[i - (rank - ndim)];
  return empty_of(sizes, self);
}

Tensor constant_pad_nd_symbolic(const Tensor& self, SymIntArrayRef pad, const Scalar&) {
  const size_t ndim = static_cast<size_t>(self.dim()), padded = pad.size() / 2;
  TORCH_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  TORCH_CHECK(padded <= ndim,
              "Length of pad should be no more than twice the number of dimensions of the input. "
              "Pad length is ",
              pad.size(), "while the input has ", ndim, "dimensions.");
  SymDimVector sizes(self.sym_sizes());
  for (size_t i = 0; i < padded; ++i) {
    SymInt& size = sizes[ndim - 1 - i];
    size = size + pad[2 * i] + pad[2 * i + 1];
    TORCH_CHECK(c10::expect_true(c10::sym_ge(size, 0)), "The input size ",
                self.sym_sizes()[ndim - 1 - i], ", plus padding ", pad[2 * i], " and ",
                pad[2 * i + 1], ", resulted in a negative output size, which is invalid.");
  }
  if (self.suggest_memory_format() == MemoryFormat::Contiguous) return empty_of(sizes, self);
  const std::vector<SymInt> by_channel = [&] {
    std::vector<SymInt> strides(ndim, SymInt(1));
    SymInt step = sizes[1];
    for (size_t d = ndim; d-- > 2; step = step * sizes[d]) strides[d] = step;
    strides[0] = step;
    return strides;
  }();
  return detail::empty_strided_symint(sizes, by_channel, self.scalar_type(), self.device());
}

Tensors unbind_symbolic(const Tensor& self, int64_t dim) {
  TORCH_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim,
                    " but tensor has no dimensions");
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t count = self.sym_size(d).guard_int();
  SymDimVector sizes(self.sym_sizes()), strides(self.sym_strides());
  const SymInt step = strides[d];
  sizes.erase(sizes.begin() + d);
  strides.erase(strides.begin() + d);
  Tensors out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(view_with<SymInt>(self, sizes, strides, self.sym_storage_offset() + step * i));
  return several(std::move(out));
}

Tensors split_symbolic(const Tensor& self, SymInt split_size, int64_t dim) {
  TORCH_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  const int64_t d = wrap_dim(dim, self.dim());
  const SymInt size = self.sym_size(d);
  if (c10::guard_or_false(c10::sym_eq(size, 0))) return several({piece(self, d, 0, 0)});
  TORCH_CHECK(c10::expect_true(c10::sym_gt(split_size, 0)),
              "split expects split_size be positive, but got split_size=", split_size);
  const int64_t count = ((size - 1) / split_size + 1).guard_int();
  Tensors out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(piece(self, d, split_size * i,
                        i + 1 < count ? split_size : size - split_size * (count - 1)));
  return several(std::move(out));
}

Tensors split_sizes_symbolic(const Tensor& self, SymIntArrayRef split_sizes, int64_t dim) {
  return at::split_with_sizes_symint(self, split_sizes, dim);
}
Tensors chunk_symbolic(const Tensor& self, int64_t chunks, int64_t dim) {
  TORCH_CHECK(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  TORCH_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  const SymInt size = self.sym_size(wrap_dim(dim, self.dim()));
  // An empty dimension still gives as many pieces as were asked for.
  if (c10::guard_or_false(c10::sym_eq(size, 0)))
    return at::split_with_sizes(self, DimVector(static_cast<size_t>(chunks), 0), dim);
  return at::split_symint(self, (size + (chunks - 1)) / chunks, dim);
}

Tensors split_with_sizes_symbolic(const Tensor& self, SymIntArrayRef split_sizes, int64_t dim) {
  TORCH_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  const int64_t d = wrap_dim(dim, self.dim());
  SymInt start = 0;
  Tensors out;
  for (const SymInt size : split_sizes) {
    out.push_back(piece(self, d, start, size));
    start = start + size;
  }
  TORCH_CHECK(c10::expect_true(c10::sym_eq(start, self.sym_size(d))),
              "split_with_sizes expects split_sizes to sum exactly to ", self.sym_size(d),
              " (input tensor's size at dimension ", dim, "), but got split_sizes=", split_sizes);
  return several(std::move(out));
}

Tensor diagonal_symbolic(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t ndim = self.dim();
  const int64_t a = wrap_dim(dim1, ndim), b = wrap_dim(dim2, ndim);
  TORCH_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const SymIntArrayRef old_sizes = self.sym_sizes(), old_strides = self.sym_strides();
  const SymInt rows = old_sizes[a] + (offset < 0 ? offset : 0);
  const SymInt columns = old_sizes[b] - (offset > 0 ? offset : 0);
  const SymInt length = c10::sym_max(c10::sym_min(rows, columns), SymInt(0));
  SymDimVector sizes, strides;
  for (int64_t d = 0; d < ndim; ++d) {
    if (d == a || d == b) continue;
    sizes.push_back(old_sizes[d]);
    strides.push_back(old_strides[d]);
  }
  sizes.push_back(length);
  strides.push_back(old_strides[a] + old_strides[b]);
  SymInt first = self.sym_storage_offset();
  if (offset != 0 && c10::guard_or_true(c10::sym_gt(length, 0)))
    first = first + (offset > 0 ? old_strides[b] * offset : old_strides[a] * -offset);
  return view_with<SymInt>(self, sizes, strides, first);
}

Tensor select_backward_symbolic(const Tensor& grad_output, SymIntArrayRef input_sizes, int64_t,
                                SymInt) {
  return empty_of(input_sizes, grad_output);
}
Tensor slice_backward_symbolic(const Tensor& grad_output, SymIntArrayRef input_sizes, int64_t,
                               SymInt, SymInt, SymInt) {
  return empty_of(input_sizes, grad_output);
}
Tensor diagonal_backward_symbolic(const Tensor& grad_output, SymIntArrayRef input_sizes, int64_t,
                                  int64_t, int64_t) {
  return empty_of(input_sizes, grad_output);
}

} // namespace at::native
