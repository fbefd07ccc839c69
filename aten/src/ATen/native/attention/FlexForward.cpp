// Attention with functions, forward. Many queries: a task is a tile of queries of one head, as in
// tiled attention. Few: a task is some of the keys of one head, and what the tasks found is put
// together afterwards, in order.
#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/native/attention/AttentionKernel.h>
#include <ATen/native/attention/FlexAttention.h>
#include <ATen/native/attention/TiledBlocks.h>
#include <ATen/native/matmul/gemm/Gemm.h>
#include <ATen/native/matmul/gemm/Scratch.h>
#include <ATen/parallel/Parallel.h>

namespace at::native::flex {
namespace {
using namespace tiles;

constexpr int64_t kTasks = 64; // few queries: as many as there should be, of two tiles each

template <class A> constexpr A kLowest = -std::numeric_limits<A>::infinity();

Results empty_results(const Operands& o) {
  const Tensor& q = o.query;
  const DimVector rows(q.sizes().begin(), q.sizes().end() - 1);
  DimVector whole = rows;
  whole.push_back(o.value.size(3));
  return {at::detail::empty(whole, q.scalar_type()), at::detail::empty(rows, q.scalar_type()),
          at::detail::empty(rows, q.scalar_type())};
}

template <class A> struct Common {
  explicit Common(const Operands& operands)
      : o(operands), heads(o.query.size(1)), queries(o.query.size(2)), keys(o.key.size(2)),
        depth(o.query.size(3)), width(o.value.size(3)), group(heads / o.key.size(1)),
        results(empty_results(o)) {}
  int64_t key_batch(int64_t b) const { return o.key.size(0) == 1 ? 0 : b; }
  A* numbers(const Tensor& t) const { return static_cast<A*>(t.mutable_data_ptr()); }

  const Operands& o;
  const int64_t heads, queries, keys, depth, width, group;
  const Results results;
};

// ---- many queries
template <class A> class Many : Common<A> {
 public:
  explicit Many(const Operands& operands)
      : Common<A>(operands), loops_(loops_of<A>()), shape_(tile_shape<A>(operands)),
        per_row_((std::min(this->o.blocks.rows, this->queries) + shape_.queries - 1) /
                 shape_.queries),
        wide_((this->width + loops_.lanes - 1) / loops_.lanes * loops_.lanes) {}

  Results run() {
    const auto& o = this->o;
    const int64_t rows = (this->queries + o.blocks.rows - 1) / o.blocks.rows * per_row_;
    o.prepare(tile());
    BlockingRegion region;
    at::parallel_for(0, o.query.size(0) * this->heads * rows, 1, [&](int64_t begin, int64_t end) {
      const Tile room = tile();
      const int64_t numbers = shape_.queries * (this->depth + wide_) + shape_.keys * wide_;
      const gemm::Scratch memory(static_cast<size_t>(numbers) * sizeof(A));
      for (int64_t t = begin; t < end; ++t)
        block(t / rows / this->heads, t / rows % this->heads, t % rows, room,
              reinterpret_cast<A*>(memory.get()));
    });
    return this->results;
  }

 private:
  Tile tile() const {
    return make_tile(this->o, {shape_.keys, shape_.queries}, shape_.queries, shape_.keys, 0);
  }

  void block(int64_t b, int64_t h, int64_t index, Tile tile, A* room) const {
    const auto& o = this->o;
    const int64_t row = index / per_row_;
    const int64_t first = row * o.blocks.rows + index % per_row_ * shape_.queries;
    const int64_t last = std::min(this->queries, (row + 1) * o.blocks.rows);
    const int64_t m = std::min(shape_.queries, last - first);
    if (m <= 0) return;
    A *query = room, *sums = query + shape_.queries * this->depth,
      *values = sums + shape_.queries * wide_;
    copy_transposed(head_of<A>(o.query, b, h).from(first), m, this->depth, static_cast<A>(o.scale),
                    query, shape_.queries);
    *static_cast<int32_t*>(tile.batch.mutable_data_ptr()) = static_cast<int32_t>(b);
    *static_cast<int32_t*>(tile.head.mutable_data_ptr()) = static_cast<int32_t>(h);
    fill_places(tile.query, first, this->queries);
    Rows<const A> key = head_of<A>(o.key, this->key_batch(b), h / this->group);
    Rows<const A> value = head_of<A>(o.value, this->key_batch(b), h / this->group);
    std::vector<A> top(shape_.queries, kLowest<A>), part(shape_.queries), factor(shape_.queries);
    std::vector<double> total(shape_.queries, 0.0);
    std::fill(sums, sums + m * wide_, A(0));
    for (const Span& span : spans_of(o.blocks, b, h, row, this->keys)) {
      for (int64_t j = span.begin; j < span.end; j += shape_.keys) {
        const int64_t n = std::min(shape_.keys, span.end - j);
        loops_.product(n, shape_.queries, this->depth, key.from(j).data, key.row, key.column, query,
                       shape_.queries, this->numbers(tile.scores), shape_.queries, false);
        tile.partial = span.partial;
        fill_places(tile.key, j, this->keys);
        const Tensor scores = modified(o, tile);
        A* const p = this->numbers(scores);
        loops_.softmax(p, n, shape_.queries, shape_.queries, top.data(), part.data(),
                       factor.data());
        for (int64_t r = 0; r < m; ++r) {
          total[r] = total[r] * static_cast<double>(factor[r]) + static_cast<double>(part[r]);
          if (factor[r] != 1)
            loops_.scaled_copy(sums + r * wide_, wide_, factor[r], sums + r * wide_);
        }
        copy_rows(value.from(j), n, this->width, A(1), values, wide_);
        loops_.product(m, wide_, n, p, 1, shape_.queries, values, wide_, sums, wide_, true);
      }
    }
    const int64_t place = (b * this->heads + h) * this->queries + first;
    const Rows<A> out = written_head_of<A>(this->results.out, b, h).from(first);
    for (int64_t r = 0; r < m; ++r) {
      const A inverse = static_cast<A>(total[r] == 0 ? 0.0 : 1.0 / total[r]);
      copy_back(sums + r * wide_, wide_, 1, this->width, inverse, out.from(r));
      this->numbers(this->results.largest)[place + r] = top[r];
      this->numbers(this->results.logsumexp)[place + r] =
          static_cast<A>(static_cast<double>(top[r]) + std::log(total[r]));
    }
  }

  const attention_loops::TiledLoops<A>& loops_;
  const TileShape shape_;
  const int64_t per_row_, wide_;
};

// ---- few queries
template <class A> class Few : Common<A> {
 public:
  Few(const Operands& operands, const Layout& layout)
      : Common<A>(operands), row_loops_(table()), packed_(packed_heads(operands)),
        rows_(layout.rows), columns_(layout.columns), splits_(splits()) {}

  Results run() {
    const auto& o = this->o;
    const int64_t groups = o.query.size(0) * (this->heads / packed_), tasks = groups * splits_;
    std::vector<Found> found(static_cast<size_t>(tasks));
    o.prepare(tile());
    {
      BlockingRegion region;
      at::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
        const Tile room = tile();
        for (int64_t t = begin; t < end; ++t)
          found[static_cast<size_t>(t)] = some_keys(t / splits_, t % splits_, room);
      });
    }
    for (int64_t g = 0; g < groups; ++g) join(g, found.data() + g * splits_);
    return this->results;
  }

 private:
  // What one task found out about its rows.
  struct Found {
    std::vector<double> top, total;
    std::vector<A> sums; // rows x width
  };

  static const attention_loops::RowLoops& table() {
    const attention_loops::RowTable& all = CRESSET_BY_ISA(attention_loops::, row_table);
    return std::is_same_v<A, float> ? all.f32 : all.f64;
  }
  int64_t splits() const {
    const int64_t groups = std::max<int64_t>(1, this->o.query.size(0) * (this->heads / packed_));
    const int64_t tiles = (this->keys + columns_ - 1) / columns_;
    return std::clamp<int64_t>(kTasks / groups, 1, std::max<int64_t>(1, tiles / 2));
  }
  Tile tile() const { return make_tile(this->o, {rows_, columns_}, rows_, columns_, rows_); }

  Found some_keys(int64_t index, int64_t split, Tile tile) const {
    const auto& o = this->o;
    const int64_t b = index / (this->heads / packed_),
                  h = index % (this->heads / packed_) * packed_;
    const Rows<const A> key = head_of<A>(o.key, this->key_batch(b), h / this->group);
    const Rows<const A> value = head_of<A>(o.value, this->key_batch(b), h / this->group);
    Found found{std::vector<double>(rows_, kLowest<double>), std::vector<double>(rows_, 0.0),
                std::vector<A>(rows_ * this->width, A(0))};
    const gemm::Scratch memory(static_cast<size_t>(rows_ * this->depth) * sizeof(A));
    A* const query = reinterpret_cast<A*>(memory.get());
    *static_cast<int32_t*>(tile.batch.mutable_data_ptr()) = static_cast<int32_t>(b);
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t head = h + r / this->queries, place = r % this->queries;
      copy_rows(head_of<A>(o.query, b, head).from(place), 1, this->depth, static_cast<A>(o.scale),
                query + r * this->depth, this->depth);
      static_cast<int32_t*>(tile.head.mutable_data_ptr())[r] = static_cast<int32_t>(head);
      static_cast<int32_t*>(tile.query.mutable_data_ptr())[r] = static_cast<int32_t>(place);
    }
    for (const Span& span : share(b, h, split)) {
      const int64_t n = span.end - span.begin;
      gemm::gemm<A>(rows_, n, this->depth, A(1), query, this->depth, 1, key.from(span.begin).data,
                    key.column, key.row, A(0), this->numbers(tile.scores), columns_, 1);
      tile.partial = span.partial;
      fill_places(tile.key, span.begin, this->keys);
      const Tensor scores = modified(o, tile);
      A* const p = this->numbers(scores);
      for (int64_t r = 0; r < rows_; ++r) {
        const double factor =
            row_loops_.softmax(p + r * columns_, n, nullptr, &found.top[r], &found.total[r]);
        if (factor != 1) row_loops_.scale(found.sums.data() + r * this->width, this->width, factor);
      }
      gemm::gemm<A>(rows_, this->width, n, A(1), p, columns_, 1, value.from(span.begin).data,
                    value.row, value.column, A(1), found.sums.data(), this->width, 1);
    }
    return found;
  }

  // The tiles of one task.
  std::vector<Span> share(int64_t b, int64_t h, int64_t split) const {
    std::vector<Span> tiles;
    for (const Span& span : spans_of(this->o.blocks, b, h, 0, this->keys))
      for (int64_t j = span.begin; j < span.end; j += columns_)
        tiles.push_back({j, std::min(span.end, j + columns_), span.partial});
    const auto count = static_cast<int64_t>(tiles.size());
    return {tiles.begin() + split * count / splits_, tiles.begin() + (split + 1) * count / splits_};
  }

  void join(int64_t index, const Found* found) const {
    const int64_t b = index / (this->heads / packed_),
                  h = index % (this->heads / packed_) * packed_;
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t head = h + r / this->queries, place = r % this->queries;
      double top = kLowest<double>, total = 0;
      for (int64_t s = 0; s < splits_; ++s) top = std::max(top, found[s].top[r]);
      std::vector<double> sums(static_cast<size_t>(this->width), 0.0);
      for (int64_t s = 0; s < splits_; ++s) {
        // A part without any key has nothing to add.
        const double factor =
            found[s].top[r] == kLowest<double> ? 1.0 : std::exp(found[s].top[r] - top);
        total += found[s].total[r] * factor;
        for (int64_t c = 0; c < this->width; ++c)
          sums[c] += static_cast<double>(found[s].sums[r * this->width + c]) * factor;
      }
      const Rows<A> out = written_head_of<A>(this->results.out, b, head).from(place);
      const double inverse = total == 0 ? 0.0 : 1.0 / total;
      for (int64_t c = 0; c < this->width; ++c) out.at(0, c) = static_cast<A>(sums[c] * inverse);
      const int64_t at = (b * this->heads + head) * this->queries + place;
      this->numbers(this->results.largest)[at] = static_cast<A>(top);
      this->numbers(this->results.logsumexp)[at] = static_cast<A>(top + std::log(total));
    }
  }

  const attention_loops::RowLoops& row_loops_;
  const int64_t packed_, rows_, columns_, splits_;
};

template <class A> Results run(const Operands& o) {
  const Layout layout = layout_of(o, false);
  return layout.few ? Few<A>(o, layout).run() : Many<A>(o).run();
}

} // namespace

Results forward(const Operands& o) {
  check(o);
  if (o.query.numel() == 0) return empty_results(o);
  return o.query.scalar_type() == kDouble ? run<double>(o) : run<float>(o);
}

} // namespace at::native::flex
