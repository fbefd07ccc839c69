// Backends in C++ as Python objects. One method takes every operation; the public methods with
// their signatures are in torch/_C/_distributed_c10d.py.
#include <torch/csrc/python/distributed/c10d/c10d.h>

namespace torch::python::distributed {

namespace {

struct PyBackend {
  PyObject_HEAD std::shared_ptr<c10d::Backend> backend;
};

PyTypeObject BackendType = type_object("torch._c10d._Backend");

PyBackend* cast(PyObject* o) { return reinterpret_cast<PyBackend*>(o); }

c10d::Backend& impl(PyObject* self) {
  if (!cast(self)->backend) {
    raise(PyExc_NotImplementedError,
          c10::str("Not implemented. Class ", type_name(self), " does not define this method"));
  }
  return *cast(self)->backend;
}

PyObject* backend_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) new (&cast(self)->backend) std::shared_ptr<c10d::Backend>();
  return self;
}
void backend_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  {
    auto backend = std::move(cast(self)->backend);
    if (backend.use_count() == 1) unlocked([&] { backend.reset(); });
  }
  cast(self)->backend.~shared_ptr();
  type->tp_free(self);
}

// _run(type, inputs, outputs, root, tag, reduce, factor, timeout_ms, is_async, input_splits,
//      output_splits)
PyObject* backend_run(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 11) raise_type_error("_run() takes 11 arguments");
    auto& backend = impl(self);
    c10d::Collective call;
    call.type = static_cast<c10d::OpType>(integer_from(args[0]));
    call.inputs = tensors_from(args[1]);
    call.outputs = tensors_from(args[2]);
    call.root = static_cast<int>(integer_from(args[3]));
    call.tag = static_cast<int>(integer_from(args[4]));
    const int64_t kind = integer_from(args[5]);
    if (kind < 0 || kind > c10d::ReduceOp::PremulSum) {
      raise(PyExc_ValueError, c10::str("no such reduction: ", kind));
    }
    call.reduce.kind = static_cast<c10d::ReduceOp::Kind>(kind);
    if (args[6] != Py_None) {
      if (!bridge->is_tensor(args[6])) raise_type_error("the factor must be a tensor");
      call.reduce.factor = bridge->tensor_of(args[6]);
    }
    call.timeout = c10d::Millis(integer_from(args[7]));
    call.is_async = args[8] == Py_True;
    call.input_splits = integers_from(args[9]);
    call.output_splits = integers_from(args[10]);
    auto work = unlocked([&] { return backend.run(std::move(call)); });
    return wrap_work(std::move(work));
  });
}

PyObject* backend_monitored_barrier(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    long long timeout = -1;
    int all = 0;
    if (!PyArg_ParseTuple(args, "Lp:_monitored_barrier", &timeout, &all)) throw python_error();
    auto& backend = impl(self);
    unlocked([&] { backend.monitored_barrier(c10d::Millis(timeout), all != 0); });
    return new_none();
  });
}
PyObject* backend_rank(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return PyLong_FromLong(impl(self).rank()); });
}
PyObject* backend_size(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return PyLong_FromLong(impl(self).size()); });
}
PyObject* backend_name(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return PyUnicode_FromString(impl(self).name().c_str()); });
}
PyObject* backend_sequence(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return PyLong_FromUnsignedLongLong(impl(self).sequence()); });
}
PyObject* backend_timeout(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return delta_from(impl(self).options().timeout); });
}
PyObject* backend_set_timeout(PyObject* self, PyObject* timeout) {
  return guarded([&]() -> PyObject* {
    impl(self).set_timeout(millis_from(timeout));
    return new_none();
  });
}
PyObject* backend_abort(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto& backend = impl(self);
    unlocked([&] { backend.abort(); });
    return new_none();
  });
}
PyObject* backend_shutdown(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto& backend = impl(self);
    unlocked([&] { backend.shutdown(); });
    return new_none();
  });
}

PyObject* backend_begin_batch(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    impl(self).begin_batch();
    return new_none();
  });
}
PyObject* backend_end_batch(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto& backend = impl(self);
    unlocked([&] { backend.end_batch(); });
    return new_none();
  });
}

// _register_memory(index of the GPU or -1, address, bytes) and _deregister_memory(address)
PyObject* backend_register(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int index;
    unsigned long long address, bytes;
    if (!PyArg_ParseTuple(args, "iKK:_register_memory", &index, &address, &bytes)) {
      throw python_error();
    }
    auto& backend = impl(self);
    const c10::Device device = index < 0
                                   ? c10::Device(c10::kCPU)
                                   : c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
    unlocked([&] {
      backend.register_memory(device, reinterpret_cast<void*>(address), static_cast<size_t>(bytes));
    });
    return new_none();
  });
}
PyObject* backend_deregister(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    unsigned long long address;
    if (!PyArg_ParseTuple(args, "K:_deregister_memory", &address)) throw python_error();
    auto& backend = impl(self);
    unlocked([&] { backend.deregister_memory(reinterpret_cast<void*>(address)); });
    return new_none();
  });
}

// _open(name, store, rank, size, timeout, group_name, global_ranks, threads, interfaces, hostname)
PyObject* backend_open(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *name, *group, *host;
    PyObject *store, *timeout, *ranks, *interfaces;
    int rank, size, threads;
    if (!PyArg_ParseTuple(args, "sOiiOsOiOs:_open", &name, &store, &rank, &size, &timeout, &group,
                          &ranks, &threads, &interfaces, &host)) {
      throw python_error();
    }
    c10d::BackendOptions options;
    options.timeout = millis_from(timeout);
    options.group_name = group;
    options.global_ranks = integers_from(ranks);
    options.threads = threads;
    options.interfaces = texts_from(interfaces);
    options.hostname = host;
    const std::string kind = name;
    const auto shared = store == Py_None ? nullptr : store_from(store);
    cast(self)->backend = unlocked([&]() -> std::shared_ptr<c10d::Backend> {
      if (kind == "fake") return std::make_shared<c10d::FakeBackend>(rank, size, options);
      if (kind == "threaded") {
        return c10d::make_threaded_backend(options.group_name, rank, size, options);
      }
      std::string why;
      const auto make = c10d::find_plugin(kind, why);
      TORCH_CHECK(make, "Distributed package doesn't have ", kind, " built in: ", why);
      return std::shared_ptr<c10d::Backend>(make(shared, rank, size, options));
    });
    return new_none();
  });
}

PyObject* plugin_error(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    std::string why;
    if (c10d::find_plugin(text_from(name), why)) return new_none();
    return PyUnicode_FromString(why.c_str());
  });
}

PyMethodDef backend_methods[] = {
    {"_run", as_method(backend_run), METH_FASTCALL, "_run(...): starts an operation."},
    {"_open", backend_open, METH_VARARGS, "_open(...): connects to the other ranks."},
    {"_monitored_barrier", backend_monitored_barrier, METH_VARARGS,
     "_monitored_barrier(timeout_ms, wait_all_ranks)"},
    {"rank", backend_rank, METH_NOARGS, "This process's number in the group."},
    {"size", backend_size, METH_NOARGS, "How many processes the group has."},
    {"name", backend_name, METH_NOARGS, "The backend's name."},
    {"_sequence", backend_sequence, METH_NOARGS, "How many operations were started."},
    {"_timeout", backend_timeout, METH_NOARGS, "How long an operation may take."},
    {"set_timeout", backend_set_timeout, METH_O, "set_timeout(timeout)"},
    {"abort", backend_abort, METH_NOARGS, "Ends all work with errors."},
    {"shutdown", backend_shutdown, METH_NOARGS, "Lets work end, then stops."},
    {"_begin_batch", backend_begin_batch, METH_NOARGS,
     "Operations until _end_batch() may be started as one."},
    {"_end_batch", backend_end_batch, METH_NOARGS, "Starts what was given since _begin_batch()."},
    {"_register_memory", backend_register, METH_VARARGS,
     "_register_memory(index, address, bytes): prepares memory for many operations."},
    {"_deregister_memory", backend_deregister, METH_VARARGS, "_deregister_memory(address)"},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {
    {"_plugin_error", plugin_error, METH_O,
     "_plugin_error(name): None where the backend can be used, else why not."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

std::shared_ptr<c10d::Backend> backend_from(PyObject* o) {
  return PyObject_TypeCheck(o, &BackendType) ? cast(o)->backend : nullptr;
}

PyObject* wrap_backend(PyObject* type, std::shared_ptr<c10d::Backend> backend) {
  auto* as_type = reinterpret_cast<PyTypeObject*>(type);
  if (!PyType_Check(type) || !PyType_IsSubtype(as_type, &BackendType)) {
    raise_type_error("expected a class that derives from torch._c10d._Backend");
  }
  PyRef self = checked(backend_new(as_type, nullptr, nullptr));
  cast(self.get())->backend = std::move(backend);
  return self.release();
}

bool init_backend(PyObject* module) {
  BackendType.tp_basicsize = sizeof(PyBackend);
  BackendType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  BackendType.tp_new = backend_new;
  BackendType.tp_dealloc = backend_dealloc;
  BackendType.tp_methods = backend_methods;
  BackendType.tp_doc = "How the processes of a group reach each other.";
  return add_type(module, &BackendType) && PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python::distributed
