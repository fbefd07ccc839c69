// Life of a storage: pooled objects, memory from the device's allocator.
#include <c10/core/Storage.h>

#include <algorithm>
#include <cstring>

#include <c10/core/SmallPool.h>

namespace c10 {

StorageImpl::~StorageImpl() = default;

void* StorageImpl::operator new(size_t) { return SmallPool<sizeof(StorageImpl)>::take(); }
void StorageImpl::operator delete(void* p) noexcept { SmallPool<sizeof(StorageImpl)>::give(p); }

void StorageImpl::release_resources() { data_ = DataPtr(); }

void StorageImpl::resize(size_t nbytes) {
  TORCH_CHECK(resizable_, "Trying to resize storage that is not resizable");
  TORCH_CHECK(allocator_ != nullptr, "Trying to resize storage without an allocator");
  if (nbytes == nbytes_) return;
  if (nbytes != 0 && nbytes <= widest_ && data_.get() != nullptr) {
    nbytes_ = nbytes;
    return;
  }
  const size_t reach = std::max(nbytes, widest_);
  DataPtr fresh = nbytes == 0 ? DataPtr(nullptr, device()) : allocator_->allocate(reach);
  const size_t common = std::min(nbytes, nbytes_);
  if (common > 0 && fresh.get() != nullptr && device().is_cpu()) {
    std::memcpy(fresh.get(), data_.get(), common);
  }
  set_data(std::move(fresh), nbytes);
  widest_ = reach;
}

Storage make_storage(size_t nbytes, Device device) {
  Allocator* allocator = GetAllocator(device.type());
  return make_intrusive<StorageImpl>(nbytes, allocator->allocate(nbytes), allocator, true);
}

} // namespace c10
