// torch.device: a kind and an index. It is also a context manager that sets the default device;
// that part is a torch function mode written in Python, loaded when it is used.
#include <torch/csrc/python/types/types.h>

#include <torch/csrc/python/args/arg_parser.h>

#include <c10/core/DeviceHooks.h>

#include <limits>
#include <string>
#include <vector>

namespace torch::python {

PyTypeObject DeviceType = type_object("torch.device");

namespace {

const c10::Device& self_of(PyObject* o) { return device_value(o); }

c10::DeviceIndex checked_index(int64_t index) {
  TORCH_CHECK(index >= 0, "Device index must not be negative");
  TORCH_CHECK(index <= std::numeric_limits<c10::DeviceIndex>::max(), "Device index ", index,
              " is too large: at most ",
              static_cast<int>(std::numeric_limits<c10::DeviceIndex>::max()));
  return static_cast<c10::DeviceIndex>(index);
}

bool has_cuda() {
  c10::DeviceHooks* hooks = c10::device_hooks(c10::kCUDA);
  return hooks != nullptr && hooks->device_count() > 0;
}

PyObject* from_device(ArgValues& a) { return wrap(a.device(0)); }

PyObject* from_type_and_index(ArgValues& a) {
  const std::string_view type = a.string(0);
  if (!a.present(1)) return wrap(c10::Device(type));
  TORCH_CHECK(
      type.find(':') == std::string_view::npos,
      "type (string) must not include an index because index was passed explicitly: ", type);
  return wrap(c10::Device(c10::Device(type).type(), checked_index(a.integer(1))));
}

constexpr Param kDeviceParams[] = {{"device", P::Device, 0, 0, nullptr}};
constexpr Param kTypeParams[] = {{"type", P::Str, 0, 0, nullptr},
                                 {"index", P::Int, kHasDefault | kOptional, 0, "-1"}};
const Signature kSignatures[] = {
    {kDeviceParams, 1, 1, 0, from_device, "device(Device device)"},
    {kTypeParams, 2, 2, 0, from_type_and_index, "device(str type, int index=-1)"}};
const Function kConstructor = {"device", "torch", kSignatures, 2};

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return call_tuple(kConstructor, nullptr, args, kwargs);
}

PyObject* device_repr(PyObject* self) {
  const c10::Device& d = self_of(self);
  const char* type = c10::device_type_name(d.type());
  if (!d.has_index()) return PyUnicode_FromFormat("device(type='%s')", type);
  return PyUnicode_FromFormat("device(type='%s', index=%d)", type, static_cast<int>(d.index()));
}
PyObject* device_str(PyObject* self) {
  return guarded([&] { return wrap(self_of(self).str()); });
}
Py_hash_t device_hash(PyObject* self) {
  const c10::Device& d = self_of(self);
  return (static_cast<Py_hash_t>(d.type()) << 16) + static_cast<uint8_t>(d.index());
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!is_device(b) || (op != Py_EQ && op != Py_NE)) {
    if (op == Py_EQ || op == Py_NE) Py_RETURN_NOTIMPLEMENTED;
    PyErr_SetString(PyExc_TypeError, "comparison not implemented");
    return nullptr;
  }
  return new_bool((self_of(a) == self_of(b)) == (op == Py_EQ));
}
PyObject* device_type(PyObject* self, void*) {
  return PyUnicode_FromString(c10::device_type_name(self_of(self).type()));
}
PyObject* device_index(PyObject* self, void*) {
  return self_of(self).has_index() ? PyLong_FromLong(self_of(self).index()) : new_none();
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  const c10::Device& d = self_of(self);
  const char* type = c10::device_type_name(d.type());
  if (!d.has_index()) return Py_BuildValue("O(s)", Py_TYPE(self), type);
  return Py_BuildValue("O(si)", Py_TYPE(self), type, static_cast<int>(d.index()));
}

PyRef make_context(PyObject* self) {
  static PyObject* factory = nullptr;
  if (!cached_attribute(factory, "torch.utils._device", "DeviceContext")) throw python_error();
  return checked(PyObject_CallOneArg(factory, self));
}

// Contexts entered on this thread, innermost last; a device object itself has no state.
std::vector<PyObject*>& entered_contexts() {
  static thread_local std::vector<PyObject*> contexts;
  return contexts;
}

PyObject* device_enter(PyObject* self, PyObject*) {
  return guarded([&] {
    PyRef context = make_context(self);
    PyRef ignored = checked(PyObject_CallMethod(context.get(), "__enter__", nullptr));
    entered_contexts().push_back(context.release());
    Py_INCREF(self);
    return self;
  });
}
PyObject* device_exit(PyObject*, PyObject* args) {
  return guarded([&] {
    if (entered_contexts().empty()) raise(PyExc_RuntimeError, "this device was not entered");
    PyRef context(entered_contexts().back());
    entered_contexts().pop_back();
    PyRef method = checked(PyObject_GetAttrString(context.get(), "__exit__"));
    return checked(PyObject_CallObject(method.get(), args)).release();
  });
}
PyMethodDef methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                         {"__enter__", device_enter, METH_NOARGS, nullptr},
                         {"__exit__", device_exit, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {{"type", device_type, nullptr, nullptr, nullptr},
                            {"index", device_index, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

} // namespace

PyObject* wrap(c10::Device device) {
  auto* object = PyObject_New(PyDevice, &DeviceType);
  if (!object) return nullptr;
  object->device = device;
  return reinterpret_cast<PyObject*>(object);
}

bool device_from_object(PyObject* o, c10::Device* out) {
  if (is_device(o)) {
    *out = device_value(o);
  } else if (PyUnicode_Check(o)) {
    *out = c10::Device(utf8(o));
  } else if (PyLong_Check(o) && !PyBool_Check(o)) {
    // A bare number is an index of the machine's accelerator.
    const c10::DeviceIndex index = checked_index(to_int64(o));
    TORCH_CHECK(has_cuda(), "Cannot access accelerator device when none is available.");
    *out = c10::Device(c10::kCUDA, index);
  } else {
    return false;
  }
  return true;
}

bool init_device(PyObject* module) {
  DeviceType.tp_basicsize = sizeof(PyDevice);
  DeviceType.tp_flags = Py_TPFLAGS_DEFAULT;
  DeviceType.tp_new = device_new;
  DeviceType.tp_repr = device_repr;
  DeviceType.tp_str = device_str;
  DeviceType.tp_hash = device_hash;
  DeviceType.tp_richcompare = device_compare;
  DeviceType.tp_methods = methods;
  DeviceType.tp_getset = properties;
  if (!add_type(module, &DeviceType)) return false;
  PyRef owner(PyUnicode_FromString("torch"));
  return owner && PyDict_SetItemString(DeviceType.tp_dict, "__module__", owner.get()) == 0;
}

} // namespace torch::python
