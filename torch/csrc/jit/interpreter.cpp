// The interpreter. Registers of all running functions of a thread lie in one array: a call takes
// the next part and gives it back, so that a small function costs no allocation.
#include <torch/csrc/jit/program.h>

#include <ATen/core/BoxedCall.h>
#include <deque>

namespace torch::jit {

ScriptError::~ScriptError() = default;

namespace {

constexpr int kMaxDepth = 512;

// Chunks never move, so that a frame's registers stay where they are while others grow.
struct RegisterFile {
  static constexpr size_t kChunk = 1024;
  std::deque<std::vector<IValue>> chunks;
  size_t chunk = 0, used = 0;
  int depth = 0;

  IValue* take(size_t n) {
    while (chunk < chunks.size() && used + n > chunks[chunk].size()) ++chunk, used = 0;
    if (chunk == chunks.size()) {
      chunks.emplace_back(std::max(n, kChunk));
      used = 0;
    }
    IValue* out = chunks[chunk].data() + used;
    used += n;
    return out;
  }
};
RegisterFile& register_file() {
  thread_local auto* file = new RegisterFile; // values may outlive other thread-locals
  return *file;
}

struct Frame {
  Frame(RegisterFile& f, size_t n) : file(f), chunk(f.chunk), used(f.used), n(n) {
    TORCH_CHECK(f.depth < kMaxDepth, "maximum recursion depth exceeded in scripted code");
    registers = f.take(n);
    ++f.depth;
  }
  ~Frame() {
    for (size_t i = 0; i < n; ++i) registers[i] = IValue();
    file.chunk = chunk;
    file.used = used;
    --file.depth;
  }
  RegisterFile& file;
  size_t chunk, used, n;
  IValue* registers;
};

std::vector<IValue> take_top(Stack& stack, size_t n) {
  std::vector<IValue> out(std::make_move_iterator(stack.end() - static_cast<long>(n)),
                          std::make_move_iterator(stack.end()));
  stack.resize(stack.size() - n);
  return out;
}

[[noreturn]] void wrong_count(size_t wanted, size_t found) {
  throw c10::Error(c10::str("Expected ", wanted, " elements in a list but found ", found));
}
// Puts the parts of a tuple or list in its place on top of the stack.
void spread(Stack& stack, const IValue& value, size_t wanted) {
  const Tuple* tuple = as<Tuple>(value);
  const size_t found = tuple ? tuple->items.size() : list_size(value);
  if (found != wanted) wrong_count(wanted, found);
  for (size_t i = 0; i < found; ++i) stack.push_back(tuple ? tuple->items[i] : list_get(value, i));
}

void make_list(Stack& stack, size_t n, const Type& element) {
  const std::vector<IValue> items = take_top(stack, n);
  IValue list = new_list(element);
  for (const IValue& item : items) list_push(list, item);
  stack.push_back(std::move(list));
}

void make_dict(Stack& stack, size_t n) {
  const std::vector<IValue> items = take_top(stack, n);
  auto dict = c10::make_intrusive<Dict>();
  for (size_t i = 0; i + 1 < n; i += 2) dict->set(items[i], items[i + 1]);
  stack.push_back(IValue::opaque(std::move(dict)));
}

void call_method(Stack& stack, size_t n, const std::string& name) {
  Object& object = need<Object>(stack[stack.size() - n], "object");
  const auto found = object.cls->methods.find(name);
  TORCH_CHECK(found != object.cls->methods.end(), object.cls->name, " has no method '", name, "'");
  TORCH_CHECK(found->second->inputs == n, object.cls->name, ".", name, " takes ",
              found->second->inputs, " arguments, not ", n);
  const std::shared_ptr<Function> function = found->second;
  function->run(stack);
}

void fork(Stack& stack, Function& function) {
  auto future = c10::make_intrusive<Future>();
  try {
    function.run(stack);
    future->value = std::move(stack.back());
    stack.pop_back();
  } catch (const std::exception&) {
    future->error = std::current_exception();
  }
  future->done = true;
  stack.push_back(IValue::opaque(std::move(future)));
}

inline void check_tensors(const Instruction& in, const Stack& stack) {
  const IValue* first = stack.data() + stack.size() - in.inputs;
  for (uint64_t left = in.tensors; left; left &= left - 1) {
    const int i = __builtin_ctzll(left);
    TORCH_CHECK(first[i].isTensor(), in.entry->full_name(), ": expected a Tensor as argument ", i,
                " but got ", first[i].kind());
  }
}

void call_builtin(const Instruction& in, Stack& stack) {
  IValue result = in.builtin(stack.data() + stack.size() - in.inputs, in.inputs);
  stack.resize(stack.size() - in.inputs);
  if (in.outputs == 1) {
    stack.push_back(std::move(result));
  } else if (in.outputs > 1) {
    spread(stack, result, in.outputs);
  }
}

Function& called(const Function& f, const Instruction& in) {
  Function& callee = *f.functions[size_t(in.target)];
  TORCH_CHECK(callee.inputs == in.inputs, "'", callee.name, "' takes ", callee.inputs,
              " arguments, not ", in.inputs);
  return callee;
}

// What an instruction does between taking its inputs from registers and storing its outputs.
void perform(const Function& f, const Instruction& in, Stack& stack) {
  switch (in.op) {
  case Opcode::Operator:
    check_tensors(in, stack);
    at::call_boxed(*in.entry, in.inputs, stack);
    break;
  case Opcode::Builtin:
    call_builtin(in, stack);
    break;
  case Opcode::MakeTuple:
    stack.push_back(make_tuple(take_top(stack, in.inputs),
                               in.target < 0 ? nullptr : f.types[size_t(in.target)]));
    break;
  case Opcode::UnpackTuple:
  case Opcode::UnpackList: {
    const IValue whole = std::move(stack.back());
    stack.pop_back();
    spread(stack, whole, in.outputs);
    break;
  }
  case Opcode::TupleItem: {
    const IValue tuple = std::move(stack.back());
    const std::vector<IValue>& items = need<Tuple>(tuple, "tuple").items;
    stack.back() = items[checked_index(in.target, items.size(), "tuple")];
    break;
  }
  case Opcode::MakeList:
    make_list(stack, in.inputs, *f.types[size_t(in.target)]);
    break;
  case Opcode::MakeDict:
    make_dict(stack, in.inputs);
    break;
  case Opcode::NewObject:
    TORCH_CHECK(f.types[size_t(in.target)]->cls, "cannot make an object of type ",
                f.types[size_t(in.target)]->name);
    stack.push_back(make<Object>(f.types[size_t(in.target)]->cls));
    break;
  case Opcode::GetSlot: {
    const IValue holder = std::move(stack.back());
    const Object& object = need<Object>(holder, "object");
    stack.back() = object.slots.at(size_t(in.target));
    break;
  }
  case Opcode::SetSlot: {
    Object& object = need<Object>(stack[stack.size() - 2], "object");
    object.slots.at(size_t(in.target)) = std::move(stack.back());
    ++object.version;
    stack.resize(stack.size() - 2);
    break;
  }
  case Opcode::Call:
    called(f, in).run(stack);
    break;
  case Opcode::CallMethod:
    call_method(stack, in.inputs, f.names[size_t(in.target)]);
    break;
  case Opcode::IsInstance: {
    bool is = false;
    for (int32_t i = 0; i < in.count; ++i)
      is = is || is_instance(stack.back(), *f.types[size_t(in.target + i)]);
    stack.back() = IValue(is);
    break;
  }
  case Opcode::Cast:
    TORCH_CHECK(is_instance(stack.back(), *f.types[size_t(in.target)]), "expected a value of type ",
                f.types[size_t(in.target)]->name, " but got ",
                value_text(stack.back()).substr(0, 80));
    break;
  case Opcode::Fork:
    fork(stack, called(f, in));
    break;
  case Opcode::External:
    f.externals[size_t(in.target)]->call(stack, in.inputs);
    break;
  default:
    break;
  }
}

inline void push_inputs(const Function& f, const Instruction& in, IValue* registers, Stack& stack) {
  const int32_t* operand = f.operands.data() + in.first;
  for (uint16_t i = 0; i < in.inputs; ++i) {
    const int32_t o = operand[i];
    if (o < 0) {
      stack.push_back(f.constants[size_t(-1 - o)]);
    } else if (o & 1) {
      stack.push_back(std::move(registers[o >> 1]));
      registers[o >> 1] = IValue();
    } else {
      stack.push_back(registers[o >> 1]);
    }
  }
}

inline void pop_outputs(const Function& f, const Instruction& in, IValue* registers, Stack& stack) {
  const int32_t* operand = f.operands.data() + in.first + in.inputs;
  TORCH_INTERNAL_ASSERT(stack.size() >= in.outputs, f.name);
  for (size_t i = in.outputs; i-- > 0;) {
    if (operand[i] >= 0) registers[operand[i]] = std::move(stack.back());
    stack.pop_back();
  }
}

// The value of an input; a register that is read for the last time is emptied.
inline IValue take_operand(const Function& f, int32_t o, IValue* registers) {
  if (o < 0) return f.constants[size_t(-1 - o)];
  if (o & 1) {
    IValue out = std::move(registers[o >> 1]);
    registers[o >> 1] = IValue();
    return out;
  }
  return registers[o >> 1];
}

inline const IValue& operand_ref(const Function& f, int32_t o, const IValue* registers) {
  return o < 0 ? f.constants[size_t(-1 - o)] : registers[o >> 1];
}
// An integer is its own value: a register that is read for the last time need not be emptied.
inline bool run_int_op(IntOp op, const IValue& left, const IValue& right, IValue& out) {
  if (left.tag != IValue::Tag::Int || right.tag != IValue::Tag::Int) return false;
  const int64_t a = left.bits.i, b = right.bits.i;
  switch (op) {
  case IntOp::Add:
    out = IValue(int64_t(uint64_t(a) + uint64_t(b)));
    return true;
  case IntOp::Sub:
    out = IValue(int64_t(uint64_t(a) - uint64_t(b)));
    return true;
  case IntOp::Mul:
    out = IValue(int64_t(uint64_t(a) * uint64_t(b)));
    return true;
  case IntOp::FloorDiv:
  case IntOp::Mod: {
    if (b == 0 || b == -1) return false;
    const int64_t r = a % b;
    const bool below = r != 0 && ((r < 0) != (b < 0));
    out = IValue(op == IntOp::Mod ? r + (below ? b : 0) : a / b - below);
    return true;
  }
  case IntOp::Eq:
    out = IValue(a == b);
    return true;
  case IntOp::Ne:
    out = IValue(a != b);
    return true;
  case IntOp::Lt:
    out = IValue(a < b);
    return true;
  case IntOp::Gt:
    out = IValue(a > b);
    return true;
  case IntOp::Le:
    out = IValue(a <= b);
    return true;
  case IntOp::Ge:
    out = IValue(a >= b);
    return true;
  case IntOp::None:
    break;
  }
  return false;
}

constexpr uint16_t kFewInputs = 4;

// What arithmetic of scripted code consists of, without the stack: a move of one value, or a
// builtin of few inputs and one output. False for any other instruction.
inline bool run_directly(const Function& f, const Instruction& in, IValue* registers) {
  const int32_t* operand = f.operands.data() + in.first;
  if (in.outputs != 1 || operand[in.inputs] < 0) return false;
  if (in.op == Opcode::Move) {
    registers[operand[1]] = take_operand(f, operand[0], registers);
    return true;
  }
  if (in.op != Opcode::Builtin || in.inputs > kFewInputs) return false;
  if (in.int_op != IntOp::None &&
      run_int_op(in.int_op, operand_ref(f, operand[0], registers),
                 operand_ref(f, operand[1], registers), registers[operand[2]]))
    return true;
  IValue arguments[kFewInputs];
  for (uint16_t i = 0; i < in.inputs; ++i) arguments[i] = take_operand(f, operand[i], registers);
  registers[operand[in.inputs]] = in.builtin(arguments, in.inputs);
  return true;
}

// The traceback of scripted code, innermost last, in front of the message.
constexpr const char* kHeader = "The following operation failed in the TorchScript interpreter.\n"
                                "Traceback of TorchScript (most recent call last):\n";

std::string with_place(const Function& f, const Instruction& in, std::string text) {
  const std::string place =
      in.place < 0 ? c10::str("  in ", f.name, "\n") : f.places[size_t(in.place)];
  if (text.rfind(kHeader, 0) == 0)
    return kHeader + place + text.substr(std::string_view(kHeader).size());
  return kHeader + place + "RuntimeError: " + text;
}

} // namespace

void Function::run(Stack& stack) {
  TORCH_CHECK(defined, "the scripted function '", name, "' has no code");
  TORCH_INTERNAL_ASSERT(stack.size() >= inputs, name);
  Frame frame(register_file(), registers);
  IValue* const regs = frame.registers;
  const size_t base = stack.size() - inputs;
  for (size_t i = 0; i < inputs; ++i) regs[i] = std::move(stack[base + i]);
  stack.resize(base);
  const Instruction* in = code.data();
  // After an error no instruction is left to end the blocks that changed the gradient mode.
  const bool grad_mode = c10::tls_autograd_state.grad_mode;
  const auto unwind = [&] {
    stack.resize(base);
    c10::tls_autograd_state.grad_mode = grad_mode;
  };
  try {
    for (;; ++in) {
      if (in->op == Opcode::Jump) {
        in = code.data() + in->target - 1;
        continue;
      }
      if (in->op == Opcode::JumpIfNot) {
        if (!operand_ref(*this, operands[size_t(in->first)], regs).toBool())
          in = code.data() + in->target - 1;
        continue;
      }
      if (run_directly(*this, *in, regs)) continue;
      push_inputs(*this, *in, regs, stack);
      if (in->op == Opcode::Return) return;
      if (in->op != Opcode::Move) perform(*this, *in, stack);
      pop_outputs(*this, *in, regs, stack);
    }
  } catch (const ScriptError& e) {
    unwind();
    throw ScriptError(with_place(*this, *in, e.what()), e.cls, e.plain);
  } catch (const c10::NotImplementedError& e) {
    unwind();
    throw c10::NotImplementedError(with_place(*this, *in, e.what()));
  } catch (const c10::OutOfMemoryError&) {
    unwind();
    throw;
  } catch (const c10::Error& e) {
    unwind();
    throw c10::Error(with_place(*this, *in, e.what()));
  } catch (...) {
    unwind();
    throw;
  }
}

namespace {

void check_instruction(const Function& f, const Instruction& in) {
  auto within = [&](int64_t index, size_t size) {
    TORCH_CHECK(index >= 0 && size_t(index) < size, "malformed code of '", f.name, "'");
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
    if (in.target >= 0) within(in.target, f.types.size());
    break;
  case Opcode::MakeList:
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

} // namespace

void Function::check() {
  TORCH_CHECK(!code.empty() && code.back().op == Opcode::Return && registers >= inputs,
              "malformed code of '", name, "'");
  for (Instruction& in : code) {
    check_instruction(*this, in);
    if (in.op == Opcode::Builtin && in.inputs == 2) in.int_op = int_op_of(in.builtin);
  }
}

} // namespace torch::jit
