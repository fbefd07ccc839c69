// The walk over arguments: tuples, lists, dicts and slices are containers, everything else is a
// leaf. It shares what did not change, because most argument tuples hold nodes and numbers only
// and an edit touches one of them.
#include <torch/csrc/fx/fx.h>

namespace torch::fx {
namespace {

using python::check_status;
using python::checked;
using python::python_error;

bool is_named_tuple(PyObject* value) {
  if (PyTuple_CheckExact(value)) return false;
  const int has = PyObject_HasAttr(reinterpret_cast<PyObject*>(Py_TYPE(value)), words.fields);
  return has != 0;
}

// A tuple subclass with named fields keeps its class, any other becomes a plain tuple.
PyObject* map_tuple(PyObject* value, LeafMap& fn) {
  const Py_ssize_t n = PyTuple_GET_SIZE(value);
  const bool exact = PyTuple_CheckExact(value);
  PyRef out;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(value, i);
    PyRef mapped(map_aggregate(item, fn));
    if (!out) {
      if (exact && mapped.get() == item) continue;
      out = checked(PyTuple_New(n));
      for (Py_ssize_t k = 0; k < i; ++k)
        PyTuple_SET_ITEM(out.get(), k, Py_NewRef(PyTuple_GET_ITEM(value, k)));
    }
    PyTuple_SET_ITEM(out.get(), i, mapped.release());
  }
  if (!out) {
    if (exact) return Py_NewRef(value);
    out = checked(PyTuple_New(0));
  }
  if (!is_named_tuple(value)) return out.release();
  return checked(PyObject_CallObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), out.get()))
      .release();
}

PyObject* map_list(PyObject* value, LeafMap& fn) {
  PyRef items = checked(PyList_AsTuple(value)); // fn may be Python code that edits the list
  PyRef mapped(map_tuple(items.get(), fn));
  if (mapped.get() == items.get() && Py_TYPE(value) == python_types.list) return Py_NewRef(value);
  PyRef out = checked(python_types.list->tp_alloc(python_types.list, 0));
  check_status(PyList_SetSlice(out.get(), 0, 0, mapped.get()));
  return out.release();
}

PyObject* map_dict(PyObject* value, LeafMap& fn) {
  PyRef out;
  if (Py_TYPE(value) != python_types.dict) {
    out = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(python_types.dict)));
    check_status(PyDict_Update(out.get(), value));
  }
  PyRef items = checked(PyDict_Items(value));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(items.get(), i);
    PyObject* item = PyTuple_GET_ITEM(pair, 1);
    PyRef mapped(map_aggregate(item, fn));
    if (mapped.get() == item) continue;
    if (!out) {
      out = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(python_types.dict)));
      check_status(PyDict_Update(out.get(), value));
    }
    check_status(PyDict_SetItem(out.get(), PyTuple_GET_ITEM(pair, 0), mapped.get()));
  }
  return out ? out.release() : Py_NewRef(value);
}

PyObject* map_slice(PyObject* value, LeafMap& fn) {
  auto* slice = reinterpret_cast<PySliceObject*>(value);
  PyRef start(map_aggregate(slice->start, fn));
  PyRef stop(map_aggregate(slice->stop, fn));
  PyRef step(map_aggregate(slice->step, fn));
  if (start.get() == slice->start && stop.get() == slice->stop && step.get() == slice->step)
    return Py_NewRef(value);
  return checked(PySlice_New(start.get(), stop.get(), step.get())).release();
}

// Nesting deeper than Python's own limit raises RecursionError instead of ending the process.
class Depth {
 public:
  Depth() {
    // Non-zero, not -1, says that the error is set.
    if (Py_EnterRecursiveCall(" while walking the arguments of an FX node")) throw python_error();
  }
  ~Depth() { Py_LeaveRecursiveCall(); }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;
};

class CallLeaf final : public LeafMap {
 public:
  CallLeaf(PyObject* fn, bool only_nodes) : fn_(fn), only_nodes_(only_nodes) {}
  PyObject* map(PyObject* leaf) override {
    if (only_nodes_ && !is_node(leaf)) return Py_NewRef(leaf);
    return checked(PyObject_CallOneArg(fn_, leaf)).release();
  }

 private:
  PyObject* fn_;
  bool only_nodes_;
};

PyObject* map_call(PyObject* const* args, Py_ssize_t n, PyObject* names, const char* function,
                   bool only_nodes) {
  return python::guarded([&]() -> PyObject* {
    PyObject* given[2] = {n > 0 ? args[0] : nullptr, n > 1 ? args[1] : nullptr};
    const Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < keywords; ++i) {
      const auto word = python::utf8(PyTuple_GET_ITEM(names, i));
      const int slot = word == "a" ? 0 : word == "fn" ? 1 : -1;
      if (slot < 0 || given[slot])
        python::raise_type_error(std::string(function) + "(): unexpected argument '" +
                                 std::string(word) + "'");
      given[slot] = args[n + i];
    }
    if (n > 2 || !given[0] || !given[1])
      python::raise_type_error(std::string(function) + "(a, fn) takes two arguments");
    if (!PyCallable_Check(given[1]))
      python::raise(PyExc_AssertionError,
                    std::string("torch.fx.") + function + "(a, fn): fn must be a callable");
    CallLeaf leaf(given[1], only_nodes);
    return map_aggregate(given[0], leaf);
  });
}
} // namespace

PyObject* map_aggregate(PyObject* value, LeafMap& fn) {
  if (is_node(value)) return fn.map(value);
  if (PyTuple_Check(value)) {
    Depth depth;
    return map_tuple(value, fn);
  }
  if (PyList_Check(value)) {
    Depth depth;
    return map_list(value, fn);
  }
  if (PyDict_Check(value)) {
    Depth depth;
    return map_dict(value, fn);
  }
  if (PySlice_Check(value)) return map_slice(value, fn);
  return fn.map(value);
}

PyObject* py_map_aggregate(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return map_call(args, n, names, "map_aggregate", false);
}
PyObject* py_map_arg(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return map_call(args, n, names, "map_arg", true);
}

} // namespace torch::fx
