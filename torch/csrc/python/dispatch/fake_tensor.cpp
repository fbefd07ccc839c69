// See fake_tensor.h.
//
// Note [Lifetime of a FakeTensorMode]
// Fake tensors keep their mode alive, as programs expect. They do so through a C++ object that owns
// the Python mode; the Python mode knows that object only weakly (attribute `_cell`), so that
// nothing but tensors and active blocks holds a mode.
#include <torch/csrc/python/dispatch/fake_tensor.h>

#include <torch/csrc/python/args/arg_match.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/dispatch/operators.h>
#include <torch/csrc/python/dispatch/python_dispatch.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/python/types/types.h>

#include <ATen/fake/FakeTensorImpl.h>

namespace torch::python {

PyTypeObject* FakeTensorClass = nullptr;

namespace {
using at::fake::FakeModePtr;

const char* name_of(at::fake::FakeMode::Need need) {
  using Need = at::fake::FakeMode::Need;
  switch (need) {
  case Need::Data:
    return "data";
  case Need::DynamicShape:
    return "dynamic_shape";
  case Need::NoMeta:
    return "no_meta";
  case Need::Rule:
    return "rule";
  case Need::Lift:
    return "lift";
  }
  return "";
}

class PyFakeMode final : public at::fake::FakeMode {
 public:
  explicit PyFakeMode(PyObject* mode) : mode_(PyRef::borrow(mode)) {}
  ~PyFakeMode() override { drop(); }
  PyObject* object() const { return mode_.get(); }

  at::Tensor admit(const at::OperatorEntry& op, const at::Stack& stack,
                   const at::Tensor& real) override {
    WithGil gil;
    const PythonCall call = call_from_stack(op.schema(), stack);
    PyRef func = overload_object(op);
    PyRef tensor = checked(wrap(real));
    PyRef fake = checked(PyObject_CallMethod(mode_.get(), "_admit", "OOOO", tensor.get(),
                                             func.get(), call.args.get(), call.kwargs.get()));
    if (!is_tensor(fake.get())) raise_type_error("FakeTensorMode._admit must return a tensor");
    return tensor_of(fake.get());
  }

  void run(const at::OperatorEntry& op, at::Stack& stack, Need need) override {
    WithGil gil;
    const PythonCall call = call_from_stack(op.schema(), stack);
    PyRef func = overload_object(op);
    PyRef result = checked(PyObject_CallMethod(mode_.get(), "_run", "OsOO", func.get(),
                                               name_of(need), call.args.get(), call.kwargs.get()));
    push_result(op, stack, result.get());
  }

 protected:
  void release_resources() override { drop(); }

 private:
  void drop() noexcept {
    if (!mode_) return;
    if (!python_exists()) {
      mode_.release();
      return;
    }
    WithGil gil;
    mode_ = PyRef();
  }
  PyRef mode_;
};

// ---- the weak link from the Python mode
constexpr const char* kCell = "torch.FakeTensorMode.cell";
using Cell = c10::weak_intrusive_ptr<PyFakeMode>;

void drop_cell(PyObject* capsule) {
  delete static_cast<Cell*>(PyCapsule_GetPointer(capsule, kCell));
}

PyObject* py_new_cell(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto cell = std::make_unique<Cell>();
    PyRef capsule = checked(PyCapsule_New(cell.get(), kCell, drop_cell));
    cell.release();
    return capsule.release();
  });
}

c10::intrusive_ptr<PyFakeMode> native_mode(PyObject* mode) {
  PyRef capsule = checked(PyObject_GetAttrString(mode, "_cell"));
  auto* cell = static_cast<Cell*>(PyCapsule_GetPointer(capsule.get(), kCell));
  if (!cell) throw python_error();
  c10::intrusive_ptr<PyFakeMode> live = cell->lock();
  if (!live) {
    live = c10::make_intrusive<PyFakeMode>(mode);
    *cell = Cell(live);
  }
  return live;
}

const at::Tensor& tensor_argument(PyObject* o) {
  if (!is_tensor(o)) raise_type_error(c10::str("expected a tensor, got ", type_name(o)));
  return tensor_of(o);
}

// ---- functions of the module
// _fake_enable(cls): installs the kernel; results of the key Fake are objects of the class.
PyObject* py_enable(PyObject*, PyObject* cls) {
  return guarded([&] {
    if (!PyType_Check(cls) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &TensorBaseType))
      raise_type_error("expected a subclass of torch.Tensor");
    at::fake::enable();
    Py_INCREF(cls);
    FakeTensorClass = reinterpret_cast<PyTypeObject*>(cls);
    return new_none();
  });
}

PyObject* py_handler(PyObject*, PyObject* mode) {
  return guarded([&] { return native_handler_object(native_mode(mode)).release(); });
}

// _fake_make(mode, elem, device): a new fake tensor in the image of the meta tensor elem.
PyObject* py_make(PyObject*, PyObject* args) {
  PyObject *mode = nullptr, *elem = nullptr, *device = nullptr;
  if (!PyArg_ParseTuple(args, "OOO", &mode, &elem, &device)) return nullptr;
  return guarded([&] {
    const at::Tensor& meta = tensor_argument(elem);
    TORCH_CHECK(meta.device().is_meta(), "elem must be a meta tensor, got one on ", meta.device());
    c10::Device claimed;
    if (!device_from_object(device, &claimed))
      raise_type_error(c10::str("expected a device, got ", type_name(device)));
    at::Tensor fake = at::fake::make_fake(at::fake::meta_image(meta), claimed, native_mode(mode));
    return wrap(std::move(fake));
  });
}

PyObject* py_mode_of(PyObject*, PyObject* tensor) {
  return guarded([&] {
    const FakeModePtr mode = is_tensor(tensor) ? at::fake::mode_of(tensor_of(tensor)) : nullptr;
    auto* known = static_cast<PyFakeMode*>(mode.get());
    return known ? PyRef::borrow(known->object()).release() : new_none();
  });
}

PyObject* py_is_fake(PyObject*, PyObject* tensor) {
  return new_bool(is_tensor(tensor) && at::fake::is_fake(tensor_of(tensor)));
}

PyObject* py_elem(PyObject*, PyObject* tensor) {
  return guarded([&] { return wrap(at::fake::meta_image(tensor_argument(tensor))); });
}

PyObject* py_constant(PyObject*, PyObject* tensor) {
  return guarded([&] {
    const at::fake::FakeTensorImpl* fake = at::fake::as_fake(tensor_argument(tensor));
    return fake && fake->knows_values() ? wrap(fake->constant()) : new_none();
  });
}

// _fake_set_constant(tensor, value or None)
PyObject* py_set_constant(PyObject*, PyObject* args) {
  PyObject *tensor = nullptr, *value = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &tensor, &value)) return nullptr;
  return guarded([&] {
    at::fake::FakeTensorImpl* fake = at::fake::as_fake(tensor_argument(tensor));
    TORCH_CHECK(fake, "only a fake tensor has a constant");
    if (value == Py_None) {
      fake->set_constant({});
    } else {
      fake->set_constant({tensor_argument(value), c10::make_intrusive<at::fake::ConstantOrigin>()});
    }
    return new_none();
  });
}

// _fake_call(mode, callable, args, kwargs): the call with the mode active, without a slot.
PyObject* py_call(PyObject*, PyObject* args) {
  PyObject *mode = nullptr, *callable = nullptr, *positional = nullptr, *named = nullptr;
  if (!PyArg_ParseTuple(args, "OOO!O!", &mode, &callable, &PyTuple_Type, &positional, &PyDict_Type,
                        &named)) {
    return nullptr;
  }
  return guarded([&] {
    const c10::intrusive_ptr<PyFakeMode> native = native_mode(mode);
    at::fake::ActiveMode active(native.get());
    return checked(PyObject_Call(callable, positional, named)).release();
  });
}

// _fake_add_rule(name, overload): calls of the operator go to the mode's method _run.
PyObject* py_add_rule(PyObject*, PyObject* args) {
  const char *name = nullptr, *overload = nullptr;
  if (!PyArg_ParseTuple(args, "ss", &name, &overload)) return nullptr;
  return guarded([&] {
    const at::OperatorEntry* op = at::Dispatcher::singleton().find(name, overload);
    TORCH_CHECK(op, "operator ", name, *overload ? "." : "", overload, " does not exist");
    at::fake::add_rule(*op);
    return new_none();
  });
}

PyMethodDef functions[] = {{"_fake_enable", py_enable, METH_O, nullptr},
                           {"_fake_new_cell", py_new_cell, METH_NOARGS, nullptr},
                           {"_fake_handler", py_handler, METH_O, nullptr},
                           {"_fake_make", py_make, METH_VARARGS, nullptr},
                           {"_fake_mode_of", py_mode_of, METH_O, nullptr},
                           {"_is_fake", py_is_fake, METH_O, nullptr},
                           {"_fake_elem", py_elem, METH_O, nullptr},
                           {"_fake_constant", py_constant, METH_O, nullptr},
                           {"_fake_set_constant", py_set_constant, METH_VARARGS, nullptr},
                           {"_fake_call", py_call, METH_VARARGS, nullptr},
                           {"_fake_add_rule", py_add_rule, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_fake_tensor(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

} // namespace torch::python
