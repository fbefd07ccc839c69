// Complex numbers seen as pairs of real ones, and the two lazy bits: a conjugate or negative view
// only sets a dispatch key on an alias, and the fallbacks in LazyBits.cpp materialise it for
// operators that read the elements.
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/native/shape/Native.h>

#include <ATen/ops/_conj.h>
#include <ATen/ops/_conj_physical.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/view_as_real.h>

namespace at::native {

Tensor view_as_real(const Tensor& self) {
  TORCH_CHECK(self.is_complex(), "view_as_real is only supported for complex tensors");
  TORCH_CHECK(!self.is_conj(), "view_as_real doesn't work on unresolved conjugated tensors.  To "
                               "resolve the conjugate tensor so you can "
                               "view it as real, use self.resolve_conj(); however, be warned that "
                               "the resulting tensor will NOT alias "
                               "the original.");
  DimVector sizes(self.sizes()), strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return detail::view_of_dtype(self, c10::toRealValueType(self.scalar_type()), sizes, strides,
                               self.storage_offset() * 2);
}

Tensor view_as_complex(const Tensor& self) {
  const ScalarType type = self.scalar_type();
  TORCH_CHECK(type == kHalf || type == kFloat || type == kDouble,
              "view_as_complex is only supported for half, float and double tensors, but got a "
              "tensor of scalar type: ",
              type);
  TORCH_CHECK(self.dim() != 0, "Input tensor must have one or more dimensions");
  DimVector sizes(self.sizes()), strides(self.strides());
  TORCH_CHECK(sizes.back() == 2, "Tensor must have a last dimension of size 2");
  TORCH_CHECK(strides.back() == 1, "Tensor must have a last dimension with stride 1");
  sizes.pop_back();
  strides.pop_back();
  for (int64_t& s : strides) {
    TORCH_CHECK(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
    s /= 2;
  }
  TORCH_CHECK(self.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  return detail::view_of_dtype(self, c10::toComplexType(type), sizes, strides,
                               self.storage_offset() / 2);
}

Tensor real(const Tensor& self) {
  if (!self.is_complex()) return self;
  return at::view_as_real(self.is_conj() ? at::_conj(self) : self).select(-1, 0);
}

Tensor imag(const Tensor& self) {
  TORCH_CHECK(self.is_complex(), "imag is not implemented for tensors with non-complex dtypes.");
  if (!self.is_conj()) return at::view_as_real(self).select(-1, 1);
  return at::_neg_view(at::view_as_real(at::_conj(self)).select(-1, 1));
}

// ---- lazy conjugation and negation
Tensor _conj(const Tensor& self) {
  Tensor out = detail::view_of(self, self.sizes(), self.strides(), self.storage_offset());
  out.unsafeGetTensorImpl()->set_conj(!self.is_conj());
  return out;
}
Tensor conj(const Tensor& self) {
  if (!self.is_complex()) return self;
  // Kernels of other layouts read the parts, which do not carry the flag of the whole.
  return self.layout() == c10::kStrided ? at::_conj(self) : at::conj_physical(self);
}
Tensor conj_physical(const Tensor& self) {
  return self.is_complex() ? at::_conj_physical(self) : self;
}
Tensor& conj_physical_out(const Tensor& self, Tensor& out) {
  return at::_conj_physical_out(out, self);
}
Tensor resolve_conj(const Tensor& self) {
  if (!self.is_conj()) return self;
  return handlers_active() ? self.clone() : at::conj_physical(at::_conj(self));
}

Tensor _neg_view(const Tensor& self) {
  Tensor out = detail::view_of(self, self.sizes(), self.strides(), self.storage_offset());
  out.unsafeGetTensorImpl()->set_neg(!self.is_neg());
  return out;
}
Tensor resolve_neg(const Tensor& self) {
  if (!self.is_neg()) return self;
  return handlers_active() ? self.clone() : at::neg(at::_neg_view(self));
}

} // namespace at::native
