// torch._C._StorageWeakRef: a handle that does not keep a storage's memory. Weak references of
// Python would not do: they end with the Python object, which comes and goes while tensors hold
// the storage.
#include <torch/csrc/python/tensor/storage.h>

#include <new>

namespace torch::python {
namespace {

using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
struct PyWeakStorage {
  PyObject_HEAD Weak storage;
};

PyTypeObject WeakStorageType = type_object("torch._C._StorageWeakRef");

Weak& weak_of(PyObject* self) { return reinterpret_cast<PyWeakStorage*>(self)->storage; }

PyObject* weak_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_GET_SIZE(kwargs) != 0) {
      raise_type_error("_StorageWeakRef() takes no keyword arguments");
    }
    if (PyTuple_GET_SIZE(args) != 1 || !is_storage(PyTuple_GET_ITEM(args, 0))) {
      raise_type_error("_StorageWeakRef() takes one storage");
    }
    const c10::Storage storage = storage_of(PyTuple_GET_ITEM(args, 0));
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) throw python_error();
    new (&weak_of(self)) Weak(storage);
    return self;
  });
}
void weak_dealloc(PyObject* self) {
  weak_of(self).~weak_intrusive_ptr();
  Py_TYPE(self)->tp_free(self);
}
PyObject* weak_expired(PyObject* self, PyObject*) { return new_bool(weak_of(self).expired()); }
PyObject* weak_lock(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_storage(weak_of(self).lock()); });
}
PyObject* weak_cdata(PyObject* self, void*) {
  return PyLong_FromVoidPtr(weak_of(self).unsafe_get());
}

PyMethodDef methods[] = {{"expired", weak_expired, METH_NOARGS, "Whether the memory is gone."},
                         {"lock", weak_lock, METH_NOARGS, "The storage, or None when it is gone."},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {{"cdata", weak_cdata, nullptr, "Identifies the C++ storage.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

} // namespace

bool init_storage_weak(PyObject* module) {
  PyTypeObject& type = WeakStorageType;
  type.tp_basicsize = sizeof(PyWeakStorage);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_new = weak_new;
  type.tp_dealloc = weak_dealloc;
  type.tp_methods = methods;
  type.tp_getset = properties;
  type.tp_doc = "A reference to a storage that does not keep its memory.";
  return add_type(module, &type);
}

} // namespace torch::python
