// Life of a storage: pooled objects, memory from the device's allocator.
//
// Note [Memory embedded in its storage]
// A tensor of few elements costs what its three blocks cost: the tensor, the storage, the memory.
// Short CPU memory therefore lies in one block with its storage, behind the object. The block goes
// when both have gone, in whichever order: a storage that exchanges its memory hands the old out
// as a DataPtr, which may outlive it, and a weak reference keeps the object after the memory was
// given up. Small enough that nobody waits for the memory of an object that is kept.
#include <c10/core/Storage.h>

#include <algorithm>
#include <atomic>
#include <new>

#include <c10/core/AllocatorState.h>
#include <c10/core/CPUAllocator.h>
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

// What stands behind the object in each block that holds a storage.
struct BlockEnd {
  std::atomic<uint32_t> parts; // of object and memory: how many are left
  int32_t size_class;
};
constexpr size_t kHead = 128; // of a block: the object and its BlockEnd
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kMostEmbedded = 0; // what is written in front of a block shall be seen
#else
constexpr size_t kMostEmbedded = 1024;
#endif
static_assert(sizeof(StorageImpl) + sizeof(BlockEnd) <= kHead && kHead % small::kAlignment == 0);

BlockEnd& end_of(void* block) {
  return *reinterpret_cast<BlockEnd*>(static_cast<char*>(block) + kHead - sizeof(BlockEnd));
}

void* take_block(size_t bytes, uint32_t parts) {
  const int size_class = small::class_of(bytes);
  void* block = small::take(size_class, small::Use::Object);
  new (&end_of(block)) BlockEnd{{parts}, size_class};
  return block;
}

void drop_part(void* block) noexcept {
  BlockEnd& end = end_of(block);
  if (end.parts.load(std::memory_order_acquire) == 1 ||
      end.parts.fetch_sub(1, std::memory_order_acq_rel) == 1)
    small::give(block, end.size_class, small::Use::Object);
}

char* embedded_in(void* block) { return static_cast<char*>(block) + kHead; }
void release_embedded(void* data) { drop_part(static_cast<char*>(data) - kHead); }

Storage storage_with_memory(size_t nbytes, Allocator* allocator) {
  void* block = take_block(kHead + nbytes, 2);
  char* data = embedded_in(block);
  auto* storage = new (block) StorageImpl(
      nbytes, DataPtr(data, data, release_embedded, Device(DeviceType::CPU)), allocator, true);
  storage->first_incref();
  return Storage::reclaim(storage);
}

} // namespace

size_t detail::embedded_bytes(const DataPtr& data) {
  if (data.get_deleter() != release_embedded) return 0;
  void* block = static_cast<char*>(data.get_context()) - kHead;
  return small::class_bytes(end_of(block).size_class) - kHead;
}

StorageImpl::~StorageImpl() {
  // Memory that is still at home goes with the object, without being asked.
  if (data_.get_deleter() != release_embedded || data_.get_context() != embedded_in(this)) return;
  data_.release_context();
  end_of(this).parts.store(1, std::memory_order_relaxed);
}

void* StorageImpl::operator new(size_t) { return take_block(kHead, 1); }
void StorageImpl::operator delete(void* p) noexcept { drop_part(p); }

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
  if (C10_LIKELY(nbytes - 1 < kMostEmbedded && allocator == GetDefaultCPUAllocator()))
    return storage_with_memory(nbytes, allocator);
  return make_intrusive<StorageImpl>(nbytes, allocate_on(allocator, nbytes, device), allocator,
                                     true);
}

} // namespace c10
