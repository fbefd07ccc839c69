// One allocator per device: pools by stream, statistics, memory waiting for other streams, and what
// to do when there is no more. See CUDACachingAllocator.h.
#undef CRESSET_KERNEL_TU // all functions of an allocator are in its table
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include <c10/cuda/AllocatorReport.h>
#include <c10/cuda/BlockPool.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/PluggableAllocator.h>

namespace c10::cuda::CUDACachingAllocator {
namespace {

// Settings from the environment, read once.
struct Settings {
  bool caching = true;
  bool growable = true;
  Settings() {
    const char* off = std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
    caching = off == nullptr || off[0] == '\0' || off[0] == '0';
    for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
      const char* text = std::getenv(name);
      if (text == nullptr) continue;
      if (std::string_view(text).find("expandable_segments:False") != std::string_view::npos)
        growable = false;
    }
  }
};
const Settings& settings() {
  static const Settings read;
  return read;
}

std::atomic<int64_t> failure_countdown{0};
std::atomic<bool> failure_persists{false};
std::atomic<bool> failing{false};

bool must_fail() {
  if (C10_LIKELY(!failing.load(std::memory_order_relaxed))) return false;
  const int64_t left = failure_countdown.fetch_sub(1) - 1;
  return left == 0 || (left < 0 && failure_persists.load());
}

class DeviceAllocator {
 public:
  explicit DeviceAllocator(DeviceIndex device)
      : device_(device),
        growable_(settings().growable && device_properties(device).virtual_memory) {}

  Block* allocate(size_t bytes, CUstream stream);
  void free(Block* block) noexcept;
  void record_stream(Block* block, CUstream stream);
  void empty_cache();
  void set_fraction(double fraction);
  double fraction();
  DeviceStats stats();
  template <class F> void update_stats(F&& change) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (StatArray* array : all_stats())
      for (Stat& stat : array->values) change(stat);
  }
  void reset_counts();
  void snapshot(std::vector<SegmentInfo>& out);
  void end_recording();
  void count_graph(uint64_t pool, int change);

 private:
  // The pools of a stream; during a recording those of the graph on it.
  struct StreamPools {
    StreamPools(DeviceIndex device, CUstream stream, uint64_t graph, bool growable)
        : graph(graph), small(device, stream, graph, true, growable),
          large(device, stream, graph, false, growable) {}
    const uint64_t graph;
    BlockPool small, large;
  };
  using PoolKey = std::pair<CUstream, uint64_t>;
  struct Waiting {
    CUDAEvent event;
    Block* block;
  };

  BlockPool& pool_for(size_t size, CUstream stream);
  Block* allocate_uncached(size_t bytes);
  Block* find_or_grow(BlockPool& pool, size_t size);
  bool grow(BlockPool& pool, size_t size);
  void collect_waiting(bool wait);
  void release_cached();
  void give_back(Block* block);
  void count_change(bool small, const PoolChange& change);
  [[noreturn]] void throw_out_of_memory(size_t bytes);
  std::vector<StatArray*> all_stats();
  bool in_use_by_graph(const StreamPools& pools) const {
    return pools.graph != 0 && graphs_.count(pools.graph) != 0;
  }
  template <class F> void for_each_pool(F&& visit) {
    for (auto& entry : pools_) {
      visit(entry.second->small);
      visit(entry.second->large);
    }
  }

  const DeviceIndex device_;
  const bool growable_;
  std::mutex mutex_;
  std::map<PoolKey, std::unique_ptr<StreamPools>> pools_;
  StreamPools* recent_ = nullptr; // of recent_stream_
  CUstream recent_stream_ = nullptr;
  std::map<uint64_t, int> graphs_; // how many graphs use each pool
  std::vector<Block*> deferred_;   // freed during a recording, when no event may be recorded
  std::deque<Waiting> waiting_;
  size_t allowed_ = SIZE_MAX;
  double fraction_ = 1.0;
  DeviceStats stats_;
};

DeviceAllocator& allocator_of(DeviceIndex device) {
  static std::atomic<DeviceAllocator*> all[kMaxDevices] = {};
  DeviceAllocator* known = all[device].load(std::memory_order_acquire);
  if (C10_LIKELY(known != nullptr)) return *known;
  auto fresh = std::make_unique<DeviceAllocator>(device);
  if (all[device].compare_exchange_strong(known, fresh.get())) return *fresh.release();
  return *known;
}

BlockPool& DeviceAllocator::pool_for(size_t size, CUstream stream) {
  const uint64_t graph = detail::tls_state.graph_pool;
  if (C10_UNLIKELY(recent_ == nullptr || recent_stream_ != stream || recent_->graph != graph)) {
    std::unique_ptr<StreamPools>& entry = pools_[PoolKey(stream, graph)];
    if (!entry) entry = std::make_unique<StreamPools>(device_, stream, graph, growable_);
    recent_ = entry.get();
    recent_stream_ = stream;
  }
  return size <= BlockPool::kSmallLimit ? recent_->small : recent_->large;
}

Block* DeviceAllocator::allocate(size_t bytes, CUstream stream) {
  if (C10_UNLIKELY(bytes > SIZE_MAX / 4)) throw_out_of_memory(bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  if (C10_UNLIKELY(must_fail())) throw_out_of_memory(bytes);
  if (C10_UNLIKELY(!settings().caching)) return allocate_uncached(bytes);
  if (C10_UNLIKELY(!waiting_.empty() && detail::tls_state.graph_pool == 0)) collect_waiting(false);
  const size_t size = (bytes + BlockPool::kUnit - 1) / BlockPool::kUnit * BlockPool::kUnit;
  BlockPool& pool = pool_for(size, stream);
  Block* block = pool.take(size);
  if (C10_UNLIKELY(block == nullptr)) {
    block = find_or_grow(pool, size);
    if (block == nullptr) throw_out_of_memory(bytes);
  }
  block->requested = bytes;
  const int64_t given = static_cast<int64_t>(block->size);
  stats_.allocation.increase(pool.small, 1);
  stats_.active.increase(pool.small, 1);
  stats_.allocated_bytes.increase(pool.small, given);
  stats_.active_bytes.increase(pool.small, given);
  stats_.requested_bytes.increase(pool.small, static_cast<int64_t>(bytes));
  return block;
}

Block* DeviceAllocator::allocate_uncached(size_t bytes) {
  const CUDAGuard guard(device_);
  CUdeviceptr ptr = 0;
  const CUresult result = driver().cuMemAlloc(&ptr, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw_out_of_memory(bytes);
  check(result, "cuMemAlloc");
  Block* block = new_block();
  block->ptr = ptr;
  block->size = block->requested = bytes;
  block->device = device_;
  block->allocated = true;
  return block;
}

// Lets this thread ask the driver for memory although a stream is being recorded.
class RelaxedRecording {
 public:
  RelaxedRecording() { exchange(); }
  ~RelaxedRecording() { exchange(); }
  RelaxedRecording(const RelaxedRecording&) = delete;
  RelaxedRecording& operator=(const RelaxedRecording&) = delete;

 private:
  void exchange() {
    if (detail::tls_state.graph_pool != 0) driver().cuThreadExchangeStreamCaptureMode(&mode_);
  }
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// The slow way: more from the driver; else give cached memory back and try once more.
Block* DeviceAllocator::find_or_grow(BlockPool& pool, size_t size) {
  const CUDAGuard guard(device_);
  const RelaxedRecording relaxed;
  if (grow(pool, size)) return pool.take(size);
  if (detail::tls_state.graph_pool != 0) return nullptr; // nothing may be waited for
  ++stats_.num_alloc_retries;
  collect_waiting(true);
  if (Block* block = pool.take(size)) return block;
  release_cached();
  return grow(pool, size) ? pool.take(size) : nullptr;
}

bool DeviceAllocator::grow(BlockPool& pool, size_t size) {
  const int64_t reserved = stats_.reserved_bytes.values[0].current;
  const size_t limit =
      allowed_ == SIZE_MAX ? SIZE_MAX : allowed_ - std::min(allowed_, size_t(reserved));
  PoolChange change;
  const bool grown = pool.grow(size, limit, change);
  count_change(pool.small, change);
  return grown;
}

void DeviceAllocator::count_change(bool small, const PoolChange& change) {
  if (change.chunks > 0) {
    stats_.segment.increase(small, change.chunks);
    stats_.reserved_bytes.increase(small, change.bytes);
    stats_.num_device_alloc += change.chunks;
  } else if (change.chunks < 0) {
    stats_.segment.decrease(small, -change.chunks);
    stats_.reserved_bytes.decrease(small, -change.bytes);
    stats_.num_device_free -= change.chunks;
  }
}

void DeviceAllocator::give_back(Block* block) {
  BlockPool& pool = *block->pool;
  stats_.active.decrease(pool.small, 1);
  stats_.active_bytes.decrease(pool.small, static_cast<int64_t>(block->size));
  pool.give(block);
}

void DeviceAllocator::free(Block* block) noexcept {
  // In a forked child the memory is not there, and the lock may be held by a thread that is not.
  const DriverApi* api = detail::loaded_driver.load(std::memory_order_acquire);
  if (C10_UNLIKELY(api == nullptr)) return;
  if (C10_UNLIKELY(block->pool == nullptr)) {
    api->cuMemFree(block->ptr);
    delete_block(block);
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const bool small = block->pool->small;
  stats_.allocation.decrease(small, 1);
  stats_.allocated_bytes.decrease(small, static_cast<int64_t>(block->size));
  stats_.requested_bytes.decrease(small, static_cast<int64_t>(block->requested));
  if (C10_UNLIKELY(block->used_by != nullptr && detail::tls_state.graph_pool != 0)) {
    ++block->pending;
    block->allocated = false;
    deferred_.push_back(block);
    return;
  }
  if (C10_UNLIKELY(block->used_by != nullptr)) {
    const auto streams = std::move(block->used_by);
    try {
      for (CUstream stream : *streams) {
        CUDAEvent event;
        event.record(CUDAStream(device_, stream));
        waiting_.push_back({std::move(event), block});
        ++block->pending;
      }
    } catch (...) {
      // Without an event nothing says when the block is free: it stays in use for ever.
      ++block->pending;
    }
    if (block->pending > 0) {
      block->allocated = false;
      return;
    }
  }
  give_back(block);
}

void DeviceAllocator::record_stream(Block* block, CUstream stream) {
  if (block->pool == nullptr || block->pool->stream == stream) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!block->used_by) block->used_by = std::make_unique<std::vector<CUstream>>();
  std::vector<CUstream>& streams = *block->used_by;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

void DeviceAllocator::collect_waiting(bool wait) {
  for (size_t left = waiting_.size(); left > 0; --left) {
    Waiting item = std::move(waiting_.front());
    waiting_.pop_front();
    if (wait) {
      check(driver().cuEventSynchronize(item.event.event()), "cuEventSynchronize");
    } else if (!item.event.query()) {
      waiting_.push_back(std::move(item));
      continue;
    }
    if (--item.block->pending == 0) give_back(item.block);
  }
}

void DeviceAllocator::release_cached() {
  CRESSET_CUDA_CHECK(cuCtxSynchronize);
  ++stats_.num_sync_all_streams;
  for (auto& entry : pools_) {
    if (in_use_by_graph(*entry.second)) continue;
    for (BlockPool* pool : {&entry.second->small, &entry.second->large}) {
      PoolChange change;
      pool->shrink(change);
      count_change(pool->small, change);
    }
  }
}

// Streams that used what was freed during the recording are past it by the next event.
void DeviceAllocator::end_recording() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Block* block : deferred_) {
    const auto streams = std::move(block->used_by);
    for (CUstream stream : *streams) {
      CUDAEvent event;
      event.record(CUDAStream(device_, stream));
      waiting_.push_back({std::move(event), block});
      ++block->pending;
    }
    --block->pending;
  }
  deferred_.clear();
}

void DeviceAllocator::count_graph(uint64_t pool, int change) {
  std::lock_guard<std::mutex> lock(mutex_);
  if ((graphs_[pool] += change) <= 0) graphs_.erase(pool);
}

void DeviceAllocator::empty_cache() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (pools_.empty()) return;
  const CUDAGuard guard(device_);
  collect_waiting(true);
  release_cached();
}

void DeviceAllocator::set_fraction(double fraction) {
  std::lock_guard<std::mutex> lock(mutex_);
  fraction_ = fraction;
  const double total = static_cast<double>(device_properties(device_).total_memory);
  allowed_ = fraction >= 1.0 ? SIZE_MAX : static_cast<size_t>(total * fraction);
}
double DeviceAllocator::fraction() {
  std::lock_guard<std::mutex> lock(mutex_);
  return fraction_;
}

// ---- statistics ---------------------------------------------------------------------------------

std::vector<StatArray*> DeviceAllocator::all_stats() {
  return {&stats_.allocation,      &stats_.segment,
          &stats_.active,          &stats_.inactive_split,
          &stats_.allocated_bytes, &stats_.reserved_bytes,
          &stats_.active_bytes,    &stats_.inactive_split_bytes,
          &stats_.requested_bytes};
}

// Free blocks beside used ones are counted when asked for, not at every allocation.
DeviceStats DeviceAllocator::stats() {
  std::lock_guard<std::mutex> lock(mutex_);
  int64_t count[2] = {}, bytes[2] = {};
  for_each_pool([&](const BlockPool& pool) {
    pool.for_each_segment([&](const Segment& segment) {
      for (const Block* b = segment.first; b != nullptr; b = b->next) {
        const bool free = b->mapped && b->pending == 0 && (!b->allocated || b->quick);
        if (!free || (b->prev == nullptr && b->next == nullptr)) continue;
        ++count[!pool.small];
        bytes[!pool.small] += static_cast<int64_t>(b->size);
      }
    });
  });
  const auto observe = [](StatArray& array, const int64_t* now) {
    const int64_t values[kStatTypes] = {now[0] + now[1], now[0], now[1]};
    for (int i = 0; i < kStatTypes; ++i) {
      array.values[i].current = values[i];
      array.values[i].peak = std::max(array.values[i].peak, values[i]);
    }
  };
  observe(stats_.inactive_split, count);
  observe(stats_.inactive_split_bytes, bytes);
  return stats_;
}

void DeviceAllocator::reset_counts() {
  update_stats([](Stat& stat) { stat.allocated = stat.freed = 0; });
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.num_alloc_retries = stats_.num_ooms = stats_.num_sync_all_streams = 0;
  stats_.num_device_alloc = stats_.num_device_free = 0;
}

void DeviceAllocator::snapshot(std::vector<SegmentInfo>& out) {
  std::lock_guard<std::mutex> lock(mutex_);
  for_each_pool([&](const BlockPool& pool) {
    pool.for_each_segment([&](const Segment& segment) {
      SegmentInfo info = {
          device_,     segment.base,     0,          reinterpret_cast<uint64_t>(pool.stream),
          !pool.small, segment.growable, pool.graph, {}};
      for (const Segment::Chunk& chunk : segment.chunks)
        info.total_size += static_cast<int64_t>(chunk.size);
      for (const Block* b = segment.first; b != nullptr; b = b->next) {
        if (!b->mapped) continue;
        const bool allocated = b->allocated && !b->quick;
        info.blocks.push_back({b->ptr, static_cast<int64_t>(b->size),
                               static_cast<int64_t>(b->requested), allocated,
                               allocated || b->pending > 0});
      }
      if (info.total_size > 0) out.push_back(std::move(info));
    });
  });
}

// The caller holds the lock, except for absurd sizes, which look at nothing of ours.
void DeviceAllocator::throw_out_of_memory(size_t bytes) {
  OutOfMemoryReport report;
  report.requested = bytes;
  report.device = device_;
  report.allowed_fraction = fraction_;
  if (bytes <= SIZE_MAX / 4) {
    ++stats_.num_ooms;
    report.allocated = stats_.allocated_bytes.values[0].current;
    report.reserved = stats_.reserved_bytes.values[0].current;
    for_each_pool([&](const BlockPool& pool) {
      pool.for_each_segment([&](const Segment& segment) {
        for (const Block* b = segment.first; b != nullptr; b = b->next)
          if (b->mapped && b->allocated && !b->quick) report.add_live(b->size);
      });
    });
  }
  throw OutOfMemoryError(report.text());
}

// ---- the interface ------------------------------------------------------------------------------

void delete_data(void* context) {
  Block* block = static_cast<Block*>(context);
  allocator_of(block->device).free(block);
}

class CachingAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t bytes) override {
    return CUDACachingAllocator::allocate(bytes, current_device());
  }
  void copy_data(void* dst, const void* src, size_t bytes) const override {
    const CUDAGuard guard(current_device());
    CRESSET_CUDA_CHECK(cuMemcpyDtoDAsync, reinterpret_cast<CUdeviceptr>(dst),
                       reinterpret_cast<CUdeviceptr>(src), bytes, getCurrentCUDAStream());
  }
};

struct RawBlocks {
  std::mutex mutex;
  std::unordered_map<void*, Block*> blocks;
};
RawBlocks& raw_blocks() {
  static RawBlocks* all = new RawBlocks;
  return *all;
}

} // namespace

Allocator* get() {
  static CachingAllocator* instance = new CachingAllocator; // outlives tensors in static variables
  return instance;
}

DataPtr allocate(size_t bytes, DeviceIndex device) {
  const Device place(DeviceType::CUDA, device);
  if (C10_UNLIKELY(bytes == 0)) {
    check_device(device);
    return DataPtr(nullptr, place);
  }
  if (C10_UNLIKELY(detail::loaded_driver.load(std::memory_order_relaxed) == nullptr ||
                   static_cast<unsigned>(device) >= kMaxDevices))
    check_device(device);
  if (C10_UNLIKELY(detail::plugged_alloc.load(std::memory_order_relaxed) != nullptr))
    return allocate_plugged(bytes, getCurrentCUDAStream(device));
  Block* block = allocator_of(device).allocate(bytes, getCurrentCUDAStream(device));
  return DataPtr(reinterpret_cast<void*>(block->ptr), block, delete_data, place);
}

void* raw_alloc_with_stream(size_t bytes, CUDAStream stream) {
  if (bytes == 0) return nullptr;
  check_device(stream.device_index());
  Block* block = allocator_of(stream.device_index()).allocate(bytes, stream);
  void* memory = reinterpret_cast<void*>(block->ptr);
  RawBlocks& raw = raw_blocks();
  std::lock_guard<std::mutex> lock(raw.mutex);
  raw.blocks.emplace(memory, block);
  return memory;
}

void raw_delete(void* memory) {
  if (memory == nullptr) return;
  Block* block = nullptr;
  {
    RawBlocks& raw = raw_blocks();
    std::lock_guard<std::mutex> lock(raw.mutex);
    const auto found = raw.blocks.find(memory);
    TORCH_CHECK_VALUE(found != raw.blocks.end(), "invalid device pointer: not allocated here");
    block = found->second;
    raw.blocks.erase(found);
  }
  delete_data(block);
}

void recordStream(const DataPtr& data, CUDAStream stream) {
  if (data.get_deleter() != &delete_data || data.get_context() == nullptr) return;
  Block* block = static_cast<Block*>(data.get_context());
  allocator_of(block->device).record_stream(block, stream);
}

void emptyCache() {
  if (detail::loaded_driver.load() == nullptr) return;
  for (int i = 0; i < device_count(); ++i)
    if (has_primary_context(static_cast<DeviceIndex>(i)))
      allocator_of(static_cast<DeviceIndex>(i)).empty_cache();
}

void setMemoryFraction(double fraction, DeviceIndex device) {
  TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "Invalid fraction value: ", fraction,
                    ". Allowed range: 0~1");
  check_device(device);
  allocator_of(device).set_fraction(fraction);
}
double getMemoryFraction(DeviceIndex device) {
  check_device(device);
  return allocator_of(device).fraction();
}

std::pair<size_t, size_t> memory_info(DeviceIndex device) {
  const CUDAGuard guard(device);
  size_t free = 0, total = 0;
  CRESSET_CUDA_CHECK(cuMemGetInfo, &free, &total);
  return {free, total};
}

DeviceStats getDeviceStats(DeviceIndex device) {
  check_device(device);
  return allocator_of(device).stats();
}
void resetAccumulatedStats(DeviceIndex device) {
  check_device(device);
  allocator_of(device).reset_counts();
}
void resetPeakStats(DeviceIndex device) {
  check_device(device);
  allocator_of(device).update_stats([](Stat& stat) { stat.peak = stat.current; });
}

std::vector<SegmentInfo> snapshot() {
  std::vector<SegmentInfo> out;
  if (detail::loaded_driver.load() == nullptr) return out;
  for (int i = 0; i < device_count(); ++i) allocator_of(static_cast<DeviceIndex>(i)).snapshot(out);
  return out;
}

uint64_t new_graph_pool() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1);
}
void begin_graph_recording(DeviceIndex device, uint64_t pool) {
  TORCH_CHECK(detail::tls_state.graph_pool == 0, "a CUDA graph is already being recorded here");
  retain_graph_pool(device, pool);
  detail::tls_state.graph_pool = pool;
}
uint64_t exchange_pool(DeviceIndex device, uint64_t pool) {
  check_device(device);
  const uint64_t before = detail::tls_state.graph_pool;
  detail::tls_state.graph_pool = pool;
  if (pool == 0) allocator_of(device).end_recording();
  return before;
}
void end_graph_recording(DeviceIndex device) {
  detail::tls_state.graph_pool = 0;
  allocator_of(device).end_recording();
}
void retain_graph_pool(DeviceIndex device, uint64_t pool) {
  check_device(device);
  allocator_of(device).count_graph(pool, 1);
}
void release_graph_pool(DeviceIndex device, uint64_t pool) {
  allocator_of(device).count_graph(pool, -1);
}

void set_alloc_failure(int64_t k, bool persist) {
  failure_countdown.store(k);
  failure_persists.store(persist);
  failing.store(k > 0);
}

} // namespace c10::cuda::CUDACachingAllocator
