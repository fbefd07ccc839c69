// torch._C._dynamo.codec: the type Instruction and the functions around it, and the description of
// CPython's instruction set that the module `opcode` gives.
#include <torch/csrc/dynamo/codec.h>

#include <structmember.h>

namespace torch::dynamo {

PyTypeObject InstructionType = python::type_object("torch._C._dynamo.codec.Instruction");

namespace {

using python::check_status;
using python::checked;
using python::guarded;
using python::python_error;
using python::raise;

// The interned name of each instruction of the set.
PyObject* op_name(int opcode) {
  static PyObject* names[kOpCount];
  if (!names[0]) {
    for (int i = 0; i < kOpCount; ++i)
      names[i] = checked(PyUnicode_InternFromString(std::string(kOps[i].name).c_str())).release();
  }
  return names[opcode];
}

int opcode_of(PyObject* name) {
  if (!PyUnicode_Check(name)) python::raise_type_error("Instruction: opname must be a str");
  const int opcode = op(python::utf8(name));
  if (opcode < 0) {
    raise(PyExc_ValueError,
          "Instruction: no instruction is called " + python::repr_of(name) + " in normal form");
  }
  return opcode;
}

PyObject* new_object(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  InstructionObject* in = as_instruction(self);
  in->opcode = 0;
  in->opname = op_name(0);
  Py_INCREF(in->opname);
  return self;
}

int init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"opname", "arg", "argval", "target", nullptr};
  PyObject *opname = nullptr, *arg = Py_None, *argval = nullptr, *target = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOO:Instruction", const_cast<char**>(names),
                                   &opname, &arg, &argval, &target)) {
    return -1;
  }
  return guarded([&]() -> int {
    InstructionObject* in = as_instruction(self);
    in->opcode = opcode_of(opname);
    Py_INCREF(op_name(in->opcode));
    Py_XSETREF(in->opname, op_name(in->opcode));
    const auto set = [](PyObject*& slot, PyObject* value) {
      Py_INCREF(value);
      Py_XSETREF(slot, value);
    };
    set(in->arg, arg);
    set(in->argval, argval ? argval : arg);
    set(in->target, target);
    return 0;
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  InstructionObject* in = as_instruction(self);
  Py_VISIT(in->arg);
  Py_VISIT(in->argval);
  Py_VISIT(in->target);
  Py_VISIT(in->handler);
  Py_VISIT(in->positions);
  return 0;
}
int clear(PyObject* self) {
  InstructionObject* in = as_instruction(self);
  Py_CLEAR(in->arg);
  Py_CLEAR(in->argval);
  Py_CLEAR(in->target);
  Py_CLEAR(in->handler);
  Py_CLEAR(in->positions);
  return 0;
}
// Chains of targets may be as long as a function: the trashcan keeps the C stack short.
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, dealloc) clear(self);
  Py_XDECREF(as_instruction(self)->opname);
  Py_XDECREF(as_instruction(self)->offset);
  Py_TYPE(self)->tp_free(self);
  Py_TRASHCAN_END
}

PyObject* repr(PyObject* self) {
  return guarded([&]() -> PyObject* {
    InstructionObject* in = as_instruction(self);
    std::string text = "<" + std::string(kOps[in->opcode].name);
    if (in->target && in->target != Py_None) {
      text += " -> " + std::string(kOps[as_instruction(in->target)->opcode].name);
    } else if (in->argval && in->argval != Py_None) {
      text += " " + python::repr_of(in->argval);
    }
    if (in->offset && in->offset != Py_None) text += " at " + python::repr_of(in->offset);
    return PyUnicode_FromString((text + ">").c_str());
  });
}

PyObject* get_opname(PyObject* self, void*) {
  Py_INCREF(as_instruction(self)->opname);
  return as_instruction(self)->opname;
}
int set_opname(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    if (!value) python::raise_type_error("Instruction: opname cannot be deleted");
    const int opcode = opcode_of(value);
    as_instruction(self)->opcode = opcode;
    Py_INCREF(op_name(opcode));
    Py_XSETREF(as_instruction(self)->opname, op_name(opcode));
    return 0;
  });
}
PyObject* get_lineno(PyObject* self, void*) {
  PyObject* positions = as_instruction(self)->positions;
  PyObject* line = Py_None;
  if (positions && PyTuple_Check(positions) && PyTuple_GET_SIZE(positions) > 0)
    line = PyTuple_GET_ITEM(positions, 0);
  Py_INCREF(line);
  return line;
}
// Jumps and handlers lead to instructions and to nothing else.
template <PyObject* InstructionObject::*member> PyObject* get_link(PyObject* self, void*) {
  PyObject* value = as_instruction(self)->*member;
  if (!value) value = Py_None;
  Py_INCREF(value);
  return value;
}
template <PyObject* InstructionObject::*member>
int set_link(PyObject* self, PyObject* value, void*) {
  if (!value || (value != Py_None && !PyObject_TypeCheck(value, &InstructionType))) {
    PyErr_SetString(PyExc_TypeError, "Instruction: a target or handler is an Instruction or None");
    return -1;
  }
  Py_INCREF(value);
  Py_XSETREF(as_instruction(self)->*member, value);
  return 0;
}

PyObject* copy(PyObject* self, PyObject*) {
  PyRef out(new_object(&InstructionType, nullptr, nullptr));
  if (!out) return nullptr;
  InstructionObject *to = as_instruction(out.get()), *from = as_instruction(self);
  Py_INCREF(from->opname);
  Py_XSETREF(to->opname, from->opname);
  to->opcode = from->opcode;
  to->depth = from->depth;
  to->lasti = from->lasti;
  for (auto member :
       {&InstructionObject::arg, &InstructionObject::argval, &InstructionObject::target,
        &InstructionObject::handler, &InstructionObject::positions, &InstructionObject::offset}) {
    Py_XINCREF(from->*member);
    to->*member = from->*member;
  }
  return out.release();
}

PyMethodDef methods[] = {{"copy", copy, METH_NOARGS, "A copy with the same target and handler."},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"arg", T_OBJECT, offsetof(InstructionObject, arg), 0, nullptr},
    {"argval", T_OBJECT, offsetof(InstructionObject, argval), 0, nullptr},
    {"positions", T_OBJECT, offsetof(InstructionObject, positions), 0, nullptr},
    {"offset", T_OBJECT, offsetof(InstructionObject, offset), 0, nullptr},
    {"opcode", T_INT, offsetof(InstructionObject, opcode), READONLY, nullptr},
    {"depth", T_INT, offsetof(InstructionObject, depth), 0, nullptr},
    {"lasti", T_BOOL, offsetof(InstructionObject, lasti), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef attributes[] = {{"opname", get_opname, set_opname, nullptr, nullptr},
                            {"lineno", get_lineno, nullptr, nullptr, nullptr},
                            {"target", get_link<&InstructionObject::target>,
                             set_link<&InstructionObject::target>, nullptr, nullptr},
                            {"handler", get_link<&InstructionObject::handler>,
                             set_link<&InstructionObject::handler>, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- CPython's instruction set

PyRef attribute(PyObject* module, const char* name) {
  return checked(PyObject_GetAttrString(module, name));
}

void read_names(RawSet& set, PyObject* module) {
  PyRef names = attribute(module, "opname");
  const Py_ssize_t count = PySequence_Size(names.get());
  check_status(static_cast<int>(count));
  for (Py_ssize_t i = 0; i < count && i < 256; ++i) {
    PyRef name = checked(PySequence_GetItem(names.get(), i));
    const std::string_view text = python::utf8(name.get());
    set.normal[i] = -1;
    if (text.empty() || text[0] == '<') continue;
    set.name[i] = text;
    set.normal[i] = static_cast<int16_t>(op(text));
  }
}

// None in 3.10, a list by number up to 3.12, a dictionary by name from 3.13.
void read_caches(RawSet& set, PyObject* module) {
  if (!PyObject_HasAttrString(module, "_inline_cache_entries")) return;
  PyRef entries = attribute(module, "_inline_cache_entries");
  for (int i = 0; i < 256; ++i) {
    if (set.name[i].empty()) continue;
    PyRef count;
    if (PyDict_Check(entries.get())) {
      count = PyRef::borrow(PyDict_GetItemString(entries.get(), set.name[i].c_str()));
      if (!count) continue;
    } else {
      if (i >= PySequence_Size(entries.get())) break;
      count = checked(PySequence_GetItem(entries.get(), i));
    }
    set.caches[i] = static_cast<uint8_t>(PyLong_AsLong(count.get()));
  }
}

void read_jumps(std::array<bool, 256>& jumps, PyObject* module, const char* name) {
  PyRef listed = checked(PySequence_List(attribute(module, name).get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(listed.get()); ++i) {
    const long number = PyLong_AsLong(PyList_GET_ITEM(listed.get(), i));
    if (number >= 0 && number < 256) jumps[number] = true;
  }
}

void read_operators(RawSet& set, PyObject* module) {
  PyRef compare = checked(PySequence_List(attribute(module, "cmp_op").get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(compare.get()); ++i)
    set.compare_operators.push_back(PyRef::borrow(PyList_GET_ITEM(compare.get(), i)));
  if (!PyObject_HasAttrString(module, "_nb_ops")) {
    for (const char* end : {"", "="})
      for (const char* text : kOperatorTexts)
        set.binary_operators.push_back(checked(PyUnicode_FromFormat("%s%s", text, end)));
    return;
  }
  PyRef binary = checked(PySequence_List(attribute(module, "_nb_ops").get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(binary.get()); ++i)
    set.binary_operators.push_back(
        checked(PySequence_GetItem(PyList_GET_ITEM(binary.get(), i), 1)));
}

// ---- functions of the module

PyObject* py_decode(PyObject*, PyObject* code) {
  return guarded([&] { return decode(code).release(); });
}

PyObject* py_encode(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {
      "instructions",    "code",           "name",     "qualname", "argcount",
      "posonlyargcount", "kwonlyargcount", "varnames", "cellvars", "freevars",
      "flags",           "firstlineno",    nullptr};
  PyObject *instructions = nullptr, *code = nullptr;
  EncodeOptions o;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$OOOOOOOOOO:encode", const_cast<char**>(names),
                                   &instructions, &code, &o.name, &o.qualname, &o.argcount,
                                   &o.posonlyargcount, &o.kwonlyargcount, &o.varnames, &o.cellvars,
                                   &o.freevars, &o.flags, &o.firstlineno)) {
    return nullptr;
  }
  for (PyObject** option :
       {&o.name, &o.qualname, &o.argcount, &o.posonlyargcount, &o.kwonlyargcount, &o.varnames,
        &o.cellvars, &o.freevars, &o.flags, &o.firstlineno}) {
    if (*option == Py_None) *option = nullptr;
  }
  return guarded([&] { return encode(instructions, code, o).release(); });
}

PyObject* py_opnames(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyRef out = checked(PyTuple_New(kOpCount));
    for (int i = 0; i < kOpCount; ++i) {
      Py_INCREF(op_name(i));
      PyTuple_SET_ITEM(out.get(), i, op_name(i));
    }
    return out.release();
  });
}

PyMethodDef functions[] = {
    {"decode", py_decode, METH_O, "decode(code) -> list[Instruction]: bytecode in normal form."},
    {"encode", python::as_method(py_encode), METH_VARARGS | METH_KEYWORDS,
     "encode(instructions, code, **fields) -> code: the code object of instructions in normal "
     "form; fields not given are those of `code`."},
    {"opnames", py_opnames, METH_NOARGS, "Names of the instructions in normal form, by number."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

PyRef new_instruction(int opcode, PyRef arg, PyRef argval) {
  PyRef out = checked(new_object(&InstructionType, nullptr, nullptr));
  InstructionObject* in = as_instruction(out.get());
  in->opcode = opcode;
  Py_INCREF(op_name(opcode));
  Py_SETREF(in->opname, op_name(opcode));
  in->arg = arg.release();
  in->argval = argval.release();
  return out;
}

int RawSet::number(std::string_view wanted) const {
  for (int i = 0; i < 256; ++i)
    if (name[i] == wanted) return i;
  raise(PyExc_NotImplementedError, "this Python has no instruction " + std::string(wanted));
}

const RawSet& raw_set() {
  static const RawSet* set = nullptr;
  if (!set) {
    PyRef module = checked(PyImport_ImportModule("opcode"));
    RawSet* made = new RawSet();
    try {
      read_names(*made, module.get());
      read_caches(*made, module.get());
      read_jumps(made->jumps, module.get(), "hasjrel");
      read_jumps(made->absolute_jumps, module.get(), "hasjabs");
      read_operators(*made, module.get());
    } catch (...) {
      delete made;
      throw;
    }
    set = made;
  }
  return *set;
}

bool init_codec(PyObject* module) {
  InstructionType.tp_basicsize = sizeof(InstructionObject);
  InstructionType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  InstructionType.tp_new = new_object;
  InstructionType.tp_init = init;
  InstructionType.tp_dealloc = dealloc;
  InstructionType.tp_traverse = traverse;
  InstructionType.tp_clear = clear;
  InstructionType.tp_repr = repr;
  InstructionType.tp_methods = methods;
  InstructionType.tp_members = members;
  InstructionType.tp_getset = attributes;
  InstructionType.tp_doc =
      "Instruction(opname, arg=None, argval=None, target=None): one instruction in normal form.";
  return python::add_type(module, &InstructionType) &&
         PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::dynamo
