// Normal form -> bytecode of Python 3.10.
//
// The inverse of decode_blocks.cpp. The stack is followed along all paths, because an exception is
// one value of the normal form and three of 3.10's, and so is what stands below it. The blocks that
// an instruction needs are its handler, the handler of that one, and so on; where a path comes from
// an instruction with other blocks, POP_BLOCK and SETUP_FINALLY are written between. A conditional
// jump that has to do so leads to a piece of code behind the rest. Cleanups of handlers (Note
// [Blocks as handlers]) are left out: the interpreter does what they do.
#include <torch/csrc/dynamo/code_writer.h>

#if PY_VERSION_HEX < 0x030B0000
#include <algorithm>
#include <optional>

namespace torch::dynamo {
namespace {

using python::check_status;
using python::checked;
using python::raise;

// Kinds of values of the normal form: a value, the mark of the raising place, the previous
// exception, the exception.
constexpr char kValue = 'v', kPlace = 'l', kPrevious = 'p', kError = 'x';
constexpr int kTriple = 3;

int width(char kind) { return kind == kValue ? 1 : kind == kPlace ? 0 : kTriple; }
int width(const std::string& kinds, size_t from) {
  int sum = 0;
  for (size_t i = from; i < kinds.size(); ++i) sum += width(kinds[i]);
  return sum;
}

struct Block {
  long handler;
  int depth;
  bool marks;   // the handler finds a mark of the raising place
  bool handles; // the handler runs
};

struct State {
  std::string kinds;
  std::vector<Block> blocks;
};

class BlockEncoder : CodeWriter {
 public:
  BlockEncoder(PyObject* list, PyObject* code, const EncodeOptions& options)
      : CodeWriter(list, code, options) {}
  PyRef run();

 private:
  // ---- paths
  bool is(size_t index, std::string_view name) const {
    return index < list_.size() && at(index)->opcode == op(name);
  }
  bool is(size_t index, std::string_view name, long arg) const {
    return is(index, name) && arg_of(index) == arg;
  }
  bool is_cleanup(size_t index) const {
    return is(index, "COPY", 3) && is(index + 1, "POP_EXCEPT") && is(index + 2, "RERAISE", 1);
  }
  bool is_entry(size_t index) const {
    return is(index, "PUSH_EXC_INFO") || is(index, "END_ASYNC_FOR");
  }
  std::vector<Block> wanted(size_t index, size_t nesting = 0) const;
  void follow();
  void reach(size_t index, State state);
  State after(size_t index, const State& before, bool jump) const;
  int effect(size_t index, bool jump) const;
  // What has to be written between a state and an instruction, and the state there.
  struct Change {
    int popped = 0;
    std::vector<Block> pushed;
    bool enters = false; // a handler, by a jump instead of an exception
    bool empty() const { return popped == 0 && pushed.empty() && !enters; }
  };
  Change change(State& state, size_t to) const;

  // ---- writing
  size_t write(size_t index); // how many instructions it stood for
  size_t write_pattern(size_t index);
  size_t write_swap(size_t index);
  size_t write_copy(size_t index);
  size_t write_yield_from(size_t index);
  void write_change(size_t source, State from, size_t to);
  void write_setup(size_t source, const State& state, const Block& block);
  void write_entry(size_t source, const State& state, size_t to);
  void write_jump(size_t index);
  void write_rotation(size_t source, int count);
  void write_stored(size_t index);
  void write_operand(size_t index);
  void write_trampolines();
  int temporary(const std::string& name);
  int cell(PyObject* name) const;
  long jump_arg(const Out& out) const override;
  std::string line_table() const;
  PyRef qualname(size_t index) const;

  std::vector<std::optional<State>> states_;
  std::vector<size_t> work_;
  std::vector<bool> is_target_;
  struct Trampoline {
    size_t source, to;
    State state;
  };
  std::vector<Trampoline> trampolines_;
  std::vector<size_t> pad_; // first Out of each
};

// ---- paths

std::vector<Block> BlockEncoder::wanted(size_t index, size_t nesting) const {
  if (nesting > list_.size())
    raise(PyExc_ValueError, "encode: handlers that handle each other without end");
  PyObject* handler = at(index)->handler;
  if (!handler || handler == Py_None) return {};
  const auto found = index_.find(handler);
  if (found == index_.end())
    raise(PyExc_ValueError, "encode: a handler is no instruction of the list");
  const auto place = static_cast<size_t>(found->second);
  std::vector<Block> out = wanted(place, nesting + 1);
  if (!is_cleanup(place)) out.push_back({found->second, at(index)->depth, at(index)->lasti, false});
  return out;
}

void BlockEncoder::follow() {
  states_.resize(list_.size());
  is_target_.resize(list_.size());
  for (size_t i = 0; i < list_.size(); ++i) {
    const Operand operand = kOps[at(i)->opcode].operand;
    if (operand == Operand::Jump) is_target_[target_of(i)] = true;
    if (operand == Operand::Binary) operator_place(i, set_.binary_operators);
    if (operand == Operand::Cell) slot(at(i)->argval);
  }
  reach(0, State());
  while (!work_.empty()) {
    const size_t index = work_.back();
    work_.pop_back();
    const State before = *states_[index];
    State raised = before;
    // An exception leaves the handlers that run.
    while (!raised.blocks.empty() && raised.blocks.back().handles) raised.blocks.pop_back();
    if (!raised.blocks.empty()) {
      const Block block = raised.blocks.back();
      if (raised.kinds.size() < static_cast<size_t>(block.depth))
        raise(PyExc_ValueError, "encode: a handler keeps more than the stack holds");
      raised.kinds.resize(static_cast<size_t>(block.depth));
      if (block.marks) raised.kinds.push_back(kPlace);
      raised.kinds.push_back(kError);
      raised.blocks.back().handles = true;
      if (!states_[block.handler]) {
        states_[block.handler] = raised;
        work_.push_back(static_cast<size_t>(block.handler));
      }
    }
    if (kOps[at(index)->opcode].operand == Operand::Jump)
      reach(static_cast<size_t>(target_of(index)), after(index, before, true));
    if (falls_through(index)) reach(index + 1, after(index, before, false));
  }
}

void BlockEncoder::reach(size_t index, State state) {
  if (index >= list_.size()) raise(PyExc_ValueError, "encode: the code runs past its end");
  change(state, index);
  if (states_[index]) {
    if (states_[index]->kinds.size() != state.kinds.size()) {
      raise(PyExc_ValueError, "encode: paths of different stack depth meet at instruction " +
                                  std::to_string(index) + " (" +
                                  std::string(kOps[at(index)->opcode].name) + ")");
    }
    return;
  }
  states_[index] = std::move(state);
  work_.push_back(index);
}

BlockEncoder::Change BlockEncoder::change(State& state, size_t to) const {
  Change out;
  const std::vector<Block> needed = wanted(to);
  const auto fits = [&] {
    size_t at = 0;
    for (const Block& block : state.blocks) {
      if (block.handles) continue;
      if (at >= needed.size() || needed[at].handler != block.handler) return false;
      ++at;
    }
    return true;
  };
  while (!fits()) {
    if (state.blocks.back().handles)
      raise(PyExc_NotImplementedError,
            "encode: a handler is left without POP_EXCEPT on Python 3.10");
    state.blocks.pop_back();
    ++out.popped;
  }
  const auto there = std::count_if(state.blocks.begin(), state.blocks.end(),
                                   [](const Block& block) { return !block.handles; });
  for (size_t i = static_cast<size_t>(there); i < needed.size(); ++i) {
    out.pushed.push_back(needed[i]);
    state.blocks.push_back(needed[i]);
  }
  if (is_entry(to) && !state.kinds.empty() && state.kinds.back() == kValue) {
    out.enters = true;
    const bool marked = is(to, "PUSH_EXC_INFO") && state.kinds.size() >= 2;
    state.kinds.resize(state.kinds.size() - (marked ? 2 : 1));
    state.blocks.push_back(
        {static_cast<long>(to), static_cast<int>(state.kinds.size()), marked, true});
    if (marked) state.kinds.push_back(kPlace);
    state.kinds.push_back(kError);
  }
  return out;
}

// By how many values of the normal form the stack grows.
int BlockEncoder::effect(size_t index, bool jump) const {
  const int opcode = at(index)->opcode;
  const std::string_view name = kOps[opcode].name;
  const auto known = [&](std::string_view raw, int arg) {
    const int found = PyCompile_OpcodeStackEffectWithJump(number(raw), arg, jump);
    if (found == PY_INVALID_STACK_EFFECT)
      raise(PyExc_NotImplementedError, "encode: no stack effect known for " + std::string(raw));
    return found;
  };
  if (name == "FOR_ITER") return jump ? -1 : 1;
  if (name == "SEND") return jump ? -1 : 0;
  if (name == "CALL") return -static_cast<int>(arg_of(index));
  if (name == "MAKE_FUNCTION") return known("MAKE_FUNCTION", static_cast<int>(arg_of(index))) + 1;
  if (name == "MATCH_KEYS" || name == "RETURN_GENERATOR" || name == "COPY" ||
      name == "PUSH_EXC_INFO" || name == "WITH_EXCEPT_START" || name == "BEFORE_WITH") {
    return 1;
  }
  if (name == "MATCH_CLASS" || name == "END_ASYNC_FOR") return -2;
  if (name == "BINARY_OP" || name == "POP_EXCEPT" || name.substr(0, 8) == "POP_JUMP") return -1;
  if (name == "COPY_DICT_WITHOUT_KEYS" || name == "SWAP" || name == "RESUME" ||
      name == "CHECK_EXC_MATCH" || name == "ASYNC_GEN_WRAP" || name == "JUMP" ||
      name == "JUMP_NO_INTERRUPT" || name == "YIELD_VALUE") {
    return 0;
  }
  if (!falls_through(index)) return 0;
  const bool numbered = kOps[opcode].operand == Operand::Number;
  return known(name, numbered ? static_cast<int>(arg_of(index)) : 0);
}

State BlockEncoder::after(size_t index, const State& before, bool jump) const {
  State out = before;
  std::string& kinds = out.kinds;
  if (is(index, "SWAP")) {
    const auto count = static_cast<size_t>(arg_of(index));
    if (count < 1 || kinds.size() < count)
      raise(PyExc_ValueError, "encode: SWAP reaches below the stack");
    std::swap(kinds.back(), kinds[kinds.size() - count]);
  } else if (is(index, "PUSH_EXC_INFO")) {
    kinds.back() = kPrevious;
    kinds.push_back(kError);
  } else {
    const int effect = this->effect(index, jump);
    if (effect < 0 && kinds.size() < static_cast<size_t>(-effect)) {
      raise(PyExc_ValueError, "encode: " + std::string(kOps[at(index)->opcode].name) +
                                  " is reached with less than nothing on the stack");
    }
    kinds.resize(kinds.size() + static_cast<size_t>(effect), kValue);
  }
  if (is(index, "POP_EXCEPT") || is(index, "END_ASYNC_FOR")) {
    if (out.blocks.empty() || !out.blocks.back().handles)
      raise(PyExc_ValueError, "encode: POP_EXCEPT where no exception is handled");
    out.blocks.pop_back();
  }
  return out;
}

// ---- writing

int BlockEncoder::temporary(const std::string& name) {
  PyRef text = checked(PyUnicode_FromString(name.c_str()));
  const Py_ssize_t found = PySequence_Index(varnames_.get(), text.get());
  if (found >= 0) return static_cast<int>(found);
  PyErr_Clear();
  PyRef one = checked(PyTuple_Pack(1, text.get()));
  varnames_ = checked(PySequence_Concat(varnames_.get(), one.get()));
  return static_cast<int>(PyTuple_GET_SIZE(varnames_.get())) - 1;
}

int BlockEncoder::cell(PyObject* name) const {
  const int place = slot(name); // says so where there is none
  PyRef cells = checked(PySequence_Concat(cellvars_.get(), freevars_.get()));
  const Py_ssize_t found = PySequence_Index(cells.get(), name);
  if (found < 0) {
    PyErr_Clear();
    raise(PyExc_ValueError, "encode: variable " + std::to_string(place) + " is no cell");
  }
  return static_cast<int>(found);
}

void BlockEncoder::write_rotation(size_t source, int count) {
  if (count < 2) return;
  if (count > 4)
    put("ROT_N", source, count);
  else
    put(count == 2 ? "ROT_TWO" : count == 3 ? "ROT_THREE" : "ROT_FOUR", source);
}

// A block at a level below some values of the stack: they step aside.
void BlockEncoder::write_setup(size_t source, const State& state, const Block& block) {
  const int above = static_cast<int>(state.kinds.size()) - block.depth;
  if (above < 0 || width(state.kinds, static_cast<size_t>(block.depth)) != above) {
    raise(PyExc_NotImplementedError,
          "encode: a handler begins where an exception is handled, on Python 3.10");
  }
  // Puts the block below the value on top.
  const bool one = above == 1;
  for (int i = 0; i < above && !one; ++i)
    put("STORE_FAST", source, temporary("___held" + std::to_string(i)));
  put(one ? "SETUP_ASYNC_WITH" : "SETUP_FINALLY", source);
  outs_.back().target = block.handler;
  for (int i = above - 1; i >= 0 && !one; --i)
    put("LOAD_FAST", source, temporary("___held" + std::to_string(i)));
}

// Raises the exception on top of the stack so that the handler finds it as 3.10 leaves it.
void BlockEncoder::write_entry(size_t source, const State& state, size_t to) {
  const int held = temporary("___error");
  const bool marked = is(to, "PUSH_EXC_INFO") && state.kinds.size() >= 2;
  put("STORE_FAST", source, held);
  if (marked) put("POP_TOP", source);
  put("SETUP_FINALLY", source);
  outs_.back().target = static_cast<long>(to);
  const auto attribute = [&](const char* name) {
    put("LOAD_FAST", source, held);
    if (name) put("LOAD_ATTR", source, names_.add(checked(PyUnicode_InternFromString(name)).get()));
  };
  attribute("__traceback__");
  attribute(nullptr);
  attribute("__class__");
  put("RERAISE", source, 0);
}

void BlockEncoder::write_change(size_t source, State from, size_t to) {
  State state = from;
  const Change needed = change(state, to);
  for (int i = 0; i < needed.popped; ++i) put("POP_BLOCK", source);
  for (const Block& block : needed.pushed) write_setup(source, from, block);
  if (needed.enters) write_entry(source, from, to);
}

void BlockEncoder::write_jump(size_t index) {
  const int opcode = at(index)->opcode;
  const auto target = static_cast<size_t>(target_of(index));
  State state = after(index, *states_[index], true);
  State there = state;
  const Change needed = change(there, target);
  if (opcode == op("JUMP") || opcode == op("JUMP_NO_INTERRUPT")) {
    write_change(index, state, target);
    if (needed.enters) return;
    put(target > index ? "JUMP_FORWARD" : "JUMP_ABSOLUTE", index);
    outs_.back().target = static_cast<long>(target);
    return;
  }
  std::string_view name = kOps[opcode].name;
  if (opcode == op("POP_JUMP_IF_NONE") || opcode == op("POP_JUMP_IF_NOT_NONE")) {
    put("LOAD_CONST", index, consts_.add(Py_None));
    put("IS_OP", index, opcode == op("POP_JUMP_IF_NONE") ? 0 : 1);
    name = "POP_JUMP_IF_TRUE";
  }
  if (opcode == op("FOR_ITER") && needed.empty() && target <= index)
    raise(PyExc_ValueError, "encode: FOR_ITER cannot lead backwards");
  put(name, index);
  outs_.back().target = static_cast<long>(target);
  if (needed.empty()) return;
  outs_.back().to_pad = true;
  outs_.back().target = static_cast<long>(trampolines_.size());
  trampolines_.push_back({index, target, state});
}

void BlockEncoder::write_trampolines() {
  for (const Trampoline& each : trampolines_) {
    pad_.push_back(outs_.size());
    write_change(each.source, each.state, each.to);
    State there = each.state;
    if (change(there, each.to).enters) continue;
    put("JUMP_ABSOLUTE", each.source);
    outs_.back().target = static_cast<long>(each.to);
  }
}

// SWAP n, SWAP n-1, ... SWAP 2 puts the value on top below the others, which is one instruction.
size_t BlockEncoder::write_swap(size_t index) {
  const std::string& kinds = states_[index]->kinds;
  const long count = arg_of(index);
  const auto from = kinds.size() - static_cast<size_t>(count);
  bool turns = true;
  for (long i = 1; i <= count - 2 && turns; ++i) {
    const size_t next = index + static_cast<size_t>(i);
    turns = is(next, "SWAP", count - i) && !is_target_[next];
  }
  if (turns && count >= 2) {
    if (kinds.back() != kValue)
      raise(PyExc_NotImplementedError, "encode: SWAP of an exception on Python 3.10");
    write_rotation(index, width(kinds, from));
    return static_cast<size_t>(count - 1);
  }
  if (width(kinds, from) != count || kinds.find_first_not_of(kValue, from) != std::string::npos)
    raise(PyExc_NotImplementedError, "encode: SWAP of an exception on Python 3.10");
  write_rotation(index, static_cast<int>(count));
  for (long i = 2; i < count; ++i) write_rotation(index, static_cast<int>(count) - 1);
  return 1;
}

size_t BlockEncoder::write_copy(size_t index) {
  const std::string& kinds = states_[index]->kinds;
  const auto count = static_cast<size_t>(arg_of(index));
  if (count < 1 || count > kinds.size())
    raise(PyExc_ValueError, "encode: COPY reaches below the stack");
  if (count == 1 && kinds.back() == kError) {
    put("DUP_TOP_TWO", index);
    put("POP_TOP", index);
    return 1;
  }
  if (kinds.find_first_not_of(kValue, kinds.size() - count) != std::string::npos)
    raise(PyExc_NotImplementedError, "encode: COPY of an exception on Python 3.10");
  if (count == 1) {
    put("DUP_TOP", index);
  } else if (count == 2) {
    put("DUP_TOP_TWO", index);
    if (is(index + 1, "COPY", 2) && !is_target_[index + 1]) return 2;
    put("POP_TOP", index);
  } else {
    for (size_t i = 1; i < count; ++i) write_rotation(index, static_cast<int>(count));
    put("DUP_TOP", index);
    write_rotation(index, static_cast<int>(count) + 1);
  }
  return 1;
}

size_t BlockEncoder::write_yield_from(size_t index) {
  if (target_of(index) != static_cast<long>(index) + 4 || !is(index + 1, "YIELD_VALUE") ||
      !is(index + 2, "RESUME") || !is(index + 3, "JUMP_NO_INTERRUPT") ||
      target_of(index + 3) != static_cast<long>(index)) {
    raise(PyExc_NotImplementedError, "encode: SEND outside of `yield from` on Python 3.10");
  }
  put("YIELD_FROM", index);
  return 4;
}

// Several instructions of the normal form that are one of 3.10's; 0 for others.
size_t BlockEncoder::write_pattern(size_t index) {
  const auto joined = [&](size_t next) { return next < list_.size() && !is_target_[next]; };
  if (is(index, "SWAP")) return write_swap(index);
  if (is(index, "COPY")) return write_copy(index);
  if (is(index, "SEND")) return write_yield_from(index);
  if (is(index, "RETURN_GENERATOR") && is(index + 1, "POP_TOP")) {
    PyRef flags = options_.flags ? PyRef::borrow(options_.flags)
                                 : checked(PyObject_GetAttrString(code_, "co_flags"));
    const long bits = PyLong_AsLong(flags.get());
    put("GEN_START", index, bits & CO_ASYNC_GENERATOR ? 2 : bits & CO_COROUTINE ? 1 : 0);
    return 2;
  }
  if (is(index, "CHECK_EXC_MATCH")) {
    if (!is(index + 1, "POP_JUMP_IF_FALSE") || !joined(index + 1))
      raise(PyExc_NotImplementedError, "encode: CHECK_EXC_MATCH without a jump on Python 3.10");
    for (const char* name : {"ROT_TWO", "DUP_TOP", "ROT_THREE", "ROT_TWO", "JUMP_IF_NOT_EXC_MATCH"})
      put(name, index);
    outs_.back().target = target_of(index + 1);
    return 2;
  }
  if (is(index, "MATCH_KEYS") || is(index, "MATCH_CLASS")) {
    put(kOps[at(index)->opcode].name, index, static_cast<int>(arg_of(index)));
    if (is(index + 1, "COPY", 1) && is(index + 2, "LOAD_CONST") &&
        at(index + 2)->argval == Py_None && is(index + 3, "IS_OP", 1) && joined(index + 1) &&
        joined(index + 2) && joined(index + 3)) {
      return 4;
    }
    if (is(index, "MATCH_CLASS"))
      raise(PyExc_NotImplementedError, "encode: MATCH_CLASS without its test on Python 3.10");
    put("POP_TOP", index);
    return 1;
  }
  return 0;
}

// Stores and POP_TOP of an exception take its type and traceback away as well.
void BlockEncoder::write_stored(size_t index) {
  const char kind = states_[index]->kinds.empty() ? kValue : states_[index]->kinds.back();
  if (kind == kPlace) return;
  if (kind == kPrevious)
    raise(PyExc_NotImplementedError, "encode: the previous exception is popped, on Python 3.10");
  if (kind == kError) put("POP_TOP", index);
  write_operand(index);
  if (kind == kError) put("POP_TOP", index);
}

PyRef BlockEncoder::qualname(size_t index) const {
  PyObject* given = at(index)->argval;
  if (given && PyUnicode_Check(given)) return PyRef::borrow(given);
  if (index > 0 && is(index - 1, "LOAD_CONST") && PyCode_Check(at(index - 1)->argval))
    return checked(PyObject_GetAttrString(at(index - 1)->argval, "co_name"));
  raise(PyExc_ValueError, "encode: MAKE_FUNCTION of a function without a name");
}

void BlockEncoder::write_operand(size_t index) {
  const int opcode = at(index)->opcode;
  const std::string_view name = kOps[opcode].name;
  PyObject* argval = at(index)->argval ? at(index)->argval : Py_None;
  switch (kOps[opcode].operand) {
  case Operand::None:
    return put(name, index);
  case Operand::Const:
    return put(name, index, consts_.add(argval));
  case Operand::Name:
    if (!PyUnicode_Check(argval))
      python::raise_type_error("encode: the argval of " + std::string(name) + " must be a name");
    return put(name, index, names_.add(argval));
  case Operand::Local:
    return put(name, index, slot(argval));
  case Operand::Cell:
    return put(name, index, cell(argval));
  case Operand::Compare:
    return put(name, index, operator_place(index, set_.compare_operators));
  case Operand::Binary:
    return put(kBinaryNames310[operator_place(index, set_.binary_operators)], index);
  default:
    return put(name, index, static_cast<int>(arg_of(index)));
  }
}

size_t BlockEncoder::write(size_t index) {
  const int opcode = at(index)->opcode;
  const std::string_view name = kOps[opcode].name;
  if (const size_t count = write_pattern(index)) return count;
  if (kOps[opcode].operand == Operand::Jump) {
    write_jump(index);
  } else if (name == "RESUME" || name == "PUSH_EXC_INFO" || name == "ASYNC_GEN_WRAP") {
    // 3.10 has nothing of the kind.
  } else if (name == "CALL") {
    PyObject* names = at(index)->argval;
    const bool keywords = names && PyTuple_Check(names) && PyTuple_GET_SIZE(names) > 0;
    if (keywords) put("LOAD_CONST", index, consts_.add(names));
    put(keywords ? "CALL_FUNCTION_KW" : "CALL_FUNCTION", index, static_cast<int>(arg_of(index)));
  } else if (name == "MAKE_FUNCTION") {
    put("LOAD_CONST", index, consts_.add(qualname(index).get()));
    put("MAKE_FUNCTION", index, static_cast<int>(arg_of(index)));
  } else if (name == "RERAISE") {
    put("RERAISE", index, arg_of(index) ? 1 : 0);
  } else if (name == "POP_TOP" || name.substr(0, 6) == "STORE_") {
    write_stored(index);
  } else if (name == "YIELD_VALUE" || name == "GET_AWAITABLE") {
    put(name, index);
  } else if (name == "BEFORE_WITH") {
    State state = after(index, *states_[index], false);
    const int depth = static_cast<int>(state.kinds.size()) - 1;
    const Change needed = change(state, index + 1);
    if (needed.popped || needed.pushed.size() != 1 || needed.pushed[0].depth != depth)
      raise(PyExc_NotImplementedError, "encode: BEFORE_WITH without its handler on Python 3.10");
    put("SETUP_WITH", index);
    outs_.back().target = needed.pushed[0].handler;
  } else if (name == "NOP") {
    State state = *states_[index];
    if (change(state, index + 1).empty()) put("NOP", index);
  } else {
    write_operand(index);
  }
  return 1;
}

// ---- layout and tables

long BlockEncoder::jump_arg(const Out& out) const {
  const size_t to = out.to_pad ? pad_[out.target] : first_[out.target];
  const int start = to < outs_.size() ? outs_[to].start : 0;
  return set_.jumps[out.opcode] ? start - (out.start + out.units) : start;
}

// Pairs of a length in bytes and a change of the line; -128 stands for "no line".
std::string BlockEncoder::line_table() const {
  std::string text;
  long line = first_line();
  const auto pair = [&](int bytes, long delta) {
    text.push_back(static_cast<char>(bytes));
    text.push_back(static_cast<char>(delta));
  };
  for (const Out& out : outs_) {
    PyObject* positions = at(out.source)->positions;
    PyObject* number =
        positions && PyTuple_Check(positions) ? PyTuple_GET_ITEM(positions, 0) : Py_None;
    int bytes = 2 * out.units;
    if (number == Py_None) {
      pair(bytes, -128);
      continue;
    }
    const long here = PyLong_AsLong(number);
    if (here == -1 && PyErr_Occurred()) throw python::python_error();
    long delta = here - line;
    line = here;
    for (; delta > 127; delta -= 127) pair(0, 127);
    for (; delta < -127; delta += 127) pair(0, -127);
    pair(bytes, delta);
  }
  return text;
}

PyRef BlockEncoder::run() {
  follow();
  first_.resize(list_.size());
  for (size_t i = 0; i < list_.size();) {
    if (!states_[i]) {
      first_[i++] = outs_.size();
      continue;
    }
    const size_t begin = outs_.size(), count = write(i), last = i + count - 1;
    for (; i <= last; ++i) first_[i] = i == last + 1 - count ? begin : outs_.size();
    const bool leads_on = falls_through(last) && !is(last, "BEFORE_WITH");
    if (leads_on) write_change(last, after(last, *states_[last], false), last + 1);
  }
  write_trampolines();
  lay_out();
  size_t most = 0;
  for (const auto& state : states_)
    if (state) most = std::max(most, static_cast<size_t>(width(state->kinds, 0)));
  PyRef fields = checked(PyDict_New());
  check_status(
      PyDict_SetItemString(fields.get(), "co_linetable", bytes_object(line_table()).get()));
  // A handler finds two triples; copies and calls that are written out need a few more.
  return finish(std::move(fields), static_cast<int>(most) + 2 * kTriple + 4);
}

} // namespace

PyRef encode(PyObject* instructions, PyObject* code, const EncodeOptions& options) {
  if (!PyCode_Check(code)) python::raise_type_error("encode: expected a code object");
  return BlockEncoder(instructions, code, options).run();
}

} // namespace torch::dynamo

#endif
