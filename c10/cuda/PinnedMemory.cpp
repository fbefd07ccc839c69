// The cache of page-locked blocks, by powers of two. See PinnedMemory.h.
#undef CRESSET_KERNEL_TU // all functions of an allocator are in its table
#include <c10/cuda/PinnedMemory.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>

namespace c10::cuda {
namespace {

struct HostBlock {
  void* memory = nullptr;
  int order = 0; // 2^order bytes
  int pending = 0;
  std::vector<CUDAStream> used_by;
};

constexpr int kSmallestOrder = 9;
constexpr int kOrders = 48;

struct HostPool {
  std::mutex mutex;
  std::vector<HostBlock*> spare[kOrders];
  std::deque<std::pair<CUDAEvent, HostBlock*>> waiting;
  PinnedStats stats;

  HostBlock* take(int order);
  void give(HostBlock* block) noexcept;
  void collect(bool wait);
  void empty();
  void count_taken(int64_t bytes) {
    stats.live_bytes += bytes;
    stats.allocated_bytes += bytes;
    stats.peak_live_bytes = std::max(stats.peak_live_bytes, stats.live_bytes);
  }
};

HostPool& pool() {
  static HostPool* instance = new HostPool; // outlives tensors in static variables
  return *instance;
}

int64_t bytes_of(const HostBlock& block) { return int64_t(1) << block.order; }

void HostPool::collect(bool wait) {
  for (size_t left = waiting.size(); left > 0; --left) {
    auto item = std::move(waiting.front());
    waiting.pop_front();
    if (wait) {
      check(driver().cuEventSynchronize(item.first.event()), "cuEventSynchronize");
    } else if (!item.first.query()) {
      waiting.push_back(std::move(item));
      continue;
    }
    HostBlock* block = item.second;
    if (--block->pending > 0) continue;
    stats.cached_bytes += bytes_of(*block);
    spare[block->order].push_back(block);
  }
}

HostBlock* HostPool::take(int order) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!waiting.empty()) collect(false);
  if (!spare[order].empty()) {
    HostBlock* block = spare[order].back();
    spare[order].pop_back();
    stats.cached_bytes -= bytes_of(*block);
    count_taken(bytes_of(*block));
    return block;
  }
  const CUDAGuard guard(current_device());
  void* memory = nullptr;
  const size_t bytes = size_t(1) << order;
  const CUresult result =
      driver().cuMemHostAlloc(&memory, bytes, kHostAllocPortable | kHostAllocDeviceMap);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    throw OutOfMemoryError(
        str("CUDA error: out of memory: could not page-lock ", bytes, " bytes of host memory"));
  }
  check(result, "cuMemHostAlloc");
  auto* block = new HostBlock;
  block->memory = memory;
  block->order = order;
  count_taken(bytes_of(*block));
  return block;
}

void HostPool::give(HostBlock* block) noexcept {
  // In a forked child the lock may be held by a thread that is not there.
  if (detail::loaded_driver.load(std::memory_order_acquire) == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex);
  stats.live_bytes -= bytes_of(*block);
  try {
    for (const CUDAStream& stream : block->used_by) {
      CUDAEvent event;
      event.record(stream);
      waiting.emplace_back(std::move(event), block);
      ++block->pending;
    }
    block->used_by.clear();
    if (block->pending > 0) return;
    spare[block->order].push_back(block);
    stats.cached_bytes += bytes_of(*block);
  } catch (...) {
    // Without an event nothing says when the block is free: it is never handed out again.
  }
}

void HostPool::empty() {
  std::lock_guard<std::mutex> lock(mutex);
  if (detail::loaded_driver.load() == nullptr) return;
  collect(true);
  for (auto& blocks : spare) {
    for (HostBlock* block : blocks) {
      driver().cuMemFreeHost(block->memory);
      stats.cached_bytes -= bytes_of(*block);
      delete block;
    }
    blocks.clear();
  }
}

void delete_pinned(void* context) { pool().give(static_cast<HostBlock*>(context)); }

class PinnedAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t bytes) override {
    const Device cpu(DeviceType::CPU);
    if (bytes == 0) {
      driver();
      return DataPtr(nullptr, cpu);
    }
    int order = kSmallestOrder;
    while (order < kOrders && (size_t(1) << order) < bytes) ++order;
    if (order == kOrders) {
      throw OutOfMemoryError(str("could not page-lock ", bytes, " bytes of host memory"));
    }
    HostBlock* block = pool().take(order);
    return DataPtr(block->memory, block, delete_pinned, cpu);
  }
  void copy_data(void* dst, const void* src, size_t bytes) const override {
    std::memcpy(dst, src, bytes);
  }
};

} // namespace

Allocator* pinned_allocator() {
  static PinnedAllocator* instance = new PinnedAllocator;
  return instance;
}

bool is_pinned(const void* address) {
  const DriverApi* api = detail::loaded_driver.load(std::memory_order_acquire);
  if (api == nullptr || address == nullptr) return false;
  bool any = false;
  for (DeviceIndex i = 0; i < kMaxDevices && !any; ++i) any = has_primary_context(i);
  if (!any) return false;
  unsigned type = 0;
  const CUresult result = api->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                     reinterpret_cast<CUdeviceptr>(address));
  return result == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST;
}

void record_pinned_use(const DataPtr& data, CUDAStream stream) {
  if (data.get_deleter() != &delete_pinned || data.get_context() == nullptr) return;
  auto* block = static_cast<HostBlock*>(data.get_context());
  std::lock_guard<std::mutex> lock(pool().mutex);
  if (std::find(block->used_by.begin(), block->used_by.end(), stream) == block->used_by.end())
    block->used_by.push_back(stream);
}

void empty_pinned_cache() { pool().empty(); }

void reset_pinned_stats(bool peak) {
  std::lock_guard<std::mutex> lock(pool().mutex);
  PinnedStats& stats = pool().stats;
  if (peak)
    stats.peak_live_bytes = stats.live_bytes;
  else
    stats.allocated_bytes = 0;
}
PinnedStats pinned_stats() {
  std::lock_guard<std::mutex> lock(pool().mutex);
  return pool().stats;
}

} // namespace c10::cuda
