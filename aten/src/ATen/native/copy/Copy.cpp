// Moving elements: copy_, clone, conversions of dtype and device, fills, and reading one element.
#include <algorithm>
#include <cstring>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/WarnOnce.h>
#include <ATen/iter/Cast.h>
#include <ATen/iter/SymbolicShapes.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/Resize.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/copy/Native.h>
#include <ATen/native/copy/RowCopy.h>
#include <ATen/native/copy/Transpose.h>
#include <ATen/ops/_copy_from.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_to_copy.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/expand.h>
#include <ATen/parallel/Parallel.h>
#include <c10/core/DeviceHooks.h>

namespace at::native {
namespace {

void copy_bytes(char* to, const char* from, int64_t bytes) {
  constexpr int64_t kGrainBytes = 1 << 18;
  if (bytes <= kGrainBytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
    return;
  }
  BlockingRegion unlocked;
  parallel_for(0, bytes, kGrainBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, end - begin);
  });
}

// Same dense order of elements in memory: the copy is one block.
bool same_dense_order(const Tensor& a, const Tensor& b) {
  return (a.is_contiguous() && b.is_contiguous()) ||
         (a.is_non_overlapping_and_dense() && a.strides() == b.strides());
}

void copy_strided(const Tensor& self, const Tensor& src) {
  const ScalarType type = self.scalar_type();
  if (src.scalar_type() == type && self.sizes() == src.sizes() &&
      (try_splat_copy(self, src) || try_row_copy(self, src) || try_transposed_copy(self, src) ||
       try_short_row_copy(self, src)))
    return;
  const native::Loop1d loop = cast_loop(type, src.scalar_type());
  if (loop != nullptr) {
    TensorIterator iter(self.sizes());
    iter.add_output(self);
    iter.add_input(src);
    iter.build();
    iter.run(loop, nullptr);
    return;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(type == src.scalar_type(), "\"copy_\" not implemented from '",
                              src.scalar_type(), "' to '", type, "' on cpu");
  // Types that only have storage are moved by their size.
  itemsize_switch(self.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    TensorIterator iter(self.sizes());
    iter.add_output(self);
    iter.add_input(src);
    iter.build();
    iter.for_each([&](char* const* data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        std::memcpy(data[0] + i * strides[0], data[1] + i * strides[1], sizeof(T));
    });
  });
}
} // namespace

Tensor& copy_(Tensor& self, const Tensor& src, bool non_blocking) {
  TORCH_CHECK(self.defined(), "self is undefined");
  TORCH_CHECK(src.defined(), "src is undefined");
  if (self.is_same(src)) {
    self.unsafeGetTensorImpl()->bump_version();
    return self;
  }
  if (any_symbolic(self, src)) {
    const std::vector<SymInt> shape = symbolic_broadcast(self.sym_sizes(), src.sym_sizes());
    TORCH_CHECK(SymIntArrayRef(shape) == self.sym_sizes(), "output with shape ", self.sym_sizes(),
                " doesn't match the broadcast shape ", SymIntArrayRef(shape));
    self.unsafeGetTensorImpl()->bump_version();
    return self; // symbolic tensors have no memory
  }
  if (self.sizes() != src.sizes()) {
    const DimVector shape = broadcast_shapes(self.sizes(), src.sizes());
    TORCH_CHECK(IntArrayRef(shape) == self.sizes(), "output with shape ", self.sizes(),
                " doesn't match the broadcast shape ", IntArrayRef(shape));
  }
  self.unsafeGetTensorImpl()->bump_version();
  if (self.is_meta() || self.numel() == 0) return self;
  if (src.is_complex() && !self.is_complex())
    AT_WARN_ONCE("Casting complex values to real discards the imaginary part");
  TORCH_CHECK_NOT_IMPLEMENTED(!src.is_meta(), "Cannot copy out of meta tensor; no data!");
  if (C10_UNLIKELY(!self.is_cpu() || !src.is_cpu())) {
    at::_copy_from(self.sizes() == src.sizes() ? src : src.expand(self.sizes()), self,
                   non_blocking);
    return self;
  }
  assert_no_internal_overlap(self);
  if (self.scalar_type() == src.scalar_type() && self.sizes() == src.sizes() &&
      same_dense_order(self, src)) {
    if (self.data_ptr() == src.data_ptr()) return self;
    if (!self.is_alias_of(src)) {
      copy_bytes(static_cast<char*>(self.data_ptr()), static_cast<const char*>(src.data_ptr()),
                 static_cast<int64_t>(self.nbytes()));
      return self;
    }
  }
  if (self.is_alias_of(src)) {
    assert_no_partial_overlap(self, src);
    const Tensor staged = detail::empty(src.sizes(), src.scalar_type());
    copy_strided(staged, src);
    copy_strided(self, staged);
    return self;
  }
  copy_strided(self, src);
  return self;
}

Tensor _copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
  const auto known = [](const Tensor& t) { return t.is_cpu() || t.is_cuda() || t.is_meta(); };
  TORCH_CHECK_NOT_IMPLEMENTED(known(self) && known(dst), "copy_ from ", self.device(), " to ",
                              dst.device(), " is not implemented for ", self.scalar_type());
  Tensor target = dst;
  target.copy_(self, non_blocking);
  return dst;
}

Tensor _copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  Tensor target = dst;
  if (target.sizes() != self.sizes()) resize_contiguous(target, self.sizes());
  target.copy_(self);
  return dst;
}

namespace {
// Whether no two elements can be the same place: each stride steps over all that smaller ones
// reach.
bool has_own_elements(IntArrayRef sizes, IntArrayRef strides) {
  c10::DimVector order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) order.push_back(static_cast<int64_t>(d));
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t reach = 0;
  for (const int64_t d : order) {
    if (strides[d] <= reach) return false;
    reach += (sizes[d] - 1) * strides[d];
  }
  return true;
}
} // namespace

Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking) {
  Tensor out = at::clone(self, MemoryFormat::Preserve);
  // A tensor with gaps keeps them, as it would when written in place.
  const bool apart = self.layout() == Layout::Strided && out.strides() != self.strides() &&
                     has_own_elements(self.sizes(), self.strides());
  if (apart)
    out = at::empty_strided(self.sizes(), self.strides(), self.scalar_type(), Layout::Strided,
                            self.device(), std::nullopt);
  return out.copy_(src, non_blocking);
}

Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  const MemoryFormat format = memory_format ? *memory_format : MemoryFormat::Preserve;
  if (C10_LIKELY(self.is_cpu() && self.is_contiguous() &&
                 (format == MemoryFormat::Preserve || format == MemoryFormat::Contiguous))) {
    Tensor out = format == MemoryFormat::Preserve
                     ? detail::empty_strided(self.sizes(),
                                             c10::infer_dense_strides(self.sizes(), self.strides()),
                                             self.scalar_type())
                     : detail::empty(self.sizes(), self.scalar_type());
    if (self.numel() > 0)
      copy_bytes(static_cast<char*>(out.data_ptr()), static_cast<const char*>(self.data_ptr()),
                 static_cast<int64_t>(self.nbytes()));
    return out;
  }
  Tensor out = at::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt, format);
  out.copy_(self);
  out.unsafeGetTensorImpl()->set_version(0);
  return out;
}

// ---- conversions ------------------------------------------------------------------------------
Tensor _to_copy(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
                std::optional<MemoryFormat> memory_format) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == self.layout(), "to(layout): conversion from ",
                              self.layout(), " to ", layout ? *layout : Layout::Strided,
                              " is not implemented");
  // A copy to the host that is not waited for needs page-locked memory to go to.
  if (non_blocking && self.is_cuda() && device && device->is_cpu() && !pin_memory)
    pin_memory = true;
  Tensor out = at::empty_like(self, dtype, std::nullopt, device, pin_memory,
                              memory_format ? *memory_format : MemoryFormat::Preserve);
  out.copy_(self, non_blocking);
  out.unsafeGetTensorImpl()->set_version(0);
  return out;
}

namespace {
Tensor convert(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
               std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
               bool copy, std::optional<MemoryFormat> memory_format) {
  const MemoryFormat format = memory_format ? *memory_format : MemoryFormat::Preserve;
  if (device && device->is_cpu() && device->has_index()) device = Device(kCPU);
  // A fake tensor goes where no driver need be.
  if (device && device->is_cuda() && !device->has_index() && !self.key_set().has(DispatchKey::Fake))
    device = c10::usable_device(*device);
  const bool same = (!dtype || *dtype == self.scalar_type()) &&
                    (!layout || *layout == self.layout()) &&
                    (!device || *device == self.device() ||
                     (device->type() == self.device().type() && !device->has_index()));
  const bool right_order = format == MemoryFormat::Preserve ||
                           self.suggest_memory_format() == format || self.is_contiguous(format);
  if (same && right_order && !copy) return self;
  return at::_to_copy(self, dtype ? *dtype : self.scalar_type(), layout,
                      device ? *device : self.device(), pin_memory, non_blocking, format);
}
} // namespace

Tensor to_dtype_layout(const Tensor& self, std::optional<ScalarType> dtype,
                       std::optional<Layout> layout, std::optional<Device> device,
                       std::optional<bool> pin_memory, bool non_blocking, bool copy,
                       std::optional<MemoryFormat> memory_format) {
  return convert(self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format);
}
Tensor to_device(const Tensor& self, Device device, ScalarType dtype, bool non_blocking, bool copy,
                 std::optional<MemoryFormat> memory_format) {
  return convert(self, dtype, std::nullopt, device, std::nullopt, non_blocking, copy,
                 memory_format);
}
Tensor to_dtype(const Tensor& self, ScalarType dtype, bool non_blocking, bool copy,
                std::optional<MemoryFormat> memory_format) {
  return convert(self, dtype, std::nullopt, std::nullopt, std::nullopt, non_blocking, copy,
                 memory_format);
}
Tensor to_other(const Tensor& self, const Tensor& other, bool non_blocking, bool copy,
                std::optional<MemoryFormat> memory_format) {
  return convert(self, other.scalar_type(), other.layout(), other.device(), std::nullopt,
                 non_blocking, copy, memory_format);
}
Tensor type_as(const Tensor& self, const Tensor& other) {
  return to_other(self, other, false, false, std::nullopt);
}

// ---- one element ------------------------------------------------------------------------------
Scalar item(const Tensor& self) {
  TORCH_CHECK(self.numel() == 1, "a Tensor with ", self.numel(),
              " elements cannot be converted to Scalar");
  return at::_local_scalar_dense(self);
}
Scalar local_scalar_dense_cpu(const Tensor& self) {
  TORCH_CHECK(self.numel() == 1, "a Tensor with ", self.numel(),
              " elements cannot be converted to Scalar");
  if (self.scalar_type() == ScalarType::Float8_e8m0fnu) {
    return Scalar(static_cast<float>(*static_cast<const c10::Float8_e8m0fnu*>(self.data_ptr())));
  }
  Scalar out;
  dtype_switch<AllTypesAndFloat8>(self.scalar_type(), "_local_scalar_dense_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = *static_cast<const T*>(self.data_ptr());
    if constexpr (sizeof(T) == 1 && !std::is_integral_v<T>)
      out = Scalar(static_cast<float>(value));
    else
      out = Scalar(value);
  });
  return out;
}
Scalar local_scalar_dense_meta(const Tensor& self) {
  throw c10::Error("Tensor.item() cannot be called on meta tensors");
}

} // namespace at::native
