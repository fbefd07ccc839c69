// Scratch memory for packed operands and accumulators. Each thread keeps a few freed blocks of
// moderate size: fresh pages cost about as much as packing into them.
#pragma once

#include <cstddef>

namespace at::native::gemm {

// A block of at least `bytes` bytes (none for 0), aligned to 64, contents undefined; given back on
// destruction, which must happen on the thread that made it. Throws std::bad_alloc.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(size_t bytes);
  ~Scratch();
  Scratch(Scratch&& other) noexcept : block_(other.block_), bytes_(other.bytes_) {
    other.block_ = nullptr;
  }
  Scratch& operator=(Scratch&&) = delete;

  char* get() const { return block_; }

 private:
  char* block_ = nullptr;
  size_t bytes_ = 0;
};

} // namespace at::native::gemm
