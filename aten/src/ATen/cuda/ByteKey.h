// Hash and equality of plain descriptions (a product, a convolution, a transform) by their bytes,
// for the tables in which plans of the vendor's libraries are kept. A description has no padding,
// and members that it does not use are zero.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace at::cuda {

template <class Key> uint64_t hash_bytes(const Key& key) {
  static_assert(std::has_unique_object_representations_v<Key> && sizeof(Key) % 8 == 0,
                "whole words without padding");
  uint64_t words[sizeof(Key) / 8];
  std::memcpy(words, &key, sizeof key);
  uint64_t h = 0x9e3779b97f4a7c15ull;
  for (const uint64_t w : words) h = (h ^ w) * 0xff51afd7ed558ccdull, h ^= h >> 32;
  return h;
}

struct ByteHash {
  template <class Key> size_t operator()(const Key& key) const { return hash_bytes(key); }
};
struct SameBytes {
  template <class Key> bool operator()(const Key& a, const Key& b) const {
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
};

} // namespace at::cuda
