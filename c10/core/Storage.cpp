// Life of a storage: pooled objects, memory from the device's allocator.
#include <c10/core/Storage.h>

#include <algorithm>

#include <c10/core/DeviceHooks.h>
#include <c10/core/MemoryExport.h>
#include <c10/core/SmallPool.h>

namespace c10 {
namespace {

// On a device there may be several of, the allocator alone does not say on which.
DataPtr allocate_on(Allocator* allocator, size_t nbytes, Device device) {
  if (C10_LIKELY(device.is_cpu())) return allocator->allocate(nbytes);
  DeviceHooks* hooks = device_hooks(device.type());
  return hooks != nullptr ? hooks->allocate(nbytes, device) : allocator->allocate(nbytes);
}

} // namespace

StorageImpl::~StorageImpl() = default;

void* StorageImpl::operator new(size_t) { return SmallPool<sizeof(StorageImpl)>::take(); }
void StorageImpl::operator delete(void* p) noexcept { SmallPool<sizeof(StorageImpl)>::give(p); }

void StorageImpl::release_resources() { data_ = DataPtr(); }

void StorageImpl::resize(size_t nbytes) {
  TORCH_CHECK(resizable_, "Trying to resize storage that is not resizable");
  if (device().is_meta()) {
    nbytes_ = nbytes;
    symbolic_.reset();
    return;
  }
  TORCH_CHECK(allocator_ != nullptr, "Trying to resize storage without an allocator");
  if (nbytes == nbytes_) return;
  if (nbytes != 0 && nbytes <= widest_ && data_.get() != nullptr) {
    nbytes_ = nbytes;
    return;
  }
  TORCH_CHECK(nbytes == 0 || !is_immovable(data_),
              "Trying to resize storage that is not "
              "resizable: its memory is shared with other processes, which would not see it grow");
  const size_t reach = std::max(nbytes, widest_);
  DataPtr fresh =
      nbytes == 0 ? DataPtr(nullptr, device()) : allocate_on(allocator_, reach, device());
  const size_t common = std::min(nbytes, nbytes_);
  if (common > 0 && fresh.get() != nullptr) {
    DeviceHooks* hooks = device().is_cpu() ? nullptr : device_hooks(device().type());
    if (hooks != nullptr)
      hooks->copy_bytes(fresh.get(), device(), data_.get(), device(), common);
    else
      allocator_->copy_data(fresh.get(), data_.get(), common);
  }
  retire_memory(this, set_data(std::move(fresh), nbytes));
  widest_ = reach;
}

void StorageImpl::set_sym_nbytes(SymInt nbytes) {
  symbolic_.reset();
  nbytes_ = static_cast<size_t>(nbytes.hint().value_or(0));
  if (nbytes.is_symbolic())
    symbolic_.reset(new SymbolicLength{nbytes, symbolic_node(nbytes.raw())->owner()});
}

Storage make_storage(size_t nbytes, Device device) {
  if (C10_UNLIKELY(device.is_meta()))
    return make_intrusive<StorageImpl>(nbytes, DataPtr(nullptr, device), nullptr, true);
  Allocator* allocator = GetAllocator(device.type());
  return make_intrusive<StorageImpl>(nbytes, allocate_on(allocator, nbytes, device), allocator,
                                     true);
}

} // namespace c10
