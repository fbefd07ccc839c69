// Note [Scores by keys]
// The scores of a block are kept with a row for each key and a column for each query. Then
//   scores = K Q^T      reads keys as they are, one number at a time, and the transposed queries
//   out    = P^T V      reads probabilities one number at a time, and rows of values
//   dV     = P dO,  dK = dS Q,  dQ = dS^T K,  dP = V dO^T
// are products of single numbers with rows, whatever the strides of keys and values. Only the block
// of queries (and of the gradient) is transposed, which is small, and all queries of a register go
// through the softmax together.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/native/attention/TiledAttention.h>
#include <ATen/native/attention/TiledBlocks.h>
#include <ATen/native/matmul/gemm/Scratch.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {
namespace {
using namespace tiles;
using attention_loops::TiledLoops;

constexpr int64_t kQueries = 64;
constexpr int64_t kKeys = 128;
constexpr int64_t kFewQueries = 8;
constexpr int64_t kScoresOfATask = 1024 * 1024;

template <class A> class Tiled {
 public:
  explicit Tiled(const TiledOperands& operands)
      : o_(operands), loops_(loops_of<A>()), heads_(operands.query.size(1)),
        queries_(operands.query.size(2)), keys_(operands.key.size(2)),
        depth_(operands.query.size(3)), width_(operands.value.size(3)),
        group_(operands.query.size(1) / operands.key.size(1)) {}

  void forward() const {
    const int64_t blocks = (queries_ + kQueries - 1) / kQueries;
    const int64_t work = std::max<int64_t>(1, std::min(queries_, kQueries) * keys_);
    BlockingRegion region;
    at::parallel_for(
        0, o_.query.size(0) * heads_ * blocks, std::max<int64_t>(1, 8192 / work),
        [&](int64_t begin, int64_t end) {
          const int64_t wide = padded(width_);
          gemm::Scratch memory(
              static_cast<size_t>(kQueries * (depth_ + kKeys + wide) + kKeys * wide) * sizeof(A));
          for (int64_t t = begin; t < end; ++t)
            forward_block(t / blocks, t % blocks * kQueries, reinterpret_cast<A*>(memory.get()));
        });
  }

  void backward(const Tensor& grad, const Tensor& dq, const Tensor& dk, const Tensor& dv) const {
    const int64_t work = std::max<int64_t>(1, queries_ * keys_);
    BlockingRegion region;
    at::parallel_for(0, o_.query.size(0) * heads_, std::max<int64_t>(1, 8192 / work),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t t = begin; t < end; ++t)
                         backward_head(t / heads_, t % heads_, grad, dq, dk, dv);
                     });
  }

 private:
  int64_t padded(int64_t n) const { return (n + loops_.lanes - 1) / loops_.lanes * loops_.lanes; }
  int64_t seen_by(int64_t first, int64_t count) const {
    return o_.causal ? std::min(keys_, first + count) : keys_;
  }

  // Columns [at, at + count) of a block of scores, of whose keys any of them sees the first `seen`.
  struct Group {
    int64_t at, count, seen;
  };
  // Whether some of queries from `first` on do not see some of keys [j, j + n).
  bool cut(int64_t first, int64_t j, int64_t n) const { return o_.causal && j + n > first + 1; }
  // A block where later keys are not seen is divided, so that most of what nobody sees is not
  // computed; f(group) for each part.
  template <class F> void each_group(int64_t first, int64_t m, int64_t j, int64_t n, F f) const {
    const int64_t wide = padded(m), step = cut(first, j, n) ? 2 * loops_.lanes : wide;
    for (int64_t c = 0; c < wide; c += step)
      f(Group{c, std::min(step, wide - c),
              cut(first, j, n) ? std::clamp<int64_t>(first + c + step - j, 0, n) : n});
  }
  // The same division by keys: f(key, count, query), where queries before `query` see none of them.
  template <class F>
  void each_key_group(int64_t first, int64_t m, int64_t j, int64_t n, F f) const {
    const int64_t step = cut(first, j, n) ? 2 * loops_.lanes : n;
    for (int64_t i = 0; i < n; i += step) {
      const int64_t query = cut(first, j, n) ? std::max<int64_t>(0, j + i - first) : 0;
      if (query < m) f(i, std::min(step, n - i), query);
    }
  }

  // Scores of keys [j, j + n) for queries [first, first + m), whose transposed and scaled numbers
  // are `query`; -inf where a later key is not seen, unwritten where no query of a group sees it.
  void scores_of(Rows<const A> key, const A* query, int64_t b, int64_t h, int64_t first, int64_t m,
                 int64_t j, int64_t n, A* scores) const {
    const int64_t wide = padded(m);
    each_group(first, m, j, n, [&](const Group& g) {
      loops_.product(g.seen, g.count, depth_, key.from(j).data, key.row, key.column, query + g.at,
                     wide, scores + g.at, wide, false);
      if (o_.bias.defined()) {
        const Rows<const A> bias = head_of<A>(o_.bias, b, h).from(first);
        for (int64_t r = g.at; r < std::min(m, g.at + g.count); ++r)
          for (int64_t i = 0; i < g.seen; ++i) scores[i * wide + r] += bias.at(r, j + i);
      }
      if (!cut(first, j, n)) return;
      for (int64_t i = std::max<int64_t>(0, first + g.at + 1 - j); i < g.seen; ++i) {
        A* const row = scores + i * wide + g.at;
        std::fill(row, row + std::min(g.count, j + i - first - g.at),
                  -std::numeric_limits<A>::infinity());
      }
    });
  }

  void forward_block(int64_t index, int64_t first, A* room) const {
    const int64_t b = index / heads_, h = index % heads_, kv = h / group_;
    const int64_t m = std::min(kQueries, queries_ - first), wide = padded(m);
    const int64_t value_wide = padded(width_), seen = seen_by(first, m);
    A *query = room, *scores = query + kQueries * depth_, *sums = scores + kQueries * kKeys;
    A* const values = sums + kQueries * value_wide;
    const Rows<const A> key = head_of<A>(o_.key, b, kv), value = head_of<A>(o_.value, b, kv);
    copy_transposed(head_of<A>(o_.query, b, h).from(first), m, depth_, static_cast<A>(o_.scale),
                    query, wide);
    A top[kQueries], part[kQueries], factor[kQueries];
    double total[kQueries] = {};
    std::fill(top, top + kQueries, -std::numeric_limits<A>::infinity());
    if (seen <= 0) std::fill(sums, sums + m * value_wide, A(0));
    for (int64_t j = 0; j < seen; j += kKeys) {
      const int64_t n = std::min(kKeys, seen - j);
      scores_of(key, query, b, h, first, m, j, n, scores);
      each_group(first, m, j, n, [&](const Group& g) {
        loops_.softmax(scores + g.at, g.seen, g.count, wide, top + g.at, part + g.at,
                       factor + g.at);
      });
      for (int64_t r = 0; r < m; ++r) {
        total[r] = total[r] * static_cast<double>(factor[r]) + static_cast<double>(part[r]);
        if (j > 0 && factor[r] != 1)
          loops_.scaled_copy(sums + r * value_wide, value_wide, factor[r], sums + r * value_wide);
      }
      copy_rows(value.from(j), n, width_, A(1), values, value_wide);
      each_group(first, m, j, n, [&](const Group& g) {
        loops_.product(std::min(m - g.at, g.count), value_wide, g.seen, scores + g.at, 1, wide,
                       values, value_wide, sums + g.at * value_wide, value_wide, j > 0);
      });
    }
    const Rows<A> out = written_head_of<A>(o_.out, b, h).from(first);
    A* const logs = static_cast<A*>(o_.logsumexp.mutable_data_ptr()) + index * queries_ + first;
    for (int64_t r = 0; r < m; ++r) {
      const A inverse = static_cast<A>(total[r] == 0 ? 0.0 : 1.0 / total[r]);
      copy_back(sums + r * value_wide, value_wide, 1, width_, inverse, out.from(r));
      logs[r] = static_cast<A>(static_cast<double>(top[r]) + std::log(total[r]));
    }
  }

  // What a task of the backward pass keeps in memory. The first four are of the whole head.
  struct BackwardRoom {
    A *key, *value, *dk, *dv;                      // keys x depth or width
    A *query, *query_t, *grad, *grad_t, *dq, *row; // of a block of queries
    A *p, *ds;                                     // scores of a block of keys
    A shift[kQueries], mean[kQueries];             // one of each query
  };

  void backward_head(int64_t b, int64_t h, const Tensor& grad, const Tensor& dq, const Tensor& dk,
                     const Tensor& dv) const {
    const int64_t kv = h / group_;
    const int64_t depth = padded(depth_), width = padded(width_);
    const int64_t of_head = keys_ * (depth + width), of_block = kQueries * 2 * (depth + width);
    gemm::Scratch memory(
        static_cast<size_t>(2 * of_head + of_block + kQueries * (depth + 2 * kKeys) + width) *
        sizeof(A));
    BackwardRoom room;
    A* next = reinterpret_cast<A*>(memory.get());
    const auto take = [&next](int64_t count) { return std::exchange(next, next + count); };
    room.key = take(keys_ * depth), room.value = take(keys_ * width);
    room.dk = take(keys_ * depth), room.dv = take(keys_ * width);
    room.query = take(kQueries * depth), room.query_t = take(kQueries * depth);
    room.grad = take(kQueries * width), room.grad_t = take(kQueries * width);
    room.dq = take(kQueries * depth), room.p = take(kQueries * kKeys);
    room.ds = take(kQueries * kKeys), room.row = take(width);
    copy_rows(head_of<A>(o_.key, b, kv), keys_, depth_, A(1), room.key, depth);
    copy_rows(head_of<A>(o_.value, b, kv), keys_, width_, A(1), room.value, width);
    std::fill(room.dk, room.dk + of_head, A(0));
    for (int64_t first = 0; first < queries_; first += kQueries)
      backward_block(b, h, first, grad, dq, room);
    copy_back(room.dk, depth, keys_, depth_, A(1), written_head_of<A>(dk, b, h));
    copy_back(room.dv, width, keys_, width_, A(1), written_head_of<A>(dv, b, h));
  }

  // The block's queries and gradients, and per query the logarithm and sum(grad * out).
  void read_block(int64_t b, int64_t h, int64_t first, int64_t m, const Tensor& grad,
                  BackwardRoom& room) const {
    const Rows<const A> query = head_of<A>(o_.query, b, h).from(first);
    const Rows<const A> given = head_of<A>(grad, b, h).from(first);
    const Rows<const A> out = head_of<A>(o_.out, b, h).from(first);
    const A scale = static_cast<A>(o_.scale);
    copy_rows(query, m, depth_, scale, room.query, padded(depth_));
    copy_transposed(query, m, depth_, scale, room.query_t, padded(m));
    copy_rows(given, m, width_, A(1), room.grad, padded(width_));
    copy_transposed(given, m, width_, A(1), room.grad_t, padded(m));
    const A* const logs =
        static_cast<const A*>(o_.logsumexp.const_data_ptr()) + (b * heads_ + h) * queries_ + first;
    std::fill(room.shift, room.shift + kQueries, A(0));
    std::fill(room.mean, room.mean + kQueries, A(0));
    for (int64_t r = 0; r < m; ++r) {
      // A query without any key, which only a mask can make, has the logarithm -inf.
      if (!(std::isinf(logs[r]) && logs[r] < 0)) room.shift[r] = logs[r];
      copy_rows(out.from(r), 1, width_, A(1), room.row, width_);
      room.mean[r] = loops_.dot(room.grad + r * padded(width_), room.row, width_);
    }
  }

  void backward_block(int64_t b, int64_t h, int64_t first, const Tensor& grad, const Tensor& dq,
                      BackwardRoom& room) const {
    const int64_t m = std::min(kQueries, queries_ - first), wide = padded(m);
    const int64_t depth = padded(depth_), width = padded(width_), seen = seen_by(first, m);
    read_block(b, h, first, m, grad, room);
    std::fill(room.dq, room.dq + m * depth, A(0));
    const Rows<const A> key{room.key, depth, 1};
    for (int64_t j = 0; j < seen; j += kKeys) {
      const int64_t n = std::min(kKeys, seen - j);
      scores_of(key, room.query_t, b, h, first, m, j, n, room.p);
      each_group(first, m, j, n, [&](const Group& g) {
        A* const ds = room.ds + g.at;
        loops_.exponentials(room.p + g.at, g.seen, g.count, wide, room.shift + g.at);
        loops_.product(g.seen, g.count, width_, room.value + j * width, width, 1,
                       room.grad_t + g.at, wide, ds, wide, false);
        loops_.score_gradients(room.p + g.at, ds, g.seen, g.count, wide, room.mean + g.at);
        loops_.product(std::min(m - g.at, g.count), depth, g.seen, ds, 1, wide,
                       room.key + j * depth, depth, room.dq + g.at * depth, depth, true);
      });
      each_key_group(first, m, j, n, [&](int64_t i, int64_t count, int64_t query) {
        const int64_t at = i * wide + query, rows = m - query;
        loops_.product(count, width, rows, room.p + at, wide, 1, room.grad + query * width, width,
                       room.dv + (j + i) * width, width, true);
        loops_.product(count, depth, rows, room.ds + at, wide, 1, room.query + query * depth, depth,
                       room.dk + (j + i) * depth, depth, true);
      });
    }
    copy_back(room.dq, depth, m, depth_, static_cast<A>(o_.scale),
              written_head_of<A>(dq, b, h).from(first));
  }

  const TiledOperands& o_;
  const TiledLoops<A>& loops_;
  const int64_t heads_, queries_, keys_, depth_, width_, group_;
};
} // namespace

bool tiled_forward_fits(int64_t queries) { return queries >= kFewQueries; }
bool tiled_backward_fits(int64_t queries, int64_t keys) {
  return queries >= kFewQueries && keys > 0 && queries <= kScoresOfATask / keys;
}

void tiled_forward(const TiledOperands& operands) {
  if (operands.query.scalar_type() == kDouble)
    Tiled<double>(operands).forward();
  else
    Tiled<float>(operands).forward();
}
void tiled_backward(const TiledOperands& operands, const Tensor& grad, const Tensor& dq,
                    const Tensor& dk, const Tensor& dv) {
  if (operands.query.scalar_type() == kDouble)
    Tiled<double>(operands).backward(grad, dq, dk, dv);
  else
    Tiled<float>(operands).backward(grad, dq, dk, dv);
}

} // namespace at::native
