// Store and its classes. A class of Python's that derives from Store gets a C++ store that calls
// its methods, so that it can stand wherever a store is wanted.
#include <torch/csrc/python/distributed/c10d/c10d.h>

#include <torch/csrc/distributed/c10d/FileStore.h>
#include <torch/csrc/distributed/c10d/TCPStore.h>

namespace torch::python::distributed {

namespace {

struct PyStore {
  PyObject_HEAD std::shared_ptr<c10d::Store> store;
  PyObject* underlying; // of a PrefixStore, or null
  PyObject* dict;
  PyObject* weakrefs;
};

PyTypeObject StoreType = type_object("torch._C._distributed_c10d.Store");
PyTypeObject HashStoreType = type_object("torch._C._distributed_c10d.HashStore");
PyTypeObject FileStoreType = type_object("torch._C._distributed_c10d.FileStore");
PyTypeObject PrefixStoreType = type_object("torch._C._distributed_c10d.PrefixStore");
PyTypeObject TCPStoreType = type_object("torch._C._distributed_c10d.TCPStore");

PyStore* cast(PyObject* o) { return reinterpret_cast<PyStore*>(o); }

[[noreturn]] void not_implemented(PyObject* self, const char* method) {
  raise(PyExc_NotImplementedError,
        c10::str("Not implemented. Class ", type_name(self), " has no method ", method));
}

// ---- stores written in Python -------------------------------------------------------------------
class PythonStore final : public c10d::Store {
 public:
  explicit PythonStore(PyObject* self) : self_(self) {} // which owns this

  void set(const std::string& key, const c10d::Bytes& value) override {
    WithGil gil;
    call("set", {text(key), PyRef(bytes_from(value))});
  }
  c10d::Bytes get(const std::string& key) override {
    WithGil gil;
    return text_from(call("get", {text(key)}).get());
  }
  int64_t add(const std::string& key, int64_t amount) override {
    WithGil gil;
    return integer_from(call("add", {text(key), PyRef(PyLong_FromLongLong(amount))}).get());
  }
  bool delete_key(const std::string& key) override {
    WithGil gil;
    return truth(call("delete_key", {text(key)}));
  }
  bool check(const c10d::Keys& keys) override {
    WithGil gil;
    return truth(call("check", {list(keys)}));
  }
  int64_t num_keys() override {
    WithGil gil;
    return integer_from(call("num_keys", {}).get());
  }
  void wait(const c10d::Keys& keys, c10d::Millis timeout) override {
    WithGil gil;
    call("wait", {list(keys), checked(delta_from(timeout))});
  }
  c10d::Bytes compare_set(const std::string& key, const c10d::Bytes& expected,
                          const c10d::Bytes& desired) override {
    WithGil gil;
    return text_from(
        call("compare_set", {text(key), PyRef(bytes_from(expected)), PyRef(bytes_from(desired))})
            .get());
  }
  bool has_extended_api() const override {
    WithGil gil;
    return overrides("has_extended_api") && truth(call("has_extended_api", {}));
  }
  void append(const std::string& key, const c10d::Bytes& value) override {
    {
      WithGil gil;
      if (overrides("append")) {
        call("append", {text(key), PyRef(bytes_from(value))});
        return;
      }
    }
    // Any store can compare and set: try until nobody came between.
    c10d::Bytes expected, desired = value;
    for (;;) {
      const c10d::Bytes now = compare_set(key, expected, desired);
      if (now == desired) return;
      expected = now;
      desired = now + value;
    }
  }
  std::vector<c10d::Bytes> multi_get(const c10d::Keys& keys) override {
    {
      WithGil gil;
      if (overrides("multi_get")) return texts_from(call("multi_get", {list(keys)}).get());
    }
    return Store::multi_get(keys);
  }
  void multi_set(const c10d::Keys& keys, const std::vector<c10d::Bytes>& values) override {
    {
      WithGil gil;
      if (overrides("multi_set")) {
        PyRef listed = checked(PyList_New(0));
        for (const auto& value : values) {
          check_status(PyList_Append(listed.get(), PyRef(bytes_from(value)).get()));
        }
        call("multi_set", {list(keys), listed});
        return;
      }
    }
    Store::multi_set(keys, values);
  }

 private:
  static PyRef text(const std::string& s) {
    return checked(
        PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "surrogateescape"));
  }
  static PyRef list(const c10d::Keys& keys) {
    PyRef out = checked(PyList_New(0));
    for (const auto& key : keys) check_status(PyList_Append(out.get(), text(key).get()));
    return out;
  }
  static bool truth(const PyRef& o) {
    const int value = PyObject_IsTrue(o.get());
    check_status(value);
    return value != 0;
  }
  bool overrides(const char* method) const {
    PyObject* const own_dict = cast(self_)->dict; // a method may be an attribute of the object
    if (own_dict && PyDict_GetItemString(own_dict, method)) return true;
    PyRef own =
        checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self_)), method));
    return own.get() != PyDict_GetItemString(StoreType.tp_dict, method);
  }
  PyRef call(const char* method, std::initializer_list<PyRef> args) const {
    if (!overrides(method)) not_implemented(self_, method);
    PyRef function = checked(PyObject_GetAttrString(self_, method));
    PyRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(args.size())));
    Py_ssize_t i = 0;
    for (const auto& arg : args) {
      if (!arg) throw python_error();
      PyTuple_SET_ITEM(tuple.get(), i++, PyRef(arg).release());
    }
    return checked(PyObject_CallObject(function.get(), tuple.get()));
  }
  PyObject* const self_;
};

bool is_python_store(PyObject* o) {
  return dynamic_cast<PythonStore*>(cast(o)->store.get()) != nullptr;
}

// The C++ store behind `self` for a method that is called on it: one that Python should have
// defined has none.
c10d::Store& impl(PyObject* self, const char* method) {
  if (!cast(self)->store) raise(PyExc_RuntimeError, "Store.__init__ was not called");
  if (is_python_store(self)) not_implemented(self, method);
  return *cast(self)->store;
}

// ---- methods of all stores ----------------------------------------------------------------------
PyObject* store_set(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *key, *value;
    if (!PyArg_ParseTuple(args, "OO:set", &key, &value)) throw python_error();
    auto& store = impl(self, "set");
    const auto k = text_from(key), v = text_from(value);
    unlocked([&] { store.set(k, v); });
    return new_none();
  });
}
PyObject* store_get(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    auto& store = impl(self, "get");
    const auto k = text_from(key);
    return bytes_from(unlocked([&] { return store.get(k); }));
  });
}
PyObject* store_add(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *key, *amount;
    if (!PyArg_ParseTuple(args, "OO:add", &key, &amount)) throw python_error();
    auto& store = impl(self, "add");
    const auto k = text_from(key);
    const auto n = integer_from(amount);
    return PyLong_FromLongLong(unlocked([&] { return store.add(k, n); }));
  });
}
PyObject* store_delete_key(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    auto& store = impl(self, "delete_key");
    const auto k = text_from(key);
    return new_bool(unlocked([&] { return store.delete_key(k); }));
  });
}
PyObject* store_check(PyObject* self, PyObject* keys) {
  return guarded([&]() -> PyObject* {
    auto& store = impl(self, "check");
    const auto k = texts_from(keys);
    return new_bool(unlocked([&] { return store.check(k); }));
  });
}
PyObject* store_num_keys(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto& store = impl(self, "num_keys");
    return PyLong_FromLongLong(unlocked([&] { return store.num_keys(); }));
  });
}
PyObject* store_wait(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *keys, *timeout = nullptr;
    if (!PyArg_ParseTuple(args, "O|O:wait", &keys, &timeout)) throw python_error();
    auto& store = impl(self, "wait");
    const auto k = texts_from(keys);
    const auto time = timeout && timeout != Py_None ? millis_from(timeout) : store.timeout();
    unlocked([&] { store.wait(k, time); });
    return new_none();
  });
}
PyObject* store_compare_set(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *key, *expected, *desired;
    if (!PyArg_ParseTuple(args, "OOO:compare_set", &key, &expected, &desired)) throw python_error();
    auto& store = impl(self, "compare_set");
    const auto k = text_from(key), e = text_from(expected), d = text_from(desired);
    return bytes_from(unlocked([&] { return store.compare_set(k, e, d); }));
  });
}
PyObject* store_has_extended_api(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (is_python_store(self)) return new_bool(false);
    return new_bool(impl(self, "has_extended_api").has_extended_api());
  });
}
PyObject* store_append(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *key, *value;
    if (!PyArg_ParseTuple(args, "OO:append", &key, &value)) throw python_error();
    auto& store = impl(self, "append");
    const auto k = text_from(key), v = text_from(value);
    unlocked([&] { store.append(k, v); });
    return new_none();
  });
}
PyObject* store_multi_get(PyObject* self, PyObject* keys) {
  return guarded([&]() -> PyObject* {
    auto& store = impl(self, "multi_get");
    const auto k = texts_from(keys);
    const auto values = unlocked([&] { return store.multi_get(k); });
    PyRef list = checked(PyList_New(0));
    for (const auto& value : values) {
      check_status(PyList_Append(list.get(), checked(bytes_from(value)).get()));
    }
    return list.release();
  });
}
PyObject* store_multi_set(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *keys, *values;
    if (!PyArg_ParseTuple(args, "OO:multi_set", &keys, &values)) throw python_error();
    auto& store = impl(self, "multi_set");
    const auto k = texts_from(keys), v = texts_from(values);
    unlocked([&] { store.multi_set(k, v); });
    return new_none();
  });
}
PyObject* store_list_keys(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto& store = impl(self, "list_keys");
    const auto keys = unlocked([&] { return store.list_keys(); });
    PyRef list = checked(PyList_New(0));
    for (const auto& key : keys) {
      PyRef text = checked(
          PyUnicode_DecodeUTF8(key.data(), static_cast<Py_ssize_t>(key.size()), "surrogateescape"));
      check_status(PyList_Append(list.get(), text.get()));
    }
    return list.release();
  });
}
PyObject* store_queue_push(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *key, *value;
    if (!PyArg_ParseTuple(args, "OO:queue_push", &key, &value)) throw python_error();
    auto& store = impl(self, "queue_push");
    const auto k = text_from(key), v = text_from(value);
    unlocked([&] { store.queue_push(k, v); });
    return new_none();
  });
}
PyObject* store_queue_pop(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"key", "block", nullptr};
    PyObject* key;
    int block = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:queue_pop", const_cast<char**>(names), &key,
                                     &block)) {
      throw python_error();
    }
    auto& store = impl(self, "queue_pop");
    const auto k = text_from(key);
    return bytes_from(unlocked([&] { return store.queue_pop(k, block != 0); }));
  });
}
PyObject* store_queue_len(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    auto& store = impl(self, "queue_len");
    const auto k = text_from(key);
    return PyLong_FromLongLong(unlocked([&] { return store.queue_len(k); }));
  });
}
PyObject* store_set_timeout(PyObject* self, PyObject* timeout) {
  return guarded([&]() -> PyObject* {
    if (!cast(self)->store) raise(PyExc_RuntimeError, "Store.__init__ was not called");
    cast(self)->store->set_timeout(millis_from(timeout));
    return new_none();
  });
}
PyObject* store_timeout(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    if (!cast(self)->store) raise(PyExc_RuntimeError, "Store.__init__ was not called");
    return delta_from(cast(self)->store->timeout());
  });
}
PyObject* store_clone(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto& store = impl(self, "clone");
    PyRef object = checked(Py_TYPE(self)->tp_alloc(Py_TYPE(self), 0));
    auto* made = cast(object.get());
    new (&made->store) std::shared_ptr<c10d::Store>();
    if (cast(self)->underlying) {
      made->underlying =
          checked(PyObject_CallMethod(cast(self)->underlying, "clone", nullptr)).release();
      auto& prefix = static_cast<c10d::PrefixStore&>(store);
      made->store =
          std::make_shared<c10d::PrefixStore>(prefix.prefix(), store_from(made->underlying));
    } else {
      made->store = unlocked([&] { return store.clone(); });
    }
    return object.release();
  });
}

PyMethodDef store_methods[] = {
    {"set", store_set, METH_VARARGS, "set(key, value): puts a value, which replaces another."},
    {"get", store_get, METH_O, "get(key): the value as bytes; waits until there is one."},
    {"add", store_add, METH_VARARGS, "add(key, amount): adds to a counter; returns the sum."},
    {"delete_key", store_delete_key, METH_O, "delete_key(key): whether there was such a key."},
    {"check", store_check, METH_O, "check(keys): whether all keys are there."},
    {"num_keys", store_num_keys, METH_NOARGS, "num_keys(): how many keys there are."},
    {"wait", store_wait, METH_VARARGS, "wait(keys, timeout): until all keys are there."},
    {"compare_set", store_compare_set, METH_VARARGS,
     "compare_set(key, expected, desired): sets where the value is as expected; the value now."},
    {"has_extended_api", store_has_extended_api, METH_NOARGS,
     "has_extended_api(): whether append, multi_get and multi_set are single steps."},
    {"append", store_append, METH_VARARGS, "append(key, value): adds to the end of a value."},
    {"multi_get", store_multi_get, METH_O, "multi_get(keys): the values; waits for all."},
    {"multi_set", store_multi_set, METH_VARARGS, "multi_set(keys, values): puts several values."},
    {"list_keys", store_list_keys, METH_NOARGS, "list_keys(): all keys."},
    {"queue_push", store_queue_push, METH_VARARGS, "queue_push(key, value): adds to a queue."},
    {"queue_pop", as_method(store_queue_pop), METH_VARARGS | METH_KEYWORDS,
     "queue_pop(key, block=True): takes the first value of a queue."},
    {"queue_len", store_queue_len, METH_O, "queue_len(key): how many values wait in a queue."},
    {"set_timeout", store_set_timeout, METH_O, "set_timeout(timeout): how long get and wait wait."},
    {"clone", store_clone, METH_NOARGS, "clone(): another handle on the same keys."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef store_properties[] = {
    {"timeout", store_timeout, nullptr, "How long get and wait wait.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- making -------------------------------------------------------------------------------------
PyObject* store_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) new (&cast(self)->store) std::shared_ptr<c10d::Store>();
  return self;
}
void store_dealloc(PyObject* self) {
  auto* object = cast(self);
  PyObject_GC_UnTrack(self);
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(object->dict);
  {
    // A server joins its thread, a file is locked: others may run meanwhile.
    auto store = std::move(object->store);
    if (store.use_count() == 1) unlocked([&] { store.reset(); });
  }
  object->store.~shared_ptr();
  Py_CLEAR(object->underlying);
  Py_TYPE(self)->tp_free(self);
}
int store_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(cast(self)->dict);
  Py_VISIT(cast(self)->underlying);
  return 0;
}
int store_clear(PyObject* self) {
  Py_CLEAR(cast(self)->dict);
  return 0;
}

int store_init(PyObject* self, PyObject*, PyObject*) {
  return guarded([&] {
    cast(self)->store = std::make_shared<PythonStore>(self);
    return 0;
  });
}
int hash_init(PyObject* self, PyObject*, PyObject*) {
  return guarded([&] {
    cast(self)->store = std::make_shared<c10d::HashStore>();
    return 0;
  });
}
int file_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"file_name", "world_size", nullptr};
    PyObject* path;
    long long size = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|L:FileStore", const_cast<char**>(names),
                                     &path, &size)) {
      throw python_error();
    }
    const auto text = text_from(path);
    cast(self)->store = unlocked([&] { return std::make_shared<c10d::FileStore>(text, size); });
    return 0;
  });
}
int prefix_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"prefix", "store", nullptr};
    PyObject *prefix, *store;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:PrefixStore", const_cast<char**>(names),
                                     &prefix, &store)) {
      throw python_error();
    }
    if (store == Py_None) raise(PyExc_ValueError, "PrefixStore: store must not be None");
    auto made = std::make_shared<c10d::PrefixStore>(text_from(prefix), store_from(store));
    cast(self)->store = std::move(made);
    Py_INCREF(store);
    Py_XSETREF(cast(self)->underlying, store);
    return 0;
  });
}
int tcp_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {
        "host_name",        "port",         "world_size",       "is_master", "timeout",
        "wait_for_workers", "multi_tenant", "master_listen_fd", "use_libuv", nullptr};
    PyObject *host, *size = Py_None, *timeout = nullptr, *file = Py_None;
    long port = 0;
    int master = 0, wait = 1, tenant = 0, libuv = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Ol|OpOppOp:TCPStore", const_cast<char**>(names),
                                     &host, &port, &size, &master, &timeout, &wait, &tenant, &file,
                                     &libuv)) {
      throw python_error();
    }
    if (port < 0 || port > 65535)
      raise(PyExc_ValueError, c10::str("TCPStore: no such port: ", port));
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(port);
    options.is_server = master != 0;
    if (size != Py_None) {
      const int64_t world = integer_from(size);
      if (world >= 0) options.world_size = world;
    }
    if (timeout) options.timeout = millis_from(timeout);
    options.wait_for_workers = wait != 0;
    options.multi_tenant = tenant != 0;
    if (file != Py_None) options.listen_fd = static_cast<int>(integer_from(file));
    options.use_libuv = libuv != 0;
    const auto name = text_from(host);
    cast(self)->store = unlocked([&] { return std::make_shared<c10d::TCPStore>(name, options); });
    return 0;
  });
}

// ---- what single classes have -------------------------------------------------------------------
template <class T> T& typed(PyObject* self) {
  auto* store = dynamic_cast<T*>(cast(self)->store.get());
  if (!store) raise(PyExc_RuntimeError, "the store was not initialized");
  return *store;
}
PyGetSetDef file_properties[] = {{"path",
                                  [](PyObject* self, void*) {
                                    return guarded([&]() -> PyObject* {
                                      return PyUnicode_FromString(
                                          typed<c10d::FileStore>(self).path().c_str());
                                    });
                                  },
                                  nullptr, "The file.", nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* underlying_store(PyObject* self, void*) {
  PyObject* store = cast(self)->underlying;
  if (!store) return new_none();
  Py_INCREF(store);
  return store;
}
PyObject* underlying_plain_store(PyObject* self, void*) {
  PyObject* store = self;
  while (store && PyObject_TypeCheck(store, &PrefixStoreType)) store = cast(store)->underlying;
  if (!store) return new_none();
  Py_INCREF(store);
  return store;
}
PyGetSetDef prefix_properties[] = {
    {"underlying_store", underlying_store, nullptr, "The store that is prefixed.", nullptr},
    {"_underlying_non_prefix_store", underlying_plain_store, nullptr,
     "The store below all prefixes.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyGetSetDef tcp_properties[] = {
    {"host",
     [](PyObject* self, void*) {
       return guarded([&]() -> PyObject* {
         return PyUnicode_FromString(typed<c10d::TCPStore>(self).host().c_str());
       });
     },
     nullptr, "The server's host.", nullptr},
    {"port",
     [](PyObject* self, void*) {
       return guarded(
           [&]() -> PyObject* { return PyLong_FromLong(typed<c10d::TCPStore>(self).port()); });
     },
     nullptr, "The server's port.", nullptr},
    {"libuvBackend",
     [](PyObject* self, void*) {
       return guarded(
           [&]() -> PyObject* { return new_bool(typed<c10d::TCPStore>(self).uses_libuv()); });
     },
     nullptr, "What use_libuv was; there is one server.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* tcp_repr(PyObject* self) {
  return guarded([&]() -> PyObject* {
    auto& store = typed<c10d::TCPStore>(self);
    return PyUnicode_FromString(unlocked([&] { return store.repr(); }).c_str());
  });
}

bool add_store_type(PyObject* module, PyTypeObject& type, initproc init, PyGetSetDef* properties,
                    const char* doc) {
  type.tp_basicsize = sizeof(PyStore);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  type.tp_new = store_new;
  type.tp_init = init;
  type.tp_dealloc = store_dealloc;
  type.tp_traverse = store_traverse;
  type.tp_clear = store_clear;
  type.tp_dictoffset = offsetof(PyStore, dict);
  type.tp_weaklistoffset = offsetof(PyStore, weakrefs);
  type.tp_getset = properties;
  type.tp_doc = doc;
  if (&type == &StoreType) {
    type.tp_methods = store_methods;
  } else {
    type.tp_base = &StoreType;
  }
  return add_type(module, &type);
}

} // namespace

bool is_store(PyObject* o) { return PyObject_TypeCheck(o, &StoreType); }

std::shared_ptr<c10d::Store> store_from(PyObject* o) {
  if (!PyObject_TypeCheck(o, &StoreType)) {
    raise_type_error(std::string("expected a torch.distributed.Store, not ") + type_name(o));
  }
  auto& store = cast(o)->store;
  if (!store) raise(PyExc_RuntimeError, "Store.__init__ was not called");
  if (!is_python_store(o)) return store;
  Py_INCREF(o);
  std::shared_ptr<PyObject> keeper(o, [](PyObject* held) {
    if (!python_exists()) return;
    WithGil gil;
    Py_DECREF(held);
  });
  return std::shared_ptr<c10d::Store>(keeper, store.get());
}

bool init_store(PyObject* module) {
  TCPStoreType.tp_repr = tcp_repr;
  return add_store_type(module, StoreType, store_init, store_properties,
                        "Bytes by key, shared by processes; derive from it to write one.") &&
         add_store_type(module, HashStoreType, hash_init, nullptr, "A store within a process.") &&
         add_store_type(module, FileStoreType, file_init, file_properties, "A store in a file.") &&
         add_store_type(module, PrefixStoreType, prefix_init, prefix_properties,
                        "A store with a prefix before every key.") &&
         add_store_type(module, TCPStoreType, tcp_init, tcp_properties,
                        "A store that one process serves over TCP.");
}

} // namespace torch::python::distributed
