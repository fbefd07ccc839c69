// The blocks and tiles of attention with functions. See FlexAttention.h.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/attention/FlexAttention.h>
#include <ATen/native/attention/TiledBlocks.h>

namespace at::native::flex {
namespace {

constexpr int64_t kQueries = 64;
constexpr int64_t kScores = 8192;
constexpr int64_t kMostKeys = 512;
constexpr int64_t kFewQueries = 8;
constexpr int64_t kKeysOfFew = 2048; // at most, with few queries

void add_spans(const Tensor& count, const Tensor& indices, const BlockLists& lists, int64_t batch,
               int64_t head, int64_t row, int64_t keys, bool partial, std::vector<Span>& found) {
  const int64_t b = count.size(0) == 1 ? 0 : batch, h = count.size(1) == 1 ? 0 : head;
  const int64_t place = (b * count.size(1) + h) * count.size(2) + row, most = indices.size(3);
  const int32_t* const listed =
      static_cast<const int32_t*>(indices.const_data_ptr()) + place * most;
  const int64_t n =
      std::clamp<int64_t>(static_cast<const int32_t*>(count.const_data_ptr())[place], 0, most);
  const int64_t blocks = (keys + lists.columns - 1) / lists.columns;
  for (int64_t i = 0; i < n; ++i) {
    if (listed[i] < 0 || listed[i] >= blocks) continue;
    const int64_t begin = listed[i] * lists.columns;
    found.push_back({begin, std::min(keys, begin + lists.columns), partial});
  }
}

void check_list(const Tensor& count, const Tensor& indices, const Operands& o) {
  const auto fits = [](int64_t have, int64_t want) { return have == 1 || have == want; };
  TORCH_CHECK(count.dim() == 3 && indices.dim() == 4 && count.scalar_type() == kInt &&
                  indices.scalar_type() == kInt && count.is_contiguous() &&
                  indices.is_contiguous() && indices.sizes().slice(0, 3) == count.sizes(),
              "flex_attention: the lists of a block mask do not fit together");
  TORCH_CHECK(fits(count.size(0), o.query.size(0)) && fits(count.size(1), o.query.size(1)),
              "flex_attention: a block mask of ", count.size(0), " batches and ", count.size(1),
              " heads for queries of shape ", o.query.sizes());
  TORCH_CHECK(count.size(2) >= (o.query.size(2) + o.blocks.rows - 1) / o.blocks.rows,
              "flex_attention: a block mask of ", count.size(2), " blocks of ", o.blocks.rows,
              " for ", o.query.size(2), " queries");
}

} // namespace

std::vector<Span> spans_of(const BlockLists& lists, int64_t batch, int64_t head, int64_t row,
                           int64_t keys) {
  std::vector<Span> found, joined;
  add_spans(lists.count, lists.indices, lists, batch, head, row, keys, true, found);
  if (lists.full_count.defined())
    add_spans(lists.full_count, lists.full_indices, lists, batch, head, row, keys, false, found);
  // A block of both lists is allowed as a whole.
  std::sort(found.begin(), found.end(), [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.partial < b.partial;
  });
  int64_t done = -1;
  for (const Span& span : found) {
    if (span.begin == done) continue;
    done = span.begin;
    if (!joined.empty() && joined.back().end == span.begin && joined.back().partial == span.partial)
      joined.back().end = span.end;
    else
      joined.push_back(span);
  }
  return joined;
}

void check(const Operands& o) {
  const Tensor &q = o.query, &k = o.key, &v = o.value;
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4 && q.scalar_type() == k.scalar_type() &&
                  q.scalar_type() == v.scalar_type() &&
                  (q.scalar_type() == kFloat || q.scalar_type() == kDouble),
              "flex_attention: queries, keys and values of four dimensions and one type");
  TORCH_CHECK(q.size(3) == k.size(3) && k.size(1) == v.size(1) && k.size(2) == v.size(2) &&
                  k.size(0) == v.size(0) && (k.size(0) == 1 || k.size(0) == q.size(0)) &&
                  k.size(1) > 0 && q.size(1) % k.size(1) == 0,
              "flex_attention: queries, keys and values of shapes ", q.sizes(), ", ", k.sizes(),
              " and ", v.sizes());
  TORCH_CHECK(o.blocks.rows > 0 && o.blocks.columns > 0, "flex_attention: blocks of no size");
  check_list(o.blocks.count, o.blocks.indices, o);
  if (o.blocks.full_count.defined()) check_list(o.blocks.full_count, o.blocks.full_indices, o);
}

template <class A> TileShape tile_shape(const Operands& o) {
  const int64_t lanes = tiles::loops_of<A>().lanes;
  const int64_t most = std::min({kQueries, o.query.size(2), o.blocks.rows});
  const int64_t queries = (most + lanes - 1) / lanes * lanes;
  const int64_t keys = std::min({kScores / queries, kMostKeys, o.key.size(2)});
  return {queries, std::max<int64_t>(1, keys)};
}
template TileShape tile_shape<float>(const Operands&);
template TileShape tile_shape<double>(const Operands&);

int64_t packed_heads(const Operands& o) {
  const bool shared = o.blocks.count.size(1) == 1 &&
                      (!o.blocks.full_count.defined() || o.blocks.full_count.size(1) == 1);
  return shared ? o.query.size(1) / o.key.size(1) : 1;
}

Layout layout_of(const Operands& o, bool backward) {
  check(o);
  const int64_t queries = o.query.size(2);
  if (!backward && queries <= std::min(kFewQueries, o.blocks.rows)) {
    const int64_t rows = std::max<int64_t>(1, packed_heads(o) * queries);
    const int64_t wanted = std::clamp(kScores / rows, kMostKeys, kKeysOfFew);
    return {true, rows, std::max<int64_t>(1, std::min(wanted, o.key.size(2)))};
  }
  const TileShape shape =
      o.query.scalar_type() == kDouble ? tile_shape<double>(o) : tile_shape<float>(o);
  return {false, shape.keys, shape.queries};
}

Tile make_tile(const Operands& o, IntArrayRef sizes, int64_t queries, int64_t keys, int64_t heads) {
  const auto places = [](int64_t n) {
    Tensor made = at::detail::empty({n}, kInt);
    std::fill_n(static_cast<int32_t*>(made.mutable_data_ptr()), n, 0);
    return made;
  };
  Tile tile{at::detail::empty(sizes, o.query.scalar_type()),
            at::detail::empty({}, kInt),
            heads > 0 ? places(heads) : at::detail::empty({}, kInt),
            places(queries),
            places(keys),
            true};
  // Rows that no product writes are read by the functions all the same.
  std::fill_n(static_cast<char*>(tile.scores.mutable_data_ptr()),
              tile.scores.numel() * tile.scores.itemsize(), char(0));
  *static_cast<int32_t*>(tile.batch.mutable_data_ptr()) = 0;
  if (heads == 0) *static_cast<int32_t*>(tile.head.mutable_data_ptr()) = 0;
  return tile;
}

void fill_places(const Tensor& places, int64_t first, int64_t limit) {
  int32_t* const p = static_cast<int32_t*>(places.mutable_data_ptr());
  for (int64_t i = 0, n = places.numel(); i < n; ++i)
    p[i] = static_cast<int32_t>(std::min(first + i, limit - 1));
}

Tensor modified(const Operands& o, const Tile& tile) {
  Tensor found = o.modify(tile);
  if (found.is_same(tile.scores)) return found;
  // Something that others hold too is not written to.
  if (found.scalar_type() == tile.scores.scalar_type() && found.is_contiguous() &&
      found.sizes() == tile.scores.sizes() && found.storage().use_count() == 1)
    return found;
  Tensor own = at::detail::empty(tile.scores.sizes(), tile.scores.scalar_type());
  own.copy_(found);
  return own;
}

} // namespace at::native::flex
