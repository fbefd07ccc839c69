// Tables, layout and code object of an encoder; see the header.
#include <torch/csrc/dynamo/code_writer.h>

#include <algorithm>

namespace torch::dynamo {

using python::check_status;
using python::checked;
using python::raise;

Numbering::Numbering(By by)
    : by_(by), index_(checked(PyDict_New())), items_(checked(PyList_New(0))) {}

int Numbering::add(PyObject* item) {
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

PyRef Numbering::tuple() const { return checked(PyList_AsTuple(items_.get())); }

namespace {

PyRef given_or(PyObject* given, PyObject* code, const char* name) {
  return given ? PyRef::borrow(given) : checked(PyObject_GetAttrString(code, name));
}
PyRef tuple_of(PyRef sequence) { return checked(PySequence_Tuple(sequence.get())); }

int prefixes(long arg) { return arg > 0xffffff ? 3 : arg > 0xffff ? 2 : arg > 0xff ? 1 : 0; }

} // namespace

CodeWriter::CodeWriter(PyObject* list, PyObject* code, const EncodeOptions& options)
    : code_(code), options_(options), set_(raw_set()) {
  read_instructions(list);
  read_variables();
}

void CodeWriter::read_instructions(PyObject* list) {
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
}

long CodeWriter::target_of(size_t index) const {
  PyObject* target = at(index)->target;
  const auto found = target ? index_.find(target) : index_.end();
  if (found == index_.end()) {
    raise(PyExc_ValueError, "encode: " + std::string(kOps[at(index)->opcode].name) +
                                " leads to no instruction of the list");
  }
  return found->second;
}

long CodeWriter::arg_of(size_t index) const {
  PyObject* arg = at(index)->arg;
  if (!arg || arg == Py_None) arg = at(index)->argval;
  if (!arg || arg == Py_None) return 0;
  const long value = PyLong_AsLong(arg);
  if (value == -1 && PyErr_Occurred()) throw python::python_error();
  if (value < 0 || value > 0x7fffffff)
    raise(PyExc_ValueError, "encode: argument " + std::to_string(value) + " is out of range");
  return value;
}

void CodeWriter::read_variables() {
  varnames_ = tuple_of(given_or(options_.varnames, code_, "co_varnames"));
  cellvars_ = tuple_of(given_or(options_.cellvars, code_, "co_cellvars"));
  freevars_ = tuple_of(given_or(options_.freevars, code_, "co_freevars"));
  collect_locals();
  std::vector<PyRef> slots = slot_names(varnames_.get(), cellvars_.get(), freevars_.get());
  slot_index_ = checked(PyDict_New());
  for (size_t i = 0; i < slots.size(); ++i) {
    PyRef number = checked(PyLong_FromSize_t(i));
    check_status(PyDict_SetItem(slot_index_.get(), slots[i].get(), number.get()));
  }
  // A function's documentation is its first constant.
  PyRef consts = checked(PyObject_GetAttrString(code_, "co_consts"));
  if (PyTuple_GET_SIZE(consts.get()) > 0) consts_.add(PyTuple_GET_ITEM(consts.get(), 0));
}

// Locals that nobody listed.
void CodeWriter::collect_locals() {
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

int CodeWriter::slot(PyObject* name) const {
  PyObject* number = name ? PyDict_GetItemWithError(slot_index_.get(), name) : nullptr;
  if (!number) {
    if (PyErr_Occurred()) throw python::python_error();
    raise(PyExc_ValueError, "encode: no local, cell or free variable is called " +
                                (name ? python::repr_of(name) : std::string("None")));
  }
  return static_cast<int>(PyLong_AsLong(number));
}

bool CodeWriter::is_cell(PyObject* name) const {
  for (const PyRef* names : {&cellvars_, &freevars_}) {
    const int contained = PySequence_Contains(names->get(), name);
    check_status(contained);
    if (contained) return true;
  }
  return false;
}

bool CodeWriter::falls_through(size_t index) const {
  const int opcode = at(index)->opcode;
  return opcode != op("JUMP") && opcode != op("JUMP_NO_INTERRUPT") && opcode != op("RERAISE") &&
         opcode != op("RETURN_VALUE") && opcode != op("RAISE_VARARGS");
}

int CodeWriter::operator_place(size_t index, const std::vector<PyRef>& texts) const {
  PyObject* argval = at(index)->argval ? at(index)->argval : Py_None;
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const PyRef& text) {
    return PyObject_RichCompareBool(text.get(), argval, Py_EQ) == 1;
  });
  if (found == texts.end()) {
    raise(PyExc_ValueError, "encode: " + std::string(kOps[at(index)->opcode].name) +
                                " knows no operator " + python::repr_of(argval));
  }
  return static_cast<int>(found - texts.begin());
}

void CodeWriter::lay_out() {
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
      out.arg = static_cast<int>(jump_arg(out));
      // Lengths only grow, so that the search ends.
      const int units = 1 + set_.caches[out.opcode] + prefixes(out.arg);
      if (units > out.units) {
        out.units = units;
        changed = true;
      }
    }
  }
}

std::string CodeWriter::bytes() const {
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

PyRef bytes_object(const std::string& text) {
  return checked(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

int CodeWriter::first_line() const {
  PyRef first = given_or(options_.firstlineno, code_, "co_firstlineno");
  return static_cast<int>(PyLong_AsLong(first.get()));
}

PyRef CodeWriter::finish(PyRef fields, int stack_size) {
  const auto set = [&](const char* name, PyRef value) {
    check_status(PyDict_SetItemString(fields.get(), name, value.get()));
  };
  set("co_stacksize", checked(PyLong_FromLong(stack_size)));
  set("co_code", bytes_object(bytes()));
  set("co_consts", consts_.tuple());
  set("co_names", names_.tuple());
  set("co_varnames", varnames_);
  set("co_nlocals", checked(PyLong_FromSsize_t(PyTuple_GET_SIZE(varnames_.get()))));
  set("co_cellvars", cellvars_);
  set("co_freevars", freevars_);
  const std::pair<const char*, PyObject*> given[] = {
    {"co_name", options_.name},
#if PY_VERSION_HEX >= 0x030B0000
    {"co_qualname", options_.qualname},
#endif
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

} // namespace torch::dynamo
