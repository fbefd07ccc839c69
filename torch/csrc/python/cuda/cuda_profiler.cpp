// The GPU's part of a recording (torch/csrc/python/runtime/profiler.h), and the functions of
// torch._C behind torch.cuda.nvtx.
#include <torch/csrc/python/cuda/cuda.h>
#include <torch/csrc/python/runtime/profiler.h>

#include <string>

#include <ATen/cuda/Cupti.h>
#include <ATen/cuda/Nvtx.h>

namespace torch::python {
namespace {

using at::cuda::Activity;
using at::cuda::ActivityKind;

const char* kind_name(ActivityKind kind) {
  switch (kind) {
  case ActivityKind::Kernel:
    return "kernel";
  case ActivityKind::Copy:
    return "gpu_memcpy";
  case ActivityKind::Fill:
    return "gpu_memset";
  case ActivityKind::DriverCall:
    return "cuda_driver";
  case ActivityKind::RuntimeCall:
    return "cuda_runtime";
  }
  return "";
}

PyRef describe(const Activity& a) {
  return checked(Py_BuildValue(
      "(ss#LLIKIIIIK(iii)(iii)iH)", kind_name(a.kind), a.name.data(),
      static_cast<Py_ssize_t>(a.name.size()), static_cast<long long>(a.start),
      static_cast<long long>(a.end), a.correlation, static_cast<unsigned long long>(a.mark),
      a.device, a.context, a.stream, a.thread, static_cast<unsigned long long>(a.bytes), a.grid[0],
      a.grid[1], a.grid[2], a.block[0], a.block[1], a.block[2], a.shared_memory, a.registers));
}

PyRef stop_record() {
  const std::vector<Activity> activities = at::cuda::stop_activity_record();
  PyRef out = checked(PyList_New(0));
  size_t listed = 0;
  for (const Activity& a : activities) {
    check_status(PyList_Append(out.get(), describe(a).get()));
    if (++listed % 4096 == 0) check_status(PyErr_CheckSignals());
  }
  return out;
}

constexpr DeviceRecorder kRecorder = {at::cuda::start_activity_record,
                                      stop_record,
                                      at::cuda::abandon_activity_record,
                                      at::cuda::push_activity_mark,
                                      at::cuda::pop_activity_mark,
                                      at::cuda::nvtx_push,
                                      at::cuda::nvtx_pop};

std::string text_argument(PyObject* object) {
  if (!PyUnicode_Check(object)) raise_type_error("expected the text of a range");
  return std::string(utf8(object));
}

PyObject* range_push(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    return PyLong_FromLong(at::cuda::nvtx_push(text_argument(name).c_str()));
  });
}
PyObject* range_pop(PyObject*, PyObject*) { return PyLong_FromLong(at::cuda::nvtx_pop()); }
PyObject* range_start(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    return PyLong_FromUnsignedLongLong(at::cuda::nvtx_start(text_argument(name).c_str()));
  });
}
PyObject* range_end(PyObject*, PyObject* range) {
  return guarded([&]() -> PyObject* {
    const unsigned long long number = PyLong_AsUnsignedLongLong(range);
    if (PyErr_Occurred()) throw python_error();
    at::cuda::nvtx_end(number);
    return new_none();
  });
}
PyObject* mark(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    at::cuda::nvtx_mark(text_argument(name).c_str());
    return new_none();
  });
}

PyMethodDef functions[] = {{"_nvtx_rangePush", range_push, METH_O, nullptr},
                           {"_nvtx_rangePop", range_pop, METH_NOARGS, nullptr},
                           {"_nvtx_rangeStart", range_start, METH_O, nullptr},
                           {"_nvtx_rangeEnd", range_end, METH_O, nullptr},
                           {"_nvtx_mark", mark, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_cuda_profiler(PyObject* module) {
  set_device_recorder(&kRecorder);
  return PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
