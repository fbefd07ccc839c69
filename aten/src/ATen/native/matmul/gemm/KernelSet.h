// The contract between the driver (Gemm.cpp, compiled once) and the kernels (*.simd.cpp, compiled
// per instruction set): one table of plain function pointers per element type. Matrices are passed
// as bytes so that the driver needs no template.
//
// Vocabulary. A product is a sequence of *steps* along k, each a rank-1 update of accumulators kept
// in registers: a broadcast scalar of A times vectors of B. For real types a step is one k. A
// complex k is two real steps (row (Br|Bi) times Ar, then row (-Bi|Br) times Ai), so complex
// products use the real kernels. The bfloat16 dot-product instruction takes two k in a step.
// A *panel* is up to `nr` columns of B, packed step after step; its rows are as wide as the columns
// need, rounded up to whole vectors. A is read row by row with its steps contiguous.
#pragma once

#include <cstddef>
#include <cstdint>

namespace at::native::gemm {

enum class Elem : int { F32, F64, C64, C128, F16, BF16, U8, U16, U32, U64, Count };

// Steps of one k block: as long as four panels fit the second-level cache beside rows of A.
constexpr int64_t kBlockSteps = 512;

// One tile of C, at most some hundred rows and columns, with all steps of one range of k.
struct Tile {
  int64_t m, n, steps;
  const char* a;      // first row of the tile
  int64_t a_row;      // bytes from row to row
  const char* b;      // first panel of the tile (packed) or first column (not packed)
  int64_t b_panel;    // bytes from panel to panel
  int64_t b_step;     // bytes from step to step if not packed; 0 if packed
  const char* b_edge; // the packed last panel where B is not packed but n is not whole vectors
  char* c;            // C, in elements of the storage type
  int64_t c_rs, c_cs; // in elements
  char* acc;          // accumulators in the compute type, or nullptr to work in C itself
  int64_t acc_row;    // bytes from row to row of acc
  const void* alpha;  // acc_t<T>
  const void* beta;   // acc_t<T>
  const char* bias;   // of the tile's first column, or nullptr
  bool beta_zero, beta_one;
  bool first; // start from zero (or beta*C), else add to what acc or C holds
  bool last;  // write C from acc; ignored where acc is nullptr
};

// m <= kSkinnyRows rows of A times n columns of B, which is not packed, into acc. A is converted to
// the compute type, its k zero-padded to whole vectors. B is contiguous along k for dot() and
// along n for rows(); b_line is the distance of columns or rows in bytes.
struct SkinnyTile {
  int64_t m, n, k;
  const char* a;
  int64_t a_row; // bytes
  const char* b;
  int64_t b_line;
  char* acc;
  int64_t acc_row; // bytes; rows of acc are as long as whole vectors
};

constexpr int64_t kSkinnyRows = 8;

struct KernelSet {
  int elem_size;   // bytes of a storage element
  int acc_size;    // bytes of an accumulator of one element (complex: both parts)
  int mr, nr;      // rows and columns of the register block
  int vl;          // columns in one vector (complex: in one pair of vectors)
  int a_step;      // bytes of A per step
  int b_vec_step;  // bytes of packed B per step and vl columns
  int k_per_step;  // 1, or 2 for the bfloat16 dot product
  int steps_per_k; // 1, or 2 for complex
  bool a_in_place; // A may be used where it lies if its k is contiguous
  bool b_in_place; // B may be used where it lies if its n is contiguous
  bool c_in_place; // accumulators may live in C if its n is contiguous
  // rows x k of A into rows of `row` bytes, steps contiguous.
  void (*pack_a)(int64_t rows, int64_t k, const char* a, int64_t rs, int64_t cs, char* dst,
                 int64_t row);
  // k x cols (cols <= nr) of B into one panel, columns beyond cols zero up to a whole vector.
  void (*pack_b)(int64_t k, int64_t cols, const char* b, int64_t rs, int64_t cs, char* dst);
  void (*tile)(const Tile&);
  // The last stage of tile() alone: C = alpha * acc + beta * C + bias.
  void (*finish)(const Tile&);
  // Both nullptr for integers, complex numbers and the bfloat16 dot product.
  void (*dot)(const SkinnyTile&);
  void (*rows)(const SkinnyTile&);
  // total[i] += part[i], count real accumulators
  void (*add)(char* total, const char* part, int64_t bytes);

  int64_t steps(int64_t k) const { return (k * steps_per_k + k_per_step - 1) / k_per_step; }
  // Columns of acc are grouped by vectors, so a row is as long as whole vectors.
  int64_t acc_row_bytes(int64_t n) const { return (n + vl - 1) / vl * vl * acc_size; }
  int64_t panel_row_bytes(int64_t cols) const { return (cols + vl - 1) / vl * b_vec_step; }
};

// The sets of each instruction set: nullptr for an element of another file's.
namespace base {
const KernelSet* real_set(Elem elem);
const KernelSet* reduced_set(Elem elem);
const KernelSet* integer_set(Elem elem);
} // namespace base
#if defined(__x86_64__)
namespace avx2 {
const KernelSet* real_set(Elem elem);
const KernelSet* reduced_set(Elem elem);
const KernelSet* integer_set(Elem elem);
} // namespace avx2
namespace avx512 {
const KernelSet* real_set(Elem elem);
const KernelSet* reduced_set(Elem elem);
const KernelSet* integer_set(Elem elem);
} // namespace avx512
namespace avx512_bf16 {
const KernelSet* bf16_dot_set();
} // namespace avx512_bf16
#endif

} // namespace at::native::gemm
