// What the interpreter runs: flat instructions over a file of registers. The front end (torch/jit)
// lowers a graph to this form once; a run then calls operators by their registry entry, boxed, and
// knows neither names nor Python.
#pragma once
#include <ATen/core/Dispatcher.h>
#include <torch/csrc/jit/direct.h>
#include <torch/csrc/jit/values.h>

namespace torch::jit {

enum class Opcode : uint8_t {
  Operator,  // inputs -> outputs, entry
  Builtin,   // inputs -> outputs, builtin
  Move,      // inputs -> outputs, pairwise
  Jump,      // to `target`
  JumpIfNot, // inputs[0] is a bool
  MakeTuple, // type index or -1
  UnpackTuple,
  TupleItem, // index
  MakeList,  // type index of the element
  UnpackList,
  MakeDict,   // keys and values in turn
  NewObject,  // type index of the class
  GetSlot,    // slot
  SetSlot,    // slot; inputs: object, value
  Call,       // function index
  CallMethod, // name index; inputs: object, arguments
  IsInstance, // indices of types, `count` of them from `target`
  Cast,       // type index; throws when the value is of another type
  Fork,       // function index; with `count`, the call is made when its result is wanted
  External,   // external index: something outside (a Python function)
  Return,
  Last = Return,
};

// Takes `count` arguments and returns the result; several results come as a tuple, none as None.
// The arguments belong to the caller, who may only have lent them.
using BuiltinFn = IValue (*)(const IValue* arguments, size_t count);
struct Builtin {
  std::string schema; // "aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)"
  BuiltinFn fn;
};
// All builtins of the language, in a fixed order.
TORCH_API const std::vector<Builtin>& builtins();

// Where print() writes; a front end may take it over.
TORCH_API extern void (*print_line)(const std::string& text);

// Something a program calls that the interpreter does not know: made by the Python layer.
struct TORCH_API External : c10::intrusive_ptr_target {
  virtual void call(Stack& stack, size_t count) = 0;
};

// What the interpreter does itself with numbers and parts of values (see fast.h); where the values
// are others than expected, the instruction itself runs.
enum class Fast : uint8_t {
  None,
  Jump,
  JumpIfNot,
  Move,
  Add,
  Sub,
  Mul,
  FloorDiv,
  Mod,
  Div,
  Eq,
  Ne,
  Lt,
  Gt,
  Le,
  Ge,
  Not,
  Item, // list[i]
  SetItem,
  Append,
  Length, // of a list
  DictItem,
  SetDictItem,
  DictContains,
  GetSlot, // b: the slot
  SetSlot, // c: the slot
};
TORCH_API Fast fast_op_of(BuiltinFn builtin);

// The short form of an instruction. A comparison with a target is one with the jump behind it.
struct Step {
  Fast op = Fast::None;
  int32_t a = 0, b = 0, c = 0; // operands
  int32_t out = -1;            // register; -1 where nobody reads the result
  int32_t target = -1;
};

struct Instruction {
  Opcode op = Opcode::Return;
  uint16_t inputs = 0, outputs = 0;
  int32_t first = 0;  // in Function::operands: inputs, then outputs
  int32_t target = 0; // a jump's target, or an index into a table
  int32_t count = 0;
  int32_t place = -1; // in Function::places
  const at::OperatorEntry* entry = nullptr;
  uint64_t tensors = 0; // bits of arguments that must be tensors: kernels trust that they are
  BuiltinFn builtin = nullptr;
  DirectCall direct = nullptr; // of `entry`, made by check()
};

// An operand of an input is register * 2, plus one where this is the last use of the register, or
// -1 - constant. Of an output it is the register.
struct TORCH_API Function {
  std::string name;
  size_t inputs = 0, registers = 0;
  std::vector<Instruction> code;
  std::vector<Step> steps; // of `code`, made by check()
  std::vector<int32_t> operands;
  std::vector<IValue> constants;
  std::vector<TypePtr> types;
  std::vector<std::shared_ptr<Function>> functions;
  std::vector<c10::intrusive_ptr<External>> externals;
  std::vector<std::string> names;
  std::vector<std::string> places; // source lines, for errors
  bool defined = false;

  // Takes its arguments, the last `inputs` values of the stack, and leaves its results. Operand
  // numbers were checked by check().
  void run(Stack& stack);
  // Error unless every number in the code lies in its table: code may come from files. Called once
  // before the first run.
  void check();

 private:
  void make_steps();
  // From the first instruction to a Return, whose value goes to `result`; without it, or where
  // there are several, they are left on the stack. True when `result` was set.
  bool execute(at::IValue* regs, Stack& stack, at::IValue* result);
  void call(const Function& caller, const Instruction& in, at::IValue* registers, Stack& stack);
};

// raise in scripted code. `cls` is the qualified name of the Python class, or empty.
struct TORCH_API ScriptError : c10::Error {
  ScriptError(std::string text, std::string cls, std::string plain)
      : c10::Error(std::move(text)), cls(std::move(cls)), plain(std::move(plain)) {}
  ~ScriptError() override;
  std::string cls, plain;
};

} // namespace torch::jit
