// The inner loops of tiled attention, by element type. Matrices are row by row; widths (`n`, `m`)
// and distances of rows are multiples of `lanes`, filled up with zeros where there are fewer.
#pragma once
#include <cstdint>

namespace at::native::attention_loops {

template <class A> struct TiledLoops {
  int64_t lanes;
  // C[rows][n] = A[rows][k] B[k][n], added to C where `add`. Element (i, p) of A is
  // a[i * a_rs + p * a_cs]. The sum over k runs in order.
  void (*product)(int64_t rows, int64_t n, int64_t k, const A* a, int64_t a_rs, int64_t a_cs,
                  const A* b, int64_t b_rs, A* c, int64_t c_rs, bool add);
  // Scores of `keys` keys (rows, `pitch` apart) for m queries (columns) become exp(score - top),
  // where top[r] is the largest of query r so far, this block included. sum[r] is their sum,
  // factor[r] what everything gathered before has to be multiplied by.
  void (*softmax)(A* scores, int64_t keys, int64_t m, int64_t pitch, A* top, A* sum, A* factor);
  // exp(score - shift[r])
  void (*exponentials)(A* scores, int64_t keys, int64_t m, int64_t pitch, const A* shift);
  // to = from * factor, any n.
  void (*scaled_copy)(const A* from, int64_t n, A factor, A* to);
  // sum(a * b), any n.
  A (*dot)(const A* a, const A* b, int64_t n);
  // grad = p * (grad - mean[r])
  void (*score_gradients)(const A* p, A* grad, int64_t keys, int64_t m, int64_t pitch,
                          const A* mean);
};
struct TiledTable {
  TiledLoops<float> f32;
  TiledLoops<double> f64;
};
namespace base {
extern const TiledTable tiled_table;
}
namespace avx2 {
extern const TiledTable tiled_table;
}
namespace avx512 {
extern const TiledTable tiled_table;
}

} // namespace at::native::attention_loops
