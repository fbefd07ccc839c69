#pragma once

// The allocator of CPU tensor data, its statistics and its failure hook. Data is 64-byte aligned.
// Three tiers, by what dominates the cost of an allocation at that size: up to 32 KiB thread-local
// free lists (SmallPool.h), above a process-wide cache of recently freed blocks (LargeBlocks.h),
// because the page faults of fresh memory cost several times an elementwise operation on it.

#include <c10/core/Allocator.h>

#include <cstdint>

namespace c10 {

/// Our own CPU allocator, whatever SetAllocator has put in its place.
C10_API Allocator* GetDefaultCPUAllocator();
/// The CPU allocator in use.
inline Allocator* GetCPUAllocator() { return GetAllocator(DeviceType::CPU); }
inline void SetCPUAllocator(Allocator* allocator) { SetAllocator(DeviceType::CPU, allocator); }

/// Bytes that can be used behind data.get(): at least as many as were asked for. 0 where the memory
/// is not from this allocator.
C10_API size_t cpu_block_bytes(const DataPtr& data);

struct CPUAllocatorStats {
  int64_t data_blocks = 0;    // live blocks of tensor data
  int64_t pooled_objects = 0; // live SmallPool objects: tensors, storages, autograd nodes
  int64_t live_bytes = 0;     // of both, as handed out
  int64_t peak_bytes = 0; // of live_bytes; small blocks are seen with a delay of 64 KiB per thread
  int64_t total_allocations = 0; // of both, since the start
  int64_t cached_bytes = 0;      // freed large blocks kept for reuse
};
C10_API CPUAllocatorStats cpu_allocator_stats();
C10_API void reset_cpu_peak_bytes();
/// Gives cached large blocks back to the system.
C10_API void empty_cpu_cache();

/// For tests: the k-th allocation from now, data blocks and SmallPool objects of all threads
/// counted together, throws c10::OutOfMemoryError; with `persist` all later ones too. k <= 0
/// switches it off.
C10_API void set_alloc_failure(int64_t k, bool persist = false);

} // namespace c10
