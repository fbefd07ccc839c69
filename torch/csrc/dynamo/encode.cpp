// Normal form -> bytecode of the running Python, from 3.11 on (encode_blocks.cpp for 3.10).
//
// Each instruction is written as one or more of CPython's own. Calls need no analysis: the normal
// form has `callable, first argument, ...` on the stack, which is what CPython expects of a method
// and its `self`; only a call without arguments pushes the NULL. Then the code is laid out until no
// jump needs a longer argument, and the stack size is found by following all paths.
#include <torch/csrc/dynamo/code_writer.h>

#include <algorithm>

#if PY_VERSION_HEX >= 0x030B0000

namespace torch::dynamo {
namespace {

using python::check_status;
using python::checked;
using python::raise;

class Encoder : CodeWriter {
 public:
  Encoder(PyObject* list, PyObject* code, const EncodeOptions& options);
  PyRef run();

 private:
  void write_prefix();
  void write(size_t index);
  void write_call(size_t index);
  void write_call_ex(size_t index);
  void write_jump(size_t index);
  void write_for_target(size_t index);
  void write_make_function(size_t index, long flags);
  void write_format(size_t index, long flags);
  void write_intrinsic(size_t index);
  void write_dict_merge(size_t index);
  void write_operand(size_t index);
  long jump_arg(const Out& out) const override;
  std::string exception_table() const;
  std::string line_table() const;
  int stack_size() const;
  int effect(const Out& out, bool jump) const;

  std::vector<bool> is_for_target_;
  std::vector<size_t> pad_; // by instruction: what stands before it for FOR_ITER
};

Encoder::Encoder(PyObject* list, PyObject* code, const EncodeOptions& options)
    : CodeWriter(list, code, options), is_for_target_(list_.size()) {
  for (size_t i = 0; i < list_.size(); ++i)
    if (at(i)->opcode == op("FOR_ITER") && kPython312) is_for_target_[target_of(i)] = true;
}

// ---- instruction by instruction

void Encoder::write_prefix() {
  const Py_ssize_t free = PyTuple_GET_SIZE(freevars_.get());
  if (free > 0) put("COPY_FREE_VARS", 0, static_cast<int>(free));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cellvars_.get()); ++i)
    put("MAKE_CELL", 0, slot(PyTuple_GET_ITEM(cellvars_.get(), i)));
  for (size_t i = 0; i < list_.size(); ++i)
    if (at(i)->opcode == op("RESUME")) return;
  put("RESUME", 0, 0);
}

// FOR_ITER of 3.12 leads to END_FOR, which it skips. Whoever else comes here goes around it.
void Encoder::write_for_target(size_t index) {
  if (index > 0 && falls_through(index - 1)) {
    put("JUMP_FORWARD", index);
    outs_.back().target = static_cast<long>(index);
  }
  pad_[index] = outs_.size();
  put("END_FOR", index);
  if (kPython313) put("POP_TOP", index);
}

void Encoder::write_call(size_t index) {
  const int count = static_cast<int>(arg_of(index));
  PyObject* names = at(index)->argval;
  const bool keywords = names && PyTuple_Check(names) && PyTuple_GET_SIZE(names) > 0;
  if (count == 0) {
    put("PUSH_NULL", index);
    if (!kPython313) put("SWAP", index, 2);
  }
  const int arg = count == 0 ? 0 : count - 1;
  if (keywords && kPython313) {
    put("LOAD_CONST", index, consts_.add(names));
    put("CALL_KW", index, arg);
    return;
  }
  if (keywords) put("KW_NAMES", index, consts_.add(names));
  if (!kPython312) put("PRECALL", index, arg);
  put("CALL", index, arg);
}

void Encoder::write_call_ex(size_t index) {
  const int keywords = static_cast<int>(arg_of(index)) & 1;
  put("PUSH_NULL", index);
  // The NULL goes below the callable, or above it from 3.13 on.
  for (int i = (kPython313 ? 2 : 3) + keywords; i >= 2; --i) put("SWAP", index, i);
  put("CALL_FUNCTION_EX", index, keywords);
}

void Encoder::write_jump(size_t index) {
  const long target = target_of(index);
  const bool backward = target <= static_cast<long>(index);
  const int opcode = at(index)->opcode;
  std::string name(kOps[opcode].name);
  const bool conditional = name.compare(0, 8, "POP_JUMP") == 0;
  if (kPython313 && (opcode == op("POP_JUMP_IF_TRUE") || opcode == op("POP_JUMP_IF_FALSE")))
    put("TO_BOOL", index);
  if (conditional && kPython312 && backward) {
    // Conditional jumps lead forward only: the opposite one steps over a jump back.
    const int inverse = opcode == op("POP_JUMP_IF_TRUE")    ? op("POP_JUMP_IF_FALSE")
                        : opcode == op("POP_JUMP_IF_FALSE") ? op("POP_JUMP_IF_TRUE")
                        : opcode == op("POP_JUMP_IF_NONE")  ? op("POP_JUMP_IF_NOT_NONE")
                                                            : op("POP_JUMP_IF_NONE");
    if (index + 1 >= list_.size()) raise(PyExc_ValueError, "encode: the code runs past its end");
    put(kOps[inverse].name, index);
    outs_.back().target = static_cast<long>(index) + 1;
    name = "JUMP_BACKWARD";
  } else if (conditional && !kPython312) {
    name = std::string(backward ? "POP_JUMP_BACKWARD" : "POP_JUMP_FORWARD") + name.substr(8);
  } else if (opcode == op("JUMP") || (opcode == op("JUMP_NO_INTERRUPT") && !backward)) {
    name = backward ? "JUMP_BACKWARD" : "JUMP_FORWARD";
  } else if (opcode == op("JUMP_NO_INTERRUPT")) {
    name = "JUMP_BACKWARD_NO_INTERRUPT";
  } else if (!conditional && backward) {
    raise(PyExc_ValueError, "encode: " + name + " cannot lead backwards");
  }
  put(name, index);
  outs_.back().target = target;
  outs_.back().to_pad = kPython312 && opcode == op("FOR_ITER");
}

void Encoder::write_make_function(size_t index, long flags) {
  if (!kPython313) {
    put("MAKE_FUNCTION", index, static_cast<int>(flags));
    return;
  }
  put("MAKE_FUNCTION", index);
  for (const int flag : {8, 4, 2, 1})
    if (flags & flag) put("SET_FUNCTION_ATTRIBUTE", index, flag);
}

void Encoder::write_format(size_t index, long flags) {
  if (!kPython313) {
    put("FORMAT_VALUE", index, static_cast<int>(flags));
    return;
  }
  const int conversion = static_cast<int>(flags) & 3;
  const bool with_format = flags & 4;
  if (with_format && conversion) put("SWAP", index, 2);
  if (conversion) put("CONVERT_VALUE", index, conversion);
  if (with_format && conversion) put("SWAP", index, 2);
  put(with_format ? "FORMAT_WITH_SPEC" : "FORMAT_SIMPLE", index);
}

void Encoder::write_intrinsic(size_t index) {
  const int opcode = at(index)->opcode;
  const std::string_view name = kOps[opcode].name;
  const int number = opcode == op("STOPITERATION_ERROR") ? 3
                     : opcode == op("ASYNC_GEN_WRAP")    ? 4
                     : opcode == op("UNARY_POSITIVE")    ? 5
                     : opcode == op("LIST_TO_TUPLE")     ? 6
                                                         : 1;
  if (!kPython312)
    put(name, index);
  else if (opcode == op("PREP_RERAISE_STAR"))
    put("CALL_INTRINSIC_2", index, number);
  else
    put("CALL_INTRINSIC_1", index, number);
}

// 3.13 looks for the callable, to name it in its message, where a NULL would stand between it and
// the arguments.
void Encoder::write_dict_merge(size_t index) {
  const int position = static_cast<int>(arg_of(index));
  if (!kPython313 || position != 1) {
    put("DICT_MERGE", index, position);
    return;
  }
  put("LOAD_CONST", index, consts_.add(Py_None));
  for (const int i : {4, 3, 2}) put("SWAP", index, i);
  put("DICT_MERGE", index, 1);
  put("SWAP", index, 3);
  put("POP_TOP", index);
  put("SWAP", index, 2);
}

// From 3.12 on the argument of a comparison holds, below its number, the outcomes for which it is
// true (unordered 1, less 2, greater 4, equal 8): instructions specialised for numbers read those.
int comparison_arg(int place) {
  if (!kPython312) return place;
  constexpr int kUnordered = 1, kLess = 2, kGreater = 4, kEqual = 8;
  constexpr int outcomes[] = {kLess,    kLess | kEqual,   kEqual, kUnordered | kLess | kGreater,
                              kGreater, kGreater | kEqual};
  return place << (kPython313 ? 5 : 4) | outcomes[place];
}

void Encoder::write_operand(size_t index) {
  const int opcode = at(index)->opcode;
  std::string_view name = kOps[opcode].name;
  PyObject* argval = at(index)->argval;
  if (!argval) argval = Py_None;
  switch (kOps[opcode].operand) {
  case Operand::None:
    put(name, index);
    return;
  case Operand::Const:
    put(name, index, consts_.add(argval));
    return;
  case Operand::Name: {
    if (!PyUnicode_Check(argval))
      python::raise_type_error("encode: the argval of " + std::string(name) + " must be a name");
    const bool shifted = opcode == op("LOAD_GLOBAL") || (kPython312 && opcode == op("LOAD_ATTR"));
    put(name, index, names_.add(argval) << (shifted ? 1 : 0));
    return;
  }
  case Operand::Local:
    // From 3.12 on LOAD_FAST trusts that the variable is bound.
    if (kPython312 && opcode == op("LOAD_FAST") && !is_cell(argval)) name = "LOAD_FAST_CHECK";
    put(name, index, slot(argval));
    return;
  case Operand::Cell:
    if (kPython313 && opcode == op("LOAD_CLOSURE")) name = "LOAD_FAST";
    put(name, index, slot(argval));
    return;
  case Operand::Compare:
  case Operand::Binary: {
    const bool compares = opcode == op("COMPARE_OP");
    const int place =
        operator_place(index, compares ? set_.compare_operators : set_.binary_operators);
    put(name, index, compares ? comparison_arg(place) : place);
    return;
  }
  default:
    put(name, index, static_cast<int>(arg_of(index)));
    return;
  }
}

void Encoder::write(size_t index) {
  const int opcode = at(index)->opcode;
  if (is_for_target_[index]) write_for_target(index);
  first_[index] = outs_.size();
  if (kOps[opcode].operand == Operand::Jump) return write_jump(index);
  if (opcode == op("CALL")) return write_call(index);
  if (opcode == op("CALL_FUNCTION_EX")) return write_call_ex(index);
  if (opcode == op("MAKE_FUNCTION")) return write_make_function(index, arg_of(index));
  if (opcode == op("FORMAT_VALUE")) return write_format(index, arg_of(index));
  if (opcode == op("DICT_MERGE")) return write_dict_merge(index);
  if (opcode == op("UNARY_POSITIVE") || opcode == op("LIST_TO_TUPLE") ||
      opcode == op("ASYNC_GEN_WRAP") || opcode == op("STOPITERATION_ERROR") ||
      opcode == op("PREP_RERAISE_STAR")) {
    return write_intrinsic(index);
  }
  if (opcode == op("UNARY_NOT") && kPython313) put("TO_BOOL", index);
  write_operand(index);
}

long Encoder::jump_arg(const Out& out) const {
  const size_t to = out.to_pad ? pad_[out.target] : first_[out.target];
  const int end = out.start + out.units;
  const long distance = outs_[to].start - end;
  return distance < 0 ? -distance : distance;
}

std::string Encoder::exception_table() const {
  std::vector<HandlerRange> ranges;
  for (const Out& out : outs_) {
    const InstructionObject* in = at(out.source);
    const bool prefix = &out - outs_.data() < static_cast<long>(first_[0]);
    if (!in->handler || in->handler == Py_None || prefix) continue;
    const auto found = index_.find(in->handler);
    if (found == index_.end())
      raise(PyExc_ValueError, "encode: a handler is no instruction of the list");
    const int target = outs_[first_[found->second]].start, end = out.start + out.units;
    if (!ranges.empty()) {
      HandlerRange& last = ranges.back();
      if (last.end == out.start && last.target == target && last.depth == in->depth &&
          last.lasti == (in->lasti != 0)) {
        last.end = end;
        continue;
      }
    }
    ranges.push_back({out.start, end, target, in->depth, in->lasti != 0});
  }
  return format_exception_table(ranges);
}

std::string Encoder::line_table() const {
  std::vector<PositionRun> runs;
  for (const Out& out : outs_) {
    PyObject* positions = at(out.source)->positions;
    if (!runs.empty() && runs.back().positions == positions)
      runs.back().units += out.units;
    else
      runs.push_back({positions, out.units});
  }
  return format_line_table(runs, first_line());
}

int Encoder::effect(const Out& out, bool jump) const {
  const std::string_view name = set_.name[out.opcode];
  if (name == "FOR_ITER") return jump && !kPython312 ? -1 : 1;
  if (name == "SEND") return jump && !kPython312 ? -1 : 0;
  if (name == "RETURN_GENERATOR") return 1; // it is resumed with a value on its stack
  const int effect = PyCompile_OpcodeStackEffectWithJump(out.opcode, out.arg, jump ? 1 : 0);
  if (effect == PY_INVALID_STACK_EFFECT)
    raise(PyExc_NotImplementedError, "encode: no stack effect known for " + std::string(name));
  return effect;
}

int Encoder::stack_size() const {
  std::vector<int> depths(outs_.size(), -1);
  std::vector<size_t> work;
  int most = 0;
  const auto reach = [&](size_t to, int depth) {
    if (to >= outs_.size()) raise(PyExc_ValueError, "encode: the code runs past its end");
    if (depth < 0) {
      raise(PyExc_ValueError, "encode: " + set_.name[outs_[to].opcode] +
                                  " is reached with less than nothing on the stack");
    }
    most = std::max(most, depth);
    if (depths[to] >= depth) return;
    if (depths[to] >= 0)
      raise(PyExc_ValueError, "encode: paths of different stack depth meet at instruction " +
                                  std::to_string(outs_[to].source) + " (" +
                                  std::string(kOps[at(outs_[to].source)->opcode].name) + ")");
    depths[to] = depth;
    work.push_back(to);
  };
  reach(0, 0);
  while (!work.empty()) {
    const size_t i = work.back();
    work.pop_back();
    const Out& out = outs_[i];
    const InstructionObject* in = at(out.source);
    if (in->handler && in->handler != Py_None && i >= first_[0])
      reach(first_[index_.at(in->handler)], in->depth + 1 + (in->lasti ? 1 : 0));
    most = std::max(most, depths[i] + std::max(0, effect(out, false)));
    if (out.target >= 0)
      reach(out.to_pad ? pad_[out.target] : first_[out.target], depths[i] + effect(out, true));
    const std::string_view name = set_.name[out.opcode];
    const bool ends = name == "RETURN_VALUE" || name == "RAISE_VARARGS" || name == "RERAISE" ||
                      name == "JUMP_FORWARD" || name == "JUMP_BACKWARD" ||
                      name == "JUMP_BACKWARD_NO_INTERRUPT";
    if (!ends) reach(i + 1, depths[i] + effect(out, false));
  }
  return most + 1;
}

PyRef Encoder::run() {
  first_.resize(list_.size());
  pad_.resize(list_.size());
  write_prefix();
  for (size_t i = 0; i < list_.size(); ++i) write(i);
  lay_out();
  PyRef fields = checked(PyDict_New());
  const auto set = [&](const char* name, const std::string& text) {
    check_status(PyDict_SetItemString(fields.get(), name, bytes_object(text).get()));
  };
  set("co_exceptiontable", exception_table());
  set("co_linetable", line_table());
  return finish(std::move(fields), stack_size());
}

} // namespace

PyRef encode(PyObject* instructions, PyObject* code, const EncodeOptions& options) {
  if (!PyCode_Check(code)) python::raise_type_error("encode: expected a code object");
  if constexpr (!kCodecSupported)
    raise(PyExc_NotImplementedError, "bytecode of Python " PY_VERSION " cannot be encoded");
  return Encoder(instructions, code, options).run();
}

} // namespace torch::dynamo

#endif
