// The tensor handle. What stands here is the geometry and the few operators kernels need; all other
// operators are methods too, generated from native_functions.yaml into TensorMethods.inc, and left
// out of our own kernel files (CRESSET_KERNEL_TU) so that a new operator does not recompile them.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include <c10/core/Generator.h>
#include <c10/core/Scalar.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/TensorOptions.h>

namespace at {

using c10::append;
using c10::ArrayRef;
using c10::Device;
using c10::DeviceType;
using c10::DimVector;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IntArrayRef;
using c10::kBFloat16;
using c10::kBool;
using c10::kByte;
using c10::kChar;
using c10::kComplexDouble;
using c10::kComplexFloat;
using c10::kComplexHalf;
using c10::kCPU;
using c10::kCUDA;
using c10::kDouble;
using c10::kFloat;
using c10::kHalf;
using c10::kInt;
using c10::kLong;
using c10::kMeta;
using c10::kShort;
using c10::kStrided;
using c10::kUInt16;
using c10::kUInt32;
using c10::kUInt64;
using c10::Layout;
using c10::MemoryFormat;
using c10::OptionalIntArrayRef;
using c10::OptionalSymIntArrayRef;
using c10::Scalar;
using c10::ScalarType;
using c10::Storage;
using c10::SymInt;
using c10::SymIntArrayRef;
using c10::TensorImpl;
using c10::TensorOptions;

class Tensor;
using TensorList = ArrayRef<Tensor>;
using OptionalTensorList = ArrayRef<std::optional<Tensor>>;

namespace detail {
// "Tensor.<method>(): called on an undefined Tensor (...)".
[[noreturn]] TORCH_API void throw_undefined(const char* method);
} // namespace detail

// A tensor without a value (made by the default constructor, moved from, reset) has no elements, no
// dtype and no gradient; whatever else is asked of it raises an Error that names the method.
class TORCH_API Tensor {
 public:
  Tensor() = default;
  explicit Tensor(c10::intrusive_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return impl_.defined(); }
  TensorImpl* unsafeGetTensorImpl() const { return impl_.get(); }
  const c10::intrusive_ptr<TensorImpl>& getIntrusivePtr() const { return impl_; }
  c10::intrusive_ptr<TensorImpl> take_impl() { return std::move(impl_); }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }
  void reset() { impl_.reset(); }
  uint32_t use_count() const { return impl_.use_count(); }

  // ---- geometry
  int64_t dim() const { return live("dim")->dim(); }
  int64_t ndimension() const { return live("ndimension")->dim(); }
  int64_t numel() const { return defined() ? impl_->numel() : 0; }
  IntArrayRef sizes() const { return live("sizes")->sizes(); }
  IntArrayRef strides() const { return live("strides")->strides(); }
  SymIntArrayRef sym_sizes() const { return live("sym_sizes")->sym_sizes(); }
  SymIntArrayRef sym_strides() const { return live("sym_strides")->sym_strides(); }
  SymInt sym_numel() const { return defined() ? impl_->sym_numel() : SymInt(0); }
  SymInt sym_size(int64_t d) const { return live("sym_size")->sym_sizes()[wrap_dim(d)]; }
  SymInt sym_stride(int64_t d) const { return live("sym_stride")->sym_strides()[wrap_dim(d)]; }
  SymInt sym_storage_offset() const { return live("sym_storage_offset")->sym_storage_offset(); }
  int64_t size(int64_t d) const { return live("size")->size(wrap_dim(d)); }
  int64_t stride(int64_t d) const { return live("stride")->stride(wrap_dim(d)); }
  int64_t storage_offset() const { return live("storage_offset")->storage_offset(); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    return live("is_contiguous")->is_contiguous(format);
  }
  bool is_non_overlapping_and_dense() const {
    return live("is_non_overlapping_and_dense")->is_non_overlapping_and_dense();
  }
  MemoryFormat suggest_memory_format() const {
    if (live("suggest_memory_format")->is_strides_like_channels_last() && layout() == kStrided)
      return dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
    return MemoryFormat::Contiguous;
  }
  int64_t itemsize() const { return live("itemsize")->itemsize(); }
  int64_t element_size() const { return live("element_size")->itemsize(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }

  // ---- type and place
  ScalarType scalar_type() const { return defined() ? impl_->dtype() : ScalarType::Undefined; }
  ScalarType dtype() const { return scalar_type(); }
  Device device() const { return live("device")->device(); }
  Layout layout() const { return live("layout")->layout(); }
  DispatchKeySet key_set() const { return defined() ? impl_->key_set() : DispatchKeySet(); }
  TensorOptions options() const {
    return TensorOptions(scalar_type()).device(device()).layout(layout());
  }
  bool is_cpu() const { return defined() && device().is_cpu(); }
  bool is_cuda() const { return defined() && device().is_cuda(); }
  bool is_meta() const { return defined() && device().is_meta(); }
  bool is_sparse() const { return defined() && layout() == Layout::Sparse; }
  bool is_sparse_csr() const { return defined() && layout() == Layout::SparseCsr; }
  bool is_nested() const {
    return key_set().has_any({DispatchKey::NestedTensorCPU, DispatchKey::NestedTensorCUDA});
  }
  bool is_quantized() const {
    return key_set().has_any({DispatchKey::QuantizedCPU, DispatchKey::QuantizedCUDA});
  }
  bool is_floating_point() const { return c10::isFloatingType(scalar_type()); }
  bool is_complex() const { return c10::isComplexType(scalar_type()); }
  bool is_signed() const { return c10::isSignedType(scalar_type()); }
  bool is_conj() const { return defined() && impl_->is_conj(); }
  bool is_neg() const { return defined() && impl_->is_neg(); }
  bool is_inference() const { return defined() && impl_->is_inference(); }
  bool requires_grad() const { return defined() && impl_->requires_grad(); }
  bool is_view() const { return defined() && impl_->is_view(); }

  // ---- memory
  const Storage& storage() const { return live("storage")->storage(); }
  bool has_storage() const { return defined() && impl_->has_storage(); }
  bool is_alias_of(const Tensor& o) const { return has_storage() && storage() == o.storage(); }
  // Never null where there are elements: Error for meta tensors and freed storages, so that a
  // kernel handed one by mistake raises instead of reading address zero.
  void* data_ptr() const {
    void* data = live("data_ptr")->data();
    if (C10_UNLIKELY(data == nullptr && impl_->numel() != 0)) throw_no_data();
    return data;
  }
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
  // The data as T; Error when the dtype is another.
  template <class T> T* data_ptr() const {
    if (C10_UNLIKELY(scalar_type() != c10::scalar_type_of<T>)) throw_dtype(c10::scalar_type_of<T>);
    return static_cast<T*>(data_ptr());
  }
  template <class T> const T* const_data_ptr() const { return data_ptr<T>(); }
  template <class T> T* mutable_data_ptr() const { return data_ptr<T>(); }

  // ---- operators that kernels and composites use; generated for the rest. Each goes through the
  // dispatcher.
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Tensor clone(std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor& copy_(const Tensor& src, bool non_blocking = false) const;
  Tensor& fill_(const Scalar& value) const;
  Tensor& zero_() const;
  Tensor to(ScalarType dtype, bool non_blocking = false, bool copy = false) const;
  Tensor view(IntArrayRef size) const;
  Tensor reshape(IntArrayRef size) const;
  Tensor expand(IntArrayRef size, bool implicit = false) const;
  Tensor permute(IntArrayRef dims) const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor slice(int64_t dim = 0, std::optional<int64_t> start = std::nullopt,
               std::optional<int64_t> end = std::nullopt, int64_t step = 1) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor squeeze(int64_t dim) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor as_strided(IntArrayRef size, IntArrayRef stride,
                    std::optional<int64_t> storage_offset = std::nullopt) const;
  Tensor detach() const;
  Scalar item() const;
  template <class T> T item() const { return item().to<T>(); }

#ifndef CRESSET_KERNEL_TU
#include <ATen/core/TensorMethods.inc>
#endif

 private:
  int64_t wrap_dim(int64_t d) const {
    const int64_t n = dim();
    if (C10_UNLIKELY(d < -n || d >= n)) throw_dim(d);
    return d < 0 ? d + n : d;
  }
  TensorImpl* live(const char* method) const {
    if (C10_UNLIKELY(!impl_.defined())) detail::throw_undefined(method);
    return impl_.get();
  }
  [[noreturn]] void throw_dim(int64_t d) const;
  [[noreturn]] void throw_dtype(ScalarType wanted) const;
  [[noreturn]] void throw_no_data() const;
  c10::intrusive_ptr<TensorImpl> impl_;
};

// "float32[2, 3] cpu": how tensors appear in messages.
TORCH_API void append(std::string& out, const Tensor& tensor);

template <class T, class... Args> Tensor make_tensor(Args&&... args) {
  return Tensor(c10::make_intrusive<T>(std::forward<Args>(args)...));
}

} // namespace at
