// Construction and copying of fake tensors, and the mode of a thread. See FakeTensorImpl.h.
#include <ATen/fake/FakeTensorImpl.h>

#include <c10/core/DeviceHooks.h>
#include <c10/core/SmallPool.h>

#include <typeinfo>

namespace at::fake {
namespace {
thread_local FakeMode* tls_mode = nullptr;
constexpr uint64_t kFakeBit = DispatchKeySet(DispatchKey::Fake).raw();

void activate(FakeMode* mode) {
  tls_mode = mode;
  uint64_t& included = c10::tls_dispatch_keys.included;
  included = mode ? included | kFakeBit : included & ~kFakeBit;
}
} // namespace

void FakeMode::set_active(bool on) { activate(on ? this : nullptr); }
FakeMode* active_mode() { return tls_mode; }

ActiveMode::ActiveMode(FakeMode* mode)
    : saved_(tls_mode), included_(c10::tls_dispatch_keys.included & kFakeBit) {
  activate(mode);
}
ActiveMode::~ActiveMode() {
  tls_mode = saved_;
  uint64_t& included = c10::tls_dispatch_keys.included;
  included = (included & ~kFakeBit) | included_;
}

FakeTensorImpl::FakeTensorImpl(Storage storage, DispatchKeySet keys, ScalarType dtype,
                               Device claimed, FakeModePtr mode)
    : TensorImpl(std::move(storage), keys.add(DispatchKey::Fake), dtype, claimed),
      mode_(std::move(mode)) {}

void* FakeTensorImpl::operator new(size_t) {
  return c10::SmallPool<sizeof(FakeTensorImpl)>::take();
}
void FakeTensorImpl::operator delete(void* p, size_t) noexcept {
  c10::SmallPool<sizeof(FakeTensorImpl)>::give(p);
}

void FakeTensorImpl::copy_metadata_from(const TensorImpl& from) {
  TensorImpl::copy_metadata_from(from);
  if (typeid(from) != typeid(FakeTensorImpl)) return;
  const auto& other = static_cast<const FakeTensorImpl&>(from);
  mode_ = other.mode_;
  constant_ = other.constant_;
}

c10::intrusive_ptr<TensorImpl> FakeTensorImpl::shallow_copy() const {
  auto out =
      c10::make_intrusive<FakeTensorImpl>(Storage(), DispatchKeySet(), dtype(), device(), mode_);
  out->copy_metadata_from(*this);
  return out;
}

void FakeTensorImpl::release_resources() {
  TensorImpl::release_resources();
  mode_.reset();
  constant_ = {};
}

FakeTensorImpl* as_fake(const Tensor& t) {
  TensorImpl* impl = t.unsafeGetTensorImpl();
  return impl != nullptr && typeid(*impl) == typeid(FakeTensorImpl)
             ? static_cast<FakeTensorImpl*>(impl)
             : nullptr;
}

FakeModePtr mode_of(const Tensor& t) {
  if (!is_fake(t)) return {};
  if (const FakeTensorImpl* fake = as_fake(t)) return fake->mode();
  const TensorImpl& impl = *t.unsafeGetTensorImpl();
  if (impl.is_view()) return mode_of(Tensor(impl.base()));
  return FakeModePtr::unsafe_retain(tls_mode);
}

namespace {
// Sizes, strides, offset and flags of `from`; its storage is set already.
void copy_geometry(TensorImpl& to, const TensorImpl& from) {
  if (C10_UNLIKELY(from.has_symbolic_sizes())) {
    to.set_symbolic_geometry(from.sym_sizes(), from.sym_strides(), from.sym_storage_offset());
  } else if (from.is_contiguous()) {
    to.set_contiguous(from.sizes());
    to.set_storage_offset(from.storage_offset());
    if (to.strides() != from.strides())
      to.set_geometry(from.sizes(), from.strides(), from.storage_offset());
  } else {
    to.set_geometry(from.sizes(), from.strides(), from.storage_offset());
  }
  to.set_wrapped_number(from.is_wrapped_number());
  to.set_inference(from.is_inference());
}
} // namespace

Device indexed(Device device) {
  if (device.is_cpu() || device.is_meta() || device.has_index()) return device;
  c10::DeviceHooks* hooks = c10::device_hooks(device.type());
  const c10::DeviceIndex current =
      hooks && hooks->device_count() > 0 ? hooks->current_device() : c10::DeviceIndex(0);
  return Device(device.type(), current);
}

Tensor make_fake(const Tensor& meta, Device claimed, const FakeModePtr& mode) {
  const TensorImpl& source = *meta.unsafeGetTensorImpl();
  TORCH_CHECK_NOT_IMPLEMENTED(source.layout() == kStrided, "a fake tensor of layout ",
                              source.layout(), " and dtype ", source.dtype(), " on ", claimed,
                              " is not supported");
  auto impl =
      c10::make_intrusive<FakeTensorImpl>(source.storage(), source.key_set() - c10::kAutogradKeys,
                                          source.dtype(), indexed(claimed), mode);
  copy_geometry(*impl, source);
  impl->set_key_set((source.key_set() - c10::kAutogradKeys).add(DispatchKey::Fake));
  return Tensor(std::move(impl));
}

Tensor meta_image(const Tensor& fake) {
  const TensorImpl& source = *fake.unsafeGetTensorImpl();
  const DispatchKeySet keys =
      (source.key_set() - c10::kAutogradKeys).remove(DispatchKey::Fake).remove(DispatchKey::Python);
  auto impl =
      c10::make_intrusive<TensorImpl>(source.storage(), keys, source.dtype(), Device(kMeta));
  copy_geometry(*impl, source);
  impl->set_key_set(keys);
  return Tensor(std::move(impl));
}

} // namespace at::fake
