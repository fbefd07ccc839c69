// Normal form -> bytecode of the running Python.
//
// Each instruction is written as one or more of CPython's own. Calls need no analysis: the normal
// form has `callable, first argument, ...` on the stack, which is what CPython expects of a method
// and its `self`; only a call without arguments pushes the NULL. Then the code is laid out until no
// jump needs a longer argument, and the stack size is found by following all paths.
#include <torch/csrc/dynamo/codec.h>

#include <algorithm>
#include <unordered_map>

namespace torch::dynamo {
namespace {

using python::check_status;
using python::checked;
using python::raise;

// Numbers of a table of a code object, handed out in order of first use.
class Numbering {
 public:
  enum class By { Identity, Equality };
  explicit Numbering(By by)
      : by_(by), index_(checked(PyDict_New())), items_(checked(PyList_New(0))) {}
  int add(PyObject* item) {
    PyRef key = by_ == By::Identity ? checked(PyLong_FromVoidPtr(item)) : PyRef::borrow(item);
    if (PyObject* known = PyDict_GetItemWithError(index_.get(), key.get()))
      return static_cast<int>(PyLong_AsLong(known));
    if (PyErr_Occurred()) throw python::python_error();
    const Py_ssize_t number = PyList_GET_SIZE(items_.get());
    PyRef value = checked(PyLong_FromSsize_t(number));
    check_status(PyDict_SetItem(index_.get(), key.get(), value.get()));
    check_status(PyList_Append(items_.get(), item));
    return static_cast<int>(number);
  }
  PyRef tuple() const { return checked(PyList_AsTuple(items_.get())); }

 private:
  By by_;
  PyRef index_, items_;
};

// One instruction to be written.
struct Out {
  int opcode;
  int arg;
  size_t source;       // index of the instruction it comes from
  long target = -1;    // index of the instruction it jumps to
  bool to_pad = false; // jumps to what stands before the target
  int units = 0;       // length with prefixes and caches
  int start = 0;
};

class Encoder {
 public:
  Encoder(PyObject* list, PyObject* code, const EncodeOptions& options);
  PyRef run();

 private:
  void read_instructions(PyObject* list);
  void read_variables();
  void collect_locals();
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
  void lay_out();
  long jump_distance(const Out& out) const;
  std::string bytes() const;
  std::string exception_table() const;
  std::string line_table() const;
  int stack_size() const;
  int effect(const Out& out, bool jump) const;
  PyRef finish();

  void put(std::string_view name, size_t source, int arg = 0) {
    outs_.push_back({number(name), arg, source});
  }
  int number(std::string_view name) const { return set_.number(name); }
  InstructionObject* at(size_t index) const { return as_instruction(list_[index].get()); }
  long arg_of(size_t index) const;
  long target_of(size_t index) const;
  int slot(PyObject* name) const;
  bool is_cell(PyObject* name) const;
  bool falls_through(size_t index) const;

  PyObject* code_;
  const EncodeOptions& options_;
  const RawSet& set_;
  std::vector<PyRef> list_;
  std::unordered_map<PyObject*, long> index_; // of each instruction
  std::vector<bool> is_for_target_;
  Numbering consts_{Numbering::By::Identity}, names_{Numbering::By::Equality};
  PyRef varnames_, cellvars_, freevars_;
  std::vector<PyRef> slots_;
  PyRef slot_index_;
  std::vector<Out> outs_;
  std::vector<size_t> first_; // by instruction: the first Out a jump to it leads to
  std::vector<size_t> pad_;   // by instruction: what stands before it for FOR_ITER
};

PyRef given_or(PyObject* given, PyObject* code, const char* name) {
  return given ? PyRef::borrow(given) : checked(PyObject_GetAttrString(code, name));
}
PyRef tuple_of(PyRef sequence) { return checked(PySequence_Tuple(sequence.get())); }

Encoder::Encoder(PyObject* list, PyObject* code, const EncodeOptions& options)
    : code_(code), options_(options), set_(raw_set()) {
  read_instructions(list);
  read_variables();
}

void Encoder::read_instructions(PyObject* list) {
  PyRef items = checked(PySequence_List(list));
  const Py_ssize_t count = PyList_GET_SIZE(items.get());
  if (count == 0) raise(PyExc_ValueError, "encode: there are no instructions");
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    if (!PyObject_TypeCheck(item, &InstructionType)) {
      python::raise_type_error("encode: expected a list of Instruction, got " +
                               std::string(python::type_name(item)));
    }
    if (!index_.emplace(item, i).second)
      raise(PyExc_ValueError, "encode: an instruction stands twice in the list");
    list_.push_back(PyRef::borrow(item));
  }
  is_for_target_.resize(list_.size());
  for (size_t i = 0; i < list_.size(); ++i)
    if (at(i)->opcode == op("FOR_ITER") && kPython312) is_for_target_[target_of(i)] = true;
}

long Encoder::target_of(size_t index) const {
  PyObject* target = at(index)->target;
  const auto found = target ? index_.find(target) : index_.end();
  if (found == index_.end()) {
    raise(PyExc_ValueError, "encode: " + std::string(kOps[at(index)->opcode].name) +
                                " leads to no instruction of the list");
  }
  return found->second;
}

long Encoder::arg_of(size_t index) const {
  PyObject* arg = at(index)->arg;
  if (!arg || arg == Py_None) arg = at(index)->argval;
  if (!arg || arg == Py_None) return 0;
  const long value = PyLong_AsLong(arg);
  if (value == -1 && PyErr_Occurred()) throw python::python_error();
  if (value < 0 || value > 0x7fffffff)
    raise(PyExc_ValueError, "encode: argument " + std::to_string(value) + " is out of range");
  return value;
}

void Encoder::read_variables() {
  varnames_ = tuple_of(given_or(options_.varnames, code_, "co_varnames"));
  cellvars_ = tuple_of(given_or(options_.cellvars, code_, "co_cellvars"));
  freevars_ = tuple_of(given_or(options_.freevars, code_, "co_freevars"));
  collect_locals();
  slots_ = slot_names(varnames_.get(), cellvars_.get(), freevars_.get());
  slot_index_ = checked(PyDict_New());
  for (size_t i = 0; i < slots_.size(); ++i) {
    PyRef number = checked(PyLong_FromSize_t(i));
    check_status(PyDict_SetItem(slot_index_.get(), slots_[i].get(), number.get()));
  }
  // A function's documentation is its first constant.
  PyRef consts = checked(PyObject_GetAttrString(code_, "co_consts"));
  if (PyTuple_GET_SIZE(consts.get()) > 0) consts_.add(PyTuple_GET_ITEM(consts.get(), 0));
}

// Locals that nobody listed.
void Encoder::collect_locals() {
  PyRef names = checked(PySequence_List(varnames_.get()));
  PyRef known = checked(PySet_New(varnames_.get()));
  for (const PyRef& more : {cellvars_, freevars_})
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(more.get()); ++i)
      check_status(PySet_Add(known.get(), PyTuple_GET_ITEM(more.get(), i)));
  for (size_t i = 0; i < list_.size(); ++i) {
    if (kOps[at(i)->opcode].operand != Operand::Local) continue;
    PyObject* name = at(i)->argval;
    if (!name || !PyUnicode_Check(name))
      python::raise_type_error("encode: the argval of a local variable must be its name");
    const int contained = PySet_Contains(known.get(), name);
    check_status(contained);
    if (contained) continue;
    check_status(PySet_Add(known.get(), name));
    check_status(PyList_Append(names.get(), name));
  }
  varnames_ = checked(PyList_AsTuple(names.get()));
}

int Encoder::slot(PyObject* name) const {
  PyObject* number = name ? PyDict_GetItemWithError(slot_index_.get(), name) : nullptr;
  if (!number) {
    if (PyErr_Occurred()) throw python::python_error();
    raise(PyExc_ValueError, "encode: no local, cell or free variable is called " +
                                (name ? python::repr_of(name) : std::string("None")));
  }
  return static_cast<int>(PyLong_AsLong(number));
}

bool Encoder::is_cell(PyObject* name) const {
  for (const PyRef* names : {&cellvars_, &freevars_}) {
    const int contained = PySequence_Contains(names->get(), name);
    check_status(contained);
    if (contained) return true;
  }
  return false;
}

bool Encoder::falls_through(size_t index) const {
  const int opcode = at(index)->opcode;
  return opcode != op("JUMP") && opcode != op("JUMP_NO_INTERRUPT") && opcode != op("RERAISE") &&
         opcode != op("RETURN_VALUE") && opcode != op("RAISE_VARARGS");
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
    const auto& texts =
        kOps[opcode].operand == Operand::Compare ? set_.compare_operators : set_.binary_operators;
    const auto found = std::find_if(texts.begin(), texts.end(), [&](const PyRef& text) {
      return PyObject_RichCompareBool(text.get(), argval, Py_EQ) == 1;
    });
    if (found == texts.end()) {
      raise(PyExc_ValueError,
            "encode: " + std::string(name) + " knows no operator " + python::repr_of(argval));
    }
    const int place = static_cast<int>(found - texts.begin());
    put(name, index, opcode == op("COMPARE_OP") ? comparison_arg(place) : place);
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

// ---- layout and tables

int prefixes(long arg) { return arg > 0xffffff ? 3 : arg > 0xffff ? 2 : arg > 0xff ? 1 : 0; }

long Encoder::jump_distance(const Out& out) const {
  const size_t to = out.to_pad ? pad_[out.target] : first_[out.target];
  const int end = out.start + out.units;
  const long distance = outs_[to].start - end;
  return distance < 0 ? -distance : distance;
}

void Encoder::lay_out() {
  for (Out& out : outs_) out.units = 1 + set_.caches[out.opcode] + prefixes(out.arg);
  for (bool changed = true; changed;) {
    changed = false;
    int unit = 0;
    for (Out& out : outs_) {
      out.start = unit;
      unit += out.units;
    }
    for (Out& out : outs_) {
      if (out.target < 0) continue;
      out.arg = static_cast<int>(jump_distance(out));
      // Lengths only grow, so that the search ends.
      const int units = 1 + set_.caches[out.opcode] + prefixes(out.arg);
      if (units > out.units) {
        out.units = units;
        changed = true;
      }
    }
  }
}

std::string Encoder::bytes() const {
  std::string text;
  const int extended = number("EXTENDED_ARG");
  for (const Out& out : outs_) {
    const int count = out.units - 1 - set_.caches[out.opcode];
    for (int i = count; i > 0; --i) {
      text.push_back(static_cast<char>(extended));
      text.push_back(static_cast<char>((out.arg >> (8 * i)) & 0xff));
    }
    text.push_back(static_cast<char>(out.opcode));
    text.push_back(static_cast<char>(out.arg & 0xff));
    text.append(2 * static_cast<size_t>(set_.caches[out.opcode]), '\0');
  }
  return text;
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
  PyRef first = given_or(options_.firstlineno, code_, "co_firstlineno");
  return format_line_table(runs, static_cast<int>(PyLong_AsLong(first.get())));
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

PyRef bytes_object(const std::string& text) {
  return checked(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

PyRef Encoder::finish() {
  PyRef fields = checked(PyDict_New());
  const auto set = [&](const char* name, PyRef value) {
    check_status(PyDict_SetItemString(fields.get(), name, value.get()));
  };
  set("co_stacksize", checked(PyLong_FromLong(stack_size())));
  set("co_code", bytes_object(bytes()));
  set("co_exceptiontable", bytes_object(exception_table()));
  set("co_linetable", bytes_object(line_table()));
  set("co_consts", consts_.tuple());
  set("co_names", names_.tuple());
  set("co_varnames", varnames_);
  set("co_nlocals", checked(PyLong_FromSsize_t(PyTuple_GET_SIZE(varnames_.get()))));
  set("co_cellvars", cellvars_);
  set("co_freevars", freevars_);
  const std::pair<const char*, PyObject*> given[] = {
      {"co_name", options_.name},
      {"co_qualname", options_.qualname},
      {"co_argcount", options_.argcount},
      {"co_posonlyargcount", options_.posonlyargcount},
      {"co_kwonlyargcount", options_.kwonlyargcount},
      {"co_flags", options_.flags},
      {"co_firstlineno", options_.firstlineno},
  };
  for (const auto& [name, value] : given)
    if (value) set(name, PyRef::borrow(value));
  PyRef replace = checked(PyObject_GetAttrString(code_, "replace"));
  return checked(PyObject_Call(replace.get(), checked(PyTuple_New(0)).get(), fields.get()));
}

PyRef Encoder::run() {
  first_.resize(list_.size());
  pad_.resize(list_.size());
  write_prefix();
  for (size_t i = 0; i < list_.size(); ++i) write(i);
  lay_out();
  return finish();
}

} // namespace

PyRef encode(PyObject* instructions, PyObject* code, const EncodeOptions& options) {
  if (!PyCode_Check(code)) python::raise_type_error("encode: expected a code object");
  if (!kCodecSupported)
    raise(PyExc_NotImplementedError, "bytecode of Python " PY_VERSION " cannot be encoded");
  return Encoder(instructions, code, options).run();
}

} // namespace torch::dynamo
