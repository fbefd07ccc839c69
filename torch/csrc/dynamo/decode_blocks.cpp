// Bytecode of Python 3.10 -> normal form.
//
// 3.10 keeps handlers on a stack of blocks while it runs, and exceptions as three values
// (traceback, value, type) above the three of the exception that was handled before. So stack and
// blocks are followed along all paths. Of each triple one value is real in the normal form; the
// others are ghosts, and what only moves ghosts becomes nothing.
//
// Note [Blocks as handlers]
// An instruction inside of a block has the block's target as its handler. Inside of a handler 3.10
// puts the previous exception back by itself when another one leaves it; the normal form needs code
// for that, so each handler gets a cleanup behind the code (COPY 3, POP_EXCEPT, RERAISE 1), which
// encode() leaves out again. SETUP_FINALLY and POP_BLOCK become NOPs, because jumps lead to them.
#include <torch/csrc/dynamo/codec.h>

#if PY_VERSION_HEX < 0x030B0000
#include <algorithm>
#include <map>
#include <optional>

namespace torch::dynamo {
namespace {

using python::checked;
using python::raise;

struct Raw {
  int opcode;
  int arg;
  int unit; // where it stands, prefixes included
  int target = -1;
};

// Kinds of values on the stack: a value, a ghost (the rest of the triples, NULLs, copies of an
// exception's type), and in a handler the mark of the raising place (l), the previous exception (p)
// and the exception (x).
constexpr char kValue = 'v', kGhost = '.';
// The triples as a handler finds them; END_ASYNC_FOR takes the exception alone.
constexpr std::string_view kEntered = "lp..x.", kEnteredAsync = "....x.";
constexpr int kTriple = 3;

bool is_real(char kind) { return kind != kGhost; }

struct Block {
  int handler; // raw index of the target
  int level;
  bool handles; // the handler runs: the block of an exception that is being handled
};

struct State {
  std::string stack;
  std::vector<Block> blocks;
  int reals(size_t count) const {
    return static_cast<int>(std::count_if(stack.begin(), stack.begin() + count, is_real));
  }
};

class BlockDecoder {
 public:
  explicit BlockDecoder(PyObject* code) : code_(code), set_(raw_set()) {}
  PyRef run();

 private:
  void read_fields();
  void read_lines();
  void read_units();
  int index_at(int unit) const;
  void follow();
  void reach(int index, State state);
  void apply(const Raw& raw, State& state) const;
  bool apply_to_blocks(const Raw& raw, std::string_view name, State& state) const;
  bool apply_to_stack(const Raw& raw, std::string_view name, State& state) const;
  State at_target(const Raw& raw, const State& before, const State& after) const;
  bool falls_through(const Raw& raw) const;

  void translate(size_t index);
  bool translate_stack(const Raw& raw, std::string_view name, const std::string& stack);
  bool translate_exception(const Raw& raw, std::string_view name);
  bool translate_call(const Raw& raw, std::string_view name);
  bool translate_generator(std::string_view name);
  bool translate_operator(std::string_view name);
  void translate_jump(const Raw& raw, std::string_view name);
  void translate_plain(const Raw& raw, std::string_view name);
  PyObject* emit(int opcode, PyRef arg = PyRef(), PyRef argval = PyRef());
  void emit_number(int opcode, long arg) { emit(opcode, checked(PyLong_FromLong(arg))); }
  void emit_from(int opcode, PyObject* tuple, int index);
  void emit_is_not_none();
  PyRef take_constant(const char* what);
  void cover(const PyRef& instruction, State state);
  PyRef cleanup_of(const State& state);
  void link();

  std::string_view name_of(const Raw& raw) const { return set_.name[raw.opcode]; }

  PyObject* code_;
  const RawSet& set_;
  PyRef bytes_, consts_, names_, varnames_, cells_;
  int flags_ = 0;
  std::vector<PyRef> positions_; // by code unit
  std::vector<Raw> raws_;
  std::vector<std::optional<State>> states_;
  std::vector<size_t> work_;
  std::vector<PyRef> out_, cleanups_;
  std::vector<size_t> first_out_;
  struct Jump {
    size_t from;
    int raw_target;
  };
  std::vector<Jump> jumps_;
  struct Cover {
    PyRef instruction;
    State state;
  };
  std::vector<Cover> covers_;
  std::map<int, size_t> entries_; // instruction written first at each handler
  std::map<int, PyRef> cleanup_;  // by the handler whose body it covers
  size_t current_ = 0;
  bool took_constant_ = false;
};

PyRef field(PyObject* code, const char* name) {
  return checked(PyObject_GetAttrString(code, name));
}

void BlockDecoder::read_fields() {
  bytes_ = field(code_, "co_code");
  consts_ = field(code_, "co_consts");
  names_ = field(code_, "co_names");
  varnames_ = field(code_, "co_varnames");
  cells_ = checked(
      PySequence_Concat(field(code_, "co_cellvars").get(), field(code_, "co_freevars").get()));
  flags_ = static_cast<int>(PyLong_AsLong(field(code_, "co_flags").get()));
  positions_.resize(static_cast<size_t>(PyBytes_GET_SIZE(bytes_.get()) / 2));
  read_lines();
}

void BlockDecoder::read_lines() {
  PyRef rows =
      checked(PySequence_List(checked(PyObject_CallMethod(code_, "co_lines", nullptr)).get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows.get()); ++i) {
    PyObject* row = PyList_GET_ITEM(rows.get(), i);
    const long start = PyLong_AsLong(PyTuple_GET_ITEM(row, 0)) / 2;
    const long end = PyLong_AsLong(PyTuple_GET_ITEM(row, 1)) / 2;
    PyObject* line = PyTuple_GET_ITEM(row, 2);
    PyRef position = checked(PyTuple_Pack(4, line, line, Py_None, Py_None));
    for (long unit = start; unit < end && unit < static_cast<long>(positions_.size()); ++unit)
      positions_[unit] = position;
  }
}

void BlockDecoder::read_units() {
  const auto* data = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes_.get()));
  const int units = static_cast<int>(PyBytes_GET_SIZE(bytes_.get()) / 2);
  const int extended = set_.number("EXTENDED_ARG");
  int start = 0, arg = 0;
  for (int unit = 0; unit < units; ++unit) {
    const int opcode = data[2 * unit];
    arg = (arg << 8) | data[2 * unit + 1];
    if (opcode == extended) continue;
    if (set_.name[opcode].empty())
      raise(PyExc_NotImplementedError,
            "bytecode of this Python has an unknown instruction " + std::to_string(opcode));
    raws_.push_back({opcode, arg, start});
    start = unit + 1;
    arg = 0;
  }
  for (size_t i = 0; i < raws_.size(); ++i) {
    Raw& raw = raws_[i];
    const int end = i + 1 < raws_.size() ? raws_[i + 1].unit : units;
    if (set_.jumps[raw.opcode])
      raw.target = index_at(end + raw.arg);
    else if (set_.absolute_jumps[raw.opcode])
      raw.target = index_at(raw.arg);
  }
}

int BlockDecoder::index_at(int unit) const {
  const auto at = std::lower_bound(raws_.begin(), raws_.end(), unit,
                                   [](const Raw& raw, int u) { return raw.unit < u; });
  if (at == raws_.end() || at->unit != unit)
    raise(PyExc_ValueError, "decode: a jump leads into the middle of an instruction");
  return static_cast<int>(at - raws_.begin());
}

// ---- stack and blocks along all paths

void BlockDecoder::follow() {
  states_.resize(raws_.size());
  State start;
  // A generator is started with a value on its stack.
  if (flags_ & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) start.stack.push_back(kValue);
  reach(0, std::move(start));
  while (!work_.empty()) {
    const size_t index = work_.back();
    work_.pop_back();
    const Raw& raw = raws_[index];
    const State before = *states_[index];
    State after = before;
    apply(raw, after);
    if (raw.target >= 0) reach(raw.target, at_target(raw, before, after));
    if (falls_through(raw)) reach(static_cast<int>(index) + 1, std::move(after));
  }
}

void BlockDecoder::reach(int index, State state) {
  if (index < 0 || static_cast<size_t>(index) >= raws_.size())
    raise(PyExc_ValueError, "decode: the code runs past its end");
  if (states_[index]) return;
  states_[index] = std::move(state);
  work_.push_back(static_cast<size_t>(index));
}

bool BlockDecoder::falls_through(const Raw& raw) const {
  const std::string_view name = name_of(raw);
  return !(name == "RETURN_VALUE" || name == "RAISE_VARARGS" || name == "RERAISE" ||
           name == "JUMP_FORWARD" || name == "JUMP_ABSOLUTE");
}

void shrink(std::string& stack, size_t count) {
  if (stack.size() < count)
    raise(PyExc_ValueError, "decode: an instruction takes more than the stack holds");
  stack.resize(stack.size() - count);
}

State BlockDecoder::at_target(const Raw& raw, const State& before, const State& after) const {
  const std::string_view name = name_of(raw);
  State out = after;
  if (name == "FOR_ITER") {
    out = before;
    shrink(out.stack, 1);
  } else if (name == "JUMP_IF_TRUE_OR_POP" || name == "JUMP_IF_FALSE_OR_POP") {
    out = before;
  } else if (name == "SETUP_FINALLY" || name == "SETUP_WITH" || name == "SETUP_ASYNC_WITH") {
    const Block block = after.blocks.back();
    out.blocks.back() = {block.handler, block.level, true};
    out.stack.resize(static_cast<size_t>(block.level));
    out.stack += name_of(raws_[raw.target]) == "END_ASYNC_FOR" ? kEnteredAsync : kEntered;
  }
  return out;
}

// How many values a ROT_ instruction turns.
size_t rotated(const Raw& raw, std::string_view name) {
  return name == "ROT_TWO" ? 2 : name == "ROT_THREE" ? 3 : name == "ROT_FOUR" ? 4 : raw.arg;
}

bool BlockDecoder::apply_to_blocks(const Raw& raw, std::string_view name, State& state) const {
  std::string& stack = state.stack;
  const auto push = [&] {
    state.blocks.push_back({raw.target, static_cast<int>(stack.size()), false});
  };
  if (name == "SETUP_FINALLY") {
    push();
  } else if (name == "SETUP_WITH") {
    push(); // the manager makes place for its __exit__
    stack.push_back(kValue);
  } else if (name == "SETUP_ASYNC_WITH") {
    shrink(stack, 1);
    push();
    stack.push_back(kValue);
  } else if (name == "POP_BLOCK" || name == "POP_EXCEPT" || name == "END_ASYNC_FOR") {
    if (state.blocks.empty()) raise(PyExc_ValueError, "decode: a block ends that never began");
    state.blocks.pop_back();
    if (name == "POP_EXCEPT") shrink(stack, kTriple);
    if (name == "END_ASYNC_FOR") shrink(stack, 2 * kTriple + 1);
  } else {
    return false;
  }
  return true;
}

bool BlockDecoder::apply_to_stack(const Raw& raw, std::string_view name, State& state) const {
  std::string& stack = state.stack;
  if (name.substr(0, 4) == "ROT_") {
    const size_t count = rotated(raw, name);
    if (stack.size() < count) raise(PyExc_ValueError, "decode: a rotation reaches below the stack");
    std::rotate(stack.end() - static_cast<long>(count), stack.end() - 1, stack.end());
  } else if (name == "DUP_TOP" || name == "DUP_TOP_TWO") {
    const size_t count = name == "DUP_TOP" ? 1 : 2;
    if (stack.size() < count) raise(PyExc_ValueError, "decode: a copy reaches below the stack");
    for (size_t i = 0; i < count; ++i)
      stack.push_back(is_real(stack[stack.size() - count]) ? kValue : kGhost);
  } else if (name == "LOAD_METHOD") {
    shrink(stack, 1);
    stack += {kGhost, kValue};
  } else if (name == "CALL_METHOD") {
    shrink(stack, static_cast<size_t>(raw.arg) + 2);
    stack.push_back(kValue);
  } else if (name == "FOR_ITER" || name == "WITH_EXCEPT_START") {
    stack.push_back(kValue);
  } else {
    return false;
  }
  return true;
}

void BlockDecoder::apply(const Raw& raw, State& state) const {
  const std::string_view name = name_of(raw);
  if (apply_to_blocks(raw, name, state) || apply_to_stack(raw, name, state)) return;
  const int effect = PyCompile_OpcodeStackEffectWithJump(raw.opcode, raw.arg, 0);
  if (effect == PY_INVALID_STACK_EFFECT)
    raise(PyExc_NotImplementedError, "decode: no stack effect known for " + std::string(name));
  if (effect < 0)
    shrink(state.stack, static_cast<size_t>(-effect));
  else
    state.stack.append(static_cast<size_t>(effect), kValue);
}

// ---- translation

PyObject* BlockDecoder::emit(int opcode, PyRef arg, PyRef argval) {
  if (!argval) argval = arg;
  PyRef made = new_instruction(opcode, std::move(arg), std::move(argval));
  InstructionObject* in = as_instruction(made.get());
  const Raw& raw = raws_[current_];
  in->offset = checked(PyLong_FromLong(2L * raw.unit)).release();
  in->positions = PyRef(positions_[raw.unit]).release();
  out_.push_back(std::move(made));
  return out_.back().get();
}

void BlockDecoder::emit_from(int opcode, PyObject* tuple, int index) {
  if (index < 0 || index >= PyTuple_GET_SIZE(tuple))
    raise(PyExc_ValueError, "decode: an instruction names what its code does not list");
  emit(opcode, PyRef(), PyRef::borrow(PyTuple_GET_ITEM(tuple, index)));
}

// The constant that the instruction before pushed, which becomes part of this one.
PyRef BlockDecoder::take_constant(const char* what) {
  if (out_.empty() || as_instruction(out_.back().get())->opcode != op("LOAD_CONST"))
    raise(PyExc_NotImplementedError, std::string("decode: ") + what + " without its constant");
  PyRef value = PyRef::borrow(as_instruction(out_.back().get())->argval);
  out_.pop_back();
  took_constant_ = true;
  return value;
}

bool BlockDecoder::translate_stack(const Raw& raw, std::string_view name,
                                   const std::string& stack) {
  if (name == "POP_TOP") {
    if (is_real(stack.back())) emit(op("POP_TOP"));
  } else if (name.substr(0, 4) == "ROT_") {
    if (!is_real(stack.back())) return true;
    const auto from = stack.end() - static_cast<long>(rotated(raw, name));
    for (long i = std::count_if(from, stack.end(), is_real); i >= 2; --i)
      emit_number(op("SWAP"), i);
  } else if (name == "DUP_TOP" || name == "DUP_TOP_TWO") {
    const auto from = stack.end() - (name == "DUP_TOP" ? 1 : 2);
    const long count = std::count_if(from, stack.end(), is_real);
    for (long i = 0; i < count; ++i) emit_number(op("COPY"), count);
  } else {
    return false;
  }
  return true;
}

bool BlockDecoder::translate_exception(const Raw& raw, std::string_view name) {
  if (name == "SETUP_FINALLY" || name == "SETUP_ASYNC_WITH" || name == "POP_BLOCK") {
    emit(op("NOP"));
  } else if (name == "SETUP_WITH") {
    emit(op("BEFORE_WITH"));
  } else if (name == "POP_EXCEPT") {
    emit(op("POP_EXCEPT"));
    emit(op("POP_TOP")); // the mark of the raising place
  } else if (name == "RERAISE") {
    emit_number(op("RERAISE"), raw.arg ? 2 : 0);
  } else if (name == "JUMP_IF_NOT_EXC_MATCH") {
    emit(op("CHECK_EXC_MATCH"));
    jumps_.push_back({out_.size(), raw.target});
    emit(op("POP_JUMP_IF_FALSE"));
  } else {
    return false;
  }
  return true;
}

void BlockDecoder::emit_is_not_none() {
  emit_number(op("COPY"), 1);
  emit(op("LOAD_CONST"), PyRef(), PyRef::borrow(Py_None));
  emit_number(op("IS_OP"), 1);
}

bool BlockDecoder::translate_call(const Raw& raw, std::string_view name) {
  if (name == "LOAD_METHOD") {
    emit_from(op("LOAD_ATTR"), names_.get(), raw.arg);
  } else if (name == "CALL_FUNCTION" || name == "CALL_METHOD") {
    emit(op("CALL"), checked(PyLong_FromLong(raw.arg)), checked(PyTuple_New(0)));
  } else if (name == "CALL_FUNCTION_KW") {
    PyRef keywords = take_constant("CALL_FUNCTION_KW");
    emit(op("CALL"), checked(PyLong_FromLong(raw.arg)), std::move(keywords));
  } else if (name == "MAKE_FUNCTION") {
    PyRef qualname = take_constant("MAKE_FUNCTION");
    emit(op("MAKE_FUNCTION"), checked(PyLong_FromLong(raw.arg)), std::move(qualname));
  } else if (name == "MATCH_KEYS") {
    emit(op("MATCH_KEYS"));
    emit_is_not_none();
  } else if (name == "MATCH_CLASS") {
    emit_number(op("MATCH_CLASS"), raw.arg);
    emit_is_not_none();
  } else {
    return false;
  }
  return true;
}

bool BlockDecoder::translate_generator(std::string_view name) {
  if (name == "GEN_START") {
    emit(op("RETURN_GENERATOR"));
    emit(op("POP_TOP"));
    emit_number(op("RESUME"), 0);
  } else if (name == "YIELD_VALUE") {
    if (flags_ & CO_ASYNC_GENERATOR) emit(op("ASYNC_GEN_WRAP"));
    emit_number(op("YIELD_VALUE"), 0);
    emit_number(op("RESUME"), 1);
  } else if (name == "YIELD_FROM") {
    const size_t send = out_.size();
    jumps_.push_back({send, static_cast<int>(current_) + 1});
    emit(op("SEND"));
    emit_number(op("YIELD_VALUE"), 0);
    emit_number(op("RESUME"), 2);
    emit(op("JUMP_NO_INTERRUPT"));
    as_instruction(out_.back().get())->target = PyRef(out_[send]).release();
  } else if (name == "GET_AWAITABLE") {
    emit_number(op("GET_AWAITABLE"), 0);
  } else {
    return false;
  }
  return true;
}

bool BlockDecoder::translate_operator(std::string_view name) {
  for (size_t i = 0; i < kBinaryNames310.size(); ++i) {
    if (name != kBinaryNames310[i]) continue;
    emit(op("BINARY_OP"), checked(PyLong_FromSize_t(i)), set_.binary_operators[i]);
    return true;
  }
  return false;
}

void BlockDecoder::translate_jump(const Raw& raw, std::string_view name) {
  const bool keeps = name == "JUMP_IF_TRUE_OR_POP" || name == "JUMP_IF_FALSE_OR_POP";
  const std::string_view normal = name == "JUMP_ABSOLUTE" || name == "JUMP_FORWARD" ? "JUMP"
                                  : name == "JUMP_IF_TRUE_OR_POP"  ? "POP_JUMP_IF_TRUE"
                                  : name == "JUMP_IF_FALSE_OR_POP" ? "POP_JUMP_IF_FALSE"
                                                                   : name;
  const int opcode = op(normal);
  if (opcode < 0) raise(PyExc_NotImplementedError, "decode: jump " + std::string(name));
  if (keeps) emit_number(op("COPY"), 1);
  jumps_.push_back({out_.size(), raw.target});
  emit(opcode);
  if (keeps) emit(op("POP_TOP"));
}

void BlockDecoder::translate_plain(const Raw& raw, std::string_view name) {
  const int opcode = set_.normal[raw.opcode];
  if (opcode < 0) raise(PyExc_NotImplementedError, "decode: instruction " + std::string(name));
  switch (kOps[opcode].operand) {
  case Operand::None:
    emit(opcode);
    return;
  case Operand::Const:
    return emit_from(opcode, consts_.get(), raw.arg);
  case Operand::Name:
    return emit_from(opcode, names_.get(), raw.arg);
  case Operand::Cell:
    return emit_from(opcode, cells_.get(), raw.arg);
  case Operand::Local:
    return emit_from(opcode, varnames_.get(), raw.arg);
  case Operand::Compare:
    if (static_cast<size_t>(raw.arg) >= set_.compare_operators.size())
      raise(PyExc_ValueError, "decode: unknown comparison");
    emit(opcode, checked(PyLong_FromLong(raw.arg)), set_.compare_operators[raw.arg]);
    return;
  default:
    emit_number(opcode, raw.arg);
  }
}

void BlockDecoder::translate(size_t index) {
  const Raw& raw = raws_[index];
  const std::string_view name = name_of(raw);
  const State& state = *states_[index];
  if (translate_exception(raw, name) || translate_stack(raw, name, state.stack) ||
      translate_call(raw, name) || translate_generator(name) || translate_operator(name)) {
    return;
  }
  if (raw.target >= 0) return translate_jump(raw, name);
  translate_plain(raw, name);
}

// ---- handlers

// The code that puts the previous exception back when another one leaves the handler at a place;
// see Note [Blocks as handlers].
PyRef BlockDecoder::cleanup_of(const State& state) {
  PyRef& known = cleanup_[state.blocks.back().handler];
  if (known) return known;
  PyRef three = checked(PyLong_FromLong(3)), one = checked(PyLong_FromLong(1));
  State outside = state;
  outside.blocks.pop_back();
  for (PyRef made : {new_instruction(op("COPY"), three, three),
                     new_instruction(op("POP_EXCEPT"), PyRef(), PyRef()),
                     new_instruction(op("RERAISE"), one, one)}) {
    if (!known) known = made;
    covers_.push_back({made, outside});
    cleanups_.push_back(std::move(made));
  }
  return known;
}

// Gives an instruction the handler of the innermost block.
void BlockDecoder::cover(const PyRef& instruction, State state) {
  // The exception that END_ASYNC_FOR finds is handled by it or by those outside.
  while (!state.blocks.empty() && state.blocks.back().handles &&
         name_of(raws_[state.blocks.back().handler]) == "END_ASYNC_FOR") {
    state.blocks.pop_back();
  }
  if (state.blocks.empty()) return;
  const Block& block = state.blocks.back();
  InstructionObject* in = as_instruction(instruction.get());
  if (block.handles) {
    Py_XSETREF(in->handler, cleanup_of(state).release());
    in->depth = state.reals(static_cast<size_t>(block.level)) + 2; // place and previous exception
    in->lasti = 1;
  } else {
    Py_XSETREF(in->handler, PyRef(out_[entries_.at(block.handler)]).release());
    in->depth = state.reals(static_cast<size_t>(block.level));
    in->lasti = name_of(raws_[block.handler]) != "END_ASYNC_FOR";
  }
}

void BlockDecoder::link() {
  for (const Jump& jump : jumps_) {
    const size_t index = first_out_[jump.raw_target];
    if (index >= out_.size()) raise(PyExc_ValueError, "decode: a jump leads past the end");
    Py_XSETREF(as_instruction(out_[jump.from].get())->target, PyRef(out_[index]).release());
  }
  // Cleanups are made on the way and are covered in their turn.
  for (size_t i = 0; i < covers_.size(); ++i) {
    const Cover next = covers_[i];
    cover(next.instruction, next.state);
  }
  out_.insert(out_.end(), cleanups_.begin(), cleanups_.end());
}

PyRef BlockDecoder::run() {
  read_fields();
  read_units();
  if (raws_.empty()) raise(PyExc_ValueError, "decode: the code has no instructions");
  follow();
  for (const Raw& raw : raws_)
    if (name_of(raw).substr(0, 6) == "SETUP_" && raw.target >= 0) entries_[raw.target] = 0;
  if (states_[0]->stack.empty()) emit_number(op("RESUME"), 0);
  for (current_ = 0; current_ < raws_.size(); ++current_) {
    const size_t begin = out_.size();
    first_out_.push_back(begin);
    if (!states_[current_]) continue;
    const auto entry = entries_.find(static_cast<int>(current_));
    if (entry != entries_.end()) {
      entry->second = begin;
      if (name_of(raws_[current_]) != "END_ASYNC_FOR") emit(op("PUSH_EXC_INFO"));
      first_out_.back() = out_.size();
    }
    took_constant_ = false;
    translate(current_);
    for (size_t i = begin - (took_constant_ ? 1 : 0); i < out_.size(); ++i)
      covers_.push_back({out_[i], *states_[current_]});
    // The mark of the raising place is popped outside of the handler.
    if (name_of(raws_[current_]) == "POP_EXCEPT") covers_.back().state.blocks.pop_back();
  }
  link();
  PyRef list = checked(PyList_New(static_cast<Py_ssize_t>(out_.size())));
  for (size_t i = 0; i < out_.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), PyRef(out_[i]).release());
  return list;
}

} // namespace

PyRef decode(PyObject* code) {
  if (!PyCode_Check(code)) python::raise_type_error("decode: expected a code object");
  return BlockDecoder(code).run();
}

} // namespace torch::dynamo

#endif
