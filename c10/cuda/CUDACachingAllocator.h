// The allocator of device memory. Freed memory is kept and handed out again in the order of the
// stream it was allocated on, without a word with the driver: a kernel queued later on that stream
// runs after those that used the memory before. Memory used on other streams too is announced with
// recordStream and comes back only when these have got past it.
//
// When the driver has no more memory, cached memory is given back and the request tried again; then
// c10::OutOfMemoryError says who holds what. Any thread may call; the calls that say so wait for
// the device.
#pragma once
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda::CUDACachingAllocator {

struct Stat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0; // all that was ever added
  int64_t freed = 0;
  void increase(int64_t amount) {
    current += amount;
    allocated += amount;
    if (current > peak) peak = current;
  }
  void decrease(int64_t amount) {
    current -= amount;
    freed += amount;
  }
};

enum class StatType { All, Small, Large };
inline constexpr int kStatTypes = 3;
struct StatArray {
  Stat values[kStatTypes];
  void increase(bool small, int64_t amount) {
    values[0].increase(amount);
    values[small ? 1 : 2].increase(amount);
  }
  void decrease(bool small, int64_t amount) {
    values[0].decrease(amount);
    values[small ? 1 : 2].decrease(amount);
  }
};

struct DeviceStats {
  StatArray allocation;           // blocks handed out
  StatArray segment;              // pieces obtained from the driver
  StatArray active;               // blocks handed out or waiting for a stream
  StatArray inactive_split;       // free blocks beside used ones
  StatArray allocated_bytes;      // as rounded
  StatArray reserved_bytes;       // obtained from the driver
  StatArray active_bytes;         //
  StatArray inactive_split_bytes; //
  StatArray requested_bytes;      // as asked for
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;
  int64_t num_sync_all_streams = 0;
  int64_t num_device_alloc = 0;
  int64_t num_device_free = 0;
};

struct BlockInfo {
  uint64_t address;
  int64_t size;
  int64_t requested;
  bool allocated;
  bool active; // allocated or waiting for a stream
};
struct SegmentInfo {
  DeviceIndex device;
  uint64_t address;
  int64_t total_size; // mapped
  uint64_t stream;
  bool large;
  bool growable;
  uint64_t pool; // zero: of no pool in particular
  std::vector<BlockInfo> blocks;
};

C10_API Allocator* get();
// On a device and its current stream; the usual way is get()->allocate on the current device.
C10_API DataPtr allocate(size_t bytes, DeviceIndex device);
// Memory without a DataPtr around it, for workspaces; to be given back with raw_delete.
C10_API void* raw_alloc_with_stream(size_t bytes, CUDAStream stream);
C10_API void raw_delete(void* memory);
// `data` is also used on `stream`. Nothing for memory of another origin.
C10_API void recordStream(const DataPtr& data, CUDAStream stream);
// Gives cached memory of all devices back to the driver. Waits for the devices.
C10_API void emptyCache();
// At most this share of the device's memory from now on.
C10_API void setMemoryFraction(double fraction, DeviceIndex device);
C10_API double getMemoryFraction(DeviceIndex device);
// {free, total} as the driver sees it.
C10_API std::pair<size_t, size_t> memory_info(DeviceIndex device);

C10_API DeviceStats getDeviceStats(DeviceIndex device);
C10_API void resetAccumulatedStats(DeviceIndex device);
C10_API void resetPeakStats(DeviceIndex device);
C10_API std::vector<SegmentInfo> snapshot();

// ---- graphs
// A recorded graph uses the same addresses at every replay, so what is allocated during a recording
// comes from a pool of its own. Pools have numbers from new_graph_pool; several graphs may share
// one.
C10_API uint64_t new_graph_pool();
// Allocations of this thread come from the pool until end_graph_recording.
C10_API void begin_graph_recording(DeviceIndex device, uint64_t pool);
C10_API void end_graph_recording(DeviceIndex device);
// Allocations of this thread come from a pool that its owner retains, zero for the usual ones.
// Returns which it was before.
C10_API uint64_t exchange_pool(DeviceIndex device, uint64_t pool);
// A graph that uses the pool exists, or is gone: memory of a pool without graphs can be given back.
C10_API void retain_graph_pool(DeviceIndex device, uint64_t pool);
C10_API void release_graph_pool(DeviceIndex device, uint64_t pool);

// For tests: the k-th allocation from now throws c10::OutOfMemoryError, with `persist` all later
// ones too. k <= 0 switches it off.
C10_API void set_alloc_failure(int64_t k, bool persist = false);

} // namespace c10::cuda::CUDACachingAllocator
