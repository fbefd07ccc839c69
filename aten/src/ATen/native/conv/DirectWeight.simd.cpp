// The loops of the weight's gradient, see DirectKernels.h. A register block is a few lines of
// neighbouring taps: their places are a base and a constant, so a handful of addresses serves all
// broadcasts.
#include <ATen/native/conv/DirectKernels.h>
#include <ATen/native/matmul/gemm/Vector.h>

namespace at::native::direct {
namespace CRESSET_ISA {
namespace {

using gemm::CRESSET_ISA::lanes;
using gemm::CRESSET_ISA::load;
using gemm::CRESSET_ISA::min_of;
using gemm::CRESSET_ISA::splat;
using gemm::CRESSET_ISA::store;
using gemm::CRESSET_ISA::Vec;

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kTaps = 14; // of 32 registers, with two of the gradient
#else
constexpr int kTaps = 6; // of 16
#endif
constexpr int kMostLines = 8; // as many addresses as there are registers for
constexpr int most_lines(int run) { return kTaps / run < kMostLines ? kTaps / run : kMostLines; }

template <class T, int LINES, int RUN, int VECTORS, int STEP>
void block(const LineSweep& s, const Line* lines) {
  constexpr int n = lanes<T>;
  Vec<T> sum[LINES][RUN][VECTORS];
#pragma GCC unroll 8
  for (int i = 0; i < LINES; ++i) {
#pragma GCC unroll 8
    for (int k = 0; k < RUN; ++k) {
#pragma GCC unroll 2
      for (int j = 0; j < VECTORS; ++j) sum[i][k][j] = Vec<T>{};
    }
  }
  const T* grad = static_cast<const T*>(s.grad);
  for (int64_t row = 0; row < s.rows; ++row) {
    const T* from[LINES];
#pragma GCC unroll 8
    for (int i = 0; i < LINES; ++i)
      from[i] = static_cast<const T*>(s.source) + row * s.row_step + lines[i].source;
    const int64_t end = s.cols * STEP;
    for (int64_t x = 0; x < end; x += STEP) {
      Vec<T> g[VECTORS];
#pragma GCC unroll 2
      for (int j = 0; j < VECTORS; ++j) g[j] = load<T>(grad + j * n);
      grad += VECTORS * n;
      // Loads broadcast for nothing; without this the compiler carries elements from one position
      // to the next in registers, and broadcasts those at the cost of a shuffle.
      __asm__ volatile("" ::: "memory");
#pragma GCC unroll 8
      for (int i = 0; i < LINES; ++i) {
#pragma GCC unroll 8
        for (int k = 0; k < RUN; ++k) {
          const Vec<T> value = splat<T>(from[i][x + k]);
#pragma GCC unroll 2
          for (int j = 0; j < VECTORS; ++j) sum[i][k][j] = sum[i][k][j] + value * g[j];
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < LINES; ++i) {
    T* to = static_cast<T*>(s.sums) + lines[i].sum;
#pragma GCC unroll 8
    for (int k = 0; k < RUN; ++k) {
#pragma GCC unroll 2
      for (int j = 0; j < VECTORS; ++j, to += n) store<T>(to, load<T>(to) + sum[i][k][j]);
    }
  }
}

using BlockFn = void (*)(const LineSweep&, const Line*);

// [step - 1][vectors - 1][run - 1][lines - 1]
template <class T> struct Blocks {
  BlockFn fn[2][kVectors][kLongestRun][kMostLines];
  constexpr Blocks() : fn() {
    fill_run<1>();
    fill_run<2>();
    fill_run<3>();
  }

 private:
  template <int RUN> constexpr void fill_run() {
    fill<RUN>(std::make_integer_sequence<int, most_lines(RUN)>());
  }
  template <int RUN, int... I> constexpr void fill(std::integer_sequence<int, I...>) {
    ((fn[0][0][RUN - 1][I] = &block<T, I + 1, RUN, 1, 1>), ...);
    ((fn[0][1][RUN - 1][I] = &block<T, I + 1, RUN, 2, 1>), ...);
    ((fn[1][0][RUN - 1][I] = &block<T, I + 1, RUN, 1, 2>), ...);
    ((fn[1][1][RUN - 1][I] = &block<T, I + 1, RUN, 2, 2>), ...);
  }
};
template <class T> constexpr Blocks<T> kBlocks{};

template <class T> void sweep(const LineSweep& s) {
  const auto& table = kBlocks<T>.fn[s.col_step - 1][s.vectors - 1][s.run - 1];
  const int64_t most = most_lines(s.run), blocks = (s.count + most - 1) / most;
  int64_t begin = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t end = s.count * (b + 1) / blocks;
    table[end - begin - 1](s, s.lines + begin);
    begin = end;
  }
}

} // namespace

LineFn lines(c10::ScalarType type) {
  if (type == c10::ScalarType::Float) return &sweep<float>;
  if (type == c10::ScalarType::Double) return &sweep<double>;
  return nullptr;
}
} // namespace CRESSET_ISA
} // namespace at::native::direct
