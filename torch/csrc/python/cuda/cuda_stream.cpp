// torch.Stream and torch.Event. torch.cuda.Stream and torch.cuda.Event are subclasses written in
// Python that only differ in their constructors.
#include <torch/csrc/python/cuda/cuda.h>

#include <cstddef>
#include <memory>
#include <new>

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/python/args/keyword_args.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/python/types/types.h>

namespace torch::python {

using c10::cuda::CUDAEvent;
using c10::cuda::CUDAStream;

PyTypeObject StreamType = type_object("torch._C.Stream");
PyTypeObject EventType = type_object("torch._C.Event");

namespace {

PyObject* returned(PyObject* self) {
  Py_INCREF(self);
  return self;
}

c10::DeviceIndex index_of(const std::optional<c10::Device>& device) {
  if (!device) return c10::cuda::current_device();
  TORCH_CHECK(device->is_cuda(), "Expected a cuda device, but got: ", *device);
  return c10::cuda::with_index(*device).index();
}

// Keyword arguments of a constructor in the form KeywordArgs takes.
struct CallArgs {
  CallArgs(PyObject* args, PyObject* kwargs) : given(PyTuple_GET_SIZE(args)) {
    for (Py_ssize_t i = 0; i < given; ++i) values.push_back(PyTuple_GET_ITEM(args, i));
    names = checked(PyTuple_New(kwargs ? PyDict_GET_SIZE(kwargs) : 0));
    PyObject *key, *value;
    Py_ssize_t next = 0;
    for (Py_ssize_t cursor = 0; kwargs && PyDict_Next(kwargs, &cursor, &key, &value);) {
      Py_INCREF(key);
      PyTuple_SET_ITEM(names.get(), next++, key);
      values.push_back(value);
    }
  }
  Py_ssize_t given;
  std::vector<PyObject*> values;
  PyRef names;
};

// Streams and events of other packages' devices are instances of subclasses that Python defines
// (torch._backend_streams): asked for one, the base class makes an instance of the subclass, and
// the subclass gets an object whose CUDA part stays unused.
template <class Make> PyObject* backend_object(PyTypeObject* type, PyTypeObject* base,
                                               const char* name, PyObject* args, PyObject* kwargs,
                                               const Make& make) {
  if (type != base) return make();
  PyRef module = checked(PyImport_ImportModule("torch._backend_streams"));
  PyRef subclass = checked(PyObject_GetAttrString(module.get(), name));
  return checked(PyObject_Call(subclass.get(), args, kwargs)).release();
}

// Whether the accelerator is a device of another package: it is the one meant where none is named.
bool has_other_accelerator() {
  for (int kind = 0; kind < c10::kNumDeviceTypes; ++kind) {
    const auto type = static_cast<c10::DeviceType>(kind);
    if (type != c10::kCPU && type != c10::kCUDA && c10::impl::hasDeviceGuardImpl(type)) return true;
  }
  return false;
}
PyObject* accelerator_object(const char* name, PyObject* args, PyObject* kwargs) {
  PyRef module = checked(PyImport_ImportModule("torch._backend_streams"));
  return checked(PyObject_CallMethod(module.get(), "for_accelerator", "sOO", name, args,
                                     kwargs ? kwargs : Py_None))
      .release();
}

// ---- streams ------------------------------------------------------------------------------------

// Whether torch.Stream(device) is the CPU's: it was asked for, or there is nothing else.
bool wants_cpu_stream(PyTypeObject* type, const std::optional<c10::Device>& device) {
  if (type != &StreamType) return false; // torch.cuda.Stream
  return device ? device->is_cpu() : c10::cuda::device_count() == 0;
}

// Stream(device=None, priority=0, *, stream_id, device_index, device_type, stream_ptr): a stream of
// the pool, the one with an id, or one that another library made; or the CPU's.
PyObject* stream_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    CallArgs call(args, kwargs);
    KeywordArgs a("Stream",
                  {"device", "priority", "stream_id", "device_index", "device_type", "stream_ptr"},
                  2, 0, call.values.data(), call.given, call.names.get());
    const auto device = a.device(0);
    const auto kind = static_cast<c10::DeviceType>(a.integer(4, static_cast<int>(c10::kCUDA)));
    const auto is_other = [](c10::DeviceType type) {
      return type != c10::kCPU && type != c10::kCUDA;
    };
    if (is_other(kind) || (device && is_other(device->type())))
      return backend_object(type, &StreamType, "Stream", args, kwargs,
                            [&] { return new_stream(type, CUDAStream(-1, nullptr)); });
    if (type == &StreamType && !a.present(0) && !a.present(2) && !a.present(5) &&
        has_other_accelerator())
      return accelerator_object("Stream", args, kwargs);
    if (a.present(2) || a.present(5)) {
      const int64_t index = a.present(3) ? a.integer(3, 0) : index_of(a.device(0));
      c10::cuda::check_device(index);
      const int64_t address = a.present(5) ? a.integer(5, 0) : a.integer(2, 0);
      return new_stream(type, CUDAStream(static_cast<c10::DeviceIndex>(index),
                                         reinterpret_cast<c10::cuda::CUstream>(address)));
    }
    if (wants_cpu_stream(type, a.device(0))) return new_stream(type, CUDAStream(-1, nullptr));
    const int priority = static_cast<int>(a.integer(1, 0));
    return new_stream(type, c10::cuda::getStreamFromPool(priority, index_of(a.device(0))));
  });
}

void stream_dealloc(PyObject* self) {
  auto* object = reinterpret_cast<PyStream*>(self);
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(object->before);
  Py_TYPE(self)->tp_free(self);
}

PyObject* stream_query(PyObject* self, PyObject*) {
  return guarded([&] { return new_bool(is_cpu_stream(self) || stream_value(self).query()); });
}
PyObject* stream_synchronize(PyObject* self, PyObject*) {
  return guarded([&] {
    if (!is_cpu_stream(self)) {
      NoGil unlocked;
      stream_value(self).synchronize();
    }
    return new_none();
  });
}
PyObject* stream_wait_event(PyObject* self, PyObject* event) {
  return guarded([&] {
    if (!is_event(event)) raise_type_error(c10::str("expected an event, got ", type_name(event)));
    event_value(event).block(stream_value(self));
    return new_none();
  });
}
PyObject* stream_wait_stream(PyObject* self, PyObject* other) {
  return guarded([&] {
    if (!is_stream(other)) raise_type_error(c10::str("expected a stream, got ", type_name(other)));
    if (!is_cpu_stream(self) || !is_cpu_stream(other)) {
      c10::cuda::wait_stream(stream_value(self), stream_value(other));
    }
    return new_none();
  });
}
PyObject* stream_record_event(PyObject* self, PyObject* const* args, Py_ssize_t n,
                              PyObject* names) {
  return guarded([&]() -> PyObject* {
    KeywordArgs a("record_event", {"event"}, 1, 0, args, n, names);
    PyRef event;
    if (a.present(0)) {
      if (!is_event(a[0])) a.wrong_type(0, "torch.Event");
      event = PyRef::borrow(a[0]);
    } else {
      static PyObject* cls = nullptr;
      PyObject* type = cached_attribute(cls, "torch.cuda", "Event");
      if (!type) throw python_error();
      event = checked(PyObject_CallNoArgs(type));
    }
    event_value(event.get()).record(stream_value(self));
    return event.release();
  });
}
PyObject* stream_is_capturing(PyObject* self, PyObject*) {
  return guarded([&] {
    if (is_cpu_stream(self)) return new_bool(false);
    const CUDAStream stream = stream_value(self);
    auto status = c10::cuda::CU_STREAM_CAPTURE_STATUS_NONE;
    CRESSET_CUDA_CHECK(cuStreamIsCapturing, stream, &status);
    return new_bool(status == c10::cuda::CU_STREAM_CAPTURE_STATUS_ACTIVE);
  });
}

PyObject* stream_priority(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromLong(stream_value(self).priority()); });
}
PyObject* stream_priority_range(PyObject*, PyObject*) {
  return guarded([&] {
    const auto [least, greatest] = c10::cuda::stream_priority_range();
    return Py_BuildValue("(ii)", least, greatest);
  });
}

// `with stream:` keeps what was current on the object, a list because entries may nest.
PyObject* stream_enter(PyObject* self, PyObject*) {
  return guarded([&] {
    if (is_cpu_stream(self)) return returned(self);
    auto* object = reinterpret_cast<PyStream*>(self);
    if (!object->before) object->before = checked(PyList_New(0)).release();
    const c10::DeviceIndex device = c10::cuda::current_device();
    const CUDAStream before = c10::cuda::getCurrentCUDAStream(object->stream.device_index());
    PyRef entry = checked(Py_BuildValue("(iL)", int{device}, static_cast<long long>(before.id())));
    check_status(PyList_Append(object->before, entry.get()));
    c10::cuda::set_device(object->stream.device_index());
    c10::cuda::setCurrentCUDAStream(object->stream);
    return returned(self);
  });
}
PyObject* stream_exit(PyObject* self, PyObject*) {
  return guarded([&] {
    if (is_cpu_stream(self)) return new_none();
    auto* object = reinterpret_cast<PyStream*>(self);
    const Py_ssize_t depth = object->before ? PyList_GET_SIZE(object->before) : 0;
    TORCH_CHECK(depth > 0, "this stream was not entered");
    PyRef entry = PyRef::borrow(PyList_GET_ITEM(object->before, depth - 1));
    check_status(PyList_SetSlice(object->before, depth - 1, depth, nullptr));
    int device = 0;
    long long id = 0;
    if (!PyArg_ParseTuple(entry.get(), "iL", &device, &id)) throw python_error();
    c10::cuda::setCurrentCUDAStream(
        CUDAStream(object->stream.device_index(), reinterpret_cast<c10::cuda::CUstream>(id)));
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
    return new_none();
  });
}

// What a stream is, whatever its device.
CUDAStream identity(PyObject* self) { return reinterpret_cast<PyStream*>(self)->stream; }

PyObject* stream_repr(PyObject* self) {
  const CUDAStream stream = identity(self);
  if (is_cpu_stream(self)) {
    return PyUnicode_FromString("torch.Stream device_type=cpu, device_index=-1, stream_id=0");
  }
  return PyUnicode_FromFormat("<%s device=cuda:%d cuda_stream=0x%llx>", type_name(self),
                              int{stream.device_index()},
                              static_cast<unsigned long long>(stream.id()));
}
Py_hash_t stream_hash(PyObject* self) {
  const CUDAStream stream = identity(self);
  const Py_hash_t hash = static_cast<Py_hash_t>(stream.id() * 31 + stream.device_index());
  return hash == -1 ? -2 : hash;
}
PyObject* stream_compare(PyObject* a, PyObject* b, int op) {
  if (!is_stream(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return new_bool((identity(a) == identity(b)) == (op == Py_EQ));
}

PyObject* stream_get_id(PyObject* self, void*) { return PyLong_FromLongLong(identity(self).id()); }
PyObject* stream_get_index(PyObject* self, void*) {
  return PyLong_FromLong(identity(self).device_index());
}
PyObject* stream_get_type(PyObject* self, void*) {
  const auto type = is_cpu_stream(self) ? c10::DeviceType::CPU : c10::DeviceType::CUDA;
  return PyLong_FromLong(static_cast<long>(type));
}
PyObject* stream_get_device(PyObject* self, void*) {
  return wrap(is_cpu_stream(self) ? c10::Device(c10::kCPU) : identity(self).device());
}

PyMethodDef stream_methods[] = {
    {"query", stream_query, METH_NOARGS, "Whether all work queued so far is done."},
    {"synchronize", stream_synchronize, METH_NOARGS, "Waits for all work queued so far."},
    {"wait_event", stream_wait_event, METH_O, "Lets work queued from now on wait for an event."},
    {"wait_stream", stream_wait_stream, METH_O, "Lets work queued from now on wait for a stream."},
    {"record_event", as_method(stream_record_event), METH_FASTCALL | METH_KEYWORDS,
     "record_event(event=None)\n\nMarks what is queued so far and returns the event."},
    {"is_capturing", stream_is_capturing, METH_NOARGS, "Whether a graph is being recorded."},
    {"priority", stream_priority, METH_NOARGS, nullptr},
    {"priority_range", stream_priority_range, METH_NOARGS | METH_STATIC,
     "The lowest and the highest priority; lower numbers run first."},
    {"__enter__", stream_enter, METH_NOARGS, nullptr},
    {"__exit__", stream_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef stream_properties[] = {{"stream_id", stream_get_id, nullptr, nullptr, nullptr},
                                   {"native_handle", stream_get_id, nullptr, nullptr, nullptr},
                                   {"cuda_stream", stream_get_id, nullptr, nullptr, nullptr},
                                   {"_as_parameter_", stream_get_id, nullptr, nullptr, nullptr},
                                   {"device_index", stream_get_index, nullptr, nullptr, nullptr},
                                   {"device_type", stream_get_type, nullptr, nullptr, nullptr},
                                   {"device", stream_get_device, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- events -------------------------------------------------------------------------------------

PyObject* new_event(PyTypeObject* type, unsigned flags) {
  auto* self = reinterpret_cast<PyEvent*>(type->tp_alloc(type, 0));
  if (!self) throw python_error();
  new (&self->event) CUDAEvent(flags);
  return reinterpret_cast<PyObject*>(self);
}

PyObject* event_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    CallArgs call(args, kwargs);
    KeywordArgs a("Event", {"device", "enable_timing", "blocking", "interprocess"}, 1, 0,
                  call.values.data(), call.given, call.names.get());
    const auto device = a.device(0);
    if (device && !device->is_cpu() && !device->is_cuda())
      return backend_object(type, &EventType, "Event", args, kwargs,
                            [&] { return new_event(type, c10::cuda::kEventDisableTiming); });
    if (type == &EventType && !device && has_other_accelerator())
      return accelerator_object("Event", args, kwargs);
    TORCH_CHECK(!device || device->is_cuda(),
                "Expected a cuda device, but got: ", device ? *device : c10::Device());
    const bool shared = a.boolean(3, false);
    TORCH_CHECK_NOT_IMPLEMENTED(!shared, "torch.cuda.Event(interprocess=True) is not implemented");
    const unsigned flags =
        (a.boolean(1, false) ? c10::cuda::kEventDefault : c10::cuda::kEventDisableTiming) |
        (a.boolean(2, false) ? c10::cuda::kEventBlockingSync : 0);
    return new_event(type, flags);
  });
}
void event_dealloc(PyObject* self) {
  auto* object = reinterpret_cast<PyEvent*>(self);
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  std::destroy_at(&object->event);
  Py_TYPE(self)->tp_free(self);
}

CUDAStream stream_argument(const KeywordArgs& a) {
  if (!a.present(0)) return c10::cuda::getCurrentCUDAStream();
  if (!is_stream(a[0])) a.wrong_type(0, "torch.Stream");
  return stream_value(a[0]);
}
PyObject* event_record(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("record", {"stream"}, 1, 0, args, n, names);
    event_value(self).record(stream_argument(a));
    return new_none();
  });
}
PyObject* event_wait(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("wait", {"stream"}, 1, 0, args, n, names);
    event_value(self).block(stream_argument(a));
    return new_none();
  });
}
PyObject* event_query(PyObject* self, PyObject*) {
  return guarded([&] { return new_bool(event_value(self).query()); });
}
PyObject* event_synchronize(PyObject* self, PyObject*) {
  return guarded([&] {
    {
      NoGil unlocked;
      event_value(self).synchronize();
    }
    return new_none();
  });
}
PyObject* event_elapsed_time(PyObject* self, PyObject* later) {
  return guarded([&] {
    if (!is_event(later)) raise_type_error(c10::str("expected an event, got ", type_name(later)));
    return PyFloat_FromDouble(event_value(self).elapsed_time(event_value(later)));
  });
}
PyObject* event_no_ipc(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError,
                  "events shared between processes are not implemented for cuda");
  return nullptr;
}
PyObject* event_repr(PyObject* self) {
  const CUDAEvent& event = event_value(self);
  if (!event.is_created()) return PyUnicode_FromFormat("<%s uninitialized>", type_name(self));
  return PyUnicode_FromFormat("<%s %p>", type_name(self), event.event());
}
PyObject* event_get_handle(PyObject* self, void*) {
  return PyLong_FromVoidPtr(event_value(self).event());
}
PyObject* event_get_device(PyObject* self, void*) {
  const c10::DeviceIndex index = event_value(self).device_index();
  return index < 0 ? new_none() : wrap(c10::Device(c10::kCUDA, index));
}

PyMethodDef event_methods[] = {
    {"record", as_method(event_record), METH_FASTCALL | METH_KEYWORDS,
     "record(stream=None)\n\nMarks what is queued on the stream so far."},
    {"wait", as_method(event_wait), METH_FASTCALL | METH_KEYWORDS,
     "wait(stream=None)\n\nLets work queued on the stream from now on wait for the mark."},
    {"query", event_query, METH_NOARGS, "Whether the mark is reached."},
    {"synchronize", event_synchronize, METH_NOARGS, "Waits for the mark."},
    {"elapsed_time", event_elapsed_time, METH_O, "Milliseconds from this mark to a later one."},
    {"ipc_handle", event_no_ipc, METH_NOARGS, nullptr},
    {"from_ipc_handle", event_no_ipc, METH_VARARGS | METH_CLASS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef event_properties[] = {{"event_id", event_get_handle, nullptr, nullptr, nullptr},
                                  {"cuda_event", event_get_handle, nullptr, nullptr, nullptr},
                                  {"_as_parameter_", event_get_handle, nullptr, nullptr, nullptr},
                                  {"device", event_get_device, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

} // namespace

PyObject* new_stream(PyTypeObject* type, CUDAStream stream) {
  auto* self = reinterpret_cast<PyStream*>(type->tp_alloc(type, 0));
  if (!self) throw python_error();
  new (&self->stream) CUDAStream(stream);
  return reinterpret_cast<PyObject*>(self);
}

PyObject* wrap_stream(CUDAStream stream) {
  static PyObject* cls = nullptr;
  PyObject* type = cached_attribute(cls, "torch.cuda", "Stream");
  if (!type) throw python_error();
  return new_stream(reinterpret_cast<PyTypeObject*>(type), stream);
}

bool init_cuda_stream(PyObject* module) {
  StreamType.tp_basicsize = sizeof(PyStream);
  StreamType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  StreamType.tp_new = stream_new;
  StreamType.tp_dealloc = stream_dealloc;
  StreamType.tp_weaklistoffset = offsetof(PyStream, weakrefs);
  StreamType.tp_repr = stream_repr;
  StreamType.tp_hash = stream_hash;
  StreamType.tp_richcompare = stream_compare;
  StreamType.tp_methods = stream_methods;
  StreamType.tp_getset = stream_properties;
  StreamType.tp_doc = "A queue of work on a device.";
  EventType.tp_basicsize = sizeof(PyEvent);
  EventType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  EventType.tp_new = event_new;
  EventType.tp_dealloc = event_dealloc;
  EventType.tp_weaklistoffset = offsetof(PyEvent, weakrefs);
  EventType.tp_repr = event_repr;
  EventType.tp_methods = event_methods;
  EventType.tp_getset = event_properties;
  EventType.tp_doc = "A mark in a stream that others can wait for.";
  return add_type(module, &StreamType) && add_type(module, &EventType);
}

} // namespace torch::python
