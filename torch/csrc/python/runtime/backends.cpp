// Devices of other packages as Python sees them: the name of their kind, the current device,
// streams and events. torch._backend_streams builds torch.Stream and torch.Event objects on these.
#include <torch/csrc/python/runtime/backends.h>

#include <memory>

#include <c10/core/DeviceHooks.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Event.h>
#include <torch/csrc/python/args/keyword_args.h>
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {
namespace {

using c10::impl::DeviceGuardImplInterface;

constexpr char kEventName[] = "torch._C._backend_event";

PyObject* rename_backend(PyObject*, PyObject* name) {
  return guarded([&] {
    if (!PyUnicode_Check(name))
      raise_type_error(
          c10::str("rename_privateuse1_backend(): expected a str, got ", type_name(name)));
    c10::register_privateuse1_backend(std::string(utf8(name)));
    return new_none();
  });
}

// A device of a backend with a guard, by the arguments of a function; its index is resolved.
struct Target {
  const DeviceGuardImplInterface* impl;
  c10::Device device;
};
Target target(const KeywordArgs& a) {
  const std::optional<c10::Device> given = a.device(0);
  TORCH_CHECK(given, "expected a device");
  const DeviceGuardImplInterface* impl = c10::impl::getDeviceGuardImpl(given->type());
  return {impl, c10::require_device_hooks(given->type()).resolve(*given)};
}
c10::Stream stream_argument(const KeywordArgs& a, const Target& on) {
  return c10::Stream(c10::Stream::UNSAFE, on.device, a.integer(1, 0));
}

c10::Event& event_of(PyObject* o) {
  void* event = PyCapsule_CheckExact(o) ? PyCapsule_GetPointer(o, kEventName) : nullptr;
  if (event == nullptr) {
    PyErr_Clear();
    raise_type_error(c10::str("expected an event, got ", type_name(o)));
  }
  return *static_cast<c10::Event*>(event);
}
PyObject* event_argument(const KeywordArgs& a, int i) {
  if (!a.present(i)) raise_type_error("expected an event");
  return a[i];
}

// One function of torch._C: arguments (device, id or priority, ...) and what it does with them.
template <auto body>
PyObject* function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    KeywordArgs a("backend function", {"device", "number", "event", "other"}, 4, 0, args, n, names);
    return body(a);
  });
}

PyObject* exists(const KeywordArgs& a) {
  const std::optional<c10::Device> given = a.device(0);
  return new_bool(given && c10::impl::hasDeviceGuardImpl(given->type()));
}
PyObject* count(const KeywordArgs& a) {
  const std::optional<c10::Device> given = a.device(0);
  c10::DeviceHooks* hooks = given ? c10::device_hooks(given->type()) : nullptr;
  return PyLong_FromLong(hooks != nullptr ? hooks->device_count() : 0);
}
PyObject* current(const KeywordArgs& a) { return PyLong_FromLong(target(a).device.index()); }
PyObject* exchange(const KeywordArgs& a) {
  const Target on = target(a);
  return PyLong_FromLong(on.impl->exchangeDevice(on.device).index());
}
PyObject* synchronize(const KeywordArgs& a) {
  const Target on = target(a);
  {
    NoGil unlocked;
    on.impl->synchronizeDevice(on.device.index());
  }
  return new_none();
}
PyObject* stream_new(const KeywordArgs& a) {
  const Target on = target(a);
  const c10::DeviceGuard guard(on.device);
  return PyLong_FromLongLong(
      on.impl->getNewStream(on.device, static_cast<int>(a.integer(1, 0))).id());
}
PyObject* stream_current(const KeywordArgs& a) {
  const Target on = target(a);
  return PyLong_FromLongLong(on.impl->getStream(on.device).id());
}
PyObject* stream_exchange(const KeywordArgs& a) {
  const Target on = target(a);
  return PyLong_FromLongLong(on.impl->exchangeStream(stream_argument(a, on)).id());
}
PyObject* stream_query(const KeywordArgs& a) {
  const Target on = target(a);
  return new_bool(on.impl->queryStream(stream_argument(a, on)));
}
PyObject* stream_synchronize(const KeywordArgs& a) {
  const Target on = target(a);
  const c10::Stream stream = stream_argument(a, on);
  {
    NoGil unlocked;
    on.impl->synchronizeStream(stream);
  }
  return new_none();
}

PyObject* event_new(const KeywordArgs& a) {
  const auto flag =
      a.integer(1, 0) != 0 ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT;
  auto event = std::make_unique<c10::Event>(target(a).device.type(), flag);
  const PyCapsule_Destructor destroy = [](PyObject* capsule) {
    delete static_cast<c10::Event*>(PyCapsule_GetPointer(capsule, kEventName));
  };
  PyRef capsule = checked(PyCapsule_New(event.get(), kEventName, destroy));
  (void)event.release();
  return capsule.release();
}
PyObject* event_record(const KeywordArgs& a) {
  const Target on = target(a);
  event_of(event_argument(a, 2)).record(stream_argument(a, on));
  return new_none();
}
PyObject* event_block(const KeywordArgs& a) {
  const Target on = target(a);
  event_of(event_argument(a, 2)).block(stream_argument(a, on));
  return new_none();
}
PyObject* event_query(const KeywordArgs& a) {
  return new_bool(event_of(event_argument(a, 2)).query());
}
PyObject* event_synchronize(const KeywordArgs& a) {
  c10::Event& event = event_of(event_argument(a, 2));
  {
    NoGil unlocked;
    event.synchronize();
  }
  return new_none();
}
PyObject* event_elapsed(const KeywordArgs& a) {
  c10::Event& start = event_of(event_argument(a, 2));
  return PyFloat_FromDouble(start.elapsedTime(event_of(event_argument(a, 3))));
}
PyObject* event_id(const KeywordArgs& a) {
  return PyLong_FromVoidPtr(event_of(event_argument(a, 2)).eventId());
}

#define CRESSET_FUNCTION(name, body)                                                               \
  { "_backend_" #name, as_method(function<body>), METH_FASTCALL | METH_KEYWORDS, nullptr }
PyMethodDef functions[] = {{"_rename_privateuse1_backend", rename_backend, METH_O, nullptr},
                           CRESSET_FUNCTION(exists, exists),
                           CRESSET_FUNCTION(device_count, count),
                           CRESSET_FUNCTION(current_device, current),
                           CRESSET_FUNCTION(exchange_device, exchange),
                           CRESSET_FUNCTION(synchronize, synchronize),
                           CRESSET_FUNCTION(stream_new, stream_new),
                           CRESSET_FUNCTION(stream_current, stream_current),
                           CRESSET_FUNCTION(stream_exchange, stream_exchange),
                           CRESSET_FUNCTION(stream_query, stream_query),
                           CRESSET_FUNCTION(stream_synchronize, stream_synchronize),
                           CRESSET_FUNCTION(event_new, event_new),
                           CRESSET_FUNCTION(event_record, event_record),
                           CRESSET_FUNCTION(event_block, event_block),
                           CRESSET_FUNCTION(event_query, event_query),
                           CRESSET_FUNCTION(event_synchronize, event_synchronize),
                           CRESSET_FUNCTION(event_elapsed, event_elapsed),
                           CRESSET_FUNCTION(event_id, event_id),
                           {nullptr, nullptr, 0, nullptr}};
#undef CRESSET_FUNCTION

} // namespace

bool init_backends(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

} // namespace torch::python
