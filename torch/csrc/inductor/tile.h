// Fused loops without a compiler. A tile program is a list of 1-d loops of eager operators that
// runs over a few hundred elements at a time, so that everything between the first load and the
// last store stays in the first-level cache. The loops are those of eager calls, hence so are the
// bits.
//
// Elements are numbered by their place in memory: the outputs are dense and share one numbering, an
// input is either read by the same number, or one element for all, or by strides over it.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/iter/LoopTable.h>
#include <c10/util/SmallVector.h>

namespace at::iter {
struct PointwiseSpec;
}

namespace torch::inductor {

class Tier;

// Where an operand of a loop is found.
struct Place {
  enum class Kind : uint8_t {
    Register, // scratch of the tile
    Memory,   // an input or output read or written by the element's number
    Lone,     // one element of an input for all
    Rows,     // an input by strides
    Constant, // bytes in the program's pool
    LoneTemp, // scratch that holds one element for all
  };
  Kind kind = Kind::Register;
  uint8_t size = 0;  // bytes per element
  int16_t index = 0; // register, pointer, or place in the pool
  int16_t rows = -1; // Rows: entry of TileProgram::rows
};

// Strides of an input over the numbering, innermost first, sizes in elements, strides in bytes.
struct RowAccess {
  struct Dim {
    int64_t size, stride;
  };
  c10::SmallVector<Dim, 4> dims;
  int16_t scratch = 0; // register that takes rows copied together
  // The rows are one and the same: they are copied once, behind each other, and read from there.
  bool is_periodic() const;
};

struct TileStep {
  at::native::Loop1d loop;
  int32_t params = -1; // place in the pool, or -1
  uint8_t inputs = 0;
  bool lone = false; // computes one element for all
  Place out;
  std::array<Place, 4> in;
  // What the loop does, for those who write it as text: inputs of `from`, the result of `to`. The
  // first input of Where is bool.
  enum class Form : uint8_t { Other, Functor, Cast, Where };
  Form form = Form::Other;
  at::ScalarType from = at::ScalarType::Undefined, to = at::ScalarType::Undefined;
  const at::iter::PointwiseSpec* spec = nullptr;
};

struct TileProgram {
  std::vector<TileStep> steps;
  std::vector<RowAccess> rows;
  std::vector<char> pool; // numbers and parameters, 16-byte aligned entries
  int registers = 0;
  int lone_registers = 0;
  int register_size = 0;      // bytes of the widest element
  int64_t tile = 0;           // elements
  int64_t row_length = 0;     // tiles do not cross multiples of it; 0: any
  std::shared_ptr<Tier> tier; // of a finished program

  // Chooses the tile length once the steps are known.
  void finish();
  // The part of it that depends on sizes.
  void find_row_length();
  // Elements [begin, end); pointers[k] is where element 0 of pointer k lies.
  void run(char* const* pointers, int64_t begin, int64_t end) const;
  // All of it, shared between threads.
  void run_all(char* const* pointers, int64_t numel) const;
};

} // namespace torch::inductor
