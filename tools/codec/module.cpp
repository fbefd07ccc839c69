// torch._C with the bytecode codec and nothing else, so that the codec's tests run on a Python for
// which the rest was not built (tools/codec/run.py).
#include <torch/csrc/dynamo/codec.h>

namespace torch::python {

void raise(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw python_error();
}

void set_error_from_exception(std::string_view) noexcept {
  try {
    throw;
  } catch (const python_error&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

} // namespace torch::python

namespace {

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "torch._C", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

torch::python::PyRef named_module(const char* name) {
  torch::python::PyRef module(PyModule_New(name));
  if (module && PyDict_SetItemString(PyImport_GetModuleDict(), name, module.get()) < 0)
    return torch::python::PyRef();
  return module;
}

} // namespace

PyMODINIT_FUNC PyInit__C() {
  torch::python::PyRef root(PyModule_Create(&definition));
  torch::python::PyRef dynamo = named_module("torch._C._dynamo");
  torch::python::PyRef codec = named_module("torch._C._dynamo.codec");
  if (!root || !dynamo || !codec || !torch::dynamo::init_codec(codec.get())) return nullptr;
  if (!torch::python::add_object(dynamo.get(), "codec", codec.release()) ||
      !torch::python::add_object(root.get(), "_dynamo", dynamo.release())) {
    return nullptr;
  }
  return root.release();
}
