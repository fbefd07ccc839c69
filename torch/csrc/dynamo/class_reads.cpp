// The lookup of names in classes for the guard on what a trace found there. It walks the order of
// bases itself, since the interpreter's own lookup does not say which class owns what it finds.
#include <torch/csrc/dynamo/class_reads.h>

namespace torch::dynamo {
namespace {

using python::checked;

// The dictionary of a class; from 3.12 on those of builtin classes are kept elsewhere.
PyRef dict_of(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
  return PyRef(PyType_GetDict(type));
#else
  return PyRef::borrow(type->tp_dict);
#endif
}

// What a class or the first of its bases that has the name holds, borrowed; null without.
PyObject* find(PyTypeObject* type, PyObject* name, PyTypeObject*& owner) {
  PyObject* order = type->tp_mro;
  if (!order) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(order); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i));
    const PyRef dict = dict_of(base);
    PyObject* found = dict ? PyDict_GetItemWithError(dict.get(), name) : nullptr;
    if (found) {
      owner = base;
      return found;
    }
    PyErr_Clear();
  }
  return nullptr;
}

PyRef weakly(PyObject* object) {
  if (PyType_SUPPORTS_WEAKREFS(Py_TYPE(object))) {
    PyRef ref(PyWeakref_NewRef(object, nullptr));
    if (ref) return ref;
    PyErr_Clear();
  }
  return PyRef::borrow(object);
}

// 0 where the class has no version now.
unsigned int version_of(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030C0000
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return type->tp_version_tag;
}

} // namespace

ClassReads::ClassReads(PyObject* rows, PyObject* missing, PyObject* owned) {
  const PyRef list = checked(PySequence_List(rows));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    PyObject *type = nullptr, *names = nullptr, *found = nullptr;
    PyObject* row = PyList_GET_ITEM(list.get(), i);
    if (!PyTuple_Check(row)) python::raise_type_error("CLASS_READS: expected tuples");
    if (!PyArg_ParseTuple(row, "O!O!O!:CLASS_READS", &PyType_Type, &type, &PyTuple_Type, &names,
                          &PyTuple_Type, &found)) {
      throw python::python_error();
    }
    if (PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(found))
      python::raise(PyExc_ValueError, "CLASS_READS: expected one value per name");
    Class made;
    made.ref = checked(PyWeakref_NewRef(type, nullptr));
    for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(names); ++j) {
      PyObject *name = PyTuple_GET_ITEM(names, j), *value = PyTuple_GET_ITEM(found, j);
      Read read{PyRef::borrow(name), Answer::Same, PyRef(), nullptr};
      if (value == missing) {
        read.answer = Answer::Missing;
      } else if (value == owned) {
        read.answer = Answer::Owned;
        find(reinterpret_cast<PyTypeObject*>(type), name, read.owner);
      } else {
        read.held = weakly(value);
      }
      made.reads.push_back(std::move(read));
    }
    classes_.push_back(std::move(made));
  }
}

bool ClassReads::matches(PyTypeObject* type, const Read& read) {
  PyTypeObject* owner = nullptr;
  PyObject* found = find(type, read.name.get(), owner);
  switch (read.answer) {
  case Answer::Missing:
    return found == nullptr;
  case Answer::Owned:
    return found != nullptr && owner == read.owner;
  case Answer::Same:
    break;
  }
  PyObject* held = read.held.get();
  return found && (found == held || (PyWeakref_Check(held) && PyWeakref_GET_OBJECT(held) == found));
}

bool ClassReads::hold() {
  for (Class& known : classes_) {
    PyObject* object = PyWeakref_GET_OBJECT(known.ref.get());
    if (object == Py_None) return false;
    auto* type = reinterpret_cast<PyTypeObject*>(object);
    if (C10_LIKELY(known.version != 0 && version_of(type) == known.version)) continue;
    for (const Read& read : known.reads)
      if (!matches(type, read)) return false;
    static PyObject* any = PyUnicode_InternFromString("__class__");
    if (version_of(type) == 0) _PyType_Lookup(type, any); // gives the class a version
    known.version = version_of(type);
  }
  return true;
}

int ClassReads::traverse(visitproc visit, void* arg) const {
  for (const Class& known : classes_) {
    Py_VISIT(known.ref.get());
    for (const Read& read : known.reads) Py_VISIT(read.held.get());
  }
  return 0;
}

} // namespace torch::dynamo
