// Where pip has put the scipy-openblas32 package: asked of Python's import system when the first
// operator needs LAPACK, so that `import torch` itself neither imports nor opens anything.
#include <torch/csrc/python/runtime/lapack_finder.h>

#include <torch/csrc/python/runtime/support.h>

#include <string>

#include <ATen/native/linalg/lapack/Lapack.h>

namespace torch::python {
namespace {

// The file of the package's __init__, or an empty string. Needs the GIL; leaves no exception.
std::string package_file() {
  std::string file;
  const PyRef util(PyImport_ImportModule("importlib.util"));
  const PyRef spec(util ? PyObject_CallMethod(util.get(), "find_spec", "s", "scipy_openblas32")
                        : nullptr);
  const PyRef origin(spec && spec.get() != Py_None ? PyObject_GetAttrString(spec.get(), "origin")
                                                   : nullptr);
  if (origin && PyUnicode_Check(origin.get())) {
    if (const char* text = PyUnicode_AsUTF8(origin.get())) file = text;
  }
  PyErr_Clear();
  return file;
}

std::string find_lapack() {
  if (!python_exists()) return {};
  const WithGil gil;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const std::string file = package_file();
  PyErr_Restore(type, value, trace);
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string()
                                    : file.substr(0, slash) + "/lib/libscipy_openblas.so";
}

} // namespace

void install_lapack_finder() { at::native::lapack::set_finder(find_lapack); }

} // namespace torch::python
