// What helps to find who is to blame: the flight recorder, and the check across ranks that
// TORCH_DISTRIBUTED_DEBUG=DETAIL asks for.
#include <torch/csrc/python/distributed/c10d/c10d.h>

#include <torch/csrc/distributed/c10d/CrossCheck.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.h>

namespace torch::python::distributed {

namespace {

struct PyCheck {
  PyObject_HEAD std::unique_ptr<c10d::CrossCheck> check;
};

PyTypeObject CheckType = type_object("torch._c10d._CrossCheck");

PyCheck* cast(PyObject* o) { return reinterpret_cast<PyCheck*>(o); }

// _CrossCheck(store, rank, size)
PyObject* check_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* store;
    int rank, size;
    if (!PyArg_ParseTuple(args, "Oii:_CrossCheck", &store, &rank, &size)) throw python_error();
    auto check = std::make_unique<c10d::CrossCheck>(store_from(store), rank, size);
    PyObject* self = type->tp_alloc(type, 0);
    if (self) new (&cast(self)->check) std::unique_ptr<c10d::CrossCheck>(std::move(check));
    return self;
  });
}
void check_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  cast(self)->check.~unique_ptr();
  type->tp_free(self);
}

// check(type, inputs, outputs, root, reduce, sequence, timeout_ms)
PyObject* check_check(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int kind, root, reduce;
    PyObject *inputs, *outputs;
    unsigned long long sequence;
    long long timeout;
    if (!PyArg_ParseTuple(args, "iOOiiKL:check", &kind, &inputs, &outputs, &root, &reduce,
                          &sequence, &timeout)) {
      throw python_error();
    }
    c10d::Collective call;
    call.type = static_cast<c10d::OpType>(kind);
    call.inputs = tensors_from(inputs);
    call.outputs = tensors_from(outputs);
    call.root = root;
    call.reduce.kind = static_cast<c10d::ReduceOp::Kind>(reduce);
    call.sequence = sequence;
    unlocked([&] { cast(self)->check->check(call, c10d::Millis(timeout)); });
    return new_none();
  });
}

PyMethodDef check_methods[] = {
    {"check", check_check, METH_VARARGS,
     "check(type, inputs, outputs, root, reduce, sequence, timeout_ms): raises where the ranks "
     "are not about to do the same."},
    {nullptr, nullptr, 0, nullptr}};

PyObject* flight_json(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int entries = 1, active = 0;
    if (!PyArg_ParseTuple(args, "|pp:_flight_json", &entries, &active)) throw python_error();
    const auto text = c10d::FlightRecorder::get().json(entries != 0, active != 0);
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  });
}
PyObject* flight_reset(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    c10d::FlightRecorder::get().reset();
    return new_none();
  });
}
PyObject* flight_dump(PyObject*, PyObject* reason) {
  return guarded([&]() -> PyObject* {
    c10d::FlightRecorder::get().dump(text_from(reason));
    return new_none();
  });
}
PyObject* flight_describe(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *name, *text;
    PyObject* ranks;
    if (!PyArg_ParseTuple(args, "sOs:_flight_describe", &name, &ranks, &text)) throw python_error();
    c10d::FlightRecorder::get().describe_group(name, integers_from(ranks), text);
    return new_none();
  });
}

PyMethodDef functions[] = {
    {"_flight_json", flight_json, METH_VARARGS,
     "_flight_json(entries=True, only_active=False): the flight recorder as JSON text."},
    {"_flight_reset", flight_reset, METH_NOARGS, "Forgets all records."},
    {"_flight_dump", flight_dump, METH_O,
     "_flight_dump(reason): writes the file that TORCH_FR_DUMP_TEMP_FILE names."},
    {"_flight_describe", flight_describe, METH_VARARGS,
     "_flight_describe(group, ranks, text): says what a group is."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_debug(PyObject* module) {
  CheckType.tp_basicsize = sizeof(PyCheck);
  CheckType.tp_flags = Py_TPFLAGS_DEFAULT;
  CheckType.tp_new = check_new;
  CheckType.tp_dealloc = check_dealloc;
  CheckType.tp_methods = check_methods;
  CheckType.tp_doc = "_CrossCheck(store, rank, size): whether all ranks do the same.";
  return add_type(module, &CheckType) && PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python::distributed
