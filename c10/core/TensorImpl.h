// The tensor itself: geometry, type, keys, and the links that autograd and Python hang on it. Sizes
// and strides of up to five dimensions lie inside the object; objects come from a thread-local
// pool.
//
// Note [Views and version counters]
// A tensor has a version counter that in-place writes increase. A view uses its base's, which it
// keeps alive. `detach()` shares the counter without being a view, and must not keep the tensor it
// came from alive, with the whole graph behind it: the counter then moves to a small object of its
// own that both hold. `x.data` makes a tensor with the storage of x and a counter of its own, which
// is why the counter is not in the storage.
//
// Note [Sizes that are symbols]
// A symbolic tensor keeps its SymInts in ExtraMeta and, in the slots of plain ones, what they are
// in the traced run. Code that asks for plain sizes gets those, and the shape environment records
// that it did: the trace is then valid for these sizes alone. Sizes that depend on data have no
// such value and raise DataDependentError. Contiguity and its kin are decided when asked for.
#pragma once
#include <atomic>
#include <memory>

#include <c10/core/BackendMeta.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>
#include <c10/core/SymInt.h>
#include <c10/util/SafeArithmetic.h>
#include <c10/util/SmallVector.h>

namespace c10 {

// What autograd keeps for a tensor. Implemented in torch/csrc/autograd; c10 only owns it.
struct C10_API AutogradMetaInterface {
  virtual ~AutogradMetaInterface();
};

// Rare properties, allocated when first needed.
struct C10_API ExtraMeta {
  virtual ~ExtraMeta();
  std::vector<int64_t> symbolic_sizes; // raw SymInts
  std::vector<int64_t> symbolic_strides;
  int64_t symbolic_offset = 0;
  int64_t symbolic_numel = 0;
  std::shared_ptr<void> symbolic_owner; // the environment of the symbols
  uint8_t known_flags = 0;              // which of the layout's questions were decided
  intrusive_ptr<BackendMeta> backend_meta;
};

// A version counter that several tensors share.
class C10_API VersionCounter final : public intrusive_ptr_target {
 public:
  explicit VersionCounter(uint32_t start) : value(start) {}
  std::atomic<uint32_t> value;
};

class C10_API TensorImpl : public intrusive_ptr_target {
 public:
  static constexpr int kInlineDims = 5;

  // A tensor of rank 1 and size 0 on `storage`; set its geometry with one of the setters below.
  TensorImpl(Storage storage, DispatchKeySet keys, ScalarType dtype, Device device);
  // A contiguous tensor of `sizes`, which are not negative and whose product is `numel`.
  TensorImpl(Storage storage, DispatchKeySet keys, ScalarType dtype, Device device,
             IntArrayRef sizes, int64_t numel);
  ~TensorImpl() override;
  static void* operator new(size_t size);
  static void operator delete(void* p, size_t size) noexcept;

  // ---- geometry
  int64_t dim() const { return ndim_; }
  int64_t numel() const {
    if (C10_UNLIKELY(symbolic_)) guard_numel();
    return numel_;
  }
  IntArrayRef sizes() const {
    if (C10_UNLIKELY(symbolic_)) guard_sizes();
    return {dims_, ndim_};
  }
  IntArrayRef strides() const {
    if (C10_UNLIKELY(symbolic_)) guard_strides();
    return {dims_ + ndim_, ndim_};
  }
  // Of one dimension, 0 <= d < dim().
  int64_t size(int64_t d) const {
    if (C10_UNLIKELY(symbolic_)) guard_size(d);
    return dims_[d];
  }
  int64_t stride(int64_t d) const {
    if (C10_UNLIKELY(symbolic_)) guard_stride(d);
    return dims_[ndim_ + d];
  }
  SymIntArrayRef sym_sizes() const {
    return C10_LIKELY(!symbolic_) ? as_symint_array({dims_, ndim_})
                                  : symbolic_list(extra_->symbolic_sizes);
  }
  SymIntArrayRef sym_strides() const {
    return C10_LIKELY(!symbolic_) ? as_symint_array({dims_ + ndim_, ndim_})
                                  : symbolic_list(extra_->symbolic_strides);
  }
  SymInt sym_numel() const { return SymInt::from_raw(symbolic_ ? extra_->symbolic_numel : numel_); }
  SymInt sym_storage_offset() const {
    return SymInt::from_raw(symbolic_ ? extra_->symbolic_offset : storage_offset_);
  }
  int64_t storage_offset() const {
    if (C10_UNLIKELY(symbolic_)) guard_offset();
    return storage_offset_;
  }
  bool is_contiguous() const {
    return C10_LIKELY(!symbolic_) ? contiguous_ : symbolic_flag(Flag::Contiguous);
  }
  bool is_contiguous(MemoryFormat format) const {
    switch (format) {
    case MemoryFormat::ChannelsLast:
      return ndim_ == 4 && is_channels_last_contiguous();
    case MemoryFormat::ChannelsLast3d:
      return ndim_ == 5 && is_channels_last_contiguous();
    default:
      return is_contiguous();
    }
  }
  bool is_non_overlapping_and_dense() const {
    return C10_LIKELY(!symbolic_) ? dense_ : symbolic_flag(Flag::Dense);
  }
  // The strides order channels innermost (used by memory_format=preserve and
  // suggest_memory_format).
  bool is_strides_like_channels_last() const {
    return C10_LIKELY(!symbolic_) ? channels_last_strides_
                                  : symbolic_flag(Flag::ChannelsLastStrides);
  }

  // Trusted setters: the caller has checked that storage covers the geometry. Outside data goes
  // through at::detail::checked_view (ATen/core/EmptyTensor.h).
  void set_contiguous(IntArrayRef sizes);
  void set_geometry(IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset);
  void set_storage_offset(int64_t offset) { storage_offset_ = offset; }
  // The same where numbers may be symbolic (Note [Sizes that are symbols]).
  void set_symbolic_geometry(SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset);
  bool has_symbolic_sizes() const { return symbolic_; }

  // ---- type and place
  ScalarType dtype() const { return dtype_; }
  int64_t itemsize() const { return itemsize_; }
  Device device() const { return device_; }
  Layout layout() const { return layout_; }
  // A view has gradients where its base has: an in-place write may give the base a history after
  // the view was made.
  DispatchKeySet key_set() const {
    return C10_LIKELY(!is_view_) ? keys_ : keys_ | (base_->keys_ & kAutogradKeys);
  }
  void set_key_set(DispatchKeySet keys) { keys_ = keys; }
  void set_layout(Layout layout) { layout_ = layout; }
  void set_dtype(ScalarType dtype) {
    dtype_ = dtype;
    itemsize_ = static_cast<uint8_t>(elementSize(dtype));
  }

  // ---- memory
  const Storage& storage() const { return storage_; }
  bool has_storage() const { return storage_.defined(); }
  void set_storage(Storage storage) { storage_ = std::move(storage); }
  // The first element; null where there is no memory (meta tensors, empty storages).
  void* data() const {
    char* p = storage_ ? static_cast<char*>(storage_->data()) : nullptr;
    return p ? p + storage_offset_ * itemsize_ : nullptr;
  }

  // ---- flags
  bool is_wrapped_number() const { return wrapped_number_; }
  void set_wrapped_number(bool v) { wrapped_number_ = v; }
  bool is_conj() const { return keys_.has(DispatchKey::Conjugate); }
  bool is_neg() const { return keys_.has(DispatchKey::Negative); }
  void set_conj(bool v) {
    keys_ = v ? keys_.add(DispatchKey::Conjugate) : keys_.remove(DispatchKey::Conjugate);
  }
  void set_neg(bool v) {
    keys_ = v ? keys_.add(DispatchKey::Negative) : keys_.remove(DispatchKey::Negative);
  }
  bool is_inference() const { return inference_; }
  void set_inference(bool v) { inference_ = v; }

  // ---- versions and views
  uint32_t version() const { return counter().load(std::memory_order_relaxed); }
  void bump_version() { counter().fetch_add(1, std::memory_order_relaxed); }
  void set_version(uint32_t v) { version_.store(v, std::memory_order_relaxed); }
  bool is_view() const { return is_view_; }
  // Of a view: the version its base had when the view was made.
  uint32_t version_when_viewed() const { return version_.load(std::memory_order_relaxed); }
  // The tensor this one views, or null.
  const intrusive_ptr<TensorImpl>& base() const { return base_; }
  void set_view_of(intrusive_ptr<TensorImpl> base) {
    is_view_ = true;
    base_ = std::move(base);
    version_.store(base_->version(), std::memory_order_relaxed);
  }
  // From now on this tensor, which must not be a view, counts with `other`.
  void share_version_of(const TensorImpl& other);
  // How a view was made; autograd refuses some in-place writes because of it.
  enum class ViewOrigin : uint8_t {
    Default,
    MultiOutput,
    NoGrad,
    MultiOutputSafe,
    Inference,
    Custom
  };
  ViewOrigin view_origin = ViewOrigin::Default;

  // ---- autograd (Note [Autograd key only where gradients flow])
  bool requires_grad() const { return key_set().has_any(kAutogradKeys); }
  // Adds or removes the Autograd key of this tensor's device; the meta is autograd's affair.
  void set_autograd_key(bool on) {
    const DispatchKeySet key(autograd_key(device_.type()));
    keys_ = on ? keys_ | key : keys_ - kAutogradKeys;
  }
  AutogradMetaInterface* autograd_meta() const { return autograd_meta_.get(); }
  void set_autograd_meta(std::unique_ptr<AutogradMetaInterface> meta) {
    autograd_meta_ = std::move(meta);
  }

  CRESSET_USER_MEMBERS(TensorImpl) ExtraMeta* extra() const { return extra_.get(); }
  ExtraMeta& ensure_extra();

  // Copies geometry, type, storage and flags (not autograd, views, versions or Python identity) of
  // `from`: what `detach`, `.data = x` and shallow copies need.
  virtual void copy_metadata_from(const TensorImpl& from);
  // A new tensor of the same dynamic type with copied metadata and a version counter of its own.
  virtual intrusive_ptr<TensorImpl> shallow_copy() const;

  // ---- Python identity: the object that stands for this tensor. While `pyobj_owned` is set the
  // tensor owns the Python object; otherwise the Python object owns the tensor. The Python layer
  // alone writes these, holding its lock.
  void* pyobj = nullptr;
  bool pyobj_owned = false;
  // Called (if set) to drop an owned Python object when the tensor dies.
  static void (*release_pyobj)(void* pyobj);

 protected:
  void release_resources() override;

 private:
  std::atomic<uint32_t>& counter() const {
    const TensorImpl* owner = C10_LIKELY(!is_view_) ? this : base_.get();
    VersionCounter* shared = owner->shared_version_.load(std::memory_order_acquire);
    return C10_LIKELY(shared == nullptr) ? owner->version_ : shared->value;
  }
  // The counter as an object of its own, made when first shared.
  VersionCounter* shared_counter() const;
  bool is_channels_last_contiguous() const {
    return C10_LIKELY(!symbolic_) ? channels_last_contiguous_ : symbolic_flag(Flag::ChannelsLast);
  }
  // ---- symbolic tensors (SymbolicGeometry.cpp)
  enum class Flag : uint8_t { Contiguous, ChannelsLast, ChannelsLastStrides, Dense };
  void guard_sizes() const;
  void guard_strides() const;
  void guard_size(int64_t d) const;
  void guard_stride(int64_t d) const;
  void guard_numel() const;
  void guard_offset() const;
  bool symbolic_flag(Flag flag) const;
  bool decide_flag(Flag flag) const;
  static SymIntArrayRef symbolic_list(const std::vector<int64_t>& raw) {
    return {reinterpret_cast<const SymInt*>(raw.data()), raw.size()};
  }
  bool holds(IntArrayRef list) const {
    return list.data() >= dims_ && list.data() < dims_ + 2 * dims_capacity_;
  }
  void reserve_dims(size_t ndim);
  void update_flags();

  DispatchKeySet keys_;
  Storage storage_;
  int64_t storage_offset_ = 0;
  int64_t numel_ = 0;
  int64_t* dims_; // sizes, then strides
  uint16_t ndim_ = 1;
  uint16_t dims_capacity_ = kInlineDims;
  ScalarType dtype_;
  Device device_;
  Layout layout_ = Layout::Strided;
  uint8_t itemsize_;
  bool contiguous_ : 1;
  bool dense_ : 1;
  bool channels_last_contiguous_ : 1;
  bool channels_last_strides_ : 1;
  bool wrapped_number_ : 1;
  bool is_view_ : 1;
  bool inference_ : 1;
  bool symbolic_ : 1;
  // The counter, unless it is shared or the base's.
  mutable std::atomic<uint32_t> version_{0};
  mutable std::atomic<VersionCounter*> shared_version_{nullptr}; // owned
  intrusive_ptr<TensorImpl> base_;
  std::unique_ptr<AutogradMetaInterface> autograd_meta_;
  std::unique_ptr<ExtraMeta> extra_;
  int64_t inline_dims_[2 * kInlineDims];
};

// Whether new tensors are inference tensors on this thread, and whether gradients are recorded.
struct AutogradState {
  bool grad_mode = true;
  bool inference_mode = false;
  bool fw_grad_mode = true;
  bool multithreading = true;
  bool view_replay = false;
};
extern C10_API C10_PLAIN_THREAD_LOCAL AutogradState tls_autograd_state
    __attribute__((tls_model("initial-exec")));

} // namespace c10
