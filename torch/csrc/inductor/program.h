// A traced graph as the compiler takes it: operator calls with arguments that are constants or
// results of earlier nodes, and arithmetic on sizes. Nothing here depends on shapes; a Plan is made
// of a Program for the shapes it meets (plan.h).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>

namespace torch::inductor {

struct Arg {
  enum class Kind : uint8_t { Value, Node, List };
  Kind kind = Kind::Value;
  at::IValue value;       // Value
  int32_t node = -1;      // Node
  std::vector<Arg> items; // List
};

// What a node that makes a number does with its arguments.
enum class NumberOp : uint8_t {
  Add,
  Sub,
  Mul,
  FloorDiv,
  Mod,
  Neg,
  Max,
  Min,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  TrueDiv,
  Pow,
  And,
  Or,
  Not,
  ToFloat,
  ToInt,
  Last = ToInt,
};

struct Node {
  // The last three call other graphs, which only models in files have (aoti_model.h): one, one of
  // two by the first argument, or a step as long as a condition holds.
  enum class Kind : uint8_t { Input, Constant, Call, Item, Number, Graph, Branch, Loop };
  Kind kind = Kind::Call;
  std::string name;
  const at::OperatorEntry* op = nullptr; // Call
  std::vector<Arg> args;                 // Call: one per argument of the schema
  // Input, Constant: which one. Item: of which result. Loop: how many values go from step to step
  int64_t index = 0;
  NumberOp number = NumberOp::Add;
  std::vector<int32_t> graphs;
};

struct Program {
  std::vector<Node> nodes;
  std::vector<Arg> outputs;
  std::vector<at::Tensor> constants;
  int64_t inputs = 0;
  bool uses_offsets = false; // some operator reads storage offsets (as_strided)
  bool mutates = false;      // some operator writes to an argument
  // Which of its plans for CUDA are recorded as graphs (recordings.h).
  enum class Record : uint8_t { Never, LaunchBound, Always };
  Record record = Record::Never;
  // Whether plans for CUDA run operator by operator until their kernels are compiled.
  bool compile_in_background = false;

  TORCH_API void note(const at::OperatorEntry& op); // one of its nodes calls it
};

// ---- values, for those who run programs: `env` holds those of the nodes before
at::IValue number_result(NumberOp op, const std::vector<at::IValue>& in);
std::vector<at::IValue> values_of(const std::vector<Arg>& args, const std::vector<at::IValue>& env);
// The arguments of a call.
at::Stack stack_of(const Node& node, const std::vector<at::IValue>& env);
at::IValue item_of(const at::IValue& list, int64_t index);

// Raised for what the compiler does not take; the graph is then run as it is.
struct TORCH_API NotLowered : c10::NotImplementedError {
  using c10::NotImplementedError::NotImplementedError;
};

} // namespace torch::inductor
