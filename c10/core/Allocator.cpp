// The table of allocators, one per device kind. The CPU's entry needs no registration, so that
// static constructors may already make tensors.
#undef CRESSET_KERNEL_TU // all functions of an allocator are in its table
#include <c10/core/Allocator.h>

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstring>

namespace c10 {
namespace {

std::atomic<Allocator*> g_allocators[kNumDeviceTypes] = {};

std::atomic<Allocator*>& entry(DeviceType type) {
  const int index = static_cast<int>(type);
  TORCH_CHECK(index >= 0 && index < kNumDeviceTypes, "no such device type: ", index);
  return g_allocators[index];
}

} // namespace

Allocator::~Allocator() = default;

DataPtr Allocator::clone(const void* data, size_t bytes) {
  DataPtr copy = allocate(bytes);
  if (bytes > 0) copy_data(copy.get(), data, bytes);
  return copy;
}

DeleterFnPtr Allocator::raw_deleter() const { return nullptr; }
void* Allocator::raw_allocate(size_t bytes) {
  TORCH_CHECK(raw_deleter() != nullptr, "this allocator has no memory without an owner: its "
                                        "raw_deleter() is null");
  DataPtr data = allocate(bytes);
  TORCH_CHECK(data.get() == data.get_context(), "an allocator with a raw_deleter() must give "
                                                "memory that its address alone frees");
  return data.release_context();
}
void Allocator::raw_deallocate(void* data) {
  const DeleterFnPtr deleter = raw_deleter();
  TORCH_CHECK(deleter != nullptr, "this allocator cannot free a bare address: its raw_deleter() is "
                                  "null");
  deleter(data);
}
void Allocator::default_copy_data(void* dst, const void* src, size_t bytes) const {
  if (bytes != 0) std::memcpy(dst, src, bytes);
}

void SetAllocator(DeviceType type, Allocator* allocator) {
  entry(type).store(allocator, std::memory_order_release);
}

Allocator* GetAllocator(DeviceType type) {
  Allocator* allocator = entry(type).load(std::memory_order_acquire);
  if (allocator == nullptr && type == DeviceType::CPU) return GetDefaultCPUAllocator();
  TORCH_CHECK(allocator != nullptr, "Allocator for ", type, " is not set.");
  return allocator;
}

} // namespace c10
