// Attention whose scores pass through a function of the score and its place, and whose mask lies in
// blocks, without ever holding all scores: they are computed a tile at a time, handed to the
// function, and used up (Note [Scores by keys] in TiledAttention.cpp). Blocks that the mask leaves
// out are not computed. The function is given by who calls this, compiled for whole tiles
// (torch/csrc/inductor/flex.h).
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace at::native::flex {

// By block of `rows` queries: how many blocks of `columns` keys it meets, and which. In those of
// the first lists the mask is asked for every score, in those of the second (may be undefined) all
// are allowed. Each (1 or batch) x (1 or heads) x block rows (x block columns), int32, contiguous.
struct BlockLists {
  Tensor count, indices, full_count, full_indices;
  int64_t rows, columns;
};

// Keys [begin, end) that queries of a block meet.
struct Span {
  int64_t begin, end;
  bool partial; // the mask is asked
};
// Those of one block row, in order, neighbours of one kind joined.
std::vector<Span> spans_of(const BlockLists& lists, int64_t batch, int64_t head, int64_t row,
                           int64_t keys);

// Some scores and where they are. In tiles of many queries a row is a key and a column a query, and
// `head` is one number; in tiles of few a row is a query with its head, and a column a key. All
// places are int32. Beyond the last query or key a place is repeated and its score means nothing.
struct Tile {
  Tensor scores, batch, head, query, key;
  bool partial;
};

// The scores of a tile after the function and the mask, in memory of their own or in that given;
// called by several threads at once.
using ScoreFunction = std::function<Tensor(const Tile&)>;
// The gradient of a tile's scores from that of what ScoreFunction made of them. `part` tells apart
// who may run at the same time (backward below).
using GradientFunction = std::function<Tensor(const Tile&, const Tensor& grad, int64_t part)>;

// Float or double, all of one type: batch x heads x length x width with any strides. Keys and
// values may have fewer heads, which groups of query heads share, and one batch for all.
struct Operands {
  Tensor query, key, value;
  double scale;
  BlockLists blocks;
  std::function<void(const Tile&)> prepare; // called once before the others, on the calling thread
  ScoreFunction modify;
};
struct Results {
  Tensor out, logsumexp, largest; // the last two batch x heads x queries
};
struct Gradients {
  Tensor query, key, value;
};

// What tiles look like: with few queries keys are divided among threads, and tiles lie the other
// way.
struct Layout {
  bool few;
  int64_t rows, columns;
};
TORCH_API Layout layout_of(const Operands& operands, bool backward);
TORCH_API Results forward(const Operands& operands);
// `logsumexp` natural; `grad_logsumexp` may be undefined. At most `parts` threads work at once,
// each with its own number, on fixed shares of the work.
TORCH_API Gradients backward(const Operands& operands, const Results& results, const Tensor& grad,
                             const Tensor& grad_logsumexp, const GradientFunction& gradient,
                             int64_t parts);
// How many parts there can be.
TORCH_API int64_t most_parts(const Operands& operands);

// ---- for the files of this
void check(const Operands& operands);
// Few queries: heads that are rows of one tile, since they share keys and the blocks of the mask.
int64_t packed_heads(const Operands& operands);
// Queries and keys of a tile. Its scores and what the functions read of it stay in the cache.
struct TileShape {
  int64_t queries, keys;
};
template <class A> TileShape tile_shape(const Operands& operands);
// A tile with memory; `head` has as many numbers as given, none for one number.
Tile make_tile(const Operands& operands, IntArrayRef sizes, int64_t queries, int64_t keys,
               int64_t heads);
// Writes places [first, first + count), the last one of `limit` repeated.
void fill_places(const Tensor& places, int64_t first, int64_t limit);
// What the function makes of a tile, contiguous and of the tile's type.
Tensor modified(const Operands& operands, const Tile& tile);

} // namespace at::native::flex
