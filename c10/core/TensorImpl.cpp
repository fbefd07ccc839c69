// Construction, geometry and destruction of tensors. See the notes in TensorImpl.h.
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cstring>

#include <c10/core/Retired.h>
#include <c10/core/SmallPool.h>

namespace c10 {

AutogradMetaInterface::~AutogradMetaInterface() = default;
ExtraMeta::~ExtraMeta() = default;
void (*TensorImpl::release_pyobj)(void*) = nullptr;
C10_PLAIN_THREAD_LOCAL AutogradState tls_autograd_state;

void* TensorImpl::operator new(size_t size) {
  if (C10_LIKELY(size == sizeof(TensorImpl))) return SmallPool<sizeof(TensorImpl)>::take();
  return ::operator new(size);
}
void TensorImpl::operator delete(void* p, size_t size) noexcept {
  if (C10_LIKELY(size == sizeof(TensorImpl))) return SmallPool<sizeof(TensorImpl)>::give(p);
  ::operator delete(p);
}

TensorImpl::TensorImpl(Storage storage, DispatchKeySet keys, ScalarType dtype, Device device)
    : keys_(keys), storage_(std::move(storage)), dims_(inline_dims_), dtype_(dtype),
      device_(device), itemsize_(static_cast<uint8_t>(elementSize(dtype))), contiguous_(true),
      dense_(true), channels_last_contiguous_(false), channels_last_strides_(false),
      wrapped_number_(false), is_view_(false), inference_(tls_autograd_state.inference_mode),
      symbolic_(false) {
  dims_[0] = 0;
  dims_[1] = 1;
  // Of inference tensors: ATen/core/InferenceCheck.h.
  constexpr DispatchKeySet kTracked{DispatchKey::ADInplaceOrView};
  constexpr DispatchKeySet kInference{DispatchKey::InferenceCheck};
  keys_ = keys_ | (C10_LIKELY(!inference_) ? kTracked : kInference);
}

TensorImpl::TensorImpl(Storage storage, DispatchKeySet keys, ScalarType dtype, Device device,
                       IntArrayRef sizes, int64_t numel)
    : TensorImpl(std::move(storage), keys, dtype, device) {
  const size_t n = sizes.size();
  numel_ = numel;
  if (C10_UNLIKELY(n > kInlineDims)) reserve_dims(n);
  ndim_ = static_cast<uint16_t>(n);
  for (size_t d = 0; d < n; ++d) dims_[d] = sizes[d];
  contiguous_strides({dims_, n}, dims_ + n);
  if (C10_UNLIKELY(n >= 4)) update_flags();
}

TensorImpl::~TensorImpl() {
  if (C10_UNLIKELY(pyobj_owned && pyobj != nullptr && release_pyobj != nullptr)) {
    pyobj_owned = false;
    release_pyobj(pyobj);
  }
  if (VersionCounter* shared = shared_version_.load(std::memory_order_relaxed)) shared->decref();
  if (dims_ != inline_dims_) std::free(dims_);
}

VersionCounter* TensorImpl::shared_counter() const {
  if (is_view_) return base_->shared_counter();
  VersionCounter* known = shared_version_.load(std::memory_order_acquire);
  if (known) return known;
  VersionCounter* fresh =
      make_intrusive<VersionCounter>(version_.load(std::memory_order_relaxed)).release();
  if (shared_version_.compare_exchange_strong(known, fresh, std::memory_order_acq_rel))
    return fresh;
  fresh->decref();
  return known;
}

void TensorImpl::share_version_of(const TensorImpl& other) {
  VersionCounter* counter = other.shared_counter();
  counter->incref();
  if (VersionCounter* old = shared_version_.exchange(counter, std::memory_order_acq_rel))
    old->decref();
}

void TensorImpl::release_resources() {
  if (pyobj_owned && pyobj != nullptr && release_pyobj != nullptr) {
    pyobj_owned = false;
    release_pyobj(pyobj);
    pyobj = nullptr;
  }
  autograd_meta_.reset();
  base_.reset();
  storage_.reset();
}

void TensorImpl::reserve_dims(size_t ndim) {
  TORCH_CHECK(ndim <= 1024, "tensors of ", ndim, " dimensions are not supported (at most 1024)");
  // A kernel on another thread may refer to the lists of a tensor that Python knows: then they are
  // replaced. See Note [Tensors that change under a kernel].
  const bool watched = C10_UNLIKELY(pyobj != nullptr) && has_unlocked_work();
  if (ndim > dims_capacity_ || C10_UNLIKELY(watched)) {
    const size_t room = std::max<size_t>(ndim, 1);
    auto* fresh = static_cast<int64_t*>(std::malloc(2 * room * sizeof(int64_t)));
    if (!fresh) throw OutOfMemoryError("out of memory while making a tensor");
    if (dims_ != inline_dims_) retire([](void* old) { std::free(old); }, dims_);
    dims_ = fresh;
    dims_capacity_ = static_cast<uint16_t>(room);
  }
  ndim_ = static_cast<uint16_t>(ndim);
}

void TensorImpl::set_contiguous(IntArrayRef sizes) {
  numel_ = checked_numel(sizes);
  const size_t n = sizes.size();
  // `sizes` may be this tensor's own list: read it before the buffer can move.
  const bool own = n > kInlineDims || C10_UNLIKELY(pyobj != nullptr);
  DimVector copy(own ? sizes : IntArrayRef());
  if (own) sizes = copy;
  reserve_dims(n);
  if (n != 0) std::memmove(dims_, sizes.data(), n * sizeof(int64_t));
  contiguous_strides({dims_, n}, dims_ + n);
  if (C10_UNLIKELY(symbolic_)) extra_->symbolic_sizes.clear();
  symbolic_ = false;
  contiguous_ = dense_ = true;
  channels_last_contiguous_ = channels_last_strides_ = false;
  if (C10_UNLIKELY(n >= 4)) update_flags();
}

void TensorImpl::set_geometry(IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset) {
  TORCH_INTERNAL_ASSERT(sizes.size() == strides.size());
  const int64_t numel = checked_numel(sizes);
  const size_t n = sizes.size();
  const auto write = [&](IntArrayRef new_sizes, IntArrayRef new_strides) {
    reserve_dims(n);
    for (size_t d = 0; d < n; ++d) {
      dims_[d] = new_sizes[d];
      dims_[n + d] = new_strides[d];
    }
  };
  // Lists of this very tensor must be read before they are written or replaced.
  if (C10_UNLIKELY(holds(sizes) || holds(strides)))
    write(DimVector(sizes), DimVector(strides));
  else
    write(sizes, strides);
  numel_ = numel;
  storage_offset_ = storage_offset;
  // What is left in the list of a 0-dim tensor would pass for a number: see symbolic_number.
  if (C10_UNLIKELY(symbolic_)) extra_->symbolic_sizes.clear();
  symbolic_ = false;
  update_flags();
}

void TensorImpl::update_flags() {
  const IntArrayRef sizes(dims_, ndim_), strides(dims_ + ndim_, ndim_);
  const bool contiguous = is_contiguous_strides(sizes, strides);
  contiguous_ = contiguous;
  channels_last_strides_ = channels_last_contiguous_ = false;
  if (ndim_ == 4 || ndim_ == 5) {
    channels_last_strides_ = is_channels_last_strides(sizes, strides);
    bool same = true;
    int64_t expected = 1;
    auto check = [&](int dim) {
      if (sizes[dim] != 1) {
        same &= strides[dim] == expected;
        expected *= sizes[dim];
      }
    };
    check(1);
    for (int dim = ndim_ - 1; dim >= 2; --dim) check(dim);
    check(0);
    channels_last_contiguous_ = same || numel_ == 0;
  }
  dense_ =
      contiguous || channels_last_contiguous_ || c10::is_non_overlapping_and_dense(sizes, strides);
}

ExtraMeta& TensorImpl::ensure_extra() {
  if (!extra_) extra_ = std::make_unique<ExtraMeta>();
  return *extra_;
}

void TensorImpl::copy_metadata_from(const TensorImpl& from) {
  if (C10_UNLIKELY(pyobj != nullptr)) retire(storage_);
  storage_ = from.storage_;
  dtype_ = from.dtype_;
  itemsize_ = from.itemsize_;
  device_ = from.device_;
  layout_ = from.layout_;
  keys_ = from.keys_ - kAutogradKeys;
  inference_ = from.inference_;
  wrapped_number_ = from.wrapped_number_;
  if (C10_UNLIKELY(from.extra_ && from.extra_->backend_meta))
    ensure_extra().backend_meta = from.extra_->backend_meta->clone(from.extra_->backend_meta);
  if (from.symbolic_) {
    set_symbolic_geometry(from.sym_sizes(), from.sym_strides(), from.sym_storage_offset());
  } else {
    set_geometry(from.sizes(), from.strides(), from.storage_offset_);
  }
}

intrusive_ptr<TensorImpl> TensorImpl::shallow_copy() const {
  auto out = make_intrusive<TensorImpl>(Storage(), DispatchKeySet(), dtype_, device_);
  out->copy_metadata_from(*this);
  return out;
}

} // namespace c10
