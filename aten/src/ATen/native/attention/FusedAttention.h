// What the host tells the fused attention kernels (FusedAttention.cuh, FusedAttentionBackward.cuh),
// and the sizes of their blocks. Read by host and device compilers.
#pragma once

#include <c10/macros/Macros.h>

namespace at::native::fused_attention {

// batch x head x row x dim; strides in elements, all multiples of 8, and `data` aligned to 16
// bytes. dim is contiguous.
struct Operand {
  void* data;
  long batch, head, row;
  template <class T> CRESSET_HD T* of_head(int b, int h) const {
    return static_cast<T*>(data) + b * batch + h * head;
  }
};

struct Problem {
  Operand q, k, v, out;
  float* lse; // batch x heads x queries: the logarithm of the sum of exponentials
  int heads;  // of the queries; `group` of them share a head of keys and values
  int group;
  int queries, keys;
  int dim;    // a multiple of 8; kernels are made for a width that is no smaller
  int causal; // query i sees keys 0 to i
  float scale;
};

struct Gradients {
  Problem forward;
  Operand grad, dq, dk, dv;
  // For each head `padded` values of lse / ln 2 (+inf past the last query), then as many of the
  // sum over dim of grad * out (0 there).
  float* rows;
  int padded; // queries rounded up to kPadding
};

constexpr int kPadding = 128;
constexpr float kLog2E = 1.4426950408889634f;

// The blocks of a kernel: warps, the rows it owns (a warp has kOwn / kWarps of them, in tiles of
// 16), the rows of each tile that passes by (two are in shared memory at a time), and how many of
// those are computed at a time, which bounds the registers that hold scores. kOwned operands have
// rows of the block's own; kValues says that two numbers of each passing row are there too.
template <int warps, int own, int passing, int part, int owned, bool values = false> struct Shape {
  static constexpr int kWarps = warps, kOwn = own, kPassing = passing, kPart = part;
  static constexpr int kThreads = warps * 32, kTiles = own / warps / 16;
  template <int kWidth>
  static constexpr unsigned kSharedBytes = (owned * own + 4 * passing) * (kWidth + 8) * 2 +
                                           (values ? 4 * passing * 4 : 0);
};

// By the width, 64 or 128: the output's kernel, that of the gradients of keys and values, and that
// of the gradient of queries.
template <int kWidth> struct ForwardShape : Shape<4, 128, 64, 64, 1> {};
template <int kWidth> struct KeyShape : Shape<8, 128, 64, 64, 2, true> {};
template <> struct KeyShape<64> : Shape<4, 128, 64, 32, 2, true> {};
template <int kWidth> struct QueryShape : Shape<4, 128, 32, 32, 2> {};
template <> struct QueryShape<64> : Shape<4, 128, 64, 32, 2> {};

} // namespace at::native::fused_attention
