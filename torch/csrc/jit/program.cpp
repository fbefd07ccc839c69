// Before code runs: every number in it is checked, and short forms of instructions are made. See
// program.h.
#include <torch/csrc/jit/fast.h>

#include <ATen/core/FunctionSchema.h>

namespace torch::jit {
namespace {

void check_instruction(const Function& f, const Instruction& in) {
  auto within = [&](int64_t index, size_t size) {
    TORCH_CHECK(index >= 0 && size_t(index) < size, "malformed code of '", f.name, "'");
  };
  auto counts = [&](uint16_t inputs, uint16_t outputs) {
    TORCH_CHECK(in.inputs == inputs && in.outputs == outputs, "malformed code of '", f.name, "'");
  };
  if (in.inputs + in.outputs > 0) {
    within(in.first, f.operands.size());
    within(int64_t(in.first) + in.inputs + in.outputs - 1, f.operands.size());
  }
  for (uint16_t i = 0; i < in.inputs + in.outputs; ++i) {
    const int32_t o = f.operands[size_t(in.first) + i];
    if (i >= in.inputs) {
      if (o >= 0) within(o, f.registers);
    } else if (o < 0) {
      within(-1 - int64_t(o), f.constants.size());
    } else {
      within(o >> 1, f.registers);
    }
  }
  switch (in.op) {
  case Opcode::Operator:
    TORCH_CHECK(in.entry, "malformed code of '", f.name, "'");
    break;
  case Opcode::Builtin:
    TORCH_CHECK(in.builtin, "malformed code of '", f.name, "'");
    break;
  case Opcode::Jump:
    within(in.target, f.code.size());
    break;
  case Opcode::JumpIfNot:
    TORCH_CHECK(in.inputs == 1, "malformed code of '", f.name, "'");
    within(in.target, f.code.size());
    break;
  case Opcode::Move:
    TORCH_CHECK(in.inputs == in.outputs, "malformed code of '", f.name, "'");
    break;
  case Opcode::MakeTuple:
    counts(in.inputs, 1);
    if (in.target >= 0) within(in.target, f.types.size());
    break;
  case Opcode::GetSlot:
  case Opcode::TupleItem:
    counts(1, 1);
    break;
  case Opcode::SetSlot:
    counts(2, 0);
    break;
  case Opcode::UnpackTuple:
  case Opcode::UnpackList:
    counts(1, in.outputs);
    break;
  case Opcode::MakeList:
    counts(in.inputs, 1);
    within(in.target, f.types.size());
    break;
  case Opcode::NewObject:
  case Opcode::Cast:
    within(in.target, f.types.size());
    break;
  case Opcode::IsInstance:
    within(int64_t(in.target) + in.count - 1, f.types.size());
    break;
  case Opcode::Call:
  case Opcode::Fork:
    within(in.target, f.functions.size());
    break;
  case Opcode::CallMethod:
    within(in.target, f.names.size());
    break;
  case Opcode::External:
    within(in.target, f.externals.size());
    break;
  default:
    break;
  }
}

// How many inputs the builtin behind a short form has.
uint16_t inputs_of(Fast op) {
  switch (op) {
  case Fast::Not:
  case Fast::Length:
    return 1;
  case Fast::SetItem:
  case Fast::SetDictItem:
    return 3;
  default:
    return 2;
  }
}
// Whether the step writes its register; others are for what they do.
bool gives_value(Fast op) {
  return op != Fast::SetItem && op != Fast::Append && op != Fast::SetDictItem;
}

} // namespace

void Function::check() {
  TORCH_CHECK(!code.empty() && code.back().op == Opcode::Return && registers >= inputs,
              "malformed code of '", name, "'");
  for (Instruction& in : code) {
    check_instruction(*this, in);
    in.direct = nullptr;
    // The number of inputs is that of the schema: a signature reads as many arguments as it has.
    if (in.op == Opcode::Operator && in.outputs == 1 &&
        in.inputs == in.entry->schema().arguments.size())
      in.direct = direct_call_of(*in.entry);
  }
  make_steps();
}

void Function::make_steps() {
  std::vector<int> reads(registers, 0);
  std::vector<bool> is_target(code.size() + 1, false);
  for (const Instruction& in : code) {
    for (uint16_t i = 0; i < in.inputs; ++i) {
      const int32_t o = operands[size_t(in.first) + i];
      if (o >= 0) ++reads[size_t(o >> 1)];
    }
    if (in.op == Opcode::Jump || in.op == Opcode::JumpIfNot) is_target[size_t(in.target)] = true;
  }
  steps.assign(code.size(), Step());
  for (size_t i = 0; i < code.size(); ++i) {
    const Instruction& in = code[i];
    const int32_t* operand = operands.data() + in.first;
    Step& step = steps[i];
    if (in.op == Opcode::Jump) {
      step = {Fast::Jump, 0, 0, 0, -1, in.target};
      continue;
    }
    if (in.op == Opcode::JumpIfNot) {
      step = {Fast::JumpIfNot, operand[0], 0, 0, -1, in.target};
      continue;
    }
    if (in.op == Opcode::SetSlot) step = {Fast::SetSlot, operand[0], operand[1], in.target, -1, -1};
    int32_t out = in.outputs == 1 ? operand[in.inputs] : -1;
    if (out >= 0 && reads[size_t(out)] == 0) out = -1;
    if (in.op == Opcode::Move && in.outputs == 1 && out >= 0)
      step = {Fast::Move, operand[0], 0, 0, out, -1};
    if (in.op == Opcode::GetSlot && out >= 0)
      step = {Fast::GetSlot, operand[0], in.target, 0, out, -1};
    const Fast op = in.op == Opcode::Builtin ? fast_op_of(in.builtin) : Fast::None;
    if (op == Fast::None || in.outputs > 1 || in.inputs != inputs_of(op)) continue;
    if (out < 0 && gives_value(op)) continue;
    step = {op,  operand[0], in.inputs > 1 ? operand[1] : 0, in.inputs > 2 ? operand[2] : 0,
            out, -1};
    if (!is_comparison(op) || i + 1 >= code.size()) continue;
    const Instruction& next = code[i + 1];
    if (next.op != Opcode::JumpIfNot || is_target[i + 1]) continue;
    const int32_t read = operands[size_t(next.first)];
    if (read >= 0 && read >> 1 == step.out && reads[size_t(step.out)] == 1)
      step.target = next.target;
  }
}

} // namespace torch::jit
