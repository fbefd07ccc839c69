// Maps C++ exceptions to Python ones. The order of the handlers is the class hierarchy, most
// derived first; the text is PyTorch's phrase, then where the call came from.
#include <torch/csrc/python/runtime/exceptions.h>

#include <torch/csrc/python/sym/sym.h>

#include <new>

#include <cxxabi.h>

#include <ATen/parallel/Parallel.h>
#include <c10/util/Exception.h>
#ifndef CRESSET_NO_CUDA
#include <c10/cuda/Driver.h>
#include <c10/cuda/NoDriver.h>
#endif

namespace torch::python {

PyObject* OutOfMemoryErrorType = nullptr;
PyObject* LinAlgErrorType = nullptr;

namespace {

PyObject* AcceleratorErrorType = nullptr;
PyObject* NoDriverErrorType = nullptr;

void set_error(PyObject* type, std::string_view message, std::string_view context) {
  std::string text(message);
  text += context;
  // Messages may quote bytes from files or names: replace what is not UTF-8 rather than fail.
  PyRef str(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (str) PyErr_SetObject(type, str.get());
}

PyObject* python_type_of(const c10::Error& error) {
  if (dynamic_cast<const c10::IndexError*>(&error)) return PyExc_IndexError;
  if (dynamic_cast<const c10::ValueError*>(&error)) return PyExc_ValueError;
  if (dynamic_cast<const c10::TypeError*>(&error)) return PyExc_TypeError;
  if (dynamic_cast<const c10::AttributeError*>(&error)) return PyExc_AttributeError;
  if (dynamic_cast<const c10::NotImplementedError*>(&error)) return PyExc_NotImplementedError;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error)) return OutOfMemoryErrorType;
  if (dynamic_cast<const c10::LinAlgError*>(&error)) return LinAlgErrorType;
  if (dynamic_cast<const c10::OverflowError*>(&error)) return PyExc_OverflowError;
  if (dynamic_cast<const c10::BufferError*>(&error)) return PyExc_BufferError;
  if (dynamic_cast<const c10::SyntaxError*>(&error)) return PyExc_SyntaxError;
#ifndef CRESSET_NO_CUDA
  if (dynamic_cast<const c10::cuda::NoDriverError*>(&error)) return NoDriverErrorType;
#endif
  return PyExc_RuntimeError;
}

// Sets torch.AcceleratorError with the driver's number in `error_code`, when it is one.
bool set_accelerator_error(const c10::Error& error, std::string_view context) {
#ifndef CRESSET_NO_CUDA
  const auto* failure = dynamic_cast<const c10::cuda::AcceleratorError*>(&error);
  if (failure == nullptr) return false;
  set_error(AcceleratorErrorType, error.message(), context);
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyRef code(PyLong_FromLong(failure->code()));
  if (!code || PyObject_SetAttrString(value, "error_code", code.get()) < 0) PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return true;
#else
  return false;
#endif
}

PyObject* warning_category(const char* name) {
  const std::string_view category(name);
  if (category == "DeprecationWarning") return PyExc_DeprecationWarning;
  if (category == "FutureWarning") return PyExc_FutureWarning;
  if (category == "RuntimeWarning") return PyExc_RuntimeWarning;
  return PyExc_UserWarning;
}

// A warning filter may turn the warning into an error, which then must reach the caller.
void warn_in_python(const char* category, const std::string& message) {
  if (!python_exists()) return;
  WithGil gil;
  if (PyErr_WarnEx(warning_category(category), message.c_str(), 1) < 0) throw python_error();
}

PyObject* new_exception(PyObject* module, const char* full_name, const char* attribute,
                        const char* doc, PyObject* bases = PyExc_RuntimeError) {
  PyObject* type = PyErr_NewExceptionWithDoc(full_name, doc, bases, nullptr);
  if (!type) return nullptr;
  Py_INCREF(type);
  return add_object(module, attribute, type) ? type : nullptr;
}

} // namespace

void set_error_from_exception(std::string_view context) noexcept {
  try {
    try {
      throw;
    } catch (abi::__forced_unwind&) {
      park_thread();
    } catch (const python_error&) {
      if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_SystemError, "a Python error was lost on its way through C++");
      }
    } catch (const c10::InterruptedError&) {
      if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    } catch (const c10::DataDependentError& error) {
      set_data_dependent_error(error);
    } catch (const c10::Error& error) {
      if (!set_accelerator_error(error, context))
        set_error(python_type_of(error), error.message(), context);
    } catch (const std::bad_alloc&) {
      set_error(OutOfMemoryErrorType, "out of memory", context);
    } catch (const std::exception& error) {
      set_error(PyExc_RuntimeError, error.what(), context);
    } catch (...) {
      set_error(PyExc_RuntimeError, "unknown C++ exception", context);
    }
  } catch (...) {
    PyErr_NoMemory();
  }
}

void raise(PyObject* type, const std::string& message) {
  set_error(type, message, {});
  throw python_error();
}

bool init_exceptions(PyObject* module) {
  OutOfMemoryErrorType = new_exception(module, "torch.OutOfMemoryError", "OutOfMemoryError",
                                       "Raised when a device cannot provide the memory asked for.");
  LinAlgErrorType = new_exception(module, "torch._C._LinAlgError", "_LinAlgError",
                                  "Raised by torch.linalg when a computation cannot succeed.");
  AcceleratorErrorType = new_exception(module, "torch.AcceleratorError", "AcceleratorError",
                                       "Raised when work on a device fails.");
  PyRef both(PyTuple_Pack(2, PyExc_AssertionError, PyExc_RuntimeError));
  if (!both) return false;
  NoDriverErrorType =
      new_exception(module, "torch._C._NoDriverError", "_NoDriverError",
                    "Raised by what needs CUDA on a machine without its driver.", both.get());
  if (!OutOfMemoryErrorType || !LinAlgErrorType || !AcceleratorErrorType || !NoDriverErrorType)
    return false;
  c10::set_warning_handler(warn_in_python);
  return true;
}

} // namespace torch::python
