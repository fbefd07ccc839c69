#pragma once

// Blocks above the small pool's sizes, with a bounded cache of recently freed ones. Private to
// c10/core.

#include <cstddef>
#include <cstdint>

namespace c10::detail {

/// A large block of memory; `data` is 64-byte aligned, from 1 MiB on page-aligned.
struct LargeBlock {
  void* data = nullptr;
  size_t capacity = 0; // of the size class
  size_t bytes = 0;    // as asked for, while live
  int class_index = 0;
  // While cached: neighbours in the class's stack and in the order of freeing.
  LargeBlock* next = nullptr;
  LargeBlock* previous = nullptr;
  LargeBlock* newer = nullptr;
  LargeBlock* older = nullptr;
};

/// Throws c10::OutOfMemoryError. Any thread.
LargeBlock* take_large(size_t bytes);
void give_large(LargeBlock* block) noexcept;

int64_t cached_large_bytes();
/// Frees all cached blocks; says whether there was any.
bool flush_large_cache() noexcept;

} // namespace c10::detail
