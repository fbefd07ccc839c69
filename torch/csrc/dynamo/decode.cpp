// Bytecode of the running Python -> normal form, from 3.11 on (decode_blocks.cpp for 3.10).
//
// Three passes. The code units become a list with arguments, caches dropped and jumps resolved.
// Then the stack is followed along all paths, only to know where the NULLs stand that CPython
// pushes beside callables: a call has one argument more where there is none, and exception handlers
// count them in their depth. Last, each reachable instruction is written as zero or more
// instructions of the normal form.
#include <torch/csrc/dynamo/codec.h>

#include <algorithm>
#include <optional>

#if PY_VERSION_HEX >= 0x030B0000

namespace torch::dynamo {
namespace {

using python::checked;
using python::raise;

struct Raw {
  int opcode;
  int arg;
  int unit;        // where it stands, prefixes included
  int target = -1; // index of the instruction a jump leads to
};

// One char per value on the stack.
constexpr char kValue = 'v', kNull = 'n';

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

class Decoder {
 public:
  explicit Decoder(PyObject* code) : code_(code), set_(raw_set()) {}
  PyRef run();

 private:
  void read_fields();
  void read_units();
  void resolve_jumps();
  void follow_stack();
  void step(size_t index, std::string stack);
  void reach(int index, const std::string& stack);
  void apply(const Raw& raw, std::string& stack) const;
  bool apply_call(const Raw& raw, std::string_view name, std::string& stack) const;
  std::string at_target(const Raw& raw, const std::string& before, const std::string& after) const;
  bool falls_through(const Raw& raw) const;
  const HandlerRange* handler_at(int unit) const;

  size_t padded_merge(size_t index) const;
  void translate(size_t index);
  bool translate_call(size_t index, std::string_view name);
  bool translate_combined(size_t index, std::string_view name);
  bool translate_313(size_t index, std::string_view name);
  void translate_jump(size_t index, std::string_view name);
  bool translate_position(size_t index, std::string_view name);
  void translate_plain(const Raw& raw, std::string_view name);
  PyObject* emit(int opcode, PyRef arg, PyRef argval);
  PyObject* emit_number(int opcode, long arg);
  void emit_name(int opcode, PyObject* tuple, int index);
  void emit_slot(int opcode, int index);
  void emit_load(int index);
  void link();
  int index_at(int unit) const;

  std::string_view name_of(const Raw& raw) const { return set_.name[raw.opcode]; }

  PyObject* code_;
  const RawSet& set_;
  PyRef bytes_, consts_, names_;
  std::vector<PyRef> slots_;
  PyRef cells_;
  std::vector<PyRef> positions_;
  std::vector<HandlerRange> handlers_;
  std::vector<Raw> raws_;
  std::vector<std::optional<std::string>> stacks_;
  std::vector<size_t> work_;
  bool started_ = false; // RESUME was seen: cells made from here on are not the frame's own

  std::vector<PyRef> out_;
  std::vector<size_t> first_out_; // by raw index: the first instruction written at or after it
  struct Jump {
    size_t from;
    int raw_target;
  };
  std::vector<Jump> jumps_;
  size_t current_ = 0;
  PyRef kwnames_;
};

PyRef field(PyObject* code, const char* name) {
  return checked(PyObject_GetAttrString(code, name));
}

void Decoder::read_fields() {
  bytes_ = field(code_, "co_code");
  consts_ = field(code_, "co_consts");
  names_ = field(code_, "co_names");
  PyRef varnames = field(code_, "co_varnames"), cellvars = field(code_, "co_cellvars"),
        freevars = field(code_, "co_freevars");
  slots_ = slot_names(varnames.get(), cellvars.get(), freevars.get());
  cells_ = checked(PySequence_Concat(cellvars.get(), freevars.get()));
  PyRef places =
      checked(PySequence_List(checked(PyObject_CallMethod(code_, "co_positions", nullptr)).get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places.get()); ++i)
    positions_.push_back(PyRef::borrow(PyList_GET_ITEM(places.get(), i)));
  handlers_ = parse_exception_table(field(code_, "co_exceptiontable").get());
}

void Decoder::read_units() {
  const auto* data = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes_.get()));
  const int units = static_cast<int>(PyBytes_GET_SIZE(bytes_.get()) / 2);
  const int extended = set_.number("EXTENDED_ARG");
  int start = 0, arg = 0;
  for (int unit = 0; unit < units; ++unit) {
    const int opcode = data[2 * unit];
    arg = (arg << 8) | data[2 * unit + 1];
    if (opcode == extended) continue;
    if (set_.name[opcode].empty()) {
      raise(PyExc_NotImplementedError,
            "bytecode of this Python has an unknown instruction " + std::to_string(opcode));
    }
    raws_.push_back({opcode, arg, start});
    unit += set_.caches[opcode];
    start = unit + 1;
    arg = 0;
  }
}

int Decoder::index_at(int unit) const {
  const auto at = std::lower_bound(raws_.begin(), raws_.end(), unit,
                                   [](const Raw& raw, int u) { return raw.unit < u; });
  if (at == raws_.end() || at->unit != unit)
    raise(PyExc_ValueError, "decode: a jump leads into the middle of an instruction");
  return static_cast<int>(at - raws_.begin());
}

void Decoder::resolve_jumps() {
  for (size_t i = 0; i < raws_.size(); ++i) {
    Raw& raw = raws_[i];
    if (!set_.jumps[raw.opcode]) continue;
    const bool backward = set_.name[raw.opcode].find("BACKWARD") != std::string::npos;
    const int end = i + 1 < raws_.size() ? raws_[i + 1].unit
                                         : static_cast<int>(PyBytes_GET_SIZE(bytes_.get()) / 2);
    int unit = backward ? end - raw.arg : end + raw.arg;
    // The exhausted iterator is popped by FOR_ITER itself, which then skips these.
    if (kPython312 && name_of(raw) == "FOR_ITER") unit += kPython313 ? 2 : 1;
    raw.target = index_at(unit);
  }
}

const HandlerRange* Decoder::handler_at(int unit) const {
  for (const HandlerRange& range : handlers_)
    if (range.start <= unit && unit < range.end) return &range;
  return nullptr;
}

// ---- where the NULLs are

void Decoder::follow_stack() {
  stacks_.resize(raws_.size());
  reach(0, "");
  while (!work_.empty()) {
    const size_t index = work_.back();
    work_.pop_back();
    step(index, *stacks_[index]);
  }
}

void Decoder::reach(int index, const std::string& stack) {
  if (index < 0 || static_cast<size_t>(index) >= raws_.size())
    raise(PyExc_ValueError, "decode: the code runs past its end");
  if (stacks_[index]) return;
  stacks_[index] = stack;
  work_.push_back(static_cast<size_t>(index));
}

void Decoder::step(size_t index, std::string stack) {
  const Raw& raw = raws_[index];
  if (const HandlerRange* range = handler_at(raw.unit)) {
    std::string kept = stack.substr(0, static_cast<size_t>(range->depth));
    kept.append(range->lasti ? 2 : 1, kValue);
    reach(index_at(range->target), kept);
  }
  const std::string before = stack;
  apply(raw, stack);
  if (raw.target >= 0) reach(raw.target, at_target(raw, before, stack));
  if (falls_through(raw)) reach(static_cast<int>(index) + 1, stack);
}

bool Decoder::falls_through(const Raw& raw) const {
  const std::string_view name = name_of(raw);
  return !(name == "RETURN_VALUE" || name == "RETURN_CONST" || name == "RAISE_VARARGS" ||
           name == "RERAISE" || starts_with(name, "JUMP_FORWARD") ||
           starts_with(name, "JUMP_BACKWARD"));
}

std::string Decoder::at_target(const Raw& raw, const std::string& before,
                               const std::string& after) const {
  const std::string_view name = name_of(raw);
  if (name == "FOR_ITER" || (name == "SEND" && !kPython312))
    return before.substr(0, before.size() - 1);
  if (name == "JUMP_IF_TRUE_OR_POP" || name == "JUMP_IF_FALSE_OR_POP") return before;
  return after;
}

void shrink(std::string& stack, int count) {
  if (static_cast<int>(stack.size()) < count)
    raise(PyExc_ValueError, "decode: an instruction takes more than the stack holds");
  stack.resize(stack.size() - static_cast<size_t>(count));
}

// Where the NULL of a call stands, from the top, under `arguments` values.
int null_position(int arguments) { return kPython313 ? arguments + 1 : arguments + 2; }
bool is_null(const std::string& stack, int position) {
  if (static_cast<int>(stack.size()) < position)
    raise(PyExc_ValueError, "decode: a call takes more than the stack holds");
  return stack[stack.size() - static_cast<size_t>(position)] == kNull;
}
void push_callable(std::string& stack) { stack += kPython313 ? "vn" : "nv"; }

// Calls and what pushes a callable with its NULL.
bool Decoder::apply_call(const Raw& raw, std::string_view name, std::string& stack) const {
  if (name == "PUSH_NULL") {
    stack.push_back(kNull);
  } else if (name == "LOAD_GLOBAL" && (raw.arg & 1)) {
    push_callable(stack);
  } else if (name == "LOAD_METHOD" || (kPython312 && name == "LOAD_ATTR" && (raw.arg & 1))) {
    shrink(stack, 1);
    push_callable(stack);
  } else if (name == "LOAD_SUPER_ATTR") {
    shrink(stack, 3);
    if (raw.arg & 1)
      push_callable(stack);
    else
      stack.push_back(kValue);
  } else if (name == "CALL" || name == "CALL_KW") {
    shrink(stack, raw.arg + (name == "CALL_KW" ? 3 : 2));
    stack.push_back(kValue);
  } else if (name == "CALL_FUNCTION_EX") {
    shrink(stack, 3 + (raw.arg & 1));
    stack.push_back(kValue);
  } else {
    return name == "PRECALL" || name == "KW_NAMES";
  }
  return true;
}

void Decoder::apply(const Raw& raw, std::string& stack) const {
  const std::string_view name = name_of(raw);
  if (apply_call(raw, name, stack)) return;
  if (name == "SWAP") {
    if (raw.arg < 1 || stack.size() < static_cast<size_t>(raw.arg))
      raise(PyExc_ValueError, "decode: SWAP reaches below the stack");
    std::swap(stack.back(), stack[stack.size() - static_cast<size_t>(raw.arg)]);
    return;
  }
  // A generator is resumed with a value on its stack.
  if (name == "FOR_ITER" || name == "RETURN_GENERATOR") {
    stack.push_back(kValue);
    return;
  }
  if (name == "SEND") return;
  const int effect = PyCompile_OpcodeStackEffectWithJump(raw.opcode, raw.arg, 0);
  if (effect == PY_INVALID_STACK_EFFECT)
    raise(PyExc_NotImplementedError, "decode: no stack effect known for " + std::string(name));
  if (effect < 0)
    shrink(stack, -effect);
  else
    stack.append(static_cast<size_t>(effect), kValue);
}

// ---- translation

PyObject* Decoder::emit(int opcode, PyRef arg, PyRef argval) {
  if (!argval) argval = arg;
  PyRef made = new_instruction(opcode, std::move(arg), std::move(argval));
  InstructionObject* in = as_instruction(made.get());
  const Raw& raw = raws_[current_];
  in->offset = checked(PyLong_FromLong(2L * raw.unit)).release();
  if (static_cast<size_t>(raw.unit) < positions_.size())
    in->positions = PyRef(positions_[raw.unit]).release();
  out_.push_back(std::move(made));
  return out_.back().get();
}
PyObject* Decoder::emit_number(int opcode, long arg) {
  return emit(opcode, checked(PyLong_FromLong(arg)), PyRef());
}
void Decoder::emit_name(int opcode, PyObject* tuple, int index) {
  if (index < 0 || index >= PyTuple_GET_SIZE(tuple))
    raise(PyExc_ValueError, "decode: an instruction names what its code does not list");
  emit(opcode, PyRef(), PyRef::borrow(PyTuple_GET_ITEM(tuple, index)));
}
void Decoder::emit_slot(int opcode, int index) {
  if (index < 0 || static_cast<size_t>(index) >= slots_.size())
    raise(PyExc_ValueError, "decode: an instruction names a variable its code does not list");
  emit(opcode, PyRef(), slots_[index]);
}

// 3.13 reads the cell itself by LOAD_FAST, as it reads variables.
void Decoder::emit_load(int index) {
  const bool known = index >= 0 && static_cast<size_t>(index) < slots_.size();
  const int is_cell =
      kPython313 && known ? PySequence_Contains(cells_.get(), slots_[index].get()) : 0;
  python::check_status(is_cell);
  emit_slot(is_cell ? op("LOAD_CLOSURE") : op("LOAD_FAST"), index);
}

bool Decoder::translate_call(size_t index, std::string_view name) {
  const Raw& raw = raws_[index];
  const std::string& stack = *stacks_[index];
  if (name == "PUSH_NULL" || name == "PRECALL" || name == "CACHE") return true;
  if (name == "KW_NAMES") {
    kwnames_ = PyRef::borrow(PyTuple_GET_ITEM(consts_.get(), raw.arg));
  } else if (name == "LOAD_METHOD") {
    emit_name(op("LOAD_ATTR"), names_.get(), raw.arg);
  } else if (name == "LOAD_ATTR") {
    emit_name(op("LOAD_ATTR"), names_.get(), kPython312 ? raw.arg >> 1 : raw.arg);
  } else if (name == "LOAD_GLOBAL") {
    emit_name(op("LOAD_GLOBAL"), names_.get(), raw.arg >> 1);
  } else if (name == "LOAD_SUPER_ATTR") {
    emit(op("CALL"), checked(PyLong_FromLong(2)), checked(PyTuple_New(0)));
    emit_name(op("LOAD_ATTR"), names_.get(), raw.arg >> 2);
  } else if (name == "CALL" || name == "CALL_KW") {
    const int below = name == "CALL_KW" ? 1 : 0; // the tuple of names lies on top
    const int count = raw.arg + (is_null(stack, null_position(raw.arg) + below) ? 0 : 1);
    if (below) {
      // The names were pushed by the instruction before, which becomes part of this one.
      kwnames_ = PyRef::borrow(as_instruction(out_.back().get())->argval);
      out_.pop_back();
    }
    PyRef names = kwnames_ ? std::move(kwnames_) : checked(PyTuple_New(0));
    kwnames_ = PyRef();
    emit(op("CALL"), checked(PyLong_FromLong(count)), std::move(names));
  } else {
    return false;
  }
  return true;
}

// Instructions that stand for two.
bool Decoder::translate_combined(size_t index, std::string_view name) {
  const Raw& raw = raws_[index];
  if (name == "RETURN_CONST") {
    emit_name(op("LOAD_CONST"), consts_.get(), raw.arg);
    emit(op("RETURN_VALUE"), PyRef(), PyRef());
  } else if (name == "BINARY_SLICE" || name == "STORE_SLICE") {
    emit_number(op("BUILD_SLICE"), 2);
    emit(name == "BINARY_SLICE" ? op("BINARY_SUBSCR") : op("STORE_SUBSCR"), PyRef(), PyRef());
  } else if (name == "LOAD_FAST_LOAD_FAST") {
    emit_load(raw.arg >> 4);
    emit_load(raw.arg & 15);
  } else if (name == "STORE_FAST_LOAD_FAST") {
    emit_slot(op("STORE_FAST"), raw.arg >> 4);
    emit_load(raw.arg & 15);
  } else if (name == "STORE_FAST_STORE_FAST") {
    emit_slot(op("STORE_FAST"), raw.arg >> 4);
    emit_slot(op("STORE_FAST"), raw.arg & 15);
  } else if (name == "LOAD_FAST_CHECK") {
    emit_slot(op("LOAD_FAST"), raw.arg);
  } else if (name == "CALL_INTRINSIC_1" && raw.arg >= 3 && raw.arg <= 6) {
    constexpr int known[] = {op("STOPITERATION_ERROR"), op("ASYNC_GEN_WRAP"), op("UNARY_POSITIVE"),
                             op("LIST_TO_TUPLE")};
    emit(known[raw.arg - 3], PyRef(), PyRef());
  } else if (name == "CALL_INTRINSIC_2" && raw.arg == 1) {
    emit(op("PREP_RERAISE_STAR"), PyRef(), PyRef());
  } else {
    return kPython313 && translate_313(index, name);
  }
  return true;
}

// What 3.13 took apart.
bool Decoder::translate_313(size_t index, std::string_view name) {
  const Raw& raw = raws_[index];
  if (name == "TO_BOOL") {
    const std::string_view next =
        index + 1 < raws_.size() ? name_of(raws_[index + 1]) : std::string_view();
    const bool tested =
        next == "POP_JUMP_IF_TRUE" || next == "POP_JUMP_IF_FALSE" || next == "UNARY_NOT";
    for (int i = 0; i < 2 && !tested; ++i) emit(op("UNARY_NOT"), PyRef(), PyRef());
  } else if (name == "FORMAT_SIMPLE" && index > 0 && name_of(raws_[index - 1]) == "CONVERT_VALUE") {
    // FORMAT_VALUE with a conversion is both.
  } else if (name == "FORMAT_SIMPLE" || name == "FORMAT_WITH_SPEC") {
    emit_number(op("FORMAT_VALUE"), name == "FORMAT_SIMPLE" ? 0 : 4);
  } else if (name == "CONVERT_VALUE") {
    emit_number(op("FORMAT_VALUE"), raw.arg);
  } else if (name == "MAKE_FUNCTION") {
    emit_number(op("MAKE_FUNCTION"), 0);
  } else if (name == "SET_FUNCTION_ATTRIBUTE") {
    InstructionObject* made = as_instruction(out_.back().get());
    if (made->opcode != op("MAKE_FUNCTION"))
      raise(PyExc_NotImplementedError, "decode: SET_FUNCTION_ATTRIBUTE without MAKE_FUNCTION");
    PyRef flags = checked(PyLong_FromLong(PyLong_AsLong(made->arg) | raw.arg));
    PyRef argval = flags;
    Py_XSETREF(made->arg, flags.release());
    Py_XSETREF(made->argval, argval.release());
  } else {
    return false;
  }
  return true;
}

void Decoder::translate_jump(size_t index, std::string_view name) {
  const int target = raws_[index].target;
  if (name == "JUMP_IF_TRUE_OR_POP" || name == "JUMP_IF_FALSE_OR_POP") {
    emit_number(op("COPY"), 1);
    jumps_.push_back({out_.size(), target});
    emit(name == "JUMP_IF_TRUE_OR_POP" ? op("POP_JUMP_IF_TRUE") : op("POP_JUMP_IF_FALSE"), PyRef(),
         PyRef());
    emit(op("POP_TOP"), PyRef(), PyRef());
    return;
  }
  std::string normal(name);
  if (name == "JUMP_FORWARD" || name == "JUMP_BACKWARD")
    normal = "JUMP";
  else if (name == "JUMP_BACKWARD_NO_INTERRUPT")
    normal = "JUMP_NO_INTERRUPT";
  for (const char* direction : {"FORWARD_", "BACKWARD_"}) {
    const size_t at = normal.find(direction);
    if (at != std::string::npos) normal.erase(at, std::string_view(direction).size());
  }
  const int opcode = op(normal);
  if (opcode < 0) raise(PyExc_NotImplementedError, "decode: jump " + std::string(name));
  jumps_.push_back({out_.size(), target});
  emit(opcode, PyRef(), PyRef());
}

// encode() puts a value below the arguments of DICT_MERGE on 3.13 (write_dict_merge there): how
// many instructions follow the one at index in that form, 0 where it is another.
size_t Decoder::padded_merge(size_t index) const {
  static constexpr std::pair<std::string_view, int> kForm[] = {
      {"SWAP", 4}, {"SWAP", 3},    {"SWAP", 2}, {"DICT_MERGE", 1},
      {"SWAP", 3}, {"POP_TOP", 0}, {"SWAP", 2}};
  constexpr size_t count = sizeof(kForm) / sizeof(kForm[0]);
  if (!kPython313 || name_of(raws_[index]) != "LOAD_CONST" || index + count >= raws_.size())
    return 0;
  for (size_t i = 0; i < count; ++i) {
    const Raw& raw = raws_[index + 1 + i];
    if (name_of(raw) != kForm[i].first || raw.arg != kForm[i].second) return 0;
  }
  return count;
}

// COPY and SWAP count NULLs, the normal form has none. SWAPs right after PUSH_NULL move the NULL
// below the values that encode() had found above the callable.
bool Decoder::translate_position(size_t index, std::string_view name) {
  if (name != "COPY" && name != "SWAP") return false;
  const Raw& raw = raws_[index];
  const std::string& stack = *stacks_[index];
  if (raw.arg < 1 || stack.size() < static_cast<size_t>(raw.arg))
    raise(PyExc_ValueError, "decode: " + std::string(name) + " reaches below the stack");
  size_t first = index;
  while (first > 0 && name_of(raws_[first - 1]) == "SWAP" &&
         raws_[first - 1].arg == raws_[first].arg + 1) {
    --first;
  }
  if (name == "SWAP" && first > 0 && name_of(raws_[first - 1]) == "PUSH_NULL") return true;
  const auto reached = stack.end() - raw.arg;
  if (*reached == kNull || (name == "SWAP" && stack.back() == kNull))
    raise(PyExc_NotImplementedError, "decode: " + std::string(name) + " of a NULL");
  emit_number(set_.normal[raw.opcode], raw.arg - std::count(reached, stack.end(), kNull));
  return true;
}

void Decoder::translate_plain(const Raw& raw, std::string_view name) {
  const int opcode = set_.normal[raw.opcode];
  if (opcode < 0) raise(PyExc_NotImplementedError, "decode: instruction " + std::string(name));
  switch (kOps[opcode].operand) {
  case Operand::None:
    emit(opcode, PyRef(), PyRef());
    return;
  case Operand::Const:
    emit_name(opcode, consts_.get(), raw.arg);
    return;
  case Operand::Name:
    emit_name(opcode, names_.get(), raw.arg);
    return;
  case Operand::Cell:
    emit_slot(opcode, raw.arg);
    return;
  case Operand::Local:
    if (name == "LOAD_FAST")
      emit_load(raw.arg);
    else
      emit_slot(opcode, raw.arg);
    return;
  case Operand::Compare: {
    const size_t number = static_cast<size_t>(raw.arg >> (kPython313 ? 5 : kPython312 ? 4 : 0));
    if (number >= set_.compare_operators.size())
      raise(PyExc_ValueError, "decode: unknown comparison");
    emit(opcode, checked(PyLong_FromSize_t(number)), set_.compare_operators[number]);
    return;
  }
  case Operand::Binary:
    if (static_cast<size_t>(raw.arg) >= set_.binary_operators.size())
      raise(PyExc_ValueError, "decode: unknown binary operator");
    emit(opcode, checked(PyLong_FromLong(raw.arg)), set_.binary_operators[raw.arg]);
    return;
  default:
    emit_number(opcode, raw.arg);
    return;
  }
}

void Decoder::translate(size_t index) {
  const Raw& raw = raws_[index];
  const std::string_view name = name_of(raw);
  if (name == "RESUME") started_ = true;
  if (name == "COPY_FREE_VARS" || name == "END_FOR") return;
  if (name == "MAKE_CELL" && !started_) return;
  if (translate_call(index, name) || translate_combined(index, name) ||
      translate_position(index, name)) {
    return;
  }
  if (raw.target >= 0) return translate_jump(index, name);
  translate_plain(raw, name);
}

// Targets and handlers, now that every instruction exists.
void Decoder::link() {
  const auto at = [&](int raw) -> PyRef {
    const size_t index = first_out_[raw];
    if (index >= out_.size()) raise(PyExc_ValueError, "decode: a jump leads past the end");
    return out_[index];
  };
  for (const Jump& jump : jumps_)
    Py_XSETREF(as_instruction(out_[jump.from].get())->target, at(jump.raw_target).release());
  for (size_t index = 0; index < raws_.size(); ++index) {
    const HandlerRange* range = handler_at(raws_[index].unit);
    if (!range) continue;
    const int target = index_at(range->target);
    if (!stacks_[target]) continue;
    const std::string& kept = *stacks_[target];
    const auto nulls = std::count(kept.begin(), kept.end(), kNull);
    const size_t end = index + 1 < raws_.size() ? first_out_[index + 1] : out_.size();
    for (size_t i = first_out_[index]; i < end; ++i) {
      InstructionObject* in = as_instruction(out_[i].get());
      Py_XSETREF(in->handler, at(target).release());
      in->depth = range->depth - static_cast<int>(nulls);
      in->lasti = range->lasti;
    }
  }
}

PyRef Decoder::run() {
  read_fields();
  read_units();
  if (raws_.empty()) raise(PyExc_ValueError, "decode: the code has no instructions");
  resolve_jumps();
  follow_stack();
  for (current_ = 0; current_ < raws_.size(); ++current_) {
    first_out_.push_back(out_.size());
    if (!stacks_[current_]) continue;
    if (const size_t more = padded_merge(current_)) {
      emit_number(op("DICT_MERGE"), 1);
      first_out_.insert(first_out_.end(), more, out_.size());
      current_ += more;
    } else {
      translate(current_);
    }
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
  if constexpr (!kCodecSupported)
    raise(PyExc_NotImplementedError, "bytecode of Python " PY_VERSION " cannot be decoded");
  return Decoder(code).run();
}

} // namespace torch::dynamo

#endif
