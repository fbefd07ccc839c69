// The kernels of reductions. A reduction is a struct with
//   A          what a thread's elements become, and what partial results are kept as
//   State      what a thread adds elements to
//   start, add, done, combine, store
//   prepare    where prepares_v: told the first of the elements that a thread is about to add
// and four kernels walk memory for it: rows (reduced elements are neighbours), columns (results are
// neighbours), strided (anything) and combine (partial accumulators of cut results, where the last
// block of a result may not do it). Which elements
// meet in which order depends on the arguments alone. The arguments
// (ReduceArgs) are filled by native/reduce/Reduce.cuda.cpp.
#pragma once

#include <ATen/cuda/device/Shuffle.cuh>
#include <ATen/native/reduce/FoldOps.h>

namespace at::device {

CRESSET_DEVICE_FN long strided_offset(long index, int ndim, const Divider* size,
                                      const long* stride) {
  if (ndim == 1) return index * stride[0];
  unsigned rest = static_cast<unsigned>(index);
  long offset = 0;
  CRESSET_NO_UNROLL
  for (int d = 0; d < ndim; ++d) {
    const unsigned q = size[d].quotient(rest);
    offset += static_cast<long>(rest - q * size[d].divisor) * stride[d];
    rest = q;
  }
  return offset;
}
CRESSET_DEVICE_FN long kept_offset(const ReduceArgs& a, long index) {
  return strided_offset(index, a.kept_ndim, a.kept_size, a.kept_stride);
}
CRESSET_DEVICE_FN long reduced_offset(const ReduceArgs& a, long index) {
  return strided_offset(index, a.reduced_ndim, a.reduced_size, a.reduced_stride);
}

// ---- results
// --------------------------------------------------------------------------------------
enum Post { kNone, kMean, kSqrt, kRoot };

template <class V> CRESSET_DEVICE_FN V finished(V v, const ReduceArgs& a) {
  using R = c10::real_type_t<V>;
  if constexpr (c10::is_complex_v<V>) {
    const R n = static_cast<R>(a.count);
    return a.post == kMean ? V(v.real_ / n, v.imag_ / n) : v;
  } else if constexpr (std::is_floating_point_v<V>) {
    if (a.post == kMean) return v / static_cast<R>(a.count);
    if (a.post == kSqrt) return vm::sqrt(v);
    return a.post == kRoot ? vm::pow(v, static_cast<R>(1 / a.param)) : v;
  } else {
    return v;
  }
}

template <class T, class V>
CRESSET_DEVICE_FN void store_value(const ReduceArgs& a, int k, long slot, V value) {
  using Own = std::conditional_t<c10::is_complex_v<V>, T, c10::real_type_t<T>>;
  if (a.out[k] == nullptr) return;
  if (a.narrow >> k & 1)
    static_cast<Own*>(a.out[k])[slot] = convert<Own>(value);
  else
    static_cast<V*>(a.out[k])[slot] = value;
}

// ---- the reductions
// -------------------------------------------------------------------------------
// An operation of FoldOps.h. kStates chains of additions run side by side in a thread.
template <class Op, class T> struct FoldReduce {
  using A = typename Op::template acc<T>;
  using State = A;
  static constexpr int kStates = 4;
  static constexpr bool kFromComplex = c10::is_complex_v<T> && !c10::is_complex_v<A>;

  CRESSET_DEVICE_FN static State start() { return Op::template identity<A>(); }
  CRESSET_DEVICE_FN static void add(State& s, T x, long, const ReduceArgs& a) {
    if constexpr (kFromComplex)
      s = Op::fold(s, Op::map_complex(c10::complex<A>(x), static_cast<A>(a.param)));
    else
      s = Op::fold(s, Op::map(convert<A>(x), convert<A>(a.param)));
  }
  CRESSET_DEVICE_FN static A done(const State& s) { return s; }
  CRESSET_DEVICE_FN static A combine(const A& a, const A& b) { return Op::fold(a, b); }
  CRESSET_DEVICE_FN static void store(const ReduceArgs& a, long slot, const A& v) {
    store_value<T>(a, 0, slot, finished(v, a));
  }
};

template <class T> CRESSET_DEVICE_FN bool is_nonzero(T x) { return convert<bool>(x); }

struct AnyFold {
  using A = unsigned char;
  static constexpr A kIdentity = 0;
  CRESSET_DEVICE_FN static A fold(A a, A b) { return a | b; }
};
struct AllFold {
  using A = unsigned char;
  static constexpr A kIdentity = 1;
  CRESSET_DEVICE_FN static A fold(A a, A b) { return a & b; }
};
struct CountFold {
  using A = long;
  static constexpr A kIdentity = 0;
  CRESSET_DEVICE_FN static A fold(A a, A b) { return a + b; }
};
template <class Op, class T> struct TruthReduce {
  using A = typename Op::A;
  using State = A;
  static constexpr int kStates = 4;
  CRESSET_DEVICE_FN static State start() { return Op::kIdentity; }
  CRESSET_DEVICE_FN static void add(State& s, T x, long, const ReduceArgs&) {
    s = Op::fold(s, static_cast<A>(is_nonzero(x)));
  }
  CRESSET_DEVICE_FN static A done(const State& s) { return s; }
  CRESSET_DEVICE_FN static A combine(const A& a, const A& b) { return Op::fold(a, b); }
  // The count of norm 0 is stored in the input's real type.
  CRESSET_DEVICE_FN static void store(const ReduceArgs& a, long slot, const A& v) {
    store_value<T>(a, 0, slot, v);
  }
};

// Every element as 64 bits: floating numbers as the bits of their double, integers sign-extended.
template <class T> struct XorReduce {
  using A = long;
  using State = A;
  static constexpr int kStates = 4;
  CRESSET_DEVICE_FN static State start() { return 0; }
  CRESSET_DEVICE_FN static void add(State& s, T x, long, const ReduceArgs&) {
    if constexpr (std::is_integral_v<T>)
      s ^= static_cast<long>(x);
    else
      s ^= __builtin_bit_cast(long, convert<double>(x));
  }
  CRESSET_DEVICE_FN static A done(const State& s) { return s; }
  CRESSET_DEVICE_FN static A combine(const A& a, const A& b) { return a ^ b; }
  CRESSET_DEVICE_FN static void store(const ReduceArgs& a, long slot, const A& v) {
    store_value<T>(a, 0, slot, v);
  }
};

using native::reduce::device::MaxOp;
using native::reduce::device::MinOp;

// bool is folded as bytes of 0 and 1.
template <class T> struct Ordered { using type = T; };
template <> struct Ordered<bool> { using type = unsigned char; };

template <class T> struct MinMaxReduce {
  using V = opmath_t<typename Ordered<T>::type>;
  struct A {
    V low, high;
  };
  using State = A;
  static constexpr int kStates = 2;
  CRESSET_DEVICE_FN static State start() { return {MinOp::identity<V>(), MaxOp::identity<V>()}; }
  CRESSET_DEVICE_FN static void add(State& s, T x, long, const ReduceArgs&) {
    const V v = convert<V>(x);
    s = {MinOp::fold(s.low, v), MaxOp::fold(s.high, v)};
  }
  CRESSET_DEVICE_FN static A done(const State& s) { return s; }
  CRESSET_DEVICE_FN static A combine(const A& a, const A& b) {
    return {MinOp::fold(a.low, b.low), MaxOp::fold(a.high, b.high)};
  }
  CRESSET_DEVICE_FN static void store(const ReduceArgs& a, long slot, const A& v) {
    store_value<T>(a, 0, slot, v.low);
    store_value<T>(a, 1, slot, v.high);
  }
};

// The extreme element and the position of the first such; a NaN counts as the extreme.
template <bool kMax, class T> struct ArgReduce {
  using V = opmath_t<typename Ordered<T>::type>;
  struct alignas(8) A {
    V value;
    long index; // negative: no element yet
  };
  using State = A;
  static constexpr int kStates = 1;
  CRESSET_DEVICE_FN static State start() { return {V(0), -1}; }
  CRESSET_DEVICE_FN static bool better(V b, V a) {
    if constexpr (std::is_floating_point_v<V>)
      return (kMax ? b > a : b < a) || (b != b && a == a);
    else
      return kMax ? b > a : b < a;
  }
  CRESSET_DEVICE_FN static bool same(V a, V b) { return a == b || (a != a && b != b); }
  CRESSET_DEVICE_FN static void add(State& s, T x, long index, const ReduceArgs&) {
    const V v = convert<V>(x);
    // A thread meets its elements in order.
    if (s.index < 0 || better(v, s.value)) s = {v, index};
  }
  CRESSET_DEVICE_FN static A done(const State& s) { return s; }
  CRESSET_DEVICE_FN static A combine(const A& a, const A& b) {
    if (b.index < 0) return a;
    if (a.index < 0 || better(b.value, a.value)) return b;
    return same(a.value, b.value) && b.index < a.index ? b : a;
  }
  CRESSET_DEVICE_FN static void store(const ReduceArgs& a, long slot, const A& v) {
    store_value<T>(a, 0, slot, v.value);
    if (a.out[1] != nullptr) static_cast<long*>(a.out[1])[slot] = v.index;
  }
};

// Sums of deviations from a pivot and of their squares, in double; the pivot is an element, so that
// a constant has no variance and the sum of squares exceeds what is wanted by a factor of at most
// the count. Accumulators meet by moving the second to the pivot of the first, which takes no
// division. Complex numbers are two series whose squares add.
template <class T> struct VarReduce {
  static constexpr bool kComplex = c10::is_complex_v<T>;
  struct Series {
    double pivot, sum;
    // Gives the square of the deviation added to `square`.
    CRESSET_DEVICE_FN double add(double x, double square) {
      const double d = x - pivot;
      sum += d;
      return ::fma(d, d, square);
    }
    // The same for `n` elements summed in `other`, whose squares are in `square`.
    CRESSET_DEVICE_FN double join(const Series& other, double n, double square) {
      const double d = other.pivot - pivot, moved = ::fma(n, d, other.sum);
      sum += moved;
      return ::fma(d, other.sum + moved, square);
    }
    CRESSET_DEVICE_FN double mean(double n) const { return pivot + sum / n; }
    CRESSET_DEVICE_FN double excess(double n) const { return sum * (sum / n); }
  };
  struct RealState {
    Series re;
    double square;
    long count;
  };
  struct ComplexState {
    Series re, im;
    double square;
    long count;
  };
  using State = std::conditional_t<kComplex, ComplexState, RealState>;
  using A = State;
  static constexpr int kStates = 1;
  CRESSET_DEVICE_FN static State start() { return {}; }
  // An infinite pivot would make the mean NaN.
  CRESSET_DEVICE_FN static double pivot_of(double x) { return x - x == 0 ? x : 0.0; }
  CRESSET_DEVICE_FN static void prepare(State& s, T first) {
    if (s.count != 0) return;
    if constexpr (kComplex) {
      s.re.pivot = pivot_of(convert<double>(first.real_));
      s.im.pivot = pivot_of(convert<double>(first.imag_));
    } else {
      s.re.pivot = pivot_of(convert<double>(first));
    }
  }
  CRESSET_DEVICE_FN static void add(State& s, T x, long, const ReduceArgs&) {
    if constexpr (kComplex) {
      s.square = s.re.add(convert<double>(x.real_), s.square);
      s.square = s.im.add(convert<double>(x.imag_), s.square);
    } else {
      s.square = s.re.add(convert<double>(x), s.square);
    }
    ++s.count;
  }
  CRESSET_DEVICE_FN static A done(const State& s) { return s; }
  CRESSET_DEVICE_FN static A combine(A a, const A& b) {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const double n = static_cast<double>(b.count);
    a.square = a.re.join(b.re, n, a.square + b.square);
    if constexpr (kComplex) a.square = a.im.join(b.im, n, a.square);
    a.count += b.count;
    return a;
  }
  CRESSET_DEVICE_FN static void store(const ReduceArgs& a, long slot, const A& v) {
    const double nan = c10::numeric_limits<double>::quiet_NaN();
    const double n = static_cast<double>(a.count), left = n - a.param;
    double m2 = v.square - v.re.excess(n);
    if constexpr (kComplex) m2 -= v.im.excess(n);
    if (m2 < 0) m2 = 0;
    const double var = a.count == 0 ? nan : m2 / (left > 0 ? left : 0.0);
    const double mean = a.count == 0 ? nan : v.re.mean(n);
    store_value<T>(a, 0, slot, a.post == kSqrt ? ::sqrt(var) : var);
    if constexpr (kComplex)
      store_value<T>(a, 1, slot, c10::complex<double>(mean, a.count == 0 ? nan : v.im.mean(n)));
    else
      store_value<T>(a, 1, slot, mean);
  }
};

template <class R> inline constexpr bool prepares_v = false;
template <class T> inline constexpr bool prepares_v<VarReduce<T>> = true;

// log(sum(exp(x))) with a running maximum. An infinite maximum is not subtracted, so that
// infinities come out as the plain formula gives them.
template <class T> struct LogSumExpReduce {
  using V = opmath_t<T>;
  struct A {
    V top, sum;
  };
  using State = A;
  static constexpr int kStates = 2;
  CRESSET_DEVICE_FN static V shift_of(V top) { return top - top == V(0) ? top : V(0); }
  CRESSET_DEVICE_FN static V scaled(V sum, V exponent) {
    return sum == V(0) || exponent == V(0) ? sum : sum * vm::exp(exponent);
  }
  CRESSET_DEVICE_FN static State start() { return {MaxOp::identity<V>(), V(0)}; }
  CRESSET_DEVICE_FN static void add(State& s, T x, long, const ReduceArgs&) {
    const V v = convert<V>(x);
    const V top = MaxOp::fold(s.top, v);
    if (top != s.top) {
      s.sum = scaled(s.sum, shift_of(s.top) - shift_of(top));
      s.top = top;
    }
    s.sum += vm::exp(v - shift_of(top));
  }
  CRESSET_DEVICE_FN static A done(const State& s) { return s; }
  CRESSET_DEVICE_FN static A combine(const A& a, const A& b) {
    const V top = MaxOp::fold(a.top, b.top), shift = shift_of(top);
    return {top, scaled(a.sum, shift_of(a.top) - shift) + scaled(b.sum, shift_of(b.top) - shift)};
  }
  CRESSET_DEVICE_FN static void store(const ReduceArgs& a, long slot, const A& v) {
    store_value<T>(a, 0, slot, vm::log(v.sum) + shift_of(v.top));
  }
};

// By the names of ReduceOp.
namespace reductions {
namespace ops = native::reduce::device;
template <class T> using Sum = FoldReduce<ops::Sum, T>;
template <class T> using NanSum = FoldReduce<ops::NanSum, T>;
template <class T> using Prod = FoldReduce<ops::Prod, T>;
template <class T> using Max = FoldReduce<MaxOp, typename Ordered<T>::type>;
template <class T> using Min = FoldReduce<MinOp, typename Ordered<T>::type>;
template <class T> using MinMax = MinMaxReduce<T>;
template <class T> using ArgMax = ArgReduce<true, T>;
template <class T> using ArgMin = ArgReduce<false, T>;
template <class T> using All = TruthReduce<AllFold, T>;
template <class T> using Any = TruthReduce<AnyFold, T>;
template <class T> using CountNonzero = TruthReduce<CountFold, T>;
template <class T> using XorSum = XorReduce<T>;
template <class T> using AbsSum = FoldReduce<ops::AbsSum, T>;
template <class T> using SquareSum = FoldReduce<ops::SquareSum, T>;
template <class T> using AbsPowSum = FoldReduce<ops::AbsPowSum, T>;
template <class T> using AbsMax = FoldReduce<ops::AbsMax, T>;
template <class T> using AbsMin = FoldReduce<ops::AbsMin, T>;
template <class T> using Var = VarReduce<T>;
template <class T> using LogSumExp = LogSumExpReduce<T>;
} // namespace reductions

// ---- walking memory
// -------------------------------------------------------------------------------
// bool in memory is a byte, of which any non-zero one is true.
template <class T> struct Element {
  using Memory = T;
  CRESSET_DEVICE_FN static T get(Memory x) { return x; }
};
template <> struct Element<bool> {
  using Memory = unsigned char;
  CRESSET_DEVICE_FN static bool get(Memory x) { return x != 0; }
};

template <class R, class T> struct ReduceKernels {
  using A = typename R::A;
  using State = typename R::State;
  using Memory = typename Element<T>::Memory;
  static constexpr int kPack = 16 / static_cast<int>(sizeof(T));
  // A block's accumulators must fit into shared memory; the host counts the same way.
  static constexpr int kMostColumns = sizeof(A) > 32 ? 2 : sizeof(A) > 8 ? 4 : 8;
  static constexpr int kColumns = kPack < kMostColumns ? kPack : kMostColumns;
  static constexpr int kUnroll = 4;
  // Packs that a thread of a column has in flight; the order of additions does not depend on it.
  static constexpr int kColumnUnroll = sizeof(A) > 4 ? 4 : 8;

  CRESSET_DEVICE_FN static void add(State& s, Memory x, long index, const ReduceArgs& a) {
    R::add(s, Element<T>::get(x), index, a);
  }
  CRESSET_DEVICE_FN static void prepare(State& s, Memory first) {
    if constexpr (prepares_v<R>) R::prepare(s, Element<T>::get(first));
  }
  CRESSET_DEVICE_FN static A* partial(const ReduceArgs& a, long split) {
    return static_cast<A*>(a.partial) + split * a.outputs;
  }
  CRESSET_DEVICE_FN static void write(const ReduceArgs& a, long split, long output, const A& v) {
    if (a.splits == 1)
      R::store(a, output, v);
    else
      partial(a, split)[output] = v;
  }

  // Whether this block is the last of the `splits` that work on its group. All threads take part;
  // only those that `wrote` must wait until the GPU sees it.
  CRESSET_DEVICE_FN static bool is_last(const ReduceArgs& a, long group, bool wrote) {
    CRESSET_SHARED unsigned ticket;
    if (wrote) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) ticket = atomicInc(a.tickets + group, a.splits - 1);
    __syncthreads();
    const bool last = ticket == static_cast<unsigned>(a.splits - 1);
    if (last) __threadfence();
    return last;
  }
  // A partial accumulator that another block wrote.
  CRESSET_DEVICE_FN static A fetch(const ReduceArgs& a, long split, long output) {
    return partial(a, split)[output];
  }

  // The accumulator of all `lanes` threads that share a result, in the first of them. All threads
  // of the block take part.
  CRESSET_DEVICE_FN static A over_lanes(A v, int lanes) {
    CRESSET_SHARED A warp[kReduceThreads / 32];
    const int width = lanes < 32 ? lanes : 32;
    for (int step = width / 2; step > 0; step /= 2) v = R::combine(v, shuffle_down(v, step, width));
    if (lanes > 32) {
      if ((threadIdx.x & 31) == 0) warp[threadIdx.x / 32] = v;
      __syncthreads();
      if ((threadIdx.x & (lanes - 1)) == 0)
        for (int w = 1; w < lanes / 32; ++w) v = R::combine(v, warp[threadIdx.x / 32 + w]);
    }
    return v;
  }
  CRESSET_DEVICE_FN static A over_states(const State* s) {
    A v = R::done(s[0]);
    CRESSET_UNROLL
    for (int k = 1; k < R::kStates; ++k) v = R::combine(v, R::done(s[k]));
    return v;
  }

  // kPacks packs at a time, from i on and `step` apart, while all of them end before `end`. Gives
  // the place of the first that was not added.
  template <int kCount, int kPacks, class F>
  CRESSET_DEVICE_FN static long walk_unrolled(State* s, const Memory* in, long i, long end,
                                              long step, const ReduceArgs& a, const F& load) {
    Pack<Memory, kCount> x[kPacks];
    for (; i + (kPacks - 1) * step + kCount <= end; i += kPacks * step) {
      CRESSET_UNROLL
      for (int u = 0; u < kPacks; ++u) x[u] = load(in + i + u * step);
      CRESSET_UNROLL
      for (int u = 0; u < R::kStates; ++u) prepare(s[u], x[u].v[0]);
      CRESSET_UNROLL
      for (int u = 0; u < kPacks; ++u) add_pack(s[u % R::kStates], x[u], i + u * step, a);
    }
    return i;
  }
  // Elements [begin, end) of a contiguous run, every lanes-th pack.
  template <int kCount> CRESSET_DEVICE_FN static void
  walk(State* s, const Memory* in, long begin, long end, int lane, const ReduceArgs& a) {
    const long step = static_cast<long>(a.lanes) * kCount;
    long i = begin + static_cast<long>(lane) * kCount;
    // A result that all blocks share is one long stretch, read once: it takes more loads in flight.
    if (a.outputs == 1)
      i = walk_unrolled<kCount, 2 * kUnroll>(
          s, in, i, end, step, a, [](const Memory* p) { return stream_pack<kCount>(p); });
    i = walk_unrolled<kCount, kUnroll>(s, in, i, end, step, a,
                                       [](const Memory* p) { return load_pack<kCount>(p); });
    Pack<Memory, kCount> x[1];
    for (; i + kCount <= end; i += step) {
      x[0] = load_pack<kCount>(in + i);
      prepare(s[0], x[0].v[0]);
      add_pack(s[0], x[0], i, a);
    }
    if constexpr (kCount > 1) {
      for (long j = begin + (end - begin) / kCount * kCount + lane; j < end; j += a.lanes)
        add_one(s[0], in[j], j, a);
    }
  }
  CRESSET_DEVICE_FN static void add_one(State& s, Memory x, long index, const ReduceArgs& a) {
    prepare(s, x);
    add(s, x, index, a);
  }
  template <int kCount> CRESSET_DEVICE_FN static void
  add_pack(State& s, const Pack<Memory, kCount>& x, long index, const ReduceArgs& a) {
    CRESSET_UNROLL
    for (int j = 0; j < kCount; ++j) add(s, x.v[j], index + j, a);
  }
  CRESSET_DEVICE_FN static void walk_run(State* s, const char* in, long begin, long end, int lane,
                                         const ReduceArgs& a) {
    if (a.aligned)
      walk<kPack>(s, reinterpret_cast<const Memory*>(in), begin, end, lane, a);
    else
      walk<1>(s, reinterpret_cast<const Memory*>(in), begin, end, lane, a);
  }

  // Where a thread works: its piece, its result and its place among the threads that share it.
  struct Place {
    long split, group, output, begin, end;
    int lane;
  };
  CRESSET_DEVICE_FN static Place place_of(const ReduceArgs& a, long total) {
    const int rows = kReduceThreads / a.lanes;
    Place p;
    p.split = 0;
    p.group = blockIdx.x;
    if (a.splits > 1) { // a division that short rows would feel
      const long blocks = (a.outputs + rows - 1) / rows;
      p.split = blockIdx.x / blocks;
      p.group = blockIdx.x - p.split * blocks;
    }
    p.output = p.group * rows + threadIdx.x / a.lanes;
    p.lane = threadIdx.x & (a.lanes - 1);
    p.begin = p.split * a.chunk;
    p.end = p.begin + a.chunk < total ? p.begin + a.chunk : total;
    return p;
  }

  CRESSET_DEVICE_FN static void start_all(State* s) {
    CRESSET_UNROLL
    for (int k = 0; k < R::kStates; ++k) s[k] = R::start();
  }

  // Writes the result, or the piece's share of it and, where this block is the last, the result.
  CRESSET_DEVICE_FN static void finish(const ReduceArgs& a, const Place& p, const A& v) {
    const bool writes = p.lane == 0 && p.output < a.outputs;
    if (writes) write(a, p.split, p.output, v);
    if (a.splits == 1 || a.tickets == nullptr || !is_last(a, p.group, writes)) return;
    const A all = over_lanes(over_pieces(a, p.output, p.lane), a.lanes);
    if (writes) R::store(a, p.output, all);
  }
  // Every lanes-th piece of a result.
  CRESSET_DEVICE_FN static A over_pieces(const ReduceArgs& a, long output, int lane) {
    A v = R::done(R::start());
    if (output < a.outputs)
      for (long k = lane; k < a.splits; k += a.lanes) v = R::combine(v, fetch(a, k, output));
    return v;
  }

  CRESSET_DEVICE_FN static void row(const ReduceArgs& a) {
    State s[R::kStates];
    start_all(s);
    const Place p = place_of(a, a.runs > 1 ? a.runs : a.run);
    if (p.output < a.outputs) {
      const char* in = static_cast<const char*>(a.in) + kept_offset(a, p.output);
      if (a.runs == 1) {
        walk_run(s, in, p.begin, p.end, p.lane, a);
      } else {
        for (long k = p.begin; k < p.end; ++k)
          walk_run(s, in + reduced_offset(a, k), 0, a.run, p.lane, a);
      }
    }
    finish(a, p, over_lanes(over_states(s), a.lanes));
  }

  CRESSET_DEVICE_FN static void strided(const ReduceArgs& a) {
    State s[R::kStates];
    start_all(s);
    const Place p = place_of(a, a.count);
    if (p.output < a.outputs) {
      const char* in = static_cast<const char*>(a.in) + kept_offset(a, p.output);
      for (long i = p.begin + p.lane; i < p.end; i += a.lanes)
        add_one(s[0], *reinterpret_cast<const Memory*>(in + reduced_offset(a, i)), i, a);
    }
    finish(a, p, over_lanes(over_states(s), a.lanes));
  }

  CRESSET_DEVICE_FN static void combine(const ReduceArgs& a) {
    const int rows = kReduceThreads / a.lanes;
    const long output = static_cast<long>(blockIdx.x) * rows + threadIdx.x / a.lanes;
    const int lane = threadIdx.x & (a.lanes - 1);
    const A v = over_lanes(over_pieces(a, output, lane), a.lanes);
    if (lane == 0 && output < a.outputs) R::store(a, output, v);
  }

  // ---- columns: lanes threads side by side, the others above each other
  CRESSET_DEVICE_FN static void column(const ReduceArgs& a) {
    if (a.aligned)
      column_of<kColumns>(a);
    else
      column_of<1>(a);
  }
  template <int kCount> CRESSET_DEVICE_FN static void column_of(const ReduceArgs& a) {
    const int x = threadIdx.x & (a.lanes - 1), y = threadIdx.x / a.lanes;
    const int height = kReduceThreads / a.lanes;
    const long units = a.columns / kCount;
    const long blocks = (units + a.lanes - 1) / a.lanes, batches = a.outputs / a.columns;
    const long split = blockIdx.x / (blocks * batches);
    const long rest = blockIdx.x - split * (blocks * batches);
    const long batch = rest / blocks;
    const long c = ((rest - batch * blocks) * a.lanes + x) * kCount;
    const long begin = split * a.chunk;
    const long end = begin + a.chunk < a.count ? begin + a.chunk : a.count;
    State s[kCount];
    CRESSET_UNROLL
    for (int j = 0; j < kCount; ++j) s[j] = R::start();
    if (c < a.columns) {
      const char* in = static_cast<const char*>(a.in) + c * sizeof(T);
      if (a.kept_ndim > 0) in += kept_offset(a, batch);
      walk_column<kCount>(s, in, begin + y, end, height, a);
    }
    CRESSET_SHARED A shared[kReduceThreads * kCount];
    A* mine = shared + threadIdx.x; // one result after the other, kReduceThreads apart
    CRESSET_UNROLL
    for (int j = 0; j < kCount; ++j) mine[j * kReduceThreads] = R::done(s[j]);
    over_height<kCount>(mine, y, height, a.lanes);
    const long output = batch * a.columns + c;
    const bool writes = y == 0 && c < a.columns;
    if (writes) {
      CRESSET_UNROLL
      for (int j = 0; j < kCount; ++j) write(a, split, output + j, mine[j * kReduceThreads]);
    }
    if (a.splits == 1 || a.tickets == nullptr || !is_last(a, rest, writes)) return;
    columns_of_pieces<kCount>(mine, c < a.columns ? y : a.splits, output, height, a);
    over_height<kCount>(mine, y, height, a.lanes);
    if (writes) {
      CRESSET_UNROLL
      for (int j = 0; j < kCount; ++j) R::store(a, output + j, mine[j * kReduceThreads]);
    }
  }
  // Every height-th piece of kCount results, from piece k on. Few threads do this while the rest of
  // the GPU waits: the loads of several pieces are in flight together.
  template <int kCount> CRESSET_DEVICE_FN static void
  columns_of_pieces(A* sums, long k, long output, int height, const ReduceArgs& a) {
    A v[kCount], x[kUnroll][kCount];
    CRESSET_UNROLL
    for (int j = 0; j < kCount; ++j) v[j] = R::done(R::start());
    for (; k < a.splits; k += kUnroll * height) {
      CRESSET_UNROLL
      for (int u = 0; u < kUnroll; ++u) {
        const bool is_there = k + u * height < a.splits;
        CRESSET_UNROLL
        for (int j = 0; j < kCount; ++j)
          x[u][j] = is_there ? fetch(a, k + u * height, output + j) : A{};
      }
      CRESSET_UNROLL
      for (int u = 0; u < kUnroll; ++u) {
        if (k + u * height >= a.splits) continue;
        CRESSET_UNROLL
        for (int j = 0; j < kCount; ++j) v[j] = R::combine(v[j], x[u][j]);
      }
    }
    CRESSET_UNROLL
    for (int j = 0; j < kCount; ++j) sums[j * kReduceThreads] = v[j];
  }
  // Accumulators above each other, into the first row of threads.
  template <int kCount>
  CRESSET_DEVICE_FN static void over_height(A* mine, int y, int height, int lanes) {
    for (int h = height / 2; h > 0; h /= 2) {
      __syncthreads();
      if (y < h) {
        CRESSET_UNROLL
        for (int j = 0; j < kCount; ++j)
          mine[j * kReduceThreads] =
              R::combine(mine[j * kReduceThreads], mine[j * kReduceThreads + h * lanes]);
      }
    }
  }
  template <int kCount> CRESSET_DEVICE_FN static void
  walk_column(State* s, const char* in, long r, long end, int height, const ReduceArgs& a) {
    Pack<Memory, kCount> x[kColumnUnroll];
    for (; r + (kColumnUnroll - 1) * height < end; r += kColumnUnroll * height) {
      CRESSET_UNROLL
      for (int u = 0; u < kColumnUnroll; ++u)
        x[u] = load_pack<kCount>(
            reinterpret_cast<const Memory*>(in + reduced_offset(a, r + u * height)));
      CRESSET_UNROLL
      for (int j = 0; j < kCount; ++j) prepare(s[j], x[0].v[j]);
      CRESSET_UNROLL
      for (int u = 0; u < kColumnUnroll; ++u) {
        CRESSET_UNROLL
        for (int j = 0; j < kCount; ++j) add(s[j], x[u].v[j], r + u * height, a);
      }
    }
    for (; r < end; r += height) {
      x[0] = load_pack<kCount>(reinterpret_cast<const Memory*>(in + reduced_offset(a, r)));
      CRESSET_UNROLL
      for (int j = 0; j < kCount; ++j) add_one(s[j], x[0].v[j], r, a);
    }
  }
};

} // namespace at::device

#define CRESSET_REDUCE_FORM(op, form, type)                                                        \
  CRESSET_KERNEL(at::device::kReduceThreads)                                                       \
  reduce_##op##_##form##_##type(const __grid_constant__ at::device::ReduceArgs args) {             \
    at::device::ReduceKernels<at::device::reductions::op<cresset_##type>, cresset_##type>::form(   \
        args);                                                                                     \
  }
#define CRESSET_REDUCE(op, type)                                                                   \
  CRESSET_REDUCE_FORM(op, row, type)                                                               \
  CRESSET_REDUCE_FORM(op, column, type)                                                            \
  CRESSET_REDUCE_FORM(op, strided, type)                                                           \
  CRESSET_REDUCE_FORM(op, combine, type)
