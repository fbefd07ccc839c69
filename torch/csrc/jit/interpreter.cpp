// The interpreter. Registers of all running functions of a thread lie in one array: a call takes
// the next part and gives it back, so that a small function costs no allocation.
#include <torch/csrc/jit/fast.h>
#include <torch/csrc/jit/tasks.h>

#include <ATen/core/BoxedCall.h>
#include <ATen/core/CustomClass.h>
#include <ATen/parallel/Parallel.h>
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

void make_dict(Stack& stack, size_t n) {
  const std::vector<IValue> items = take_top(stack, n);
  auto dict = c10::make_intrusive<Dict>();
  for (size_t i = 0; i + 1 < n; i += 2) dict->set(items[i], items[i + 1]);
  stack.push_back(IValue::opaque(std::move(dict)));
}

// Tuples of methods written in C++ as tuples of scripted code.
IValue scripted(IValue value) {
  const auto* tuple = at::ivalue::opaque<at::TupleValue>(value);
  if (tuple == nullptr) return value;
  std::vector<IValue> items;
  for (const IValue& item : tuple->items) items.push_back(scripted(item));
  return make_tuple(std::move(items));
}

// A method of a class written in C++: it checks its arguments itself, but not their number.
void call_custom(Stack& stack, size_t n, const std::string& name) {
  const at::CustomClass& cls = at::CustomClass::of(stack[stack.size() - n]);
  const at::CustomMethod* method = cls.method(name);
  TORCH_CHECK(method != nullptr, cls.qualified_name(), " has no method '", name, "'");
  TORCH_CHECK(method->schema.arguments.size() == n, cls.qualified_name(), ".", name, " takes ",
              method->schema.arguments.size(), " arguments, not ", n);
  Stack arguments = take_top(stack, n);
  method->call(arguments);
  stack.push_back(arguments.empty() ? IValue() : scripted(std::move(arguments.back())));
}

void call_method(Stack& stack, size_t n, const std::string& name) {
  if (at::ivalue::opaque<torch::CustomClassHolder>(stack[stack.size() - n]))
    return call_custom(stack, n, name);
  Object& object = need<Object>(stack[stack.size() - n], "object");
  const auto found = object.cls->methods.find(name);
  TORCH_CHECK(found != object.cls->methods.end(), object.cls->name, " has no method '", name, "'");
  TORCH_CHECK(found->second->inputs == n, object.cls->name, ".", name, " takes ",
              found->second->inputs, " arguments, not ", n);
  const std::shared_ptr<Function> function = found->second;
  function->run(stack);
}

[[noreturn]] void rethrow_at(const std::string& place);

// Starts a call on another thread. Its errors name the place of the fork.
void fork(Stack& stack, std::shared_ptr<Function> function, std::string place, bool lazy) {
  std::vector<IValue> arguments = take_top(stack, function->inputs);
  auto work = [function = std::move(function), arguments = std::move(arguments),
               place = std::move(place)]() mutable {
    Stack own = std::move(arguments);
    try {
      function->run(own);
    } catch (...) {
      rethrow_at(place);
    }
    return own.empty() ? IValue() : std::move(own.back());
  };
  stack.push_back(lazy ? make<Future>(std::function<IValue()>(std::move(work)))
                       : IValue::opaque(launch(std::move(work))));
}

[[noreturn]] void not_a_tensor(const Instruction& in, int i, const IValue& found) {
  throw c10::Error(c10::str(in.entry->full_name(), ": expected a Tensor as argument ", i,
                            " but got ", found.kind()));
}

inline void check_tensors(const Instruction& in, const Stack& stack) {
  const IValue* first = stack.data() + stack.size() - in.inputs;
  for (uint64_t left = in.tensors; left; left &= left - 1) {
    const int i = __builtin_ctzll(left);
    if (C10_UNLIKELY(!first[i].isTensor())) not_a_tensor(in, i, first[i]);
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

std::string place_text(const Function& f, const Instruction& in) {
  return in.place < 0 ? c10::str("  in ", f.name, "\n") : f.places[size_t(in.place)];
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
  case Opcode::UnpackTuple:
  case Opcode::UnpackList: {
    const IValue whole = std::move(stack.back());
    stack.pop_back();
    spread(stack, whole, in.outputs);
    break;
  }
  case Opcode::MakeDict:
    make_dict(stack, in.inputs);
    break;
  case Opcode::NewObject:
    TORCH_CHECK(f.types[size_t(in.target)]->cls, "cannot make an object of type ",
                f.types[size_t(in.target)]->name);
    stack.push_back(make<Object>(f.types[size_t(in.target)]->cls));
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
    called(f, in);
    fork(stack, f.functions[size_t(in.target)], place_text(f, in), in.count != 0);
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
constexpr uint16_t kFewInputs = 4;

// Empties a register that was read for the last time.
inline void drop(int32_t operand, IValue* registers) {
  if (operand >= 0 && operand & 1) registers[operand >> 1] = IValue();
}

// An operator of a known signature. Its arguments stay where they are; registers that were read for
// the last time are emptied behind it.
inline void call_operator(const Function& f, const Instruction& in, IValue* registers) {
  const int32_t* operand = f.operands.data() + in.first;
  const IValue* arguments[kMostDirectArguments];
  for (uint16_t i = 0; i < in.inputs; ++i) arguments[i] = &operand_ref(f, operand[i], registers);
  for (uint64_t left = in.tensors; left; left &= left - 1) {
    const int i = __builtin_ctzll(left);
    if (C10_UNLIKELY(!arguments[i]->isTensor())) not_a_tensor(in, i, *arguments[i]);
  }
  IValue result = in.direct(*in.entry, arguments);
  for (uint16_t i = 0; i < in.inputs; ++i) drop(operand[i], registers);
  if (operand[in.inputs] >= 0) registers[operand[in.inputs]] = std::move(result);
}

// [1, n, ...]: a list of integers, as sizes are written.
inline bool list_of_integers(const Function& f, const Instruction& in, IValue* registers) {
  const int32_t* operand = f.operands.data() + in.first;
  c10::SmallVector<int64_t, 8> items;
  for (uint16_t i = 0; i < in.inputs; ++i) {
    const IValue& item = operand_ref(f, operand[i], registers);
    if (item.tag != IValue::Tag::Int) return false;
    items.push_back(item.bits.i);
  }
  const int32_t out = operand[in.inputs];
  if (out >= 0) registers[out] = IValue(at::IntArrayRef(items.data(), items.size()));
  return true;
}

// a, b = sizes
inline bool spread_integers(const Function& f, const Instruction& in, IValue* registers) {
  const int32_t* operand = f.operands.data() + in.first;
  const IValue list = operand_ref(f, operand[0], registers);
  if (list.tag != IValue::Tag::IntList) return false;
  const std::vector<int64_t>& items = list.toIntList();
  if (items.size() != in.outputs) return false;
  for (uint16_t i = 0; i < in.outputs; ++i)
    if (operand[1 + i] >= 0) registers[operand[1 + i]] = IValue(items[i]);
  return true;
}

// The one output of an instruction; -1 where nobody reads it.
inline void put_output(const Function& f, const Instruction& in, IValue* registers, IValue value) {
  const int32_t out = f.operands[size_t(in.first) + in.inputs];
  if (out >= 0) registers[out] = std::move(value);
}

inline void take_all(const Function& f, const Instruction& in, IValue* registers, IValue* to) {
  const int32_t* operand = f.operands.data() + in.first;
  for (uint16_t i = 0; i < in.inputs; ++i) to[i] = take_operand(f, operand[i], registers);
}

inline std::vector<IValue> inputs_of(const Function& f, const Instruction& in, IValue* registers) {
  std::vector<IValue> out(in.inputs);
  take_all(f, in, registers, out.data());
  return out;
}

// object.slot, and items of tuples: the holder stays in its register.
inline void read_slot(const Function& f, const Instruction& in, IValue* registers) {
  const int32_t holder = f.operands[size_t(in.first)];
  const Object& object = need<Object>(operand_ref(f, holder, registers), "object");
  IValue value = object.slots.at(size_t(in.target));
  drop(holder, registers);
  put_output(f, in, registers, std::move(value));
}
inline void write_slot(const Function& f, const Instruction& in, IValue* registers) {
  const int32_t* operand = f.operands.data() + in.first;
  const IValue holder = take_operand(f, operand[0], registers);
  Object& object = need<Object>(holder, "object");
  // What the slot held goes when the object is whole again: its end may run anything.
  const IValue before =
      std::exchange(object.slots.at(size_t(in.target)), take_operand(f, operand[1], registers));
  ++object.version;
}
inline void read_item(const Function& f, const Instruction& in, IValue* registers) {
  const int32_t holder = f.operands[size_t(in.first)];
  const std::vector<IValue>& items = need<Tuple>(operand_ref(f, holder, registers), "tuple").items;
  IValue value = items[checked_index(in.target, items.size(), "tuple")];
  drop(holder, registers);
  put_output(f, in, registers, std::move(value));
}

// a, b = tuple
inline bool spread_tuple(const Function& f, const Instruction& in, IValue* registers) {
  const int32_t* operand = f.operands.data() + in.first;
  const IValue whole = operand_ref(f, operand[0], registers);
  const Tuple* tuple = as<Tuple>(whole);
  if (tuple == nullptr || tuple->items.size() != in.outputs) return false;
  drop(operand[0], registers);
  for (uint16_t i = 0; i < in.outputs; ++i)
    if (operand[1 + i] >= 0) registers[operand[1 + i]] = tuple->items[i];
  return true;
}

inline bool make_list_directly(const Function& f, const Instruction& in, IValue* registers) {
  const Type& element = *f.types[size_t(in.target)];
  if (element.kind == Type::Kind::Int && list_of_integers(f, in, registers)) return true;
  const int32_t* operand = f.operands.data() + in.first;
  IValue list = new_list(element);
  for (uint16_t i = 0; i < in.inputs; ++i) list_push(list, operand_ref(f, operand[i], registers));
  for (uint16_t i = 0; i < in.inputs; ++i) drop(operand[i], registers);
  put_output(f, in, registers, std::move(list));
  return true;
}

// Inputs side by side without a count of their references: the registers keep them meanwhile.
struct Lent {
  Lent(const Function& f, const Instruction& in, const IValue* registers) {
    const int32_t* operand = f.operands.data() + in.first;
    for (uint16_t i = 0; i < in.inputs; ++i) {
      const IValue& value = operand_ref(f, operand[i], registers);
      values[i].tag = value.tag;
      values[i].bits = value.bits;
      values[i].ref = c10::intrusive_ptr<c10::intrusive_ptr_target>::reclaim(value.ref.get());
    }
  }
  ~Lent() {
    for (IValue& value : values) value.ref.release();
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  IValue values[kFewInputs];
};

inline bool run_builtin(const Function& f, const Instruction& in, IValue* registers) {
  if (in.inputs > kFewInputs || in.outputs > 1) return false;
  Lent arguments(f, in, registers);
  IValue result = in.builtin(arguments.values, in.inputs);
  for (uint16_t i = 0; i < in.inputs; ++i) drop(f.operands[size_t(in.first) + i], registers);
  if (in.outputs == 1) put_output(f, in, registers, std::move(result));
  return true;
}

// What needs no stack: operators of known signatures, parts of values and values of parts, builtins
// of few inputs. False for any other instruction.
inline bool run_directly(const Function& f, const Instruction& in, IValue* registers) {
  if (in.direct != nullptr) {
    call_operator(f, in, registers);
    return true;
  }
  switch (in.op) {
  case Opcode::Builtin:
    return run_builtin(f, in, registers);
  case Opcode::GetSlot:
    read_slot(f, in, registers);
    return true;
  case Opcode::SetSlot:
    write_slot(f, in, registers);
    return true;
  case Opcode::TupleItem:
    read_item(f, in, registers);
    return true;
  case Opcode::MakeTuple:
    put_output(f, in, registers,
               make_tuple(inputs_of(f, in, registers),
                          in.target < 0 ? nullptr : f.types[size_t(in.target)]));
    return true;
  case Opcode::MakeList:
    return make_list_directly(f, in, registers);
  case Opcode::UnpackTuple:
    return spread_tuple(f, in, registers);
  case Opcode::UnpackList:
    return spread_integers(f, in, registers);
  default:
    return false;
  }
}

// Loops may have no end: every so many turns the program may ask for one (Ctrl-C). `turns` counts
// jumps back within one call.
inline void count_turn(uint32_t& turns) {
  constexpr uint32_t kTurnsBetweenPolls = 1024;
  if (++turns % kTurnsBetweenPolls == 0) at::check_interrupt();
}

inline bool run_dict(const Function& f, const Step& step, IValue* registers) {
  Dict* dict = as<Dict>(operand_ref(f, step.a, registers));
  if (dict == nullptr) return false;
  const IValue& key = operand_ref(f, step.b, registers);
  if (step.op == Fast::SetDictItem) {
    dict->set(key, operand_ref(f, step.c, registers));
    drop(step.c, registers);
    drop(step.b, registers);
    drop(step.a, registers);
    return true;
  }
  const IValue* found = dict->find(key);
  if (step.op == Fast::DictContains) {
    put(registers[step.out], found != nullptr);
    return true;
  }
  if (found == nullptr) return false; // the builtin reports it
  IValue value = *found;
  registers[step.out] = std::move(value);
  return true;
}

// A step with a part of a value; false where the instruction itself must run.
inline bool run_part(const Function& f, const Step& step, IValue* registers) {
  const IValue& a = operand_ref(f, step.a, registers);
  switch (step.op) {
  case Fast::Not:
    if (a.tag != IValue::Tag::Bool) return false;
    put(registers[step.out], a.bits.i == 0);
    return true;
  case Fast::Length:
    if (!is_list(a)) return false;
    put(registers[step.out], static_cast<int64_t>(list_size(a)));
    return true;
  case Fast::Item:
    return item_step(a, operand_ref(f, step.b, registers), registers[step.out]);
  case Fast::Append:
    if (step.out >= 0 || !append_step(a, operand_ref(f, step.b, registers))) return false;
    break;
  case Fast::SetItem:
    if (step.out >= 0 ||
        !set_item_step(a, operand_ref(f, step.b, registers), operand_ref(f, step.c, registers)))
      return false;
    drop(step.c, registers);
    break;
  case Fast::GetSlot: {
    const Object* object = as<Object>(a);
    if (object == nullptr || size_t(step.b) >= object->slots.size()) return false;
    IValue value = object->slots[size_t(step.b)];
    drop(step.a, registers);
    registers[step.out] = std::move(value);
    return true;
  }
  case Fast::SetSlot: {
    Object* object = as<Object>(a);
    if (object == nullptr || size_t(step.c) >= object->slots.size()) return false;
    ++object->version;
    // What the slot held goes last: its end may run anything.
    const IValue old =
        std::exchange(object->slots[size_t(step.c)], take_operand(f, step.b, registers));
    drop(step.a, registers);
    return true;
  }
  default:
    return run_dict(f, step, registers);
  }
  drop(step.b, registers);
  drop(step.a, registers);
  return true;
}

// A step with numbers; false where the instruction itself must run. `at` moves on by jumps.
inline bool run_step(const Function& f, const Step& step, IValue* registers, size_t& at,
                     uint32_t& turns) {
  const IValue& a = operand_ref(f, step.a, registers);
  switch (step.op) {
  case Fast::Jump:
    if (size_t(step.target) <= at) count_turn(turns);
    at = size_t(step.target) - 1;
    return true;
  case Fast::JumpIfNot:
    if (!(a.tag == IValue::Tag::Bool ? a.bits.i != 0 : a.toBool())) at = size_t(step.target) - 1;
    return true;
  case Fast::Move:
    if (a.ref) {
      registers[step.out] = take_operand(f, step.a, registers);
    } else {
      IValue& out = registers[step.out];
      if (out.ref) out.ref.reset();
      out.tag = a.tag;
      out.bits = a.bits;
    }
    return true;
  case Fast::None:
    return false;
  default:
    break;
  }
  if (step.op >= Fast::Not) return run_part(f, step, registers);
  const IValue& b = operand_ref(f, step.b, registers);
  const bool integers = a.tag == IValue::Tag::Int && b.tag == IValue::Tag::Int;
  if (!integers && (!holds_number(a) || !holds_number(b))) return false;
  if (!is_comparison(step.op))
    return integers ? integer_step(step.op, a.bits.i, b.bits.i, registers[step.out])
                    : real_step(step.op, real_number(a), real_number(b), registers[step.out]);
  const bool is = integers ? compare(step.op, a.bits.i, b.bits.i)
                           : compare(step.op, real_number(a), real_number(b));
  if (step.target < 0) {
    put(registers[step.out], is);
  } else {
    at = is ? at + 1 : size_t(step.target) - 1;
  }
  return true;
}

// The traceback of scripted code, innermost last, in front of the message.
constexpr const char* kHeader = "The following operation failed in the TorchScript interpreter.\n"
                                "Traceback of TorchScript (most recent call last):\n";

// A recursion would repeat its place hundreds of times.
constexpr size_t kLongestTraceback = 20000;

std::string with_place(const std::string& place, std::string text) {
  if (text.size() > kLongestTraceback) return text;
  if (text.rfind(kHeader, 0) == 0)
    return kHeader + place + text.substr(std::string_view(kHeader).size());
  return kHeader + place + "RuntimeError: " + text;
}

// The current error again, with a place in front of its traceback.
void rethrow_at(const std::string& place) {
  try {
    throw;
  } catch (const ScriptError& e) {
    throw ScriptError(with_place(place, e.what()), e.cls, e.plain);
  } catch (const c10::NotImplementedError& e) {
    throw c10::NotImplementedError(with_place(place, e.what()));
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::InterruptedError&) {
    throw;
  } catch (const c10::Error& e) {
    throw c10::Error(with_place(place, e.what()));
  }
}

} // namespace

void Function::run(Stack& stack) {
  TORCH_CHECK(defined, "the scripted function '", name, "' has no code");
  TORCH_INTERNAL_ASSERT(stack.size() >= inputs, name);
  Frame frame(register_file(), registers);
  const size_t base = stack.size() - inputs;
  for (size_t i = 0; i < inputs; ++i) frame.registers[i] = std::move(stack[base + i]);
  stack.resize(base);
  execute(frame.registers, stack, nullptr);
}

// A call from other scripted code: arguments and result go from register to register.
void Function::call(const Function& caller, const Instruction& in, IValue* registers,
                    Stack& stack) {
  TORCH_CHECK(inputs == in.inputs, "'", name, "' takes ", inputs, " arguments, not ", in.inputs);
  TORCH_CHECK(defined, "the scripted function '", name, "' has no code");
  IValue result;
  bool is_one = false;
  {
    Frame frame(register_file(), this->registers);
    take_all(caller, in, registers, frame.registers);
    is_one = execute(frame.registers, stack, in.outputs == 1 ? &result : nullptr);
  }
  if (is_one)
    put_output(caller, in, registers, std::move(result));
  else
    pop_outputs(caller, in, registers, stack);
}

bool Function::execute(IValue* regs, Stack& stack, IValue* result) {
  const size_t base = stack.size();
  size_t at = 0;
  uint32_t turns = 0;
  // After an error no instruction is left to end the blocks that changed the gradient mode.
  const bool grad_mode = c10::tls_autograd_state.grad_mode;
  try {
    for (;; ++at) {
      if (run_step(*this, steps[at], regs, at, turns)) continue;
      const Instruction& in = code[at];
      if (run_directly(*this, in, regs)) continue;
      if (in.op == Opcode::Call) {
        functions[size_t(in.target)]->call(*this, in, regs, stack);
        continue;
      }
      if (in.op == Opcode::Return && in.inputs == 1 && result != nullptr) {
        *result = take_operand(*this, operands[size_t(in.first)], regs);
        return true;
      }
      push_inputs(*this, in, regs, stack);
      if (in.op == Opcode::Return) return false;
      if (in.op != Opcode::Move) perform(*this, in, stack);
      pop_outputs(*this, in, regs, stack);
    }
  } catch (...) {
    stack.resize(base);
    c10::tls_autograd_state.grad_mode = grad_mode;
    rethrow_at(place_text(*this, code[at]));
  }
}

} // namespace torch::jit
