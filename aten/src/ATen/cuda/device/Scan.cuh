// Running reductions along a dimension: cumsum, cumprod, logcumsumexp, and cummax and cummin with
// positions. Two kernels: rows, where a line's elements are neighbours (a block scans pieces of a
// line, one after the other), and columns, where lines lie side by side (a thread walks a line). A
// long line is cut: totals of the pieces, their running totals, then the pieces from there. The
// arguments (ScanArgs) are filled by native/reduce/Scan.cuda.cpp.
#pragma once

#include <ATen/cuda/device/Shuffle.cuh>
#include <ATen/vec/ValueMath.h>

namespace at::device {

inline constexpr int kScanItems = 4; // neighbours a thread takes at a time

// float carries its running value in double, as on the CPU.
template <class T> struct Carry { using type = opmath_t<T>; };
template <> struct Carry<float> { using type = double; };
template <> struct Carry<complex<float>> { using type = complex<double>; };

template <class T> struct ScanSum {
  using A = typename Carry<T>::type;
  static constexpr bool kHasPositions = false;
  CRESSET_DEVICE_FN static A identity() { return A(0); }
  CRESSET_DEVICE_FN static A lift(T x, long) { return convert<A>(x); }
  CRESSET_DEVICE_FN static A fold(const A& a, const A& b) { return a + b; }
  CRESSET_DEVICE_FN static void put(const ScanArgs& a, long position, const A& v) {
    static_cast<T*>(a.out)[position] = convert<T>(v);
  }
};
template <class T> struct ScanProd : ScanSum<T> {
  using A = typename Carry<T>::type;
  CRESSET_DEVICE_FN static A identity() { return A(1); }
  CRESSET_DEVICE_FN static A fold(const A& a, const A& b) { return a * b; }
};
// log(e^a + e^b). Equal infinities are returned as they are; NaN wins.
template <class T> struct ScanLogSumExp : ScanSum<T> {
  using A = typename Carry<T>::type;
  using R = c10::real_type_t<A>;
  CRESSET_DEVICE_FN static A identity() { return A(-c10::numeric_limits<R>::infinity()); }
  CRESSET_DEVICE_FN static A fold(const A& a, const A& b) {
    if constexpr (c10::is_complex_v<A>) {
      const bool a_first = a.real_ >= b.real_;
      const A top = a_first ? a : b, low = a_first ? b : a;
      if (low.real_ == -c10::numeric_limits<R>::infinity()) return top;
      return top + vm::log(A(R(1)) + vm::exp(low - top));
    } else {
      if (a != a || b != b) return a + b;
      const A top = a >= b ? a : b, low = a >= b ? b : a;
      if (low == -c10::numeric_limits<R>::infinity() || top - top != A(0)) return top;
      return top + vm::log1p(vm::exp(low - top));
    }
  }
};
// The extreme so far and the position of the last such element; a NaN stays.
template <bool kMax, class T> struct ScanExtreme {
  static constexpr bool kHasPositions = true;
  using V = std::conditional_t<std::is_same_v<T, bool>, unsigned char, opmath_t<T>>;
  struct alignas(8) A {
    V value;
    long index; // negative: none
  };
  CRESSET_DEVICE_FN static A identity() { return {V(0), -1}; }
  CRESSET_DEVICE_FN static A lift(T x, long i) { return {convert<V>(x), i}; }
  CRESSET_DEVICE_FN static A fold(const A& a, const A& b) {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    const bool better = kMax ? b.value >= a.value : b.value <= a.value;
    return b.value != b.value || (a.value == a.value && better) ? b : a;
  }
  CRESSET_DEVICE_FN static void put(const ScanArgs& a, long position, const A& v) {
    static_cast<T*>(a.out)[position] = convert<T>(v.value);
    a.where[position] = v.index;
  }
};
template <class T> using ScanMax = ScanExtreme<true, T>;
template <class T> using ScanMin = ScanExtreme<false, T>;

template <class S, class T> struct ScanKernels {
  using A = typename S::A;

  // The fold of what all threads before this one hold; `total` receives that of the block. Doubling
  // distances within a warp, then over the warps' totals in shared memory.
  CRESSET_DEVICE_FN static A before(const A& own, A& total, A* shared) {
    constexpr int kWarps = kScanThreads / 32;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    A v = own;
    CRESSET_UNROLL
    for (int step = 1; step < 32; step *= 2) {
      const A below = shuffle_up(v, step);
      if (lane >= step) v = S::fold(below, v);
    }
    if (lane == 31) shared[warp] = v;
    const A left = shuffle_up(v, 1);
    __syncthreads();
    A ahead = S::identity();
    total = S::identity();
    CRESSET_UNROLL
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) ahead = total;
      total = S::fold(total, shared[w]);
    }
    __syncthreads();
    return lane == 0 ? ahead : S::fold(ahead, left);
  }

  // kScanItems neighbours from `first` on; those from `end` on are the identity.
  CRESSET_DEVICE_FN static void take(A* item, const T* in, long first, long end, bool aligned) {
    if (aligned && first + kScanItems <= end) {
      const Pack<T, kScanItems> x = load_pack<kScanItems>(in + first);
      CRESSET_UNROLL
      for (int k = 0; k < kScanItems; ++k) item[k] = S::lift(load<T>(&x.v[k]), first + k);
    } else {
      CRESSET_UNROLL
      for (int k = 0; k < kScanItems; ++k)
        item[k] = first + k < end ? S::lift(load<T>(in + first + k), first + k) : S::identity();
    }
  }

  // The first `count` of kScanItems running values, to `at` on.
  CRESSET_DEVICE_FN static void give(const ScanArgs& a, const A* item, long position, long count,
                                     bool aligned) {
    if constexpr (!S::kHasPositions) {
      if (aligned && count >= kScanItems) {
        Pack<T, kScanItems> r;
        CRESSET_UNROLL
        for (int k = 0; k < kScanItems; ++k) r.v[k] = convert<T>(item[k]);
        store_pack(static_cast<T*>(a.out) + position, r);
        return;
      }
    }
    CRESSET_UNROLL
    for (int k = 0; k < kScanItems; ++k)
      if (k < count) S::put(a, position + k, item[k]);
  }

  // One block per piece: running values from the piece's start, or its total alone.
  template <bool kTotals> CRESSET_DEVICE_FN static void walk_piece(const ScanArgs& a) {
    CRESSET_SHARED A shared[kScanThreads / 32];
    const long line = blockIdx.x / a.pieces, piece = blockIdx.x - line * a.pieces;
    const long begin = piece * a.chunk;
    const long end = begin + a.chunk < a.n ? begin + a.chunk : a.n;
    const T* in = static_cast<const T*>(a.in) + line * a.n;
    const T* out = static_cast<const T*>(a.out) + line * a.n;
    const bool aligned =
        (reinterpret_cast<unsigned long>(in) | reinterpret_cast<unsigned long>(out)) %
            (sizeof(T) * kScanItems) ==
        0;
    A* totals = static_cast<A*>(a.totals) + line * a.pieces;
    A carry = !kTotals && a.pieces > 1 && piece > 0 ? totals[piece - 1] : S::identity();
    for (long base = begin; base < end; base += kScanThreads * kScanItems) {
      const long first = base + static_cast<long>(threadIdx.x) * kScanItems;
      A item[kScanItems];
      take(item, in, first, end, aligned);
      CRESSET_UNROLL
      for (int k = 1; k < kScanItems; ++k) item[k] = S::fold(item[k - 1], item[k]);
      A total;
      const A ahead = S::fold(carry, before(item[kScanItems - 1], total, shared));
      if constexpr (!kTotals) {
        CRESSET_UNROLL
        for (int k = 0; k < kScanItems; ++k) item[k] = S::fold(ahead, item[k]);
        give(a, item, line * a.n + first, end - first, aligned);
      }
      carry = S::fold(carry, total);
    }
    if (kTotals && threadIdx.x == 0) totals[piece] = carry;
  }
  CRESSET_DEVICE_FN static void row(const ScanArgs& a) { walk_piece<false>(a); }
  CRESSET_DEVICE_FN static void total(const ScanArgs& a) { walk_piece<true>(a); }

  // One block per line: the totals become running totals.
  CRESSET_DEVICE_FN static void carry(const ScanArgs& a) {
    CRESSET_SHARED A shared[kScanThreads / 32];
    A* totals = static_cast<A*>(a.totals) + static_cast<long>(blockIdx.x) * a.pieces;
    A running = S::identity();
    for (long base = 0; base < a.pieces; base += kScanThreads) {
      const long i = base + threadIdx.x;
      const A own = i < a.pieces ? totals[i] : S::identity();
      A total;
      const A ahead = before(own, total, shared);
      if (i < a.pieces) totals[i] = S::fold(S::fold(running, ahead), own);
      running = S::fold(running, total);
    }
  }

  // One thread per line; neighbours read neighbours.
  CRESSET_DEVICE_FN static void column(const ScanArgs& a) {
    const long line = static_cast<long>(blockIdx.x) * kScanThreads + threadIdx.x;
    if (line >= a.lines) return;
    const long outer = line / a.inner;
    long position = outer * a.n * a.inner + (line - outer * a.inner);
    A running = S::identity();
    for (long i = 0; i < a.n; ++i, position += a.inner) {
      running = S::fold(running, S::lift(load<T>(static_cast<const T*>(a.in) + position), i));
      S::put(a, position, running);
    }
  }
};

} // namespace at::device

#define CRESSET_SCAN_FORM(op, form, type)                                                          \
  CRESSET_KERNEL(at::device::kScanThreads)                                                         \
  scan_##op##_##form##_##type(const __grid_constant__ at::device::ScanArgs args) {                 \
    at::device::ScanKernels<at::device::Scan##op<cresset_##type>, cresset_##type>::form(args);     \
  }
#define CRESSET_SCAN(op, type)                                                                     \
  CRESSET_SCAN_FORM(op, row, type)                                                                 \
  CRESSET_SCAN_FORM(op, total, type)                                                               \
  CRESSET_SCAN_FORM(op, carry, type)                                                               \
  CRESSET_SCAN_FORM(op, column, type)
