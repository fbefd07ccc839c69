// The reducer as a Python object. An exchange that is written in Python gets the number of a bucket
// and returns a future; otherwise the backend is called without Python.
#include <torch/csrc/python/distributed/c10d/c10d.h>

#include <torch/csrc/distributed/c10d/Reducer.h>

namespace torch::python::distributed {

namespace {

struct PyReducer {
  PyObject_HEAD std::unique_ptr<c10d::Reducer> reducer;
  PyObject* weakrefs;
};

PyTypeObject ReducerType = type_object("torch._c10d._Reducer");

PyReducer* cast(PyObject* o) { return reinterpret_cast<PyReducer*>(o); }

c10d::Reducer& impl(PyObject* self) {
  if (!cast(self)->reducer) raise(PyExc_RuntimeError, "Reducer.__init__ was not called");
  return *cast(self)->reducer;
}

// start(bucket) -> future, finish(future) -> tensor or None, add_up(tensor): functions of Python's.
class PythonExchange final : public c10d::GradientExchange {
 public:
  PythonExchange(PyObject* start, PyObject* finish, PyObject* add_up, bool divides)
      : start_(PyRef::borrow(start)), finish_(PyRef::borrow(finish)),
        add_up_(PyRef::borrow(add_up)), divides_(divides) {}
  ~PythonExchange() override {
    if (!python_exists()) {
      for (PyRef* ref : {&start_, &finish_, &add_up_}) ref->release();
      return;
    }
    WithGil gil;
    start_ = finish_ = add_up_ = PyRef();
    futures_.clear();
  }
  void start(size_t bucket, const at::Tensor&) override {
    WithGil gil;
    if (futures_.size() <= bucket) futures_.resize(bucket + 1);
    PyRef number = checked(PyLong_FromSize_t(bucket));
    futures_[bucket] = checked(PyObject_CallOneArg(start_.get(), number.get()));
  }
  at::Tensor finish(size_t bucket, const at::Tensor& flat) override {
    WithGil gil;
    PyRef future = std::exchange(futures_.at(bucket), PyRef());
    PyRef result = checked(PyObject_CallOneArg(finish_.get(), future.get()));
    if (result.get() == Py_None) return flat;
    if (!bridge->is_tensor(result.get())) {
      raise(PyExc_RuntimeError, c10::str("callback must return a tensor or a list of one, not ",
                                         type_name(result.get())));
    }
    return bridge->tensor_of(result.get());
  }
  void add_up(const at::Tensor& tensor) override {
    WithGil gil;
    PyRef object = checked(bridge->wrap_tensor(tensor));
    checked(PyObject_CallOneArg(add_up_.get(), object.get()));
  }
  bool divides() const override { return divides_; }

 private:
  PyRef start_, finish_, add_up_;
  std::vector<PyRef> futures_;
  const bool divides_;
};

c10d::Reducer::Buckets buckets_from(PyObject* lists) {
  c10d::Reducer::Buckets buckets;
  PyRef fast = checked(PySequence_Fast(lists, "expected lists of indices"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
    const auto numbers = integers_from(PySequence_Fast_GET_ITEM(fast.get(), i));
    buckets.emplace_back(numbers.begin(), numbers.end());
  }
  return buckets;
}

std::unique_ptr<c10d::GradientExchange> exchange_from(PyObject* o, int divides) {
  if (auto backend = backend_from(o)) return c10d::make_exchange(std::move(backend));
  PyObject *start, *finish, *add_up;
  if (!PyTuple_Check(o) || !PyArg_ParseTuple(o, "OOO", &start, &finish, &add_up)) {
    PyErr_Clear();
    raise_type_error("expected a backend of C++ or three functions");
  }
  return std::make_unique<PythonExchange>(start, finish, add_up, divides != 0);
}

PyObject* reducer_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) new (&cast(self)->reducer) std::unique_ptr<c10d::Reducer>();
  return self;
}
void reducer_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (cast(self)->weakrefs) PyObject_ClearWeakRefs(self);
  cast(self)->reducer.~unique_ptr();
  type->tp_free(self);
}

// _open(parameters, buckets, exchange, world_size, find_unused, as_view, names)
PyObject* reducer_open(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *parameters, *buckets, *exchange, *names;
    int size, unused, view;
    if (!PyArg_ParseTuple(args, "OOOippO:_open", &parameters, &buckets, &exchange, &size, &unused,
                          &view, &names)) {
      throw python_error();
    }
    c10d::ReducerOptions options;
    options.find_unused = unused != 0;
    options.as_bucket_view = view != 0;
    options.names = texts_from(names);
    options.world_size = size;
    cast(self)->reducer =
        std::make_unique<c10d::Reducer>(tensors_from(parameters), buckets_from(buckets),
                                        std::move(options), exchange_from(exchange, 1));
    return new_none();
  });
}
PyObject* reducer_prepare(PyObject* self, PyObject* outputs) {
  return guarded([&]() -> PyObject* {
    impl(self).prepare_for_backward(tensors_from(outputs));
    return new_none();
  });
}
PyObject* reducer_skip(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    impl(self).skip_next();
    return new_none();
  });
}
PyObject* reducer_set_buckets(PyObject* self, PyObject* buckets) {
  return guarded([&]() -> PyObject* {
    impl(self).set_buckets(buckets_from(buckets));
    return new_none();
  });
}
PyObject* reducer_set_exchange(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* exchange;
    int divides;
    if (!PyArg_ParseTuple(args, "Op:_set_exchange", &exchange, &divides)) throw python_error();
    impl(self).set_exchange(exchange_from(exchange, divides));
    return new_none();
  });
}
PyObject* reducer_arrival(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyRef list = checked(PyList_New(0));
    for (const size_t i : impl(self).arrival()) {
      check_status(PyList_Append(list.get(), checked(PyLong_FromSize_t(i)).get()));
    }
    return list.release();
  });
}
PyObject* reducer_static(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    impl(self).set_static_graph();
    return new_none();
  });
}
PyObject* reducer_set_world_size(PyObject* self, PyObject* size) {
  return guarded([&]() -> PyObject* {
    const int64_t count = integer_from(size);
    if (count < 1) raise(PyExc_ValueError, c10::str("no number of ranks: ", count));
    impl(self).set_world_size(static_cast<int>(count));
    return new_none();
  });
}
PyObject* reducer_remove_hooks(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    impl(self).remove_hooks();
    return new_none();
  });
}
PyObject* reducer_bucket_count(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return PyLong_FromSize_t(impl(self).bucket_count()); });
}
PyObject* reducer_bucket(PyObject* self, PyObject* number) {
  return guarded([&]() -> PyObject* {
    auto& reducer = impl(self);
    const auto i = static_cast<size_t>(integer_from(number));
    if (i >= reducer.bucket_count()) raise(PyExc_IndexError, "no such bucket");
    PyRef flat = checked(bridge->wrap_tensor(reducer.bucket_flat(i)));
    PyRef parameters = checked(list_from(reducer.bucket_parameters(i)));
    PyRef gradients = checked(list_from(reducer.bucket_gradients(i)));
    return PyTuple_Pack(3, flat.get(), gradients.get(), parameters.get());
  });
}
PyObject* reducer_used(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return bridge->wrap_tensor(impl(self).used()); });
}

PyMethodDef methods[] = {
    {"_open", reducer_open, METH_VARARGS, "_open(...): puts hooks on the parameters."},
    {"_prepare_for_backward", reducer_prepare, METH_O, "_prepare_for_backward(outputs)"},
    {"_skip_next", reducer_skip, METH_NOARGS, "The next pass exchanges nothing."},
    {"_set_buckets", reducer_set_buckets, METH_O, "_set_buckets(lists of indices)"},
    {"_set_exchange", reducer_set_exchange, METH_VARARGS, "_set_exchange(exchange, divides)"},
    {"_arrival", reducer_arrival, METH_NOARGS, "Parameters in the order they were finished in."},
    {"_set_static_graph", reducer_static, METH_NOARGS, "Every pass will be like the first."},
    {"_set_world_size", reducer_set_world_size, METH_O,
     "_set_world_size(size): gradients are divided by it."},
    {"_remove_autograd_hooks", reducer_remove_hooks, METH_NOARGS, "Leaves the parameters alone."},
    {"_bucket_count", reducer_bucket_count, METH_NOARGS, "How many buckets there are."},
    {"_bucket", reducer_bucket, METH_O, "_bucket(i): memory, gradients, parameters."},
    {"_get_local_used_map", reducer_used, METH_NOARGS, "Which parameters were used here."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_reducer(PyObject* module) {
  ReducerType.tp_basicsize = sizeof(PyReducer);
  ReducerType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  ReducerType.tp_new = reducer_new;
  ReducerType.tp_dealloc = reducer_dealloc;
  ReducerType.tp_weaklistoffset = offsetof(PyReducer, weakrefs);
  ReducerType.tp_methods = methods;
  ReducerType.tp_doc = "Averages gradients over ranks during the backward pass.";
  return add_type(module, &ReducerType);
}

} // namespace torch::python::distributed
