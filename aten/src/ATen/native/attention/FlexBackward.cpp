// Attention with functions, backward: a task is one head of keys with all queries that meet it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/attention/FlexAttention.h>
#include <ATen/native/attention/TiledBlocks.h>
#include <ATen/native/matmul/gemm/Scratch.h>
#include <ATen/parallel/Parallel.h>

namespace at::native::flex {
namespace {
using namespace tiles;

template <class A> class Backward {
 public:
  Backward(const Operands& operands, const Results& results, const Tensor& grad,
           const Tensor& grad_sums, const GradientFunction& gradient)
      : o_(operands), results_(results), grad_(grad), grad_sums_(grad_sums), gradient_(gradient),
        loops_(loops_of<A>()), shape_(tile_shape<A>(operands)), heads_(o_.query.size(1)),
        queries_(o_.query.size(2)), keys_(o_.key.size(2)), depth_(o_.query.size(3)),
        width_(o_.value.size(3)), wide_depth_(padded(depth_)), wide_width_(padded(width_)) {}

  Gradients run(int64_t parts) {
    const auto like = [](const Tensor& t) { return at::detail::empty(t.sizes(), t.scalar_type()); };
    found_ = {like(o_.query), like(o_.key), like(o_.value)};
    const int64_t tasks = most_parts(o_);
    o_.prepare(tile());
    BlockingRegion region;
    at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        for (int64_t t = part * tasks / parts; t < (part + 1) * tasks / parts; ++t)
          head(t / o_.key.size(1), t % o_.key.size(1), part);
    });
    return found_;
  }

 private:
  // The first four are of the whole head, the others of a tile of queries or of scores.
  struct Room {
    A *key, *value, *dk, *dv;
    A *query, *query_t, *grad, *grad_t, *dq, *row;
    std::vector<A> shift, mean;
    Tile tile;
    Tensor ds;
  };

  int64_t padded(int64_t n) const { return (n + loops_.lanes - 1) / loops_.lanes * loops_.lanes; }
  A* numbers(const Tensor& t) const { return static_cast<A*>(t.mutable_data_ptr()); }
  Tile tile() const {
    return make_tile(o_, {shape_.keys, shape_.queries}, shape_.queries, shape_.keys, 0);
  }

  void head(int64_t b, int64_t kv, int64_t part) const {
    const int64_t of_head = keys_ * (wide_depth_ + wide_width_), m = shape_.queries;
    const int64_t of_tile = m * (3 * wide_depth_ + 2 * wide_width_) + wide_width_;
    const gemm::Scratch memory(static_cast<size_t>(2 * of_head + of_tile) * sizeof(A));
    A* next = reinterpret_cast<A*>(memory.get());
    const auto take = [&next](int64_t count) { return std::exchange(next, next + count); };
    Room room;
    room.key = take(keys_ * wide_depth_), room.value = take(keys_ * wide_width_);
    room.dk = take(keys_ * wide_depth_), room.dv = take(keys_ * wide_width_);
    room.query = take(m * wide_depth_), room.query_t = take(m * wide_depth_);
    room.dq = take(m * wide_depth_), room.grad = take(m * wide_width_);
    room.grad_t = take(m * wide_width_), room.row = take(wide_width_);
    room.shift.resize(m), room.mean.resize(m);
    room.tile = tile();
    room.ds = at::detail::empty(room.tile.scores.sizes(), room.tile.scores.scalar_type());
    copy_rows(head_of<A>(o_.key, b, kv), keys_, depth_, A(1), room.key, wide_depth_);
    copy_rows(head_of<A>(o_.value, b, kv), keys_, width_, A(1), room.value, wide_width_);
    std::fill(room.dk, room.dk + of_head, A(0));
    const bool one = o_.key.size(0) == 1;
    const int64_t group = heads_ / o_.key.size(1);
    for (int64_t batch = one ? 0 : b; batch < (one ? o_.query.size(0) : b + 1); ++batch)
      for (int64_t h = kv * group; h < (kv + 1) * group; ++h)
        for (int64_t row = 0; row * o_.blocks.rows < queries_; ++row)
          block(batch, h, row, part, room);
    copy_back(room.dk, wide_depth_, keys_, depth_, A(1), written_head_of<A>(found_.key, b, kv));
    copy_back(room.dv, wide_width_, keys_, width_, A(1), written_head_of<A>(found_.value, b, kv));
  }

  void block(int64_t b, int64_t h, int64_t row, int64_t part, Room& room) const {
    const std::vector<Span> spans = spans_of(o_.blocks, b, h, row, keys_);
    const int64_t last = std::min(queries_, (row + 1) * o_.blocks.rows);
    for (int64_t first = row * o_.blocks.rows; first < last; first += shape_.queries) {
      const int64_t m = std::min(shape_.queries, last - first);
      read(b, h, first, m, room);
      for (const Span& span : spans)
        for (int64_t j = span.begin; j < span.end; j += shape_.keys) {
          room.tile.partial = span.partial;
          scores(m, j, std::min(shape_.keys, span.end - j), part, room);
        }
      copy_back(room.dq, wide_depth_, m, depth_, static_cast<A>(o_.scale),
                written_head_of<A>(found_.query, b, h).from(first));
    }
  }

  // A tile's queries and gradients, and per query the logarithm and sum(grad * out).
  void read(int64_t b, int64_t h, int64_t first, int64_t m, Room& room) const {
    const Rows<const A> query = head_of<A>(o_.query, b, h).from(first);
    const Rows<const A> given = head_of<A>(grad_, b, h).from(first);
    const Rows<const A> out = head_of<A>(results_.out, b, h).from(first);
    const A scale = static_cast<A>(o_.scale);
    copy_rows(query, m, depth_, scale, room.query, wide_depth_);
    copy_transposed(query, m, depth_, scale, room.query_t, shape_.queries);
    copy_rows(given, m, width_, A(1), room.grad, wide_width_);
    copy_transposed(given, m, width_, A(1), room.grad_t, shape_.queries);
    std::fill(room.dq, room.dq + m * wide_depth_, A(0));
    const int64_t place = (b * heads_ + h) * queries_ + first;
    std::fill(room.shift.begin(), room.shift.end(), A(0));
    std::fill(room.mean.begin(), room.mean.end(), A(0));
    for (int64_t r = 0; r < m; ++r) {
      const A sum = numbers(results_.logsumexp)[place + r];
      // A query without any key has the logarithm -inf.
      if (!(std::isinf(sum) && sum < 0)) room.shift[r] = sum;
      copy_rows(out.from(r), 1, width_, A(1), room.row, width_);
      room.mean[r] = loops_.dot(room.grad + r * wide_width_, room.row, width_);
      if (grad_sums_.defined()) room.mean[r] -= numbers(grad_sums_)[place + r];
    }
    *static_cast<int32_t*>(room.tile.batch.mutable_data_ptr()) = static_cast<int32_t>(b);
    *static_cast<int32_t*>(room.tile.head.mutable_data_ptr()) = static_cast<int32_t>(h);
    fill_places(room.tile.query, first, queries_);
  }

  // Keys [j, j + n) for the m queries at hand.
  void scores(int64_t m, int64_t j, int64_t n, int64_t part, Room& room) const {
    const int64_t wide = shape_.queries;
    const A* const key = room.key + j * wide_depth_;
    loops_.product(n, wide, depth_, key, wide_depth_, 1, room.query_t, wide,
                   numbers(room.tile.scores), wide, false);
    fill_places(room.tile.key, j, keys_);
    Tensor kept = modified(o_, room.tile);
    if (kept.is_same(room.tile.scores) && gradient_) {
      // The function of gradients reads the scores.
      kept = at::detail::empty(kept.sizes(), kept.scalar_type());
      std::copy_n(numbers(room.tile.scores), kept.numel(), numbers(kept));
    }
    A *const p = numbers(kept), *ds = numbers(room.ds);
    loops_.exponentials(p, n, wide, wide, room.shift.data());
    loops_.product(n, wide, width_, room.value + j * wide_width_, wide_width_, 1, room.grad_t, wide,
                   ds, wide, false);
    loops_.score_gradients(p, ds, n, wide, wide, room.mean.data());
    Tensor made;
    if (gradient_) {
      // Scores beyond the last query and key have no part in gradients of what the function reads.
      for (int64_t i = 0; i < n; ++i) std::fill(ds + i * wide + m, ds + (i + 1) * wide, A(0));
      std::fill(ds + n * wide, ds + shape_.keys * wide, A(0));
      made = gradient_(room.tile, room.ds, part);
      if (made.scalar_type() != room.ds.scalar_type() || !made.is_contiguous() ||
          made.sizes() != room.ds.sizes()) {
        const Tensor own = at::detail::empty(room.ds.sizes(), room.ds.scalar_type());
        own.copy_(made);
        made = own;
      }
      ds = numbers(made);
    }
    loops_.product(m, wide_depth_, n, ds, 1, wide, key, wide_depth_, room.dq, wide_depth_, true);
    loops_.product(n, wide_width_, m, p, wide, 1, room.grad, wide_width_, room.dv + j * wide_width_,
                   wide_width_, true);
    loops_.product(n, wide_depth_, m, ds, wide, 1, room.query, wide_depth_,
                   room.dk + j * wide_depth_, wide_depth_, true);
  }

  const Operands& o_;
  const Results& results_;
  const Tensor &grad_, &grad_sums_;
  const GradientFunction& gradient_;
  const attention_loops::TiledLoops<A>& loops_;
  const TileShape shape_;
  const int64_t heads_, queries_, keys_, depth_, width_, wide_depth_, wide_width_;
  Gradients found_;
};

} // namespace

int64_t most_parts(const Operands& o) {
  return std::max<int64_t>(1, o.key.size(0) * o.key.size(1));
}

Gradients backward(const Operands& o, const Results& results, const Tensor& grad,
                   const Tensor& grad_logsumexp, const GradientFunction& gradient, int64_t parts) {
  check(o);
  TORCH_CHECK(parts >= 1 && parts <= most_parts(o), "flex_attention: ", parts, " parts");
  TORCH_CHECK(results.logsumexp.is_contiguous() &&
                  (!grad_logsumexp.defined() || grad_logsumexp.is_contiguous()),
              "flex_attention: logarithms lie one behind the other");
  if (o.query.scalar_type() == kDouble)
    return Backward<double>(o, results, grad, grad_logsumexp, gradient).run(parts);
  return Backward<float>(o, results, grad, grad_logsumexp, gradient).run(parts);
}

} // namespace at::native::flex
