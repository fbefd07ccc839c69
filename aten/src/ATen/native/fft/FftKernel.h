// The transform of one block of lines, side by side: lane l of every register belongs to line l, so
// that a butterfly is plain arithmetic on registers, whatever the radix, and lines need neither be
// contiguous nor a power of two long.
#pragma once
#include <ATen/native/fft/FftPlan.h>

namespace at::native::fft {

// All offsets and steps count elements: complex numbers (two T) on a complex side, T on a real one.
template <class T> struct FftBlock {
  const FftPlan<T>* plan = nullptr;
  const T* in = nullptr;
  T* out = nullptr;
  int64_t in_step = 1, out_step = 1; // from one element of a line to the next
  const int64_t* in_at = nullptr;    // where each line begins; all lanes are read
  const int64_t* out_at = nullptr;   // only `count` lanes are written
  int count = 0;
  bool inverse = false;
  T scale = 1;
  // Factors for the results, element by element and lane by lane (FftSplit), or null.
  const T* factor_re = nullptr;
  const T* factor_im = nullptr;
  int64_t pitch = 0;
  // Two buffers of room values each, aligned to 64 bytes.
  T* a = nullptr;
  T* b = nullptr;
};

// `lanes` complex lines per block, or 2 * lanes real ones. Everything is read before anything is
// written, so that a block may be transformed in place.
template <class T> struct FftLoops {
  int lanes;
  void (*c2c)(const FftBlock<T>& block);
  // n real numbers to n / 2 + 1 complex ones, forward.
  void (*r2c)(const FftBlock<T>& block);
  // n / 2 + 1 complex numbers to n real ones, inverse; imaginary parts that a real signal cannot
  // have are ignored.
  void (*c2r)(const FftBlock<T>& block);

  int64_t room(const FftPlan<T>& plan) const { return (plan.room() + 2) * 2 * lanes; }
};

namespace base {
FftLoops<float> float_loops();
FftLoops<double> double_loops();
} // namespace base
namespace avx2 {
FftLoops<float> float_loops();
FftLoops<double> double_loops();
} // namespace avx2
namespace avx512 {
FftLoops<float> float_loops();
FftLoops<double> double_loops();
} // namespace avx512

} // namespace at::native::fft
