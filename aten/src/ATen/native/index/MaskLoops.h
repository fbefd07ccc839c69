// Boolean masks: filling through one, and finding where a tensor is true.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace at::native {

// self[mask] = value, a 0-dim CPU tensor of self's dtype; mask (bool) broadcasts to self.
Tensor& masked_fill_same_dtype_(Tensor& self, const Tensor& mask, const Tensor& value);

// How many of n bytes (each 0 or not) are true.
int64_t count_true(const uint8_t* mask, int64_t n);

// A range cut into fixed chunks with the number of true elements before each: what lets every chunk
// write its part of a compacted result on its own.
struct TrueCounts {
  static constexpr int64_t kGrain = 32768;
  int64_t chunk;               // elements per chunk
  std::vector<int64_t> before; // one per chunk, then the total
  int64_t total() const { return before.back(); }
  TrueCounts(const uint8_t* mask, int64_t n);
};

// t != 0 as contiguous bytes; the tensor itself where it is a contiguous bool tensor.
Tensor true_bytes(const Tensor& t);

} // namespace at::native
