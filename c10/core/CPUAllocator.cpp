// Chooses the tier by size and carries the counts and the failure hook that all tiers share.
#undef CRESSET_KERNEL_TU // all functions of an allocator are in its table
#include <c10/core/CPUAllocator.h>

#include <c10/core/AllocatorState.h>
#include <c10/core/LargeBlocks.h>
#include <c10/core/MemoryRecord.h>
#include <c10/core/SmallPool.h>

#include <algorithm>
#include <cstring>

namespace c10 {
namespace detail {

AllocatorTotals g_totals;

namespace {
std::atomic<int64_t> g_countdown{0};
std::atomic<bool> g_persist{false};
} // namespace

void add_live_bytes(int64_t bytes) noexcept {
  const int64_t live = g_totals.live_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = g_totals.peak_bytes.load(std::memory_order_relaxed);
  while (live > peak && !g_totals.peak_bytes.compare_exchange_weak(peak, live)) {
  }
}

void maybe_fail(size_t bytes) {
  if (C10_LIKELY(!small::g_failing.load(std::memory_order_relaxed))) return;
  const int64_t left = g_countdown.fetch_sub(1) - 1;
  if (left > 0 || (left < 0 && !g_persist.load())) return;
  throw_out_of_memory(bytes);
}

void throw_out_of_memory(size_t bytes) {
  throw OutOfMemoryError(str("DefaultCPUAllocator: can't allocate memory: you tried to allocate ",
                             bytes, " bytes. Error code 12 (Cannot allocate memory)"));
}

} // namespace detail

namespace {

// A small block's context is its address with the size class in the six low bits, which the
// alignment leaves free: no header, and the deleter needs nothing else.
static_assert(small::kClasses <= static_cast<int>(small::kAlignment));

void free_small(void* ctx) {
  const uintptr_t tagged = reinterpret_cast<uintptr_t>(ctx);
  const uintptr_t index = tagged % small::kAlignment;
  small::give(reinterpret_cast<void*>(tagged - index), static_cast<int>(index), small::Use::Data);
}

void free_large(void* ctx) { detail::give_large(static_cast<detail::LargeBlock*>(ctx)); }

class CPUAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t bytes) override {
    if (C10_UNLIKELY(bytes == 0)) return DataPtr(nullptr, Device(DeviceType::CPU));
    if (C10_LIKELY(bytes <= small::kMaxBytes)) {
      const int index = small::class_of(bytes);
      char* data = static_cast<char*>(small::take(index, small::Use::Data));
      return DataPtr(data, data + index, free_small, Device(DeviceType::CPU));
    }
    detail::LargeBlock* block = detail::take_large(bytes);
    return DataPtr(block->data, block, free_large, Device(DeviceType::CPU));
  }

  void copy_data(void* dst, const void* src, size_t bytes) const override {
    if (bytes != 0) std::memcpy(dst, src, bytes);
  }
};

} // namespace

size_t cpu_block_bytes(const DataPtr& data) {
  if (data.get_deleter() == free_small) {
    return small::class_bytes(reinterpret_cast<uintptr_t>(data.get_context()) % small::kAlignment);
  }
  if (data.get_deleter() == free_large)
    return static_cast<const detail::LargeBlock*>(data.get_context())->bytes;
  if (const size_t bytes = detail::embedded_bytes(data)) return bytes;
  return recorded_block_bytes(data);
}

Allocator* GetDefaultCPUAllocator() {
  static CPUAllocator* instance = new CPUAllocator; // outlives tensors in static variables
  return instance;
}

namespace {
// Made while the library loads: a child forked in the middle of the first use would wait for ever
// for the thread that was making it.
[[maybe_unused]] Allocator* const kMadeEarly = GetDefaultCPUAllocator();
} // namespace

CPUAllocatorStats cpu_allocator_stats() {
  const detail::SmallTotals small = detail::small_totals();
  detail::AllocatorTotals& totals = detail::g_totals;
  CPUAllocatorStats stats;
  stats.data_blocks = small.live[static_cast<int>(small::Use::Data)] + totals.large_blocks.load();
  stats.pooled_objects = small.live[static_cast<int>(small::Use::Object)];
  stats.live_bytes = small.bytes + totals.live_bytes.load();
  stats.peak_bytes = std::max(totals.peak_bytes.load(), stats.live_bytes);
  stats.total_allocations = small.total + totals.large_total.load();
  stats.cached_bytes = detail::cached_large_bytes();
  return stats;
}

void reset_cpu_peak_bytes() {
  detail::g_totals.peak_bytes.store(detail::g_totals.live_bytes.load());
}

void empty_cpu_cache() { detail::flush_large_cache(); }

void set_alloc_failure(int64_t k, bool persist) {
  detail::g_countdown.store(k);
  detail::g_persist.store(persist);
  small::g_failing.store(k > 0);
}

} // namespace c10
