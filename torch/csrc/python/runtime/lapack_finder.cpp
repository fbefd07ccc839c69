// Where pip has put the scipy-openblas32 package: asked of Python's import system when the first
// operator needs LAPACK, so that `import torch` itself neither imports nor opens anything.
#include <Python.h>

#include <torch/csrc/python/runtime/lapack_finder.h>

#include <string>

#include <ATen/native/linalg/lapack/Lapack.h>

namespace torch::python {
namespace {

// The file of the package's __init__, or an empty string. Needs the GIL; leaves no exception.
std::string package_file() {
  std::string file;
  PyObject* util = PyImport_ImportModule("importlib.util");
  PyObject* spec = util ? PyObject_CallMethod(util, "find_spec", "s", "scipy_openblas32") : nullptr;
  PyObject* origin = spec && spec != Py_None ? PyObject_GetAttrString(spec, "origin") : nullptr;
  if (origin && PyUnicode_Check(origin)) {
    if (const char* text = PyUnicode_AsUTF8(origin)) file = text;
  }
  Py_XDECREF(origin);
  Py_XDECREF(spec);
  Py_XDECREF(util);
  PyErr_Clear();
  return file;
}

std::string find_lapack() {
  if (!Py_IsInitialized()) return {};
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const std::string file = package_file();
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string()
                                    : file.substr(0, slash) + "/lib/libscipy_openblas.so";
}

} // namespace

void install_lapack_finder() { at::native::lapack::set_finder(find_lapack); }

} // namespace torch::python
