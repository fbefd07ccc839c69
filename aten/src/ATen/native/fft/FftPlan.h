// What is known about a discrete Fourier transform before its data: the order of radices, the roots
// of unity, and for lengths with a large prime factor the convolution that stands in for them.
// Plans are made once per length and element type and shared by all threads.
#pragma once
#include <ATen/native/RawTable.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace at::native::fft {

// Above this a prime factor is computed as a convolution (Bluestein), below by its definition.
constexpr int kLargestRadix = 61;
// Above this many elements a line's own lanes would leave the second-level cache.
constexpr int64_t kLongLine = 8192;

// One pass of the self-sorting (Stockham) algorithm: a length of radix * m at stride s. For each of
// the m groups the table holds radix - 1 factors, real and imaginary part in turn; `roots` are the
// radix-th roots of unity in the same form, for odd radices.
template <class T> struct FftStep {
  int radix = 1;
  int64_t m = 1, s = 1;
  std::vector<T> twiddles, roots;
};

template <class T> struct FftPlan {
  int64_t n = 1;
  std::vector<FftStep<T>> steps;
  // Bluestein: x is multiplied by the chirp, convolved with its inverse by transforms of a power of
  // two, and multiplied by the chirp again. `spectrum` holds the convolution's kernel, transformed
  // and divided by its length. From kLongLine on `inner` has no steps, only its length: such lines
  // are split.
  std::shared_ptr<const FftPlan> inner;
  RawTable<T> chirp, spectrum;

  // Elements of room a transform needs in each of its two buffers.
  int64_t room() const { return inner ? inner->n : n; }
};

// A long transform as n1 rows of n2 columns: transforms of the columns, a multiplication by the
// n-th roots `re`, `im` (n1 rows of `pitch` values), transforms of the rows.
template <class T> struct FftSplit {
  int64_t n1 = 1, n2 = 1, pitch = 1;
  std::shared_ptr<const FftPlan<T>> columns, rows;
  RawTable<T> re, im;
};

// Whether n has a large prime factor, and FftPlan::room of its plan, without making it.
struct FftShape {
  bool convolved;
  int64_t room;
};
FftShape fft_shape(int64_t n);

// Requires n >= 1; every n works, up to memory. The results are never null.
template <class T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n);
// Null when n has no divisor near its square root (or a large prime factor).
template <class T> std::shared_ptr<const FftSplit<T>> fft_split(int64_t n);
// e^(-2 pi i k / n) for k up to n / 2, real and imaginary part in turn.
template <class T> std::shared_ptr<const RawTable<T>> fft_roots(int64_t n);

extern template std::shared_ptr<const FftPlan<float>> fft_plan<float>(int64_t);
extern template std::shared_ptr<const FftPlan<double>> fft_plan<double>(int64_t);
extern template std::shared_ptr<const FftSplit<float>> fft_split<float>(int64_t);
extern template std::shared_ptr<const FftSplit<double>> fft_split<double>(int64_t);
extern template std::shared_ptr<const RawTable<float>> fft_roots<float>(int64_t);
extern template std::shared_ptr<const RawTable<double>> fft_roots<double>(int64_t);

} // namespace at::native::fft
