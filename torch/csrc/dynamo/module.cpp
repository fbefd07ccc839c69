// torch._C._dynamo: the modules of the compiler's front that are written in C++.
#include <torch/csrc/dynamo/codec.h>
#include <torch/csrc/dynamo/eval_frame.h>
#include <torch/csrc/dynamo/guards.h>

namespace torch::dynamo {
namespace {

// A module below `parent`, known to the import system by its full name.
bool add_module(PyObject* parent, const char* name, const char* full, bool (*fill)(PyObject*)) {
  PyRef module(PyModule_New(full));
  if (!module || !fill(module.get())) return false;
  if (PyDict_SetItemString(PyImport_GetModuleDict(), full, module.get()) < 0) return false;
  return python::add_object(parent, name, module.release());
}

bool fill(PyObject* module) {
  return add_module(module, "codec", "torch._C._dynamo.codec", init_codec) &&
         add_module(module, "guards", "torch._C._dynamo.guards", init_guards) &&
         add_module(module, "eval_frame", "torch._C._dynamo.eval_frame", init_eval_frame);
}

} // namespace

bool init_dynamo(PyObject* module) {
  return add_module(module, "_dynamo", "torch._C._dynamo", fill);
}

} // namespace torch::dynamo
