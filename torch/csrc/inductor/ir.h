// Between a Program and a Plan: the operators of a graph for known shapes, each as what it does
// (a loop over elements, a reduction, a call) and which buffers it reads and writes. lower.cpp
// makes it, schedule.cpp groups it into steps.
#pragma once
#include <array>
#include <functional>

#include <torch/csrc/inductor/plan.h>
#include <torch/csrc/inductor/symbols.h>

namespace torch::inductor {

// An operand of a loop over elements: a number of the loop's dtype, or a tensor.
struct Source {
  bool is_number = false;
  std::array<char, 16> number{};
  int32_t buffer = -1;
  int32_t version = 0; // writes to the buffer before this use
  at::ScalarType dtype = at::ScalarType::Undefined;
  SymInt offset = 0; // elements
  // Strides over the result's numbering, innermost first, in elements.
  struct Dim {
    SymInt size, stride;
  };
  c10::SmallVector<Dim, 4> dims;
  bool is_linear(SymInt numel) const {
    return dims.empty() ? same(numel, 1) : dims.size() == 1 && same(dims[0].stride, 1);
  }
  bool is_lone() const { return dims.empty() || (dims.size() == 1 && same(dims[0].stride, 0)); }
};

// result[i] = loop(sources...), in the loop's dtype and then converted.
struct Body {
  at::native::Loop1d loop = nullptr;
  at::ScalarType compute = at::ScalarType::Undefined, produced = at::ScalarType::Undefined;
  bool mask_first = false; // the first source is bool whatever `compute` says
  c10::SmallVector<Source, 3> sources;
  std::array<char, 64> params{};
  bool has_params = false;
  const at::iter::PointwiseSpec* spec = nullptr; // whose loop it is; null for where and conversions
};

struct Item {
  enum class Kind : uint8_t { Loop, Constant, Call, Reduce };
  Kind kind = Kind::Call;
  std::string name;
  int32_t node = -1; // of the program
  at::Tensor result; // Loop, Constant, Reduce: on meta
  int32_t buffer = -1;
  Body body;                     // Loop
  std::array<char, 16> number{}; // Constant
  // Call
  const at::OperatorEntry* op = nullptr;
  std::vector<CallArg> args;
  std::vector<CallResult> results;
  std::vector<int32_t> writes; // buffers
  bool has_effect = false;
  RowForm row;
  // Reduce, of body.sources[0], which is the whole of its buffer in order
  at::native::reduce::ReduceCall reduction{nullptr};
  at::native::reduce::DimMask mask = 0;
  at::Tensor elements;
  std::vector<int32_t> reads; // buffers

  SymInt numel() const { return result.defined() ? result.sym_numel() : SymInt(0); }
};

struct Buffer {
  int32_t item = -1; // that makes it; -1: an input or constant
  bool is_output = false;
  at::Tensor meta; // keeps the storage that names it
};

// A graph for known shapes, or for symbols (Note [Plans with symbols]).
struct Lowered {
  at::Device device{at::kCPU}; // of all tensors
  std::vector<Item> items;
  std::vector<Buffer> buffers;
  std::vector<View> views;
  std::vector<Plan::Output> outputs;
  std::vector<int32_t> input_buffers, constant_buffers;
};

// Without `fuse` every operator is a call, in the order of the program. The plan runs on `device`,
// whatever that of inputs with symbols is.
Lowered lower(const Program& program, c10::ArrayRef<at::IValue> inputs, bool fuse,
              at::Device device);
// Moves the parts of `lowered` into the plan.
void schedule(Lowered& lowered, Plan& plan);

// Whether a kernel was registered at run time that a plan would run. A plan lies below autograd and
// autocast, whose kernels are registered when they are first used.
bool has_kernel_of_user(const at::OperatorEntry& op);

// The row form of a call, with `view_of` for its tensors; without a kernel where it has none.
RowForm row_form(const at::OperatorEntry& op, const at::Stack& args, const at::Stack& results,
                 const std::function<int32_t(const at::Tensor&)>& view_of);
// Puts steps that work on the same rows together.
void build_chains(Plan& plan);

// Marks calls that make gradients of attention, and those that join them.
void join_gradients(Plan& plan);
// The gradient that the results of such a call are parts of, side by side; undefined where they
// lie apart.
at::Tensor joined_gradient(const std::vector<at::Tensor>& parts, const View& expected);

// Marks calls that may add a gradient to a sum at once, and the steps that add otherwise.
void offer_sums(Plan& plan);

// Lets batch norms do what stands beside them.
void join_batch_norms(Plan& plan);

// Raised by lower() with `fuse` where a buffer is written that the graph made.
struct InnerWrite {};

} // namespace torch::inductor
