// The Python object of a storage. It owns a reference to the C++ storage; the storage remembers the
// object without owning it, so that asking a tensor twice gives the same object while one is in
// use.
#include <torch/csrc/python/tensor/storage.h>

#include <cstddef>
#include <string>

#include <torch/csrc/python/args/keyword_args.h>
#include <torch/csrc/python/tensor/shared_memory.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/python/types/types.h>

#include <ATen/core/EmptyTensor.h>
#include <c10/core/DeviceHooks.h>

namespace torch::python {

PyTypeObject StorageBaseType = type_object("torch._C.StorageBase");

namespace {

c10::Storage& storage_ref(PyObject* o) { return reinterpret_cast<PyStorage*>(o)->storage; }
int64_t byte_count(const c10::Storage& s) { return static_cast<int64_t>(s->nbytes()); }

// The storage as a flat tensor of bytes, through which copies between devices go.
at::Tensor as_bytes(const c10::Storage& storage) {
  return at::detail::checked_tensor(storage, at::kByte, {byte_count(storage)}, {1}, 0);
}

PyObject* new_object(PyTypeObject* type, c10::Storage storage) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) throw python_error();
  storage->pyobj = self;
  new (&storage_ref(self)) c10::Storage(std::move(storage));
  return self;
}

void storage_dealloc(PyObject* self) {
  auto* object = reinterpret_cast<PyStorage*>(self);
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  if (object->storage && object->storage->pyobj == self) object->storage->pyobj = nullptr;
  object->storage.~intrusive_ptr();
  // The reference to a Python subclass is dropped by that class's own deallocator.
  Py_TYPE(self)->tp_free(self);
}

// ---- construction ------------------------------------------------------------------------------

c10::Storage from_sequence(PyObject* sequence, c10::Device device) {
  PyRef bytes = checked(PySequence_List(sequence));
  const Py_ssize_t count = PyList_GET_SIZE(bytes.get());
  c10::Storage host = c10::make_storage(static_cast<size_t>(count), c10::Device(at::kCPU));
  auto* out = static_cast<uint8_t*>(host->data());
  for (Py_ssize_t i = 0; i < count; ++i) {
    const long value = PyLong_AsLong(PyList_GET_ITEM(bytes.get(), i));
    if (value == -1 && PyErr_Occurred()) throw python_error();
    out[i] = static_cast<uint8_t>(value);
  }
  if (device.is_cpu()) return host;
  c10::Storage moved = c10::make_storage(static_cast<size_t>(count), device);
  as_bytes(moved).copy_(as_bytes(host));
  return moved;
}

PyObject* storage_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    TORCH_CHECK(type != &StorageBaseType,
                "Cannot directly construct StorageBase; subclass it and then construct that");
    c10::Device device(at::kCPU);
    PyObject *key, *value;
    for (Py_ssize_t cursor = 0; kwargs && PyDict_Next(kwargs, &cursor, &key, &value);) {
      if (utf8(key) != "device") {
        raise_type_error(
            c10::str("UntypedStorage() got an unexpected keyword argument '", utf8(key), "'"));
      }
      if (value != Py_None && !device_from_object(value, &device)) {
        raise_type_error(c10::str("UntypedStorage(): argument 'device' must be torch.device, not ",
                                  type_name(value)));
      }
    }
    device = c10::usable_device(device);
    const Py_ssize_t count = PyTuple_GET_SIZE(args);
    if (count > 1) raise_type_error("UntypedStorage() takes at most 1 positional argument");
    PyObject* one = count == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (one && is_storage(one)) return new_object(type, storage_of(one));
    if (one && !PyIndex_Check(one) && PySequence_Check(one)) {
      return new_object(type, from_sequence(one, device));
    }
    int64_t bytes = 0;
    if (one) {
      PyRef number = checked(PyNumber_Index(one));
      bytes = PyLong_AsLongLong(number.get());
      if (bytes == -1 && PyErr_Occurred()) throw python_error();
    }
    TORCH_CHECK(bytes >= 0, "Storage size must not be negative, got ", bytes);
    return new_object(type, c10::make_storage(static_cast<size_t>(bytes), device));
  });
}

// ---- methods -----------------------------------------------------------------------------------

PyObject* size_method(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(byte_count(storage_ref(self)));
}
Py_ssize_t storage_length(PyObject* self) {
  return static_cast<Py_ssize_t>(byte_count(storage_ref(self)));
}
PyObject* element_size_method(PyObject*, PyObject*) { return PyLong_FromLong(1); }
PyObject* data_ptr_method(PyObject* self, PyObject*) {
  return guarded([&] {
    const c10::Storage& storage = storage_ref(self);
    TORCH_CHECK(storage->data() || storage->nbytes() == 0 || !storage->device().is_cpu(),
                "Attempted to access the data pointer on an invalid python storage.");
    return PyLong_FromVoidPtr(storage->data());
  });
}
PyObject* resizable_method(PyObject* self, PyObject*) {
  return new_bool(storage_ref(self)->resizable());
}
PyObject* is_shared_method(PyObject* self, PyObject*) {
  return new_bool(is_mapped(storage_ref(self)) || storage_ref(self)->device().is_cuda());
}
PyObject* filename_method(PyObject* self, PyObject*) {
  const std::string filename = mapped_filename(storage_ref(self));
  return filename.empty() ? new_none() : PyUnicode_DecodeFSDefault(filename.c_str());
}

PyObject* resize_method(PyObject* self, PyObject* size) {
  return guarded([&]() -> PyObject* {
    PyRef number = checked(PyNumber_Index(size));
    const int64_t bytes = PyLong_AsLongLong(number.get());
    if (bytes == -1 && PyErr_Occurred()) throw python_error();
    TORCH_CHECK(bytes >= 0, "resize_ expects a size that is not negative, got ", bytes);
    storage_ref(self)->resize(static_cast<size_t>(bytes));
    Py_INCREF(self);
    return self;
  });
}

PyObject* copy_method(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    KeywordArgs a("copy_", {"source", "non_blocking"}, 2, 1, args, nargs, kwnames);
    if (!is_storage(a[0])) a.wrong_type(0, "torch.UntypedStorage");
    const c10::Storage source = storage_of(a[0]);
    const c10::Storage& target = storage_ref(self);
    TORCH_CHECK(source->nbytes() == target->nbytes(), "size does not match, self was ",
                byte_count(target), " bytes but src was ", byte_count(source), " bytes");
    as_bytes(target).copy_(as_bytes(source), a.boolean(1, false));
    Py_INCREF(self);
    return self;
  });
}

PyObject* fill_method(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    const long byte = PyLong_AsLong(value);
    if (byte == -1 && PyErr_Occurred()) throw python_error();
    as_bytes(storage_ref(self)).fill_(c10::Scalar(int64_t(static_cast<uint8_t>(byte))));
    Py_INCREF(self);
    return self;
  });
}

PyObject* share_memory_method(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const c10::Storage& storage = storage_ref(self);
    if (storage->device().is_cpu() && !is_mapped(storage)) share_storage(storage);
    Py_INCREF(self);
    return self;
  });
}

PyObject* from_file_method(PyObject* cls, PyObject* const* args, Py_ssize_t nargs,
                           PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    KeywordArgs a("from_file", {"filename", "shared", "nbytes"}, 3, 1, args, nargs, kwnames);
    PyObject* path = nullptr;
    if (!PyUnicode_FSConverter(a[0], &path)) throw python_error();
    PyRef owned(path);
    const std::string filename(PyBytes_AS_STRING(path));
    return new_object(reinterpret_cast<PyTypeObject*>(cls),
                      map_file(filename, a.boolean(1, false), a.integer(2, 0)));
  });
}

// ---- items -------------------------------------------------------------------------------------

int64_t checked_position(const c10::Storage& storage, PyObject* key) {
  TORCH_CHECK_NOT_IMPLEMENTED(!storage->device().is_meta(), "Not available for 'meta' device type");
  PyRef number = checked(PyNumber_Index(key));
  const int64_t position = PyLong_AsLongLong(number.get());
  if (position == -1 && PyErr_Occurred()) throw python_error();
  const int64_t size = byte_count(storage);
  TORCH_CHECK_INDEX(position >= -size && position < size, "index ", position,
                    " out of range for storage of size ", size);
  return position < 0 ? position + size : position;
}

void checked_slice(const c10::Storage& storage, PyObject* key, int64_t* start, int64_t* length) {
  Py_ssize_t first, last, step;
  check_status(PySlice_Unpack(key, &first, &last, &step));
  *length =
      PySlice_AdjustIndices(static_cast<Py_ssize_t>(byte_count(storage)), &first, &last, step);
  TORCH_CHECK(step == 1, "Trying to slice with a step of ", int64_t(step),
              ", but only a step of 1 is supported");
  *start = first;
}

PyObject* storage_getitem(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    const c10::Storage& storage = storage_ref(self);
    if (PySlice_Check(key)) {
      int64_t start = 0, length = 0;
      checked_slice(storage, key, &start, &length);
      return new_object(Py_TYPE(self), storage_part(storage, start, length));
    }
    if (!PyIndex_Check(key)) {
      raise_type_error(c10::str("can't index a torch.UntypedStorage with ", type_name(key)));
    }
    const int64_t position = checked_position(storage, key);
    return wrap(as_bytes(storage).select(0, position).item());
  });
}

int storage_setitem(PyObject* self, PyObject* key, PyObject* value) {
  return guarded([&]() -> int {
    const c10::Storage& storage = storage_ref(self);
    if (!value) raise_type_error("storages do not support deleting items");
    const long byte = PyLong_AsLong(value);
    if (byte == -1 && PyErr_Occurred()) throw python_error();
    int64_t start = 0, length = 1;
    if (PySlice_Check(key)) {
      checked_slice(storage, key, &start, &length);
    } else if (PyIndex_Check(key)) {
      start = checked_position(storage, key);
    } else {
      raise_type_error(c10::str("can't index a torch.UntypedStorage with ", type_name(key)));
    }
    as_bytes(storage)
        .narrow(0, start, length)
        .fill_(c10::Scalar(int64_t(static_cast<uint8_t>(byte))));
    return 0;
  });
}

PyObject* get_device_property(PyObject* self, void*) { return wrap(storage_ref(self)->device()); }
PyObject* get_cdata_property(PyObject* self, void*) {
  return PyLong_FromVoidPtr(storage_ref(self).get());
}

// torch._C._storage_bytes(storage): a copy of the memory.
PyObject* py_storage_bytes(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_storage(o)) raise_type_error("_storage_bytes(): expected a storage");
    c10::Storage storage = storage_of(o);
    if (!storage->device().is_cpu()) {
      c10::Storage host = c10::make_storage(storage->nbytes(), c10::Device(at::kCPU));
      as_bytes(host).copy_(as_bytes(storage));
      storage = host;
    }
    check_memory(storage);
    return PyBytes_FromStringAndSize(static_cast<const char*>(storage->data()),
                                     byte_count(storage));
  });
}

const c10::Storage& storage_argument(PyObject* o, const char* name) {
  if (!PyObject_TypeCheck(o, &StorageBaseType)) {
    raise_type_error(c10::str(name, "(): expected a storage, got ", type_name(o)));
  }
  return storage_ref(o);
}
// torch._C._storage_is_pinned(storage)
PyObject* py_storage_is_pinned(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const c10::Storage& storage = storage_argument(o, "_storage_is_pinned");
    c10::DeviceHooks* hooks = c10::device_hooks(at::kCUDA);
    return new_bool(hooks && storage->device().is_cpu() && hooks->is_pinned(storage->data()));
  });
}
// torch._C._storage_pin(storage): a copy in page-locked memory.
PyObject* py_storage_pin(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const c10::Storage& storage = storage_argument(o, "_storage_pin");
    c10::Allocator* allocator = c10::require_device_hooks(at::kCUDA).pinned_allocator();
    auto copy = c10::make_intrusive<c10::StorageImpl>(
        storage->nbytes(), allocator->allocate(storage->nbytes()), allocator, true);
    as_bytes(copy).copy_(as_bytes(storage));
    return new_object(Py_TYPE(o), std::move(copy));
  });
}

PyMethodDef methods[] = {
    {"size", size_method, METH_NOARGS, "The number of bytes."},
    {"nbytes", size_method, METH_NOARGS, "The number of bytes."},
    {"element_size", element_size_method, METH_NOARGS, "1: elements are bytes."},
    {"data_ptr", data_ptr_method, METH_NOARGS, "The address of the memory."},
    {"resizable", resizable_method, METH_NOARGS, "Whether resize_ is possible."},
    {"resize_", resize_method, METH_O, "Changes the number of bytes; the common part stays."},
    {"copy_", as_method(copy_method), METH_FASTCALL | METH_KEYWORDS,
     "copy_(source, non_blocking=False)\n\nCopies the bytes of a storage of the same size."},
    {"fill_", fill_method, METH_O, "Sets every byte."},
    {"is_shared", is_shared_method, METH_NOARGS, "Whether other processes can see the memory."},
    {"share_memory_", share_memory_method, METH_NOARGS,
     "Moves the memory to where other processes can share it."},
    {"_get_filename", filename_method, METH_NOARGS, "The mapped file, or None."},
    {"from_file", as_method(from_file_method), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "from_file(filename, shared=False, nbytes=0)\n\nA storage that maps a file."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {
    {"device", get_device_property, nullptr, "The device of the memory.", nullptr},
    {"_cdata", get_cdata_property, nullptr, "Identifies the C++ storage.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef functions[] = {
    {"_storage_bytes", py_storage_bytes, METH_O, "A copy of a storage's memory as bytes."},
    {"_storage_is_pinned", py_storage_is_pinned, METH_O, nullptr},
    {"_storage_pin", py_storage_pin, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMappingMethods as_mapping = {storage_length, storage_getitem, storage_setitem};

} // namespace

bool is_storage(PyObject* o) {
  if (PyObject_TypeCheck(o, &StorageBaseType)) return true;
  if (is_tensor(o)) return false;
  // A TypedStorage wraps one.
  PyRef inner(PyObject_GetAttrString(o, "_untyped_storage"));
  if (!inner) PyErr_Clear();
  return inner && PyObject_TypeCheck(inner.get(), &StorageBaseType);
}

c10::Storage storage_of(PyObject* o) {
  if (PyObject_TypeCheck(o, &StorageBaseType)) return storage_ref(o);
  PyRef inner = checked(PyObject_GetAttrString(o, "_untyped_storage"));
  if (!PyObject_TypeCheck(inner.get(), &StorageBaseType)) {
    raise_type_error(c10::str("expected a storage, got ", type_name(o)));
  }
  return storage_ref(inner.get());
}

void check_storage_dtype(PyObject* o, c10::ScalarType dtype) {
  if (PyObject_TypeCheck(o, &StorageBaseType)) return;
  PyRef given = checked(PyObject_GetAttrString(o, "dtype"));
  c10::ScalarType own = dtype;
  if (!dtype_from_object(given.get(), &own)) raise_type_error("storage: dtype is no torch.dtype");
  TORCH_CHECK(own == dtype, "Expected a Storage of type ", dtype, " or an UntypedStorage, but got ",
              "type ", own, " for argument 1 'storage'");
}

PyObject* wrap_storage(const c10::Storage& storage) {
  if (!storage) return new_none();
  if (storage->pyobj) {
    auto* existing = static_cast<PyObject*>(storage->pyobj);
    Py_INCREF(existing);
    return existing;
  }
  static PyObject* cls = nullptr;
  PyObject* type = cached_attribute(cls, "torch.storage", "UntypedStorage");
  if (!type) throw python_error();
  return new_object(reinterpret_cast<PyTypeObject*>(type), storage);
}

bool init_storage(PyObject* module) {
  PyTypeObject& type = StorageBaseType;
  type.tp_basicsize = sizeof(PyStorage);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_dealloc = storage_dealloc;
  type.tp_weaklistoffset = offsetof(PyStorage, weakrefs);
  type.tp_new = storage_new;
  type.tp_methods = methods;
  type.tp_getset = properties;
  type.tp_as_mapping = &as_mapping;
  type.tp_doc = "The base of torch.UntypedStorage.";
  return add_type(module, &type) && PyModule_AddFunctions(module, functions) == 0 &&
         init_shared_memory(module) && init_storage_weak(module);
}

} // namespace torch::python
