// Grid sampling on registers, compiled for each instruction set: the taps of a block of points,
// and the two sums over them that read the input. A tap is an element of the input with its weight;
// up to 16 of them make a sample (docs of the modes: GridSample.h).
#pragma once
#include <ATen/native/interpolate/GridSample.h>

#include <memory>
#include <type_traits>

namespace at::native::interpolate {

constexpr int64_t kGridBlock = 256; // points per block

// The taps of a block, tap by tap: that of point i stands at t * kGridBlock + i. An index of -1
// means that there is no element, because the tap lies outside and padding is with zeros. Arrays
// are filled up to a whole register after the last point. float counts elements in 32 bits.
template <class A> struct GridBlock {
  using Index = std::conditional_t<sizeof(A) == sizeof(float), int, long>;
  int taps;
  bool slopes;                      // whether derivatives are wanted
  std::unique_ptr<A[]> coordinates; // x of all points, then y, then z
  std::unique_ptr<Index[]> index;
  // Taps 2 j and 2 j + 1 are neighbours in a row where interpolation is linear: where the two
  // elements stand of which they are one or both. Empty where it does not serve.
  std::unique_ptr<Index[]> pair;
  std::unique_ptr<A[]> weight;
  std::unique_ptr<A[]> slope[3]; // of the weight, by x, y, z

  GridBlock(const GridGeometry& g, bool with_slopes) : taps(1), slopes(with_slopes) {
    const int along = g.mode == GridMode::Nearest ? 1 : g.mode == GridMode::Cubic ? 4 : 2;
    for (int d = 0; d < g.dims; ++d) taps *= along;
    coordinates.reset(new A[3 * kGridBlock]);
    index.reset(new Index[taps * kGridBlock]);
    if (std::is_same_v<A, float> && along == 2 && g.size[2] > 1)
      pair.reset(new Index[taps / 2 * kGridBlock]);
    weight.reset(new A[taps * kGridBlock]);
    for (int d = 0; d < (slopes ? 3 : 0); ++d) slope[d].reset(new A[taps * kGridBlock]);
  }

  // f(element, weight) for the taps of point p that have an element.
  template <class F> void for_taps(int64_t p, const F& f) const { for_taps(p, weight, f); }
  template <class F>
  void for_taps(int64_t p, const std::unique_ptr<A[]>& factor, const F& f) const {
    for (int64_t spot = p; spot < taps * kGridBlock; spot += kGridBlock)
      if (index[spot] >= 0) f(index[spot], factor[spot]);
  }
};

template <class A> struct GridLoops {
  // Taps of the n points whose coordinates are in the block.
  void (*find)(const GridGeometry& g, int64_t n, GridBlock<A>& block);
  // out[i] = the sample of point i.
  void (*sample)(const GridBlock<A>& block, const A* plane, A* out, int64_t n);
  // sums[d][i] += grad[i] * the sample's derivative by coordinate d.
  void (*slopes)(const GridBlock<A>& block, int dims, const A* plane, const A* grad, int64_t n,
                 A* const* sums);
};

namespace base {
GridLoops<float> float_grid();
GridLoops<double> double_grid();
} // namespace base
namespace avx2 {
GridLoops<float> float_grid();
GridLoops<double> double_grid();
} // namespace avx2
namespace avx512 {
GridLoops<float> float_grid();
GridLoops<double> double_grid();
} // namespace avx512

} // namespace at::native::interpolate
