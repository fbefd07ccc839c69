// What writing a code object is on every Python: the instructions of the list and their numbers,
// the tables of constants, names and variables, the layout until no jump needs a longer argument,
// and the code object itself. Encoders (encode.cpp, encode_blocks.cpp) derive from it and write
// instructions, stack size and the tables beside them. Needs the GIL; throws python_error.
#pragma once
#include <torch/csrc/dynamo/codec.h>

#include <unordered_map>

namespace torch::dynamo {

// Numbers of a table of a code object, handed out in order of first use.
class Numbering {
 public:
  enum class By { Identity, Equality };
  explicit Numbering(By by);
  int add(PyObject* item);
  PyRef tuple() const;

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

class CodeWriter {
 protected:
  CodeWriter(PyObject* list, PyObject* code, const EncodeOptions& options);
  virtual ~CodeWriter() = default;

  // The argument of a jump, now that every instruction has its place.
  virtual long jump_arg(const Out& out) const = 0;
  void lay_out();
  std::string bytes() const;
  int first_line() const;
  // The code object; `fields` hold what differs by version.
  PyRef finish(PyRef fields, int stack_size);

  void put(std::string_view name, size_t source, int arg = 0) {
    outs_.push_back({number(name), arg, source});
  }
  int number(std::string_view name) const { return set_.number(name); }
  InstructionObject* at(size_t index) const { return as_instruction(list_[index].get()); }
  long arg_of(size_t index) const;
  long target_of(size_t index) const;
  int slot(PyObject* name) const;
  bool is_cell(PyObject* name) const;
  // The place of an operator among texts.
  int operator_place(size_t index, const std::vector<PyRef>& texts) const;
  bool falls_through(size_t index) const;

  PyObject* code_;
  const EncodeOptions& options_;
  const RawSet& set_;
  std::vector<PyRef> list_;
  std::unordered_map<PyObject*, long> index_; // of each instruction
  Numbering consts_{Numbering::By::Identity}, names_{Numbering::By::Equality};
  PyRef varnames_, cellvars_, freevars_;
  PyRef slot_index_;
  std::vector<Out> outs_;
  std::vector<size_t> first_; // by instruction: the first Out a jump to it leads to

 private:
  void read_instructions(PyObject* list);
  void read_variables();
  void collect_locals();
};

PyRef bytes_object(const std::string& text);

} // namespace torch::dynamo
