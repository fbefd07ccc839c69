// The table of ForeignBridge: backends of C++ extensions as Python objects of the class that
// torch._distributed.group has for them, and the way back.
#include <torch/csrc/python/distributed/c10d/c10d.h>
#include <torch/csrc/python/distributed/foreign.h>

#include <torch/csrc/distributed/c10d/Foreign.h>

namespace torch::python::distributed {

namespace {

PyRef group_class(const char* name) {
  PyRef module = checked(PyImport_ImportModule("torch._distributed.group"));
  return checked(PyObject_GetAttrString(module.get(), name));
}

PyObject* wrap_foreign_backend(c10::intrusive_ptr<::c10d::Collectives> backend) {
  return guarded([&]() -> PyObject* {
    auto adopted = c10d::adopt(std::move(backend));
    return wrap_backend(group_class("ForeignBackend").get(), std::move(adopted));
  });
}

PyObject* wrap_foreign_work(c10::intrusive_ptr<::c10d::Work> work) {
  return guarded([&]() -> PyObject* {
    c10d::Collective call;
    return wrap_work(c10d::adopt(std::move(work), std::move(call)));
  });
}

int store_of(PyObject* o, c10::intrusive_ptr<::c10d::Store>& out) {
  return guarded([&]() -> int {
    if (!is_store(o)) return 0;
    out = c10d::lend(store_from(o));
    return 1;
  });
}

int work_of(PyObject* o, c10::intrusive_ptr<::c10d::Work>& out) {
  return guarded([&]() -> int {
    auto work = work_from(o);
    if (!work) return 0;
    out = c10d::lend(std::move(work));
    return 1;
  });
}

int backend_of(PyObject* o, c10::intrusive_ptr<::c10d::Backend>& out) {
  return guarded([&]() -> int {
    auto backend = backend_from(o);
    if (!backend) return 0;
    out = c10d::lend(std::move(backend));
    return 1;
  });
}

int integer_of_call(PyObject* o, const char* method) {
  return static_cast<int>(integer_from(checked(PyObject_CallMethod(o, method, nullptr)).get()));
}

// Backends that are written in Python are left out: they have no C++ behind them.
std::vector<c10d::GroupMember> members_of(PyObject* group) {
  PyRef backends = checked(PyObject_GetAttrString(group, "_backends"));
  if (!PyDict_Check(backends.get())) raise_type_error("ProcessGroup._backends must be a dict");
  std::vector<c10d::GroupMember> members;
  PyObject *kind, *backend;
  for (Py_ssize_t i = 0; PyDict_Next(backends.get(), &i, &kind, &backend);) {
    if (auto own = backend_from(backend))
      members.push_back({c10::Device(text_from(kind)).type(), std::move(own)});
  }
  return members;
}

int group_of(PyObject* o, c10::intrusive_ptr<::c10d::ProcessGroup>& out) {
  return guarded([&]() -> int {
    const int fits = PyObject_IsInstance(o, group_class("ProcessGroup").get());
    check_status(fits);
    if (!fits) return 0;
    PyRef store = checked(PyObject_GetAttrString(o, "_store"));
    PyRef name = checked(PyObject_GetAttrString(o, "_group_name"));
    PyRef description = checked(PyObject_GetAttrString(o, "_group_desc"));
    out =
        c10d::lend_group(members_of(o), store.get() == Py_None ? nullptr : store_from(store.get()),
                         integer_of_call(o, "rank"), integer_of_call(o, "size"));
    out->setGroupName(text_from(name.get()));
    out->setGroupDesc(text_from(description.get()));
    return 1;
  });
}

const ForeignBridge table = {ForeignBridge::kLayout,
                             wrap_foreign_backend,
                             wrap_foreign_work,
                             store_of,
                             work_of,
                             backend_of,
                             group_of};

} // namespace

bool init_foreign(PyObject* module) {
  PyRef capsule(PyCapsule_New(const_cast<ForeignBridge*>(&table), kForeignBridgeName, nullptr));
  return capsule && PyModule_AddObjectRef(module, "_foreign", capsule.get()) == 0;
}

} // namespace torch::python::distributed
