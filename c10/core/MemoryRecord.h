#pragma once

// Every allocation and release of CPU tensor data while a record is kept, with its time: what the
// profiler shows as the memory's course. Keeping one puts an allocator in front of the one in use;
// without it nothing is looked at.

#include <c10/core/Allocator.h>
#include <c10/macros/Macros.h>

#include <cstdint>
#include <vector>

namespace c10 {

struct MemoryChange {
  int64_t when = 0;    // nanoseconds of the steady clock
  const void* address; // of the block
  int64_t bytes = 0;   // as asked for; negative when released
  int64_t total = 0;   // held by blocks of the record after it
};

/// Starts a record, for all threads. False when one is being kept already.
C10_API bool start_memory_record();
/// Ends it and returns the changes in order. Releases of blocks older than the record are not in
/// it.
C10_API std::vector<MemoryChange> stop_memory_record();
/// Bytes of a block that was allocated while a record was kept; 0 for any other.
size_t recorded_block_bytes(const DataPtr& data);

} // namespace c10
