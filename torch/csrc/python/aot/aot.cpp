// The arguments of torch._C._aot's functions from Python lists and back.

#include <torch/csrc/python/aot/aot.h>

#include <ATen/core/HandlerKeys.h>
#include <torch/csrc/aot/min_cut.h>
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

namespace {

double number_of(PyObject* value) {
  const double found = PyFloat_AsDouble(value);
  if (found == -1 && PyErr_Occurred()) throw python_error();
  return found;
}

int32_t index_of(PyObject* value) {
  const long found = PyLong_AsLong(value);
  if (found == -1 && PyErr_Occurred()) throw python_error();
  if (found < INT32_MIN || found > INT32_MAX) raise(PyExc_ValueError, "node out of range");
  return static_cast<int32_t>(found);
}

std::vector<double> numbers_of(PyObject* values) {
  PyRef fast = checked(PySequence_Fast(values, "expected a sequence of numbers"));
  std::vector<double> found(PySequence_Fast_GET_SIZE(fast.get()));
  for (size_t i = 0; i < found.size(); ++i) {
    found[i] = number_of(PySequence_Fast_GET_ITEM(fast.get(), static_cast<Py_ssize_t>(i)));
  }
  return found;
}

PyRef list_of(const std::vector<bool>& flags) {
  PyRef list = checked(PyList_New(static_cast<Py_ssize_t>(flags.size())));
  for (size_t i = 0; i < flags.size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), PyBool_FromLong(flags[i]));
  }
  return list;
}

std::vector<aot::FlowEdge> edges_of(PyObject* values) {
  PyRef fast = checked(PySequence_Fast(values, "expected a sequence of (from, to, capacity)"));
  std::vector<aot::FlowEdge> edges(PySequence_Fast_GET_SIZE(fast.get()));
  for (size_t i = 0; i < edges.size(); ++i) {
    PyObject* edge = PySequence_Fast_GET_ITEM(fast.get(), static_cast<Py_ssize_t>(i));
    if (!PyTuple_Check(edge) || PyTuple_GET_SIZE(edge) != 3) {
      raise_type_error("expected edges as tuples (from, to, capacity)");
    }
    edges[i] = {index_of(PyTuple_GET_ITEM(edge, 0)), index_of(PyTuple_GET_ITEM(edge, 1)),
                number_of(PyTuple_GET_ITEM(edge, 2))};
  }
  return edges;
}

PyObject* py_min_cut(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* edges = nullptr;
    int count = 0, source = 0, sink = 0;
    if (!PyArg_ParseTuple(args, "iOii:min_cut", &count, &edges, &source, &sink)) {
      throw python_error();
    }
    const aot::Cut cut = aot::min_cut(count, edges_of(edges), source, sink);
    return Py_BuildValue("(dN)", cut.value, list_of(cut.on_source_side).release());
  });
}

PyObject* py_knapsack(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *weights = nullptr, *values = nullptr;
    double budget = 0;
    int steps = 0;
    if (!PyArg_ParseTuple(args, "OOdi:knapsack", &weights, &values, &budget, &steps)) {
      throw python_error();
    }
    const aot::Choice choice =
        aot::knapsack(numbers_of(weights), numbers_of(values), budget, steps);
    return Py_BuildValue("(ddN)", choice.value, choice.weight, list_of(choice.taken).release());
  });
}

PyObject* py_record_whole_operators(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    const int wanted = PyObject_IsTrue(on);
    if (wanted < 0) return nullptr;
    const bool before = at::records_whole_operators();
    at::record_whole_operators(wanted != 0);
    return PyBool_FromLong(before);
  });
}

PyMethodDef functions[] = {
    {"record_whole_operators", py_record_whole_operators, METH_O,
     "record_whole_operators(on): whether traces of this thread keep operators that are one kernel "
     "here, instead of what they are made of; returns what held before"},
    {"min_cut", py_min_cut, METH_VARARGS,
     "min_cut(count, edges, source, sink): the value of the cut, and by node whether it stays with "
     "the source"},
    {"knapsack", py_knapsack, METH_VARARGS,
     "knapsack(weights, values, budget, steps): value, weight and by item whether it is taken"},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "torch._C._aot",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

} // namespace

bool init_aot(PyObject* module) {
  PyRef space(PyModule_Create(&definition));
  return space && init_trained(space.get()) && init_plain(space.get()) &&
         PyModule_AddObjectRef(module, "_aot", space.get()) == 0;
}

} // namespace torch::python
