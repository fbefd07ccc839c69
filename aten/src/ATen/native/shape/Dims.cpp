// Views that reorder, add or drop dimensions, and their in-place forms, which change the geometry
// of the tensor itself. Geometry first, as lists: the view and the in-place form then differ
// in their last line only.
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Undefined.h>
#include <ATen/core/WarnOnce.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>

#include <ATen/ops/adjoint.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/transpose.h>

namespace at::native {
namespace {

template <class Int> struct DimLists {
  explicit DimLists(const Tensor& self)
      : sizes(sizes_of<Int>(self)), strides(strides_of<Int>(self)) {}
  DimLists() = default;
  Ints<Int> sizes;
  Ints<Int> strides;
};

template <class Int> Tensor view_as_lists(const Tensor& self, const DimLists<Int>& g) {
  return view_with<Int>(self, g.sizes, g.strides, offset_of<Int>(self));
}

Tensor& assign_lists(Tensor& self, const DimLists<int64_t>& g) {
  TensorImpl& impl = *self.unsafeGetTensorImpl();
  impl.set_geometry(g.sizes, g.strides, impl.storage_offset());
  impl.bump_version();
  return self;
}
Tensor& assign_lists(Tensor& self, const DimLists<SymInt>& g) {
  TensorImpl& impl = *self.unsafeGetTensorImpl();
  impl.set_symbolic_geometry(g.sizes, g.strides, impl.sym_storage_offset());
  impl.bump_version();
  return self;
}

// The view, or the in-place form, by a function of an empty DimLists of the tensor's integers.
template <class Make> Tensor view_by(const Tensor& self, const Make& make) {
  if (is_symbolic(self)) return view_as_lists(self, make(DimLists<SymInt>()));
  return view_as_lists(self, make(DimLists<int64_t>()));
}
template <class Make> Tensor& assign_by(Tensor& self, const Make& make) {
  if (is_symbolic(self)) return assign_lists(self, make(DimLists<SymInt>()));
  return assign_lists(self, make(DimLists<int64_t>()));
}

auto transposed(const Tensor& self, int64_t dim0, int64_t dim1) {
  return [&self, dim0, dim1](auto g) {
    g = decltype(g)(self);
    const int64_t a = wrap_dim(dim0, self.dim()), b = wrap_dim(dim1, self.dim());
    if (a != b) {
      std::swap(g.sizes[a], g.sizes[b]);
      std::swap(g.strides[a], g.strides[b]);
    }
    return g;
  };
}

// Without the dimensions of size 1 that `drop` accepts.
template <class F> auto squeezed(const Tensor& self, const F& drop) {
  return [&self, drop](auto g) {
    const decltype(g) old(self);
    for (size_t d = 0; d < old.sizes.size(); ++d) {
      if (drop(d) && c10::guard_or_false(c10::sym_eq(old.sizes[d], 1))) continue;
      g.sizes.push_back(old.sizes[d]);
      g.strides.push_back(old.strides[d]);
    }
    return g;
  };
}
auto squeezed_all(const Tensor& self) {
  return squeezed(self, [](size_t) { return true; });
}
auto squeezed_dim(const Tensor& self, int64_t dim) {
  const size_t d = static_cast<size_t>(wrap_dim(dim, self.dim()));
  return squeezed(self, [d](size_t i) { return i == d; });
}
auto squeezed_dims(const Tensor& self, IntArrayRef dims) {
  return squeezed(self, [flags = dim_flags(dims, self.dim())](size_t i) { return flags[i]; });
}

auto unsqueezed(const Tensor& self, int64_t dim) {
  return [&self, dim](auto g) {
    const int64_t ndim = self.dim();
    const int64_t d = wrap_dim(dim, ndim + 1);
    g = decltype(g)(self);
    auto stride = decltype(g.sizes[0] * g.strides[0])(1);
    if (d < ndim) stride = g.sizes[d] * g.strides[d];
    g.sizes.insert(g.sizes.begin() + d, 1);
    g.strides.insert(g.strides.begin() + d, stride);
    return g;
  };
}

void check_t(const Tensor& self, const char* name) {
  TORCH_CHECK(self.dim() <= 2, name, " expects a tensor with <= 2 dimensions, but self is ",
              self.dim(), "D");
}

} // namespace

Tensor permute(const Tensor& self, IntArrayRef dims) {
  const DimVector order = permutation(dims, self.dim());
  return view_by(self, [&](auto g) {
    const decltype(g) old(self);
    for (int64_t d : order) {
      g.sizes.push_back(old.sizes[d]);
      g.strides.push_back(old.strides[d]);
    }
    return g;
  });
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  return view_by(self, transposed(self, dim0, dim1));
}
Tensor& transpose_(Tensor& self, int64_t dim0, int64_t dim1) {
  return assign_by(self, transposed(self, dim0, dim1));
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
  return view_by(self, transposed(self, 0, self.dim() < 2 ? 0 : 1));
}
Tensor& t_(Tensor& self) {
  check_t(self, "t_()");
  return assign_by(self, transposed(self, 0, self.dim() < 2 ? 0 : 1));
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

Tensor squeeze(const Tensor& self) { return view_by(self, squeezed_all(self)); }
Tensor squeeze(const Tensor& self, int64_t dim) { return view_by(self, squeezed_dim(self, dim)); }
Tensor squeeze(const Tensor& self, IntArrayRef dims) {
  return view_by(self, squeezed_dims(self, dims));
}
Tensor& squeeze_(Tensor& self) { return assign_by(self, squeezed_all(self)); }
Tensor& squeeze_(Tensor& self, int64_t dim) { return assign_by(self, squeezed_dim(self, dim)); }
Tensor& squeeze_(Tensor& self, IntArrayRef dims) {
  return assign_by(self, squeezed_dims(self, dims));
}

Tensor unsqueeze(const Tensor& self, int64_t dim) { return view_by(self, unsqueezed(self, dim)); }
Tensor& unsqueeze_(Tensor& self, int64_t dim) { return assign_by(self, unsqueezed(self, dim)); }

Tensor& as_strided_(Tensor& self, IntArrayRef size, IntArrayRef stride,
                    std::optional<int64_t> storage_offset) {
  at::detail::check_defined(self, "as_strided_");
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
