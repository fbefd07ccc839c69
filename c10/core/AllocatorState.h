#pragma once

// What the tiers of the CPU allocator share: process-wide counts and the failure hook. Private to
// c10/core.

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace c10::detail {

struct AllocatorTotals {
  std::atomic<int64_t> live_bytes{0}; // large blocks, and what threads have flushed
  std::atomic<int64_t> peak_bytes{0};
  std::atomic<int64_t> large_blocks{0};
  std::atomic<int64_t> large_bytes{0}; // of large_blocks: what live_bytes has at least
  std::atomic<int64_t> large_total{0};
};
extern AllocatorTotals g_totals;

/// Adds to live_bytes and keeps the peak.
void add_live_bytes(int64_t bytes) noexcept;

/// To be called once per allocation: counts down and throws when its turn has come.
void maybe_fail(size_t bytes);

[[noreturn]] void throw_out_of_memory(size_t bytes);

/// Length of memory that lies in one block with its storage (see Storage.cpp); 0 for any other.
size_t embedded_bytes(const DataPtr& data);

struct SmallTotals {
  int64_t live[2];
  int64_t total;
  int64_t bytes;
};
/// Sums over all threads, dead ones included.
SmallTotals small_totals();

} // namespace c10::detail
