// Views that reorder, add or drop dimensions, and their in-place forms, which change the geometry
// of the tensor itself. Geometry first, as plain lists: the view and the in-place form then differ
// in their last line only.
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/WarnOnce.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>

#include <ATen/ops/adjoint.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/transpose.h>

namespace at::native {
namespace {

struct DimLists {
  explicit DimLists(const Tensor& self) : sizes(self.sizes()), strides(self.strides()) {}
  DimLists() = default;
  DimVector sizes;
  DimVector strides;
};

Tensor view_as_lists(const Tensor& self, const DimLists& g) {
  return detail::view_of(self, g.sizes, g.strides, self.storage_offset());
}

Tensor& assign_lists(Tensor& self, const DimLists& g) {
  TensorImpl& impl = *self.unsafeGetTensorImpl();
  impl.set_geometry(g.sizes, g.strides, impl.storage_offset());
  impl.bump_version();
  return self;
}

DimLists transposed(const Tensor& self, int64_t dim0, int64_t dim1) {
  DimLists g(self);
  const int64_t a = wrap_dim(dim0, self.dim()), b = wrap_dim(dim1, self.dim());
  if (a != b) {
    std::swap(g.sizes[a], g.sizes[b]);
    std::swap(g.strides[a], g.strides[b]);
  }
  return g;
}

// Without the dimensions of size 1 that `drop` accepts.
template <class F> DimLists squeezed(const Tensor& self, const F& drop) {
  const IntArrayRef sizes = self.sizes(), strides = self.strides();
  DimLists g;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1 && drop(d)) continue;
    g.sizes.push_back(sizes[d]);
    g.strides.push_back(strides[d]);
  }
  return g;
}
DimLists squeezed_all(const Tensor& self) {
  return squeezed(self, [](size_t) { return true; });
}
DimLists squeezed_dim(const Tensor& self, int64_t dim) {
  const size_t d = static_cast<size_t>(wrap_dim(dim, self.dim()));
  return squeezed(self, [d](size_t i) { return i == d; });
}
DimLists squeezed_dims(const Tensor& self, IntArrayRef dims) {
  const DimFlags flags = dim_flags(dims, self.dim());
  return squeezed(self, [&](size_t i) { return flags[i]; });
}

DimLists unsqueezed(const Tensor& self, int64_t dim) {
  const int64_t ndim = self.dim();
  const int64_t d = wrap_dim(dim, ndim + 1);
  DimLists g(self);
  const int64_t stride = d < ndim ? g.sizes[d] * g.strides[d] : 1;
  g.sizes.insert(g.sizes.begin() + d, 1);
  g.strides.insert(g.strides.begin() + d, stride);
  return g;
}

void check_t(const Tensor& self, const char* name) {
  TORCH_CHECK(self.dim() <= 2, name, " expects a tensor with <= 2 dimensions, but self is ",
              self.dim(), "D");
}

} // namespace

Tensor permute(const Tensor& self, IntArrayRef dims) {
  const DimVector order = permutation(dims, self.dim());
  const IntArrayRef sizes = self.sizes(), strides = self.strides();
  DimLists g;
  for (int64_t d : order) {
    g.sizes.push_back(sizes[d]);
    g.strides.push_back(strides[d]);
  }
  return view_as_lists(self, g);
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  return view_as_lists(self, transposed(self, dim0, dim1));
}
Tensor& transpose_(Tensor& self, int64_t dim0, int64_t dim1) {
  return assign_lists(self, transposed(self, dim0, dim1));
}
Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1) {
  return self.transpose(axis0, axis1);
}
Tensor& swapaxes_(Tensor& self, int64_t axis0, int64_t axis1) {
  return at::_ops::transpose_::call(self, axis0, axis1);
}
Tensor swapdims(const Tensor& self, int64_t dim0, int64_t dim1) {
  return self.transpose(dim0, dim1);
}
Tensor& swapdims_(Tensor& self, int64_t dim0, int64_t dim1) {
  return at::_ops::transpose_::call(self, dim0, dim1);
}

Tensor t(const Tensor& self) {
  check_t(self, "t()");
  return view_as_lists(self, transposed(self, 0, self.dim() < 2 ? 0 : 1));
}
Tensor& t_(Tensor& self) {
  check_t(self, "t_()");
  return assign_lists(self, transposed(self, 0, self.dim() < 2 ? 0 : 1));
}

Tensor numpy_T(const Tensor& self) {
  const int64_t n = self.dim();
  if (n != 2 && n != 0)
    AT_WARN_ONCE(
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
        "deprecated and "
        "it will throw an error in a future release. Consider `x.mT` to transpose batches of "
        "matrices "
        "or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.");
  DimVector order;
  for (int64_t d = n - 1; d >= 0; --d) order.push_back(d);
  return self.permute(order);
}
Tensor mT(const Tensor& self) {
  if (self.dim() == 0) return self;
  TORCH_CHECK(self.dim() >= 2,
              "tensor.mT is only supported on matrices or batches of matrices. Got ", self.dim(),
              "-D tensor.");
  return self.transpose(-2, -1);
}
Tensor adjoint(const Tensor& self) {
  if (self.dim() == 0) return at::conj(self);
  TORCH_CHECK(self.dim() >= 2,
              "tensor.adjoint() is only supported on matrices or batches of matrices. Got ",
              self.dim(), "-D tensor.");
  return at::conj(self.transpose(-2, -1));
}
Tensor mH(const Tensor& self) { return at::adjoint(self); }
Tensor matrix_H(const Tensor& self) {
  const int64_t n = self.dim();
  if (n == 0) return at::conj(self);
  TORCH_CHECK(n == 2, "tensor.H is only supported on matrices (2-D tensors). Got ", n, "-D tensor.",
              n > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  return at::conj(self.transpose(0, 1));
}

Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  if (self.dim() == 0) {
    moved_dims(source, destination, 0);
    return self;
  }
  return self.permute(moved_dims(source, destination, self.dim()));
}
Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return native::movedim(self, IntArrayRef(source), IntArrayRef(destination));
}
Tensor moveaxis(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return native::movedim(self, source, destination);
}
Tensor moveaxis(const Tensor& self, int64_t source, int64_t destination) {
  return native::movedim(self, source, destination);
}

Tensor squeeze(const Tensor& self) { return view_as_lists(self, squeezed_all(self)); }
Tensor squeeze(const Tensor& self, int64_t dim) {
  return view_as_lists(self, squeezed_dim(self, dim));
}
Tensor squeeze(const Tensor& self, IntArrayRef dims) {
  return view_as_lists(self, squeezed_dims(self, dims));
}
Tensor& squeeze_(Tensor& self) { return assign_lists(self, squeezed_all(self)); }
Tensor& squeeze_(Tensor& self, int64_t dim) { return assign_lists(self, squeezed_dim(self, dim)); }
Tensor& squeeze_(Tensor& self, IntArrayRef dims) {
  return assign_lists(self, squeezed_dims(self, dims));
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  return view_as_lists(self, unsqueezed(self, dim));
}
Tensor& unsqueeze_(Tensor& self, int64_t dim) { return assign_lists(self, unsqueezed(self, dim)); }

Tensor& as_strided_(Tensor& self, IntArrayRef size, IntArrayRef stride,
                    std::optional<int64_t> storage_offset) {
  TensorImpl& impl = *self.unsafeGetTensorImpl();
  TORCH_CHECK(impl.has_storage(), "Cannot access the storage of a tensor of layout ",
              impl.layout());
  const int64_t offset = storage_offset.value_or(impl.storage_offset());
  detail::check_in_bounds(size, stride, offset, impl.itemsize(), impl.storage()->nbytes());
  impl.set_geometry(size, stride, offset);
  impl.bump_version();
  return self;
}

} // namespace at::native
