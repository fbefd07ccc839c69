// Work of a backend as a Python object. torch.distributed derives its public class from the type
// here and registers it, so that work made in C++ is of that class.
#include <torch/csrc/python/distributed/c10d/c10d.h>

namespace torch::python::distributed {

namespace {

struct PyWork {
  PyObject_HEAD std::shared_ptr<c10d::Work> work;
};

PyTypeObject WorkType = type_object("torch._c10d._Work");
PyTypeObject* work_class = nullptr;

PyWork* cast(PyObject* o) { return reinterpret_cast<PyWork*>(o); }

c10d::Work& impl(PyObject* self) {
  if (!cast(self)->work) {
    raise(PyExc_NotImplementedError,
          c10::str("Not implemented. Class ", type_name(self), " does not define this method"));
  }
  return *cast(self)->work;
}

PyObject* work_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) new (&cast(self)->work) std::shared_ptr<c10d::Work>();
  return self;
}
void work_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  {
    auto work = std::move(cast(self)->work);
    if (work.use_count() == 1) unlocked([&] { work.reset(); });
  }
  cast(self)->work.~shared_ptr();
  type->tp_free(self);
}

PyObject* work_wait(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"timeout", nullptr};
    PyObject* timeout = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:wait", const_cast<char**>(names),
                                     &timeout)) {
      throw python_error();
    }
    auto& work = impl(self);
    const auto time = timeout ? millis_from(timeout) : c10d::Millis::zero();
    unlocked([&] { work.wait(time); });
    return new_bool(true);
  });
}
PyObject* work_is_completed(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return new_bool(impl(self).is_completed()); });
}
PyObject* work_is_success(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return new_bool(impl(self).is_success()); });
}
PyObject* work_exception(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return exception_object(impl(self).exception()); });
}
PyObject* work_result(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return list_from(impl(self).result()); });
}
PyObject* work_source_rank(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return PyLong_FromLong(impl(self).source_rank()); });
}
PyObject* work_op_type(PyObject* self, PyObject*) {
  return guarded(
      [&]() -> PyObject* { return PyLong_FromLong(static_cast<long>(impl(self).type())); });
}
PyObject* work_duration(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return PyFloat_FromDouble(impl(self).duration_ms()); });
}
PyObject* work_on_done(PyObject* self, PyObject* callback) {
  return guarded([&]() -> PyObject* {
    auto& work = impl(self);
    Py_INCREF(callback);
    std::shared_ptr<PyObject> held(callback, [](PyObject* o) {
      if (!python_exists()) return;
      WithGil gil;
      Py_DECREF(o);
    });
    unlocked([&] {
      work.on_done([held] {
        if (!python_exists()) return;
        WithGil gil;
        PyRef result(PyObject_CallNoArgs(held.get()));
        if (!result) PyErr_WriteUnraisable(held.get());
      });
    });
    return new_none();
  });
}
PyObject* set_work_class(PyObject*, PyObject* type) {
  return guarded([&]() -> PyObject* {
    if (!PyType_Check(type) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), &WorkType)) {
      raise_type_error("expected a class that derives from torch._c10d._Work");
    }
    Py_INCREF(type);
    Py_XSETREF(work_class, reinterpret_cast<PyTypeObject*>(type));
    return new_none();
  });
}

PyMethodDef work_methods[] = {
    {"wait", as_method(work_wait), METH_VARARGS | METH_KEYWORDS,
     "wait(timeout=timedelta(0)): returns True when done; raises what went wrong."},
    {"is_completed", work_is_completed, METH_NOARGS, "Whether the work has ended."},
    {"is_success", work_is_success, METH_NOARGS, "Whether the work has ended well."},
    {"exception", work_exception, METH_NOARGS, "What went wrong, or None."},
    {"result", work_result, METH_NOARGS, "The tensors that the work writes."},
    {"source_rank", work_source_rank, METH_NOARGS, "The rank that a message came from."},
    {"_source_rank", work_source_rank, METH_NOARGS, "The rank that a message came from."},
    {"_get_op_type", work_op_type, METH_NOARGS, "The number of the operation."},
    {"_get_duration", work_duration, METH_NOARGS, "Milliseconds that it took so far."},
    {"_on_done", work_on_done, METH_O, "_on_done(callback): calls back when done."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {{"_set_work_class", set_work_class, METH_O,
                            "_set_work_class(cls): the class of work that backends return."},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

PyObject* wrap_work(std::shared_ptr<c10d::Work> work) {
  PyTypeObject* type = work_class ? work_class : &WorkType;
  PyObject* self = work_new(type, nullptr, nullptr);
  if (self) cast(self)->work = std::move(work);
  return self;
}

std::shared_ptr<c10d::Work> work_from(PyObject* o) {
  return PyObject_TypeCheck(o, &WorkType) ? cast(o)->work : nullptr;
}

bool init_work(PyObject* module) {
  WorkType.tp_basicsize = sizeof(PyWork);
  WorkType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  WorkType.tp_new = work_new;
  WorkType.tp_dealloc = work_dealloc;
  WorkType.tp_methods = work_methods;
  WorkType.tp_doc = "A call of a backend that may still be running.";
  return add_type(module, &WorkType) && PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python::distributed
