// torch._C functions behind torch.backends.cudnn: the version and the settings, one pair of
// functions for each.
#include <torch/csrc/python/cuda/cuda.h>

#include <ATen/cuda/Cudnn.h>

namespace torch::python {
namespace {

using at::cuda::cudnn_settings;
using at::cuda::CudnnSettings;

template <std::atomic<bool> CudnnSettings::*kSetting> PyObject* get_switch(PyObject*, PyObject*) {
  return new_bool(cudnn_settings().*kSetting);
}
template <std::atomic<bool> CudnnSettings::*kSetting>
PyObject* set_switch(PyObject*, PyObject* value) {
  if (!PyBool_Check(value)) {
    PyErr_Format(PyExc_TypeError, "a setting of torch.backends.cudnn expects a bool, but got %s",
                 Py_TYPE(value)->tp_name);
    return nullptr;
  }
  cudnn_settings().*kSetting = value == Py_True;
  return new_none();
}

PyObject* get_limit(PyObject*, PyObject*) {
  return PyLong_FromLong(cudnn_settings().benchmark_limit);
}
PyObject* set_limit(PyObject*, PyObject* value) {
  const long limit = PyLong_AsLong(value);
  if (limit == -1 && PyErr_Occurred()) return nullptr;
  if (limit < 0 || limit > 1000) {
    PyErr_Format(PyExc_ValueError,
                 "torch.backends.cudnn.benchmark_limit expects 0 to 1000, but got %ld", limit);
    return nullptr;
  }
  cudnn_settings().benchmark_limit = static_cast<int>(limit);
  return new_none();
}

PyObject* version(PyObject*, PyObject*) { return PyLong_FromLongLong(at::cuda::cudnn_version()); }

#define CRESSET_SWITCH(name, member)                                                               \
  {"_get_cudnn_" name, get_switch<&CudnnSettings::member>, METH_NOARGS, nullptr}, {                \
    "_set_cudnn_" name, set_switch<&CudnnSettings::member>, METH_O, nullptr                        \
  }
PyMethodDef functions[] = {{"_cudnn_version", version, METH_NOARGS, nullptr},
                           CRESSET_SWITCH("enabled", enabled),
                           CRESSET_SWITCH("benchmark", benchmark),
                           CRESSET_SWITCH("deterministic", deterministic),
                           CRESSET_SWITCH("allow_tf32", allow_tf32),
                           {"_cuda_get_cudnn_benchmark_limit", get_limit, METH_NOARGS, nullptr},
                           {"_cuda_set_cudnn_benchmark_limit", set_limit, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_cudnn(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

} // namespace torch::python
