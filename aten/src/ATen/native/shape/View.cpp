// Views that reinterpret the shape of a tensor as a whole: view, reshape, expand, as_strided,
// flatten and their kin. They work out sizes and strides on the stack and make one tensor object;
// nothing else is allocated, because these are the most frequent calls of eager programs.
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Undefined.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>

#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/expand.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/view.h>

namespace at::native {

namespace {

template <class Int> Tensor viewed(const Tensor& self, ArrayRef<Int> size) {
  const auto shape = infer_shape(size, numel_of<Int>(self));
  Ints<Int> strides;
  if (C10_LIKELY(self.is_contiguous())) {
    strides = contiguous_strides_of<Int>(shape);
  } else {
    TORCH_CHECK(view_strides(sizes_of<Int>(self), strides_of<Int>(self), shape, strides),
                "view size is not compatible with input tensor's size and stride (at least one "
                "dimension spans "
                "across two contiguous subspaces). Use .reshape(...) instead.");
  }
  return view_with<Int>(self, shape, strides, offset_of<Int>(self));
}

} // namespace

Tensor view(const Tensor& self, IntArrayRef size) { return viewed<int64_t>(self, size); }
Tensor view_symbolic(const Tensor& self, SymIntArrayRef size) { return viewed<SymInt>(self, size); }

namespace {

// The view of wider elements as several narrower ones.
Tensor view_narrower(const Tensor& self, ScalarType dtype, int64_t ratio) {
  TORCH_CHECK(self.stride(-1) == 1, "self.stride(-1) must be 1 to view ", self.scalar_type(),
              " as ", dtype, " (different element sizes), but got ", self.stride(-1));
  DimVector sizes(self.sizes()), strides(self.strides());
  const size_t last = sizes.size() - 1;
  for (size_t i = 0; i < last; ++i) strides[i] *= ratio;
  sizes[last] *= ratio;
  return detail::view_of_dtype(self, dtype, sizes, strides, self.storage_offset() * ratio);
}

// The view of several narrower elements as wider ones.
Tensor view_wider(const Tensor& self, ScalarType dtype, int64_t ratio) {
  auto check = [&](bool ok, const char* what, int64_t value) {
    TORCH_CHECK(ok, what, " must be divisible by ", ratio, " to view ", self.scalar_type(), " as ",
                dtype, " (different element sizes), but got ", value);
  };
  DimVector sizes(self.sizes()), strides(self.strides());
  const size_t last = sizes.size() - 1;
  check(sizes[last] % ratio == 0, "self.size(-1)", sizes[last]);
  check(self.storage_offset() % ratio == 0, "self.storage_offset()", self.storage_offset());
  TORCH_CHECK(strides[last] == 1, "self.stride(-1) must be 1 to view ", self.scalar_type(), " as ",
              dtype, " (different element sizes), but got ", strides[last]);
  for (size_t i = 0; i < last; ++i) {
    TORCH_CHECK(strides[i] % ratio == 0, "self.stride(", i, ") must be divisible by ", ratio,
                " to view ", self.scalar_type(), " as ", dtype,
                " (different element sizes), but got ", strides[i]);
    strides[i] /= ratio;
  }
  sizes[last] /= ratio;
  return detail::view_of_dtype(self, dtype, sizes, strides, self.storage_offset() / ratio);
}

} // namespace

namespace {
Tensor view_bits(const Tensor& self, ScalarType dtype) {
  const ScalarType old = self.scalar_type();
  TORCH_CHECK(old == dtype || !self.is_conj(),
              "torch.Tensor.view is not supported for conjugate view tensors when converting to a "
              "different dtype.");
  TORCH_CHECK(
      old == dtype || !self.is_neg(),
      "torch.Tensor.view is not supported for tensors with negative bit set when converting "
      "to a different dtype.");
  const int64_t from = self.itemsize(), to = c10::elementSize(dtype);
  TORCH_CHECK(to > 0, "view: cannot view ", old, " as ", dtype);
  if (from == to)
    return detail::view_of_dtype(self, dtype, self.sizes(), self.strides(), self.storage_offset());
  TORCH_CHECK(self.dim() != 0, "self.dim() cannot be 0 to view ", old, " as ", dtype,
              " (different element sizes)");
  return from > to ? view_narrower(self, dtype, from / to) : view_wider(self, dtype, to / from);
}
} // namespace

// Bits have no gradient: the view requires none, whatever its dtype. A view requires what its base
// does, so the base of this one is the tensor without its history, at the same versions.
Tensor view_dtype(const Tensor& self, ScalarType dtype) {
  if (C10_LIKELY(!self.requires_grad())) return view_bits(self, dtype);
  c10::intrusive_ptr<TensorImpl> plain = self.unsafeGetTensorImpl()->shallow_copy();
  plain->share_version_of(*self.unsafeGetTensorImpl());
  return view_bits(Tensor(std::move(plain)), dtype);
}

// The result shares memory with a temporary of the caller and is deliberately no view of it.
Tensor _unsafe_view(const Tensor& self, IntArrayRef size) {
  return Tensor(view(self, size).unsafeGetTensorImpl()->shallow_copy());
}
Tensor _unsafe_view_symbolic(const Tensor& self, SymIntArrayRef size) {
  return Tensor(view_symbolic(self, size).unsafeGetTensorImpl()->shallow_copy());
}

namespace {

SymIntArrayRef symbolic(IntArrayRef list) { return c10::as_symint_array(list); }
SymIntArrayRef symbolic(SymIntArrayRef list) { return list; }

template <class Int> Tensor reshaped_copy(const Tensor& self, ArrayRef<Int> size) {
  const auto shape = infer_shape(size, numel_of<Int>(self));
  return at::_ops::_unsafe_view::call(self.clone(MemoryFormat::Contiguous),
                                      symbolic(ArrayRef<Int>(shape)));
}

template <class Int> Tensor reshaped(const Tensor& self, ArrayRef<Int> size) {
  if (C10_LIKELY(self.is_contiguous())) return at::_ops::view::call(self, symbolic(size));
  const auto shape = infer_shape(size, numel_of<Int>(self));
  Ints<Int> strides;
  if (view_strides(sizes_of<Int>(self), strides_of<Int>(self), shape, strides))
    return at::_ops::view::call(self, symbolic(ArrayRef<Int>(shape)));
  return reshaped_copy<Int>(self, shape);
}

} // namespace

Tensor _reshape_copy(const Tensor& self, IntArrayRef size) {
  return reshaped_copy<int64_t>(self, size);
}
Tensor _reshape_copy_symbolic(const Tensor& self, SymIntArrayRef size) {
  return reshaped_copy<SymInt>(self, size);
}
Tensor reshape(const Tensor& self, IntArrayRef size) { return reshaped<int64_t>(self, size); }
Tensor reshape_symbolic(const Tensor& self, SymIntArrayRef size) {
  return reshaped<SymInt>(self, size);
}

// The caller computed the strides from the geometry of self; they are checked all the same.
Tensor _reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  return detail::checked_view(self, size, stride, self.storage_offset());
}

Tensor _reshape_alias_symbolic(const Tensor& self, SymIntArrayRef size, SymIntArrayRef stride) {
  return as_strided_symbolic(self, size, stride, self.sym_storage_offset());
}

Tensor reshape_as(const Tensor& self, const Tensor& other) {
  return at::_ops::reshape::call(self, other.sym_sizes());
}
Tensor view_as(const Tensor& self, const Tensor& other) {
  return at::_ops::view::call(self, other.sym_sizes());
}

Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                  std::optional<int64_t> storage_offset) {
  return detail::checked_view(self, size, stride, storage_offset.value_or(self.storage_offset()));
}
// Symbolic tensors have no memory that a view could leave; what is known to be too long raises.
Tensor as_strided_symbolic(const Tensor& self, SymIntArrayRef size, SymIntArrayRef stride,
                           std::optional<SymInt> storage_offset) {
  TORCH_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  const SymInt offset = storage_offset.value_or(self.sym_storage_offset());
  const SymInt bytes = c10::sym_storage_bytes(size, stride, self.itemsize(), offset);
  const SymInt room = self.storage()->sym_nbytes();
  TORCH_CHECK(c10::guard_or_true(c10::sym_le(bytes, room)), "setStorage: sizes ", size,
              ", strides ", stride, ", storage offset ", offset, ", and itemsize ", self.itemsize(),
              " requiring a storage size of ", bytes, " are out of bounds for storage of size ",
              room);
  return detail::view_of_symint(self, size, stride, offset);
}

namespace {
template <class Int> Tensor expanded(const Tensor& self, ArrayRef<Int> size) {
  Ints<Int> sizes, strides;
  expand_geometry(self, size, sizes, strides);
  return view_with<Int>(self, sizes, strides, offset_of<Int>(self));
}
} // namespace
Tensor expand(const Tensor& self, IntArrayRef size, bool) { return expanded(self, size); }
Tensor expand_symbolic(const Tensor& self, SymIntArrayRef size, bool) {
  return expanded(self, size);
}
Tensor expand_as(const Tensor& self, const Tensor& other) {
  return at::_ops::expand::call(self, other.sym_sizes(), false);
}
Tensor broadcast_to(const Tensor& self, SymIntArrayRef size) {
  return at::_ops::expand::call(self, size, false);
}

// ---- joining and spreading dimensions
namespace {
template <class Int> Tensor flattened(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t ndim = self.dim();
  const int64_t first = wrap_dim(start_dim, ndim), last = wrap_dim(end_dim, ndim);
  TORCH_CHECK(first <= last, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (ndim == 0) return self.reshape({1});
  if (first == last) return self;
  const ArrayRef<Int> sizes = sizes_of<Int>(self);
  Ints<Int> shape(sizes.slice(0, first));
  // Computed, not -1, which would be ambiguous for tensors without elements.
  shape.push_back(product_of(sizes.slice(first, last - first + 1)));
  for (int64_t d = last + 1; d < ndim; ++d) shape.push_back(sizes[d]);
  return at::_ops::reshape::call(self, symbolic(ArrayRef<Int>(shape)));
}
} // namespace
Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  return flattened<int64_t>(self, start_dim, end_dim);
}
Tensor flatten_symbolic(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  return flattened<SymInt>(self, start_dim, end_dim);
}

Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes) {
  const int64_t d = wrap_dim(dim, self.dim());
  TORCH_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  TORCH_CHECK(self.dim() > 0, "unflatten: the input tensor has no dimensions");
  const int64_t size = self.size(d);
  int64_t inferred = 0, known = 1;
  bool fits = true;
  for (int64_t s : sizes) {
    inferred += s == -1;
    if (s != -1) fits &= s >= 0 && !c10::mul_overflows(known, s, &known);
  }
  TORCH_CHECK(inferred <= 1,
              "unflatten got an unexpected error:\nonly one dimension can be inferred");
  fits = fits && (inferred ? known != 0 && size % known == 0 : known == size);
  TORCH_CHECK(fits, "unflatten: Provided sizes ", sizes, " don't multiply up to the size of dim ",
              d, " (", size, ") in the input tensor");
  DimVector shape(self.sizes().slice(0, d));
  for (int64_t s : sizes) shape.push_back(s == -1 ? size / known : s);
  for (int64_t i = d + 1; i < self.dim(); ++i) shape.push_back(self.size(i));
  return self.view(shape);
}

Tensor unflatten_symbolic(const Tensor& self, int64_t dim, SymIntArrayRef sizes) {
  const int64_t d = wrap_dim(dim, self.dim());
  TORCH_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  TORCH_CHECK(self.dim() > 0, "unflatten: the input tensor has no dimensions");
  const SymIntArrayRef old = self.sym_sizes();
  SymDimVector shape(old.slice(0, d));
  for (SymInt s : infer_shape(sizes, old[d])) shape.push_back(s);
  for (int64_t i = d + 1; i < self.dim(); ++i) shape.push_back(old[i]);
  return at::_ops::view::call(self, shape);
}

// Undoes a slice: the whole of `src` seen from `self`, a slice of it, or a tensor with its memory.
Tensor slice_inverse(const Tensor& self, const Tensor& src, int64_t, std::optional<int64_t>,
                     std::optional<int64_t>, int64_t) {
  TORCH_CHECK(self.scalar_type() == src.scalar_type(), "slice_inverse: expected one dtype, got ",
              self.scalar_type(), " and ", src.scalar_type());
  return detail::checked_view(self, src.sizes(), src.strides(), src.storage_offset());
}

Tensor ravel(const Tensor& self) { return self.contiguous().view({-1}); }

// ---- the whole tensor
Tensor alias(const Tensor& self) {
  return detail::view_of_symint(self, self.sym_sizes(), self.sym_strides(),
                                self.sym_storage_offset());
}

// Shares memory and version, but is neither a view nor part of the graph
// (Note [Views and version counters]).
Tensor detach(const Tensor& self) {
  at::detail::check_defined(self, "detach");
  const TensorImpl& source = *self.unsafeGetTensorImpl();
  c10::intrusive_ptr<TensorImpl> impl = source.shallow_copy();
  if (!source.is_inference()) impl->share_version_of(source);
  return Tensor(std::move(impl));
}
Tensor& detach_(Tensor& self) { return self; }

Tensor contiguous(const Tensor& self, MemoryFormat format) {
  TORCH_CHECK(format != MemoryFormat::Preserve,
              "preserve memory format is unsupported by the contiguous operator");
  return self.is_contiguous(format) ? self : self.clone(format);
}

Tensor lift(const Tensor& self) { return self; }
Tensor lift_fresh(const Tensor& self) { return self; }
Tensor lift_fresh_copy(const Tensor& self) { return self.clone(); }

// ---- geometry as operators
void _assert_tensor_metadata(const Tensor& a, OptionalIntArrayRef size, OptionalIntArrayRef stride,
                             std::optional<ScalarType> dtype, std::optional<Device> device,
                             std::optional<Layout> layout) {
  const auto compare = [](const char* what, const auto& wanted, const auto& found) {
    TORCH_CHECK(wanted == found, "Tensor ", what, " mismatch! Expected: ", wanted,
                ", Got: ", found);
  };
  if (size) compare("sizes", IntArrayRef(*size), a.sizes());
  if (stride) compare("strides", IntArrayRef(*stride), a.strides());
  if (dtype) compare("dtype", *dtype, a.scalar_type());
  if (device) compare("device", *device, a.device());
  if (layout) compare("layout", *layout, a.layout());
}
bool is_same_size(const Tensor& self, const Tensor& other) {
  return self.sym_sizes() == other.sym_sizes();
}
bool is_contiguous(const Tensor& self) { return self.is_contiguous(); }
bool is_contiguous(const Tensor& self, MemoryFormat format) { return self.is_contiguous(format); }
bool is_complex(const Tensor& self) { return self.is_complex(); }
bool is_floating_point(const Tensor& self) { return self.is_floating_point(); }
bool is_signed(const Tensor& self) { return self.is_signed(); }
bool is_conj(const Tensor& self) { return self.is_conj(); }
bool is_neg(const Tensor& self) { return self.is_neg(); }
bool is_inference(const Tensor& self) { return self.is_inference(); }
bool is_distributed(const Tensor&) { return false; }
bool _has_same_storage_numel(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.has_storage() && other.has_storage(),
              "_has_same_storage_numel: expected tensors with a storage");
  return self.storage()->nbytes() / self.itemsize() == other.storage()->nbytes() / other.itemsize();
}
int64_t dim(const Tensor& self) { return self.dim(); }
int64_t numel(const Tensor& self) { return self.numel(); }
int64_t storage_offset(const Tensor& self) { return self.storage_offset(); }
int64_t size(const Tensor& self, int64_t dim) { return self.size(dim); }
int64_t stride(const Tensor& self, int64_t dim) { return self.stride(dim); }
c10::SymInt sym_size(const Tensor& self, int64_t dim) { return self.sym_size(dim); }
c10::SymInt sym_stride(const Tensor& self, int64_t dim) {
  return self.sym_strides()[wrap_dim(dim, self.dim())];
}
c10::SymInt sym_numel(const Tensor& self) { return self.sym_numel(); }
c10::SymInt sym_storage_offset(const Tensor& self) { return self.sym_storage_offset(); }

} // namespace at::native
