// See PluggableAllocator.h.
#include <c10/cuda/PluggableAllocator.h>

#include <memory>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDADevice.h>
#include <c10/cuda/CUDAGuard.h>

namespace c10::cuda {
namespace detail {
std::atomic<PluggedAlloc> plugged_alloc{nullptr};
} // namespace detail

namespace {
std::atomic<PluggedFree> plugged_free{nullptr};

struct PluggedBlock {
  void* memory;
  ssize_t size;
  CUDAStream stream;
};
void give_back(void* context) {
  const std::unique_ptr<PluggedBlock> block(static_cast<PluggedBlock*>(context));
  plugged_free.load()(block->memory, block->size, block->stream.device_index(), block->stream);
}
} // namespace

void plug_allocator(PluggedAlloc alloc, PluggedFree free) {
  TORCH_CHECK(alloc != nullptr && free != nullptr, "an allocator needs two functions");
  bool used = detail::plugged_alloc.load() != nullptr;
  if (detail::loaded_driver.load() != nullptr)
    for (int i = 0; i < device_count(); ++i)
      used |= CUDACachingAllocator::getDeviceStats(static_cast<DeviceIndex>(i))
                  .allocation.values[0]
                  .allocated > 0;
  TORCH_CHECK(!used, "Can't swap an already initialized allocator");
  plugged_free.store(free);
  detail::plugged_alloc.store(alloc);
}
bool allocator_is_plugged() noexcept { return detail::plugged_alloc.load() != nullptr; }

DataPtr allocate_plugged(size_t bytes, CUDAStream stream) {
  const CUDAGuard guard(stream.device_index());
  auto block =
      std::make_unique<PluggedBlock>(PluggedBlock{nullptr, static_cast<ssize_t>(bytes), stream});
  block->memory = detail::plugged_alloc.load()(block->size, stream.device_index(), stream.stream());
  if (block->memory == nullptr)
    throw OutOfMemoryError(str("CUDA out of memory: the program's own allocator returned nothing ",
                               "for ", bytes, " bytes on device ", int(stream.device_index())));
  void* memory = block->memory;
  return DataPtr(memory, block.release(), give_back,
                 Device(DeviceType::CUDA, stream.device_index()));
}

} // namespace c10::cuda
