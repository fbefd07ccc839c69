// The table of allocators, one per device kind. The CPU's entry needs no registration, so that
// static constructors may already make tensors.

#include <c10/core/Allocator.h>

#include <c10/core/CPUAllocator.h>

#include <atomic>

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
