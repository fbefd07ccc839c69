// What registration blocks of loaded libraries threw, as Python exceptions. The block runs deep
// inside dlopen, where nothing can be raised: a pending call of the interpreter raises it as soon
// as dlopen returns to Python, so that the import statement or torch.ops.load_library fails.
// Pending calls run on the main thread alone; a library that another thread loads is found out by
// load_library itself, which asks for the failures of its file.
#include <torch/csrc/python/dispatch/load_failures.h>

#include <unistd.h>

#include <sys/syscall.h>

#include <ATen/core/RegistrationFailures.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <memory>

namespace torch::python {
namespace {

using torch::detail::RegistrationFailure;

std::string message(const RegistrationFailure& failure) {
  return c10::str(failure.block, " in ", failure.file, ": ", failure.text);
}

int raise_pending(void* argument) {
  const std::unique_ptr<RegistrationFailure> failure(static_cast<RegistrationFailure*>(argument));
  PyErr_SetString(PyExc_ImportError, message(*failure).c_str());
  return -1;
}

bool on_main_thread() { return syscall(SYS_gettid) == getpid(); }

void notify(const RegistrationFailure& failure) noexcept {
  if (!on_main_thread() || !Py_IsInitialized()) return;
  auto kept = std::make_unique<RegistrationFailure>(failure);
  if (Py_AddPendingCall(raise_pending, kept.get()) == 0) kept.release(); // NOLINT: raise_pending's
}

// _registration_failures(): a list of (file, namespace, message).
PyObject* py_registration_failures(PyObject*, PyObject*) {
  return guarded([] {
    PyRef out = checked(PyList_New(0));
    for (const RegistrationFailure& each : torch::detail::registration_failures()) {
      PyRef entry = checked(
          Py_BuildValue("(sss)", each.file.c_str(), each.ns.c_str(), message(each).c_str()));
      check_status(PyList_Append(out.get(), entry.get()));
    }
    return out.release();
  });
}

PyMethodDef functions[] = {
    {"_registration_failures", py_registration_failures, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_load_failures(PyObject* module) {
  torch::detail::set_registration_notify(&notify);
  return PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
