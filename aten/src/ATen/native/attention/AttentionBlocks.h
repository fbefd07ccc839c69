// How attention by products (Attention.cuda.cpp) divides the scores: without a mask into one block,
// with a causal mask into blocks of queries, each of which stops at the last key it sees. At 1024
// queries that leaves out three eighths of all scores, which are neither computed nor stored.
#pragma once

#include <algorithm>
#include <cstdint>

namespace at::native {

struct AttentionBlocks {
  static constexpr int64_t kQueries = 256;
  int64_t batch, queries, keys;
  bool causal;

  struct Block {
    int64_t start, rows, keys; // queries [start, start + rows), keys [0, keys)
    int64_t offset;            // of its scores in the buffer of all
  };
  int64_t step() const { return causal ? std::min(kQueries, queries) : queries; }
  // f(block) in order.
  template <class F> void each(const F& f) const {
    int64_t offset = 0;
    for (int64_t start = 0; start < queries; start += step()) {
      const int64_t rows = std::min(step(), queries - start);
      const int64_t seen = causal ? std::min(keys, start + rows) : keys;
      f(Block{start, rows, seen, offset});
      offset += batch * rows * seen;
    }
  }
  // Elements of all scores, and of the largest block's.
  int64_t total() const {
    int64_t n = 0;
    each([&](const Block& b) { n += batch * b.rows * b.keys; });
    return n;
  }
  int64_t largest() const {
    int64_t n = 0;
    each([&](const Block& b) { n = std::max(n, batch * b.rows * b.keys); });
    return n;
  }
};

} // namespace at::native
