// PyInit__c10d, conversions of values and the errors.
#include <torch/csrc/python/distributed/c10d/c10d.h>

#include <cmath>

#include <datetime.h>

namespace torch::python {

namespace distributed {

const Bridge* bridge = nullptr;

namespace {

PyObject *dist_error, *backend_error, *network_error, *store_error, *queue_error;

bool set_own_error() {
  PyObject* type = nullptr;
  std::string text;
  try {
    throw;
  } catch (const c10d::DistQueueEmptyError& e) {
    type = queue_error, text = e.what();
  } catch (const c10d::DistStoreError& e) {
    type = store_error, text = e.what();
  } catch (const c10d::DistNetworkError& e) {
    type = network_error, text = e.what();
  } catch (const c10d::DistBackendError& e) {
    type = backend_error, text = e.what();
  } catch (const c10d::DistError& e) {
    type = dist_error, text = e.what();
  } catch (...) {
    return false;
  }
  PyRef message(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (message) PyErr_SetObject(type, message.get());
  return true;
}

} // namespace

bool init_errors(PyObject* module) {
  const auto make = [module](const char* name, PyObject* base) -> PyObject* {
    const std::string full = std::string("torch.distributed.") + name;
    PyObject* type = PyErr_NewException(full.c_str(), base, nullptr);
    if (!type || PyModule_AddObjectRef(module, name, type) < 0) return nullptr;
    return type;
  };
  return (dist_error = make("DistError", PyExc_RuntimeError)) &&
         (backend_error = make("DistBackendError", dist_error)) &&
         (network_error = make("DistNetworkError", dist_error)) &&
         (store_error = make("DistStoreError", dist_error)) &&
         (queue_error = make("QueueEmptyError", store_error));
}

std::string text_from(PyObject* o) {
  if (PyUnicode_Check(o)) return std::string(utf8(o));
  if (!PyBytes_Check(o))
    raise_type_error(std::string("expected str or bytes, not ") + type_name(o));
  return std::string(PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o)));
}

namespace {
template <class T, class F> std::vector<T> vector_from(PyObject* sequence, const F& convert) {
  if (PyUnicode_Check(sequence) || PyBytes_Check(sequence)) {
    raise_type_error("expected a sequence, not a text");
  }
  PyRef fast = checked(PySequence_Fast(sequence, "expected a sequence"));
  std::vector<T> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
    out.push_back(convert(PySequence_Fast_GET_ITEM(fast.get(), i)));
  }
  return out;
}
} // namespace

std::vector<std::string> texts_from(PyObject* o) { return vector_from<std::string>(o, text_from); }

int64_t integer_from(PyObject* o) {
  PyRef index = checked(PyNumber_Index(o));
  const long long value = PyLong_AsLongLong(index.get());
  if (value == -1 && PyErr_Occurred()) throw python_error();
  return value;
}
std::vector<int64_t> integers_from(PyObject* o) { return vector_from<int64_t>(o, integer_from); }

std::vector<at::Tensor> tensors_from(PyObject* o) {
  return vector_from<at::Tensor>(o, [](PyObject* item) -> at::Tensor {
    if (!bridge->is_tensor(item)) {
      raise_type_error(std::string("expected a torch.Tensor, not ") + type_name(item));
    }
    return bridge->tensor_of(item);
  });
}

PyObject* list_from(const std::vector<at::Tensor>& tensors) {
  PyRef list = checked(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                    checked(bridge->wrap_tensor(tensors[i])).release());
  }
  return list.release();
}

namespace {
/// Limited by what a datetime.timedelta can say, so that the way back to Python exists.
c10d::Millis millis_from_seconds(double seconds) {
  constexpr double most = 999999999.0 * 86400;
  if (!(std::abs(seconds) <= most)) {
    PyErr_Format(PyExc_ValueError, "a timeout of %R seconds is no duration",
                 checked(PyFloat_FromDouble(seconds)).get());
    throw python_error();
  }
  return c10d::Millis(static_cast<int64_t>(seconds * 1000));
}
} // namespace

c10d::Millis millis_from(PyObject* o) {
  if (PyFloat_Check(o)) return millis_from_seconds(PyFloat_AS_DOUBLE(o));
  if (!PyDelta_Check(o)) {
    raise_type_error(std::string("expected a datetime.timedelta or a float of seconds, not ") +
                     type_name(o));
  }
  return c10d::Millis(int64_t{PyDateTime_DELTA_GET_DAYS(o)} * 86400000 +
                      int64_t{PyDateTime_DELTA_GET_SECONDS(o)} * 1000 +
                      PyDateTime_DELTA_GET_MICROSECONDS(o) / 1000);
}
PyObject* delta_from(c10d::Millis time) {
  const int64_t ms = time.count(), day = 86400000;
  return PyDelta_FromDSU(static_cast<int>(ms / day), static_cast<int>(ms % day / 1000),
                         static_cast<int>(ms % 1000 * 1000));
}
PyObject* bytes_from(const std::string& bytes) {
  return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
}

PyObject* exception_object(const std::exception_ptr& error) {
  if (!error) return new_none();
  try {
    std::rethrow_exception(error);
  } catch (...) {
    set_error_from_exception();
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return value;
}

} // namespace distributed

void raise(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw python_error();
}

// The binding helpers call this at their edge; here it adds our own errors.
void set_error_from_exception(std::string_view) noexcept {
  if (!distributed::set_own_error()) distributed::bridge->set_error();
}

} // namespace torch::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__c10d() {
  using namespace torch::python;
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "torch._c10d",
                                   nullptr,
                                   -1,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  PyDateTime_IMPORT;
  PyRef owner(PyImport_ImportModule("torch._C"));
  PyRef capsule(owner ? PyObject_GetAttrString(owner.get(), "_bridge") : nullptr);
  if (!capsule || !PyDateTimeAPI) return nullptr;
  distributed::bridge =
      static_cast<const Bridge*>(PyCapsule_GetPointer(capsule.get(), kBridgeName));
  PyRef module(PyModule_Create(&definition));
  if (!distributed::bridge || !module || !watch_interpreter_exit() ||
      !distributed::init_errors(module.get()) || !distributed::init_store(module.get()) ||
      !distributed::init_work(module.get()) || !distributed::init_backend(module.get()) ||
      !distributed::init_reducer(module.get()) || !distributed::init_debug(module.get()) ||
      !distributed::init_foreign(module.get())) {
    return nullptr;
  }
  return module.release();
}
