// Conditions on sizes as one postfix program over 64-bit numbers. Leaves of the guard tree put the
// numbers of tensors and integers into slots as the tree is walked; the program runs at the end.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <cstdint>
#include <vector>

namespace torch::dynamo {

struct ShapeProgram {
  enum class Op : uint8_t {
    Slot,
    Const,
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    Neg,
    Min,
    Max,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Not,
    Assert
  };
  struct Step {
    Op op;
    int64_t value; // slot or constant
  };
  std::vector<int64_t> slots;
  std::vector<Step> steps;
  std::vector<int64_t> stack; // room for the deepest condition

  // The first condition that does not hold, or -1. A result that leaves 64 bits does not hold.
  int first_failure();
  int references = 0; // of leaves; touched under the GIL alone
};

// From a Python list of (name of an Op in lower case, number); throws ValueError for others.
ShapeProgram* new_shape_program(PyObject* steps, int64_t slots);

} // namespace torch::dynamo
