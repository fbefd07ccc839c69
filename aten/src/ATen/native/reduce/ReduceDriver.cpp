// Geometry, blocking and threads of reductions.
//
// Note [Fixed reduction tree]
// Which elements meet in which order depends on the sizes and strides alone. The reduced elements
// of a result are cut into blocks of fixed length; a kernel turns a block into accumulators (with
// several lanes, so that rounding errors grow with the logarithm more than with the length), and
// blocks are combined pairwise, neighbours first, like the digits of a binary counter. A result
// with many blocks is cut once more into stretches of blocks, which threads take in any order; the
// partial results of the stretches are combined by the same counter afterwards. The cuts never look
// at the number of threads, so one thread and sixty-four give the same bits.
#include <ATen/native/reduce/ReduceDriver.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <ATen/iter/Cast.h>
#include <ATen/parallel/Parallel.h>

namespace at::native::reduce {
namespace {

// Elements of one result in a block whose elements are neighbours, and rows in a block whose
// results are neighbours.
constexpr int64_t kRowBlock = 4096;
constexpr int64_t kColumnBlock = 256;
// Results side by side, so that their accumulators stay in the first-level cache.
constexpr int64_t kMaxTile = 1024;
constexpr int64_t kTileBytes = 16384;
// Elements a task should have.
constexpr int64_t kTaskElements = 65536;
constexpr int64_t kMaxStretches = 64;
// A tensor with this many tasks is shared between threads without cutting single results.
constexpr int64_t kEnoughItems = 32;

struct Dim {
  int64_t size;
  int64_t stride;     // of the input, bytes
  int64_t out_stride; // elements; 0 for reduced dimensions
};
using Dims = c10::SmallVector<Dim, 6>;

// Outermost first; dimensions that lie flush become one.
void sort_and_merge(Dims& dims) {
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dim& a, const Dim& b) { return a.stride > b.stride; });
  size_t used = 0;
  for (size_t i = 1; i < dims.size(); ++i) {
    Dim& last = dims[used];
    const Dim& next = dims[i];
    if (last.stride == next.stride * next.size && last.out_stride == next.out_stride * next.size) {
      last = {last.size * next.size, next.stride, next.out_stride};
    } else {
      dims[++used] = next;
    }
  }
  if (!dims.empty()) dims.resize(used + 1, Dim{1, 0, 0});
}

template <class T> void post_values(Post post, char* value, int64_t n, const FinishArgs& args) {
  using R = c10::real_type_t<T>;
  T* v = reinterpret_cast<T*>(value);
  const R count = static_cast<R>(args.count), root = static_cast<R>(1 / args.param);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (c10::is_complex_v<T>) {
      v[i] = T(v[i].real_ / count, v[i].imag_ / count);
    } else {
      v[i] = post == Post::Mean   ? v[i] / count
             : post == Post::Sqrt ? std::sqrt(v[i])
                                  : std::pow(v[i], root);
    }
  }
}
void apply_post(Post post, ScalarType dtype, char* value, int64_t n, const FinishArgs& args) {
  switch (dtype) {
  case kFloat:
    return post_values<float>(post, value, n, args);
  case kDouble:
    return post_values<double>(post, value, n, args);
  case kComplexFloat:
    return post_values<c10::complex<float>>(post, value, n, args);
  default:
    return post_values<c10::complex<double>>(post, value, n, args);
  }
}

struct Plan {
  Dims kept;    // without the tile dimension
  Dims reduced; // without the block dimension
  Dim tile{1, 0, 1};
  Dim block{1, 0, 0};
  int64_t tile_size = 1, tiles = 1;
  int64_t block_size = 1, blocks_per_row = 1;
  int64_t items = 1;  // tiles of all kept positions
  int64_t blocks = 1; // blocks of one result
  int64_t count = 1;  // elements of one result
};

Plan make_plan(const Tensor& self, DimMask mask, int64_t acc_bytes) {
  Plan plan;
  const int64_t itemsize = self.itemsize();
  int64_t out_stride = 1, kept_count = 1;
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    const int64_t size = self.sizes()[d], stride = self.strides()[d] * itemsize;
    if (mask >> d & 1) {
      plan.count *= size;
      if (size != 1) plan.reduced.push_back({size, stride, 0});
    } else {
      if (size != 1) plan.kept.push_back({size, stride, out_stride});
      out_stride *= size;
      kept_count *= size;
    }
  }
  if (plan.count == 0 || kept_count == 0) {
    // Nothing to read: every result is the identity.
    plan.kept.clear(), plan.reduced.clear();
    plan.tile = {kept_count, 0, 1};
    plan.block = {0, 0, 0};
  } else {
    std::reverse(plan.kept.begin(), plan.kept.end());
    std::reverse(plan.reduced.begin(), plan.reduced.end());
    sort_and_merge(plan.kept);
    sort_and_merge(plan.reduced);
    if (!plan.kept.empty()) plan.tile = plan.kept.back(), plan.kept.pop_back();
    if (!plan.reduced.empty()) plan.block = plan.reduced.back(), plan.reduced.pop_back();
    // A single element per result is read like a row.
    if (plan.block.size == 1) plan.block.stride = itemsize;
  }
  const bool columns = plan.tile.size > 1 && plan.tile.stride < plan.block.stride;
  plan.block_size = std::min(plan.block.size, columns ? kColumnBlock : kRowBlock);
  const int64_t wanted =
      columns ? kMaxTile : kTaskElements / 2 / std::max<int64_t>(plan.block_size, 1);
  const int64_t fitting = std::max<int64_t>(kTileBytes / acc_bytes, 8);
  plan.tile_size =
      std::clamp<int64_t>(std::min(wanted, fitting), 1, std::max<int64_t>(plan.tile.size, 1));
  plan.tiles = (plan.tile.size + plan.tile_size - 1) / plan.tile_size;
  plan.blocks_per_row =
      plan.block_size == 0 ? 1 : (plan.block.size + plan.block_size - 1) / plan.block_size;
  plan.items = plan.tiles;
  plan.blocks = plan.blocks_per_row;
  for (const Dim& d : plan.kept) plan.items *= d.size;
  for (const Dim& d : plan.reduced) plan.blocks *= d.size;
  return plan;
}

// Memory for accumulators: on the stack when small.
class Scratch {
 public:
  explicit Scratch(int64_t bytes) {
    if (bytes > static_cast<int64_t>(sizeof(inline_))) heap_.reset(new char[bytes]);
  }
  char* data() { return heap_ ? heap_.get() : inline_; }

 private:
  alignas(64) char inline_[2048];
  std::unique_ptr<char[]> heap_;
};

// Memory for computed elements.
class Elements {
 public:
  explicit Elements(int64_t bytes) : memory_(new char[static_cast<size_t>(bytes) + 64]) {
    data_ = memory_.get() + (64 - reinterpret_cast<uintptr_t>(memory_.get()) % 64) % 64;
  }
  char* data() { return data_; }

 private:
  std::unique_ptr<char[]> memory_;
  char* data_;
};

// f(k, values) for each value that the accumulators of `count` elements stand for.
template <class F>
void with_values(const ReduceCall& call, int64_t count, char* acc, int64_t outputs, const F& f) {
  const ReduceKernel& kernel = *call.kernel;
  const FinishArgs args{count, call.param};
  Scratch first(kernel.finish ? outputs * 16 : 0), second(kernel.values > 1 ? outputs * 16 : 0);
  char* value[2] = {acc, second.data()};
  if (kernel.finish) {
    value[0] = first.data();
    kernel.finish(value, acc, outputs, args);
  }
  if (call.post != Post::None)
    apply_post(call.post, kernel.value_dtype[0], value[0], outputs, args);
  for (int k = 0; k < kernel.values; ++k) f(k, value[k]);
}

class Runner {
 public:
  // With a source the input has no memory: places in it are counted from 0.
  Runner(const ReduceCall& call, const Tensor& self, const Plan& plan, ArrayRef<Tensor> outs,
         const ElementSource* source)
      : call_(call), kernel_(*call.kernel),
        in_(source ? nullptr : static_cast<const char*>(self.const_data_ptr())), plan_(plan),
        source_(source), itemsize_(self.itemsize()) {
    for (size_t k = 0; k < outs.size(); ++k) {
      if (!outs[k].defined()) continue;
      out_[k] = static_cast<char*>(outs[k].mutable_data_ptr());
      out_dtype_[k] = outs[k].scalar_type();
      cast_[k] = cast_loop(out_dtype_[k], kernel_.value_dtype[k]);
      TORCH_CHECK_NOT_IMPLEMENTED(cast_[k], "reduction: no conversion to ", out_dtype_[k],
                                  " on cpu");
    }
    acc_stride_ = (plan.tile_size * kernel_.acc_bytes + 63) / 64 * 64;
  }

  void run() {
    const int64_t work = plan_.tile_size * plan_.count;
    if (plan_.items >= kEnoughItems || plan_.blocks == 1 || work * plan_.items <= kTaskElements) {
      const int64_t grain = std::max<int64_t>(1, kTaskElements / 2 / std::max<int64_t>(work, 1));
      at::parallel_for(0, plan_.items, grain, [&](int64_t b, int64_t e) {
        for (int64_t item = b; item < e; ++item) whole_item(item);
      });
      return;
    }
    run_stretches();
  }

 private:
  struct Place {
    int64_t in = 0, out = 0, outputs = 0;
  };
  // Where the tile `item` begins and how many results it has.
  Place place(int64_t item) const {
    Place p;
    const int64_t first = item % plan_.tiles * plan_.tile_size;
    p.in = first * plan_.tile.stride;
    p.out = first * plan_.tile.out_stride;
    p.outputs = std::min(plan_.tile_size, plan_.tile.size - first);
    int64_t rest = item / plan_.tiles;
    for (size_t d = plan_.kept.size(); d-- > 0;) {
      const Dim& dim = plan_.kept[d];
      const int64_t i = rest % dim.size;
      rest /= dim.size;
      p.in += i * dim.stride;
      p.out += i * dim.out_stride;
    }
    return p;
  }

  void leaf(char* acc, const Place& p, int64_t block) const {
    const int64_t first = block % plan_.blocks_per_row * plan_.block_size;
    LeafArgs args;
    args.in = in_ + p.in + first * plan_.block.stride;
    args.outputs = p.outputs;
    args.output_stride = plan_.tile.stride;
    args.count = std::min(plan_.block_size, plan_.block.size - first);
    args.stride = plan_.block.stride;
    args.index = first;
    args.param = call_.param;
    int64_t rest = block / plan_.blocks_per_row;
    for (size_t d = plan_.reduced.size(); d-- > 0;) {
      const Dim& dim = plan_.reduced[d];
      args.in += rest % dim.size * dim.stride;
      rest /= dim.size;
    }
    if (C10_LIKELY(source_ == nullptr)) {
      kernel_.leaf(acc, args);
    } else {
      computed_leaf(acc, args, args.in - in_);
    }
  }

  // A leaf whose elements are computed first, a cacheful of them at a time. Results are independent
  // of each other, so that they can be taken in groups.
  void computed_leaf(char* acc, const LeafArgs& whole, int64_t offset) const {
    LeafArgs args = whole;
    const int64_t begin = offset / itemsize_, row = whole.output_stride / itemsize_;
    if (whole.stride == itemsize_) {
      const bool flush = row == whole.count;
      const int64_t group = flush ? std::max<int64_t>(1, kRowBlock / std::max<int64_t>(row, 1)) : 1;
      Elements memory(std::min(group, whole.outputs) * whole.count * itemsize_);
      args.in = memory.data();
      for (int64_t i = 0; i < whole.outputs; i += group) {
        args.outputs = std::min(group, whole.outputs - i);
        const int64_t first = begin + i * row;
        (*source_)(memory.data(), first, first + args.outputs * whole.count);
        kernel_.leaf(acc + i * kernel_.acc_bytes, args);
      }
      return;
    }
    if (whole.outputs > 1 && row == 1) {
      computed_columns(acc, args, begin);
      return;
    }
    Elements memory(2 * whole.count * itemsize_);
    args.in = memory.data();
    args.outputs = 1;
    args.stride = 2 * itemsize_; // not the loop for neighbours
    const int64_t step = whole.stride / itemsize_;
    for (int64_t i = 0; i < whole.outputs; ++i) {
      for (int64_t k = 0; k < whole.count; ++k) {
        const int64_t place = begin + i * row + k * step;
        (*source_)(memory.data() + k * args.stride, place, place + 1);
      }
      kernel_.leaf(acc + i * kernel_.acc_bytes, args);
    }
  }

  // Results side by side: a leaf folds eight rows before they meet the accumulators, and the last
  // rows one by one. The same happens here leaf by leaf, since folding with the identity changes
  // nothing.
  void computed_columns(char* acc, LeafArgs args, int64_t begin) const {
    const int64_t step = args.stride / itemsize_, count = args.count, width = args.outputs;
    // Rows that lie flush are computed together, however narrow they are.
    const int64_t group = step == width ? std::max<int64_t>(8, kRowBlock / width / 8 * 8) : 8;
    Elements memory(std::min(group, count) * width * itemsize_), partial(width * kernel_.acc_bytes);
    args.stride = width * itemsize_;
    for (int64_t first = 0; first < count; first += group) {
      const int64_t rows = std::min(group, count - first);
      const int64_t place = begin + first * step;
      if (step == width) {
        (*source_)(memory.data(), place, place + rows * width);
      } else {
        for (int64_t r = 0; r < rows; ++r)
          (*source_)(memory.data() + r * args.stride, place + r * step, place + r * step + width);
      }
      for (int64_t k = 0; k < rows; k += args.count) {
        args.in = memory.data() + k * args.stride;
        args.count = rows - k >= 8 ? 8 : 1;
        const bool is_first = first + k == 0;
        kernel_.leaf(is_first ? acc : partial.data(), args);
        if (!is_first) kernel_.combine(acc, partial.data(), width);
      }
    }
  }

  // The binary counter: make(acc, i) gives the i-th of n accumulator sets; the result stands at
  // `stack`, which has room for levels(n) sets.
  static int64_t levels(int64_t n) {
    return 66 - (n > 1 ? __builtin_clzll(static_cast<uint64_t>(n)) : 63);
  }
  template <class Make>
  void count_up(char* stack, int64_t n, int64_t outputs, const Make& make) const {
    int64_t top = 0;
    for (int64_t i = 0; i < n; ++i) {
      // An expanded tensor may have more elements than memory: a stretch of it can take hours.
      if ((i & 63) == 63) at::check_interrupt();
      make(stack + top * acc_stride_, i);
      ++top;
      for (int64_t k = i + 1; (k & 1) == 0; k >>= 1) {
        --top;
        kernel_.combine(stack + (top - 1) * acc_stride_, stack + top * acc_stride_, outputs);
      }
    }
    for (; top > 1; --top)
      kernel_.combine(stack + (top - 2) * acc_stride_, stack + (top - 1) * acc_stride_, outputs);
  }

  void whole_item(int64_t item) const {
    const Place p = place(item);
    Scratch stack(levels(plan_.blocks) * acc_stride_);
    count_up(stack.data(), plan_.blocks, p.outputs,
             [&](char* acc, int64_t block) { leaf(acc, p, block); });
    write(stack.data(), p);
  }

  void run_stretches() const {
    const int64_t per_block = plan_.tile_size * std::max<int64_t>(plan_.block_size, 1);
    const int64_t length = std::max<int64_t>(
        {1, kTaskElements / per_block, (plan_.blocks + kMaxStretches - 1) / kMaxStretches});
    const int64_t stretches = (plan_.blocks + length - 1) / length;
    std::unique_ptr<char[]> partial(new char[plan_.items * stretches * acc_stride_ + 64]);
    char* base = partial.get() + (64 - reinterpret_cast<uintptr_t>(partial.get()) % 64) % 64;
    at::parallel_for(0, plan_.items * stretches, 1, [&](int64_t b, int64_t e) {
      for (int64_t task = b; task < e; ++task) {
        const Place p = place(task / stretches);
        const int64_t first = task % stretches * length;
        const int64_t n = std::min(length, plan_.blocks - first);
        Scratch stack(levels(n) * acc_stride_);
        count_up(stack.data(), n, p.outputs,
                 [&](char* acc, int64_t block) { leaf(acc, p, first + block); });
        std::memcpy(base + task * acc_stride_, stack.data(), p.outputs * kernel_.acc_bytes);
      }
    });
    at::parallel_for(0, plan_.items,
                     std::max<int64_t>(1, kTaskElements / (stretches * plan_.tile_size)),
                     [&](int64_t b, int64_t e) {
                       for (int64_t item = b; item < e; ++item) {
                         const Place p = place(item);
                         Scratch stack(levels(stretches) * acc_stride_);
                         count_up(stack.data(), stretches, p.outputs, [&](char* acc, int64_t i) {
                           std::memcpy(acc, base + (item * stretches + i) * acc_stride_,
                                       p.outputs * kernel_.acc_bytes);
                         });
                         write(stack.data(), p);
                       }
                     });
  }

  // From accumulators to the outputs.
  void write(char* acc, const Place& p) const {
    with_values(call_, plan_.count, acc, p.outputs, [&](int k, char* value) {
      if (!out_[k]) return;
      const int64_t size = c10::elementSize(out_dtype_[k]);
      char* const data[2] = {out_[k] + p.out * size, value};
      const int64_t strides[2] = {plan_.tile.out_stride * size,
                                  c10::elementSize(kernel_.value_dtype[k])};
      cast_[k](data, strides, p.outputs, nullptr);
    });
  }

  const ReduceCall& call_;
  const ReduceKernel& kernel_;
  const char* in_;
  const Plan& plan_;
  const ElementSource* source_;
  int64_t itemsize_;
  char* out_[2] = {};
  ScalarType out_dtype_[2] = {};
  native::Loop1d cast_[2] = {};
  int64_t acc_stride_;
};

} // namespace

namespace {
void run_cpu(const ReduceCall& call, const Tensor& self, DimMask mask, ArrayRef<Tensor> outs,
             const ElementSource* source) {
  const int64_t all = self.dim() == 64 ? -1 : (int64_t(1) << self.dim()) - 1;
  const int64_t numel = self.numel();
  if (static_cast<int64_t>(mask) == all && self.is_contiguous()) {
    // Everything to one number, the memory in one piece: no geometry to find out.
    Plan plan;
    plan.count = plan.block.size = numel;
    plan.block.stride = self.itemsize();
    plan.block_size = std::min(numel, kRowBlock);
    plan.blocks = plan.blocks_per_row =
        numel <= kRowBlock ? 1 : (numel + kRowBlock - 1) / kRowBlock;
    Runner runner(call, self, plan, outs, source);
    if (numel <= kTaskElements) {
      runner.run();
    } else {
      at::BlockingRegion region;
      runner.run();
    }
    return;
  }
  const Plan plan = make_plan(self, mask, call.kernel->acc_bytes);
  if (plan.tile.size == 0) return;
  Runner runner(call, self, plan, outs, source);
  if (numel <= kTaskElements) {
    runner.run();
    return;
  }
  at::BlockingRegion region;
  runner.run();
}
} // namespace

void run_reduce(const ReduceCall& call, const Tensor& self, DimMask mask, ArrayRef<Tensor> outs) {
#ifndef CRESSET_NO_CUDA
  if (C10_UNLIKELY(self.is_cuda())) return reduce_cuda(call, self, mask, outs);
#endif
  run_cpu(call, self, mask, outs, nullptr);
}

void run_reduce_of(const ReduceCall& call, const Tensor& self, DimMask mask, ArrayRef<Tensor> outs,
                   ElementSource compute) {
  run_cpu(call, self, mask, outs, &compute);
}

bool can_reduce_rows(const ReduceKernel& kernel, c10::SymInt length) {
  return kernel.values == 1 && length > 1 && length <= kRowBlock;
}

void reduce_rows(const ReduceCall& call, const char* in, int64_t rows, int64_t length, char* out,
                 ScalarType out_dtype) {
  const ReduceKernel& kernel = *call.kernel;
  const int64_t item = c10::elementSize(kernel.dtype), size = c10::elementSize(out_dtype);
  const native::Loop1d cast = cast_loop(out_dtype, kernel.value_dtype[0]);
  const int64_t group = std::max<int64_t>(1, kTileBytes / kernel.acc_bytes);
  Scratch acc(std::min(rows, group) * kernel.acc_bytes);
  for (int64_t r = 0; r < rows; r += group) {
    const int64_t n = std::min(group, rows - r);
    LeafArgs args{};
    args.in = in + r * length * item;
    args.outputs = n;
    args.output_stride = length * item;
    args.count = length;
    args.stride = item;
    args.param = call.param;
    kernel.leaf(acc.data(), args);
    with_values(call, length, acc.data(), n, [&](int, char* value) {
      char* const data[2] = {out + r * size, value};
      const int64_t strides[2] = {size, c10::elementSize(kernel.value_dtype[0])};
      cast(data, strides, n, nullptr);
    });
  }
}

} // namespace at::native::reduce
