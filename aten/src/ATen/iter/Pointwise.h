// Pointwise operators in one call: broadcasting, promotion, the choice of the output's strides,
// casts, threads and the meta device for every operator that is a table of 1-d loops. Compiled
// once; an operator is a PointwiseSpec constant.
#pragma once
#include <initializer_list>

#include <ATen/core/Tensor.h>
#include <ATen/iter/LoopTable.h>

namespace at::cuda {
struct PointwiseProgram;
}

namespace at::iter {

using native::LoopTable;
using native::OutKind;

enum class Promote : uint8_t {
  Default, // the common dtype of the operands
  Float,   // the same, integers and bool become the default floating dtype
  None,    // all operands must already have one dtype
};

// What becomes of a Python number that the dtype of the operation does not hold.
enum class NumberRule : uint8_t {
  Wrap,    // integers wrap around, floating numbers round or become infinite
  Wide,    // the same, but beside float16 and bfloat16 the number stays a float32: x * 0.1
  Checked, // out of range is an error, for operands and parameters
};

// An input: a tensor, or a Python number (which takes part in promotion as a wrapped number).
struct Operand {
  Operand(const Tensor& t) : tensor(&t) {}
  Operand(const Scalar& s) : tensor(nullptr), scalar(&s) {}
  const Tensor* tensor;
  const Scalar* scalar = nullptr;
};

struct PointwiseSpec {
  const char* name;              // "add": "add_cpu" in messages
  const LoopTable* const* loops; // by Isa
  uint8_t inputs;
  uint8_t params;
  OutKind out;
  Promote promote;
  const cuda::PointwiseProgram* cuda = nullptr; // null: not on CUDA
  NumberRule numbers = NumberRule::Wrap;
};

using Operands = std::initializer_list<Operand>;
// Scalar parameters (alpha, value, min, ...): converted to the compute dtype.
using Params = std::initializer_list<const Scalar*>;

TORCH_API Tensor pointwise(const PointwiseSpec& spec, Operands operands, Params params = {});
// In place on `self`, which is also the first operand.
TORCH_API Tensor& pointwise_(const PointwiseSpec& spec, Tensor& self, Operands operands,
                             Params params = {});
TORCH_API Tensor& pointwise_out(const PointwiseSpec& spec, Tensor& out, Operands operands,
                                Params params = {});

} // namespace at::iter
