// The pointwise part of one step of a recurrent layer, by element type: one row of n hidden units,
// gate after gate. The matrix products around it are gemm's.
#pragma once
#include <cstdint>

#include <ATen/iter/IsaTable.h>
#include <c10/core/ScalarType.h>

namespace at::native::rnn {

enum class Mode : int64_t { Lstm = 0, Gru = 1, Tanh = 2, Relu = 3 };
inline int64_t gate_count(Mode mode) { return mode == Mode::Lstm ? 4 : mode == Mode::Gru ? 3 : 1; }

struct Loops {
  // gates: i, f, g, o before their functions (4n), after them on return. c is replaced by the new
  // cell state. c_before and tanh_c, n values each for the backward, may be null.
  void (*lstm)(void* gates, void* c, void* h, void* c_before, void* tanh_c, int64_t n);
  // dc: the gradient of the new cell state, replaced by that of the old one.
  void (*lstm_backward)(const void* gates, const void* c_before, const void* tanh_c, const void* dh,
                        void* dc, void* dgates, int64_t n);
  // of_input, of_hidden: r, z, n before their functions (3n). h is replaced by the new state.
  // saved: r, z, n and the hidden part of n (4n) for the backward, may be null.
  void (*gru)(const void* of_input, const void* of_hidden, void* h, void* saved, int64_t n);
  // dh: the gradient of the new state, replaced by the part that goes straight to the old one.
  void (*gru_backward)(const void* saved, const void* h_before, void* dh, void* d_input,
                       void* d_hidden, int64_t n);
  // h: before the function, after it on return.
  void (*plain)(void* h, int64_t n, bool relu);
  void (*plain_backward)(const void* h, const void* dh, void* dgates, int64_t n, bool relu);
  // out = a + b; out = a * b
  void (*add)(const void* a, const void* b, void* out, int64_t n);
  void (*multiply)(const void* a, const void* b, void* out, int64_t n);

  // ---- the product with weights that stay the same over all steps, arranged once
  int64_t panel = 0; // columns side by side in the arrangement; 0: none for this type
  // The matrix with element (k, n) at w[n n_stride + k k_stride] as panels of `panel` columns,
  // ceil(n / panel) panel k elements.
  void (*arrange)(const void* w, int64_t n_stride, int64_t k_stride, int64_t n, int64_t k,
                  void* panels) = nullptr;
  // The columns of panels [begin, end) of c = a w, or of c += a w.
  void (*product)(const void* a, int64_t lda, int64_t rows, const void* panels, int64_t n,
                  int64_t k, int64_t begin, int64_t end, void* c, int64_t ldc, bool add) = nullptr;
};

struct Table {
  Loops loops[c10::NumScalarTypes] = {};
};
CRESSET_ISA_TABLE(Table);

} // namespace at::native::rnn
