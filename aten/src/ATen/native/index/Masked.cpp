// masked_fill, masked_select and masked_scatter.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/SymbolicShapes.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/CTypeName.h>
#include <ATen/native/Checks.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/PrivateCopy.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/index/IndexUtil.h>
#include <ATen/native/index/MaskLoops.h>
#include <ATen/native/index/Native.h>
#include <ATen/ops/expand.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/masked_scatter.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <cstring>

namespace at::native {
namespace {

// `mask` seen in self's shape; an in-place operator cannot grow self.
Tensor fit_mask(const Tensor& self, const Tensor& mask) {
  if (any_symbolic(self, mask)) {
    const std::vector<SymInt> shape = symbolic_broadcast(mask.sym_sizes(), self.sym_sizes());
    TORCH_CHECK(SymIntArrayRef(shape) == self.sym_sizes(), "output with shape ", self.sym_sizes(),
                " doesn't match the broadcast shape ", SymIntArrayRef(shape));
    return at::_ops::expand::call(mask, shape, false);
  }
  if (mask.sizes() == self.sizes()) return mask;
  const DimVector shape = broadcast_shapes(mask.sizes(), self.sizes());
  TORCH_CHECK(IntArrayRef(shape) == self.sizes(), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", IntArrayRef(shape));
  return mask.expand(shape);
}

// A new contiguous tensor with self's values in the common shape of self and mask.
Tensor expanded_copy(const Tensor& self, const Tensor& mask) {
  if (any_symbolic(self, mask)) {
    const std::vector<SymInt> shape = symbolic_broadcast(mask.sym_sizes(), self.sym_sizes());
    return at::_ops::expand::call(self, shape, false).clone(MemoryFormat::Contiguous);
  }
  const DimVector shape = broadcast_shapes(mask.sizes(), self.sizes());
  return self.expand(shape).clone(MemoryFormat::Contiguous);
}

void check_same_device(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(self.device() == mask.device(),
              "expected self and mask to be on the same device, but "
              "got mask on ",
              mask.device(), " and self on ", self.device());
}

void check_fill_mask(const Tensor& self, const Tensor& mask) {
  check_same_device(self, mask);
  TORCH_CHECK(mask.scalar_type() == kBool,
              "masked_fill_ only supports boolean masks, but got mask with dtype ",
              c_type_name(mask.scalar_type()));
}

void check_fill_value(const Tensor& value) {
  TORCH_CHECK(value.dim() == 0,
              "masked_fill_ only supports a 0-dimensional value tensor, but got "
              "tensor with ",
              value.dim(), " dimension(s).");
}

void warn_expanded(const Tensor& self) {
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.numel() == 0 || self.stride(d) != 0 || self.size(d) < 2) continue;
    TORCH_WARN("Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor "
               "before performing this operation. This also applies to advanced indexing e.g. "
               "tensor[mask] = scalar");
    return;
  }
}

} // namespace

Tensor& masked_fill_scalar_cpu_(Tensor& self, const Tensor& mask, const Scalar& value) {
  check_fill_mask(self, mask);
  const Tensor fill = detail::scalar_tensor(value, self.scalar_type());
  const Tensor fitted = fit_mask(self, mask);
  warn_expanded(self);
  assert_no_partial_overlap(self, mask);
  return masked_fill_same_dtype_(self, fitted, fill);
}

Tensor& masked_fill_scalar_meta_(Tensor& self, const Tensor& mask, const Scalar& value) {
  static_cast<void>(value);
  check_fill_mask(self, mask);
  fit_mask(self, mask);
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor& masked_fill_tensor_(Tensor& self, const Tensor& mask, const Tensor& value) {
  check_fill_value(value);
  return at::_ops::masked_fill__Scalar::call(self, mask,
                                             value.is_meta() ? Scalar(0) : value.item());
}

Tensor masked_fill_scalar(const Tensor& self, const Tensor& mask, const Scalar& value) {
  Tensor result = expanded_copy(self, mask);
  return at::_ops::masked_fill__Scalar::call(result, mask, value);
}

Tensor masked_fill_tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_fill_value(value);
  Tensor result = expanded_copy(self, mask);
  return at::_ops::masked_fill__Tensor::call(result, mask, value);
}

// ---- masked_select
namespace {

// Elements [begin, end) of `from` where the mask is true, packed.
template <class U>
void pack(const U* from, const uint8_t* mask, int64_t begin, int64_t end, U* to) {
  int64_t i = begin;
  for (; i + 8 <= end; i += 8) {
    uint64_t word;
    std::memcpy(&word, mask + i, 8);
    if (word == 0) continue;
    for (int64_t k = i; k < i + 8; ++k)
      if (mask[k]) *to++ = from[k];
  }
  for (; i < end; ++i)
    if (mask[i]) *to++ = from[i];
}

template <class U>
void unpack(U* to, const uint8_t* mask, int64_t begin, int64_t end, const U* from) {
  for (int64_t i = begin; i < end; ++i)
    if (mask[i]) to[i] = *from++;
}

const uint8_t* mask_bytes(const Tensor& mask) {
  return static_cast<const uint8_t*>(mask.data_ptr());
}

void check_select(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == kBool, "masked_select: expected BoolTensor for mask");
  check_one_device({{"self", self}, {"mask", mask}});
}

Tensor in_shape(const Tensor& t, IntArrayRef shape) {
  return (t.sizes() == shape ? t : t.expand(shape)).contiguous();
}

} // namespace

Tensor masked_select_cpu(const Tensor& self, const Tensor& mask) {
  check_select(self, mask);
  const DimVector shape = broadcast_shapes(mask.sizes(), self.sizes());
  const Tensor where = private_copy(in_shape(mask, shape)), from = in_shape(self, shape);
  const uint8_t* bytes = mask_bytes(where);
  const int64_t n = where.numel();
  const TrueCounts counts(bytes, n);
  Tensor result = detail::empty({counts.total()}, self.scalar_type());
  if (counts.total() == 0) return result;
  itemsize_switch(self.itemsize(), [&](auto tag) {
    using U = typename decltype(tag)::type;
    const U* source = reinterpret_cast<const U*>(bytes_of(from));
    U* to = reinterpret_cast<U*>(bytes_of(result));
    parallel_for(0, n, TrueCounts::kGrain, [&](int64_t begin, int64_t end) {
      pack(source, bytes, begin, end,
           to + counts.before[static_cast<size_t>(begin / counts.chunk)]);
    });
  });
  return result;
}

Tensor& masked_select_out_cpu(const Tensor& self, const Tensor& mask, Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  check_select(self, mask);
  assert_no_internal_overlap(out);
  assert_no_overlap(out, self);
  assert_no_overlap(out, mask);
  generated::store_out(out, masked_select_cpu(self, mask));
  return out;
}

// ---- masked_scatter
namespace {

void check_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  check_same_device(self, mask);
  check_same_device(self, source);
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter: expected self and source "
              "to have same dtypes but got",
              self.scalar_type(), " and ", source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == kBool,
              "masked_scatter_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  assert_no_internal_overlap(self);
}

} // namespace

Tensor& masked_scatter_cpu_(Tensor& self, const Tensor& mask, const Tensor& source) {
  check_scatter(self, mask, source);
  const Tensor where = private_copy(fit_mask(self, mask));
  Tensor from = source.contiguous();
  if (from.is_alias_of(self)) from = from.clone();
  const uint8_t* bytes = mask_bytes(where);
  const int64_t n = where.numel();
  const TrueCounts counts(bytes, n);
  TORCH_CHECK(counts.total() <= from.numel(),
              "Number of elements of source < number of ones in mask");
  const bool direct = self.is_contiguous();
  const Tensor target = direct ? self : self.contiguous();
  itemsize_switch(self.itemsize(), [&](auto tag) {
    using U = typename decltype(tag)::type;
    const U* values = reinterpret_cast<const U*>(bytes_of(from));
    U* to = reinterpret_cast<U*>(bytes_of(target));
    parallel_for(0, n, TrueCounts::kGrain, [&](int64_t begin, int64_t end) {
      const int64_t done = counts.before[static_cast<size_t>(begin / counts.chunk)];
      unpack(to, bytes, begin, end, values + done);
    });
  });
  if (direct)
    self.unsafeGetTensorImpl()->bump_version();
  else
    self.copy_(target);
  return self;
}

Tensor& masked_scatter_meta_(Tensor& self, const Tensor& mask, const Tensor& source) {
  check_scatter(self, mask, source);
  fit_mask(self, mask);
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  Tensor result = expanded_copy(self, mask);
  return at::_ops::masked_scatter_::call(result, mask, source);
}

} // namespace at::native
