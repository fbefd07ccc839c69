// Hooks that pack and unpack saved tensors (torch.autograd.graph.saved_tensors_hooks): a stack for
// each thread.
#include <torch/csrc/python/autograd/saved.h>

#include <torch/csrc/python/autograd/saved_tensor.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

using at::Tensor;

void drop(PyObject* o) {
  if (!python_exists()) return;
  WithGil gil;
  Py_XDECREF(o);
}

struct NoGrad {
  NoGrad() : before(c10::tls_autograd_state.grad_mode) {
    c10::tls_autograd_state.grad_mode = false;
  }
  ~NoGrad() { c10::tls_autograd_state.grad_mode = before; }
  bool before;
};

struct PythonHooks final : autograd::SavedTensorHooks {
  PythonHooks(PyObject* pack_hook, PyObject* unpack_hook)
      : packer(PyRef::borrow(pack_hook).release()), unpacker(PyRef::borrow(unpack_hook).release()) {
  }
  ~PythonHooks() override {
    drop(packer);
    drop(unpacker);
  }
  std::shared_ptr<void> pack(const Tensor& t) override {
    WithGil gil;
    NoGrad no_grad;
    PyRef value = checked(wrap(t));
    const uint32_t version = t.unsafeGetTensorImpl()->version();
    PyRef packed = checked(PyObject_CallOneArg(packer, value.get()));
    TORCH_CHECK(version == t.unsafeGetTensorImpl()->version(),
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected "
                "side-effects.");
    return std::shared_ptr<void>(packed.release(),
                                 [](void* o) { drop(static_cast<PyObject*>(o)); });
  }
  Tensor unpack(const std::shared_ptr<void>& packed) override {
    WithGil gil;
    PyRef value = checked(PyObject_CallOneArg(unpacker, static_cast<PyObject*>(packed.get())));
    if (!is_tensor(value.get())) {
      raise_type_error(c10::str(
          "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
          type_name(value.get())));
    }
    return tensor_of(value.get());
  }
  PyObject* packer;
  PyObject* unpacker;
};

struct HookStack {
  std::vector<std::shared_ptr<autograd::SavedTensorHooks>> hooks;
  std::string disabled_because; // empty: enabled
};
thread_local HookStack stack;

std::shared_ptr<autograd::SavedTensorHooks> current_hooks() {
  return stack.hooks.empty() ? nullptr : stack.hooks.back();
}

PyObject* py_push(PyObject*, PyObject* args) {
  PyObject *pack = nullptr, *unpack = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
  return guarded([&] {
    if (!PyCallable_Check(pack) || !PyCallable_Check(unpack)) {
      raise_type_error("saved tensor hooks must be callable");
    }
    if (!stack.disabled_because.empty()) raise(PyExc_RuntimeError, stack.disabled_because);
    stack.hooks.push_back(std::make_shared<PythonHooks>(pack, unpack));
    autograd::current_saved_tensor_hooks = current_hooks;
    return new_none();
  });
}
PyObject* py_pop(PyObject*, PyObject*) {
  return guarded([] {
    TORCH_CHECK(!stack.hooks.empty(), "no saved tensor hooks are in force");
    // The destructor may run Python code, which must find the stack in order.
    const auto last = std::move(stack.hooks.back());
    stack.hooks.pop_back();
    return new_none();
  });
}
PyObject* py_disable(PyObject*, PyObject* args) {
  const char* why = nullptr;
  int fail_if_non_empty = 1;
  if (!PyArg_ParseTuple(args, "s|p", &why, &fail_if_non_empty)) return nullptr;
  return guarded([&] {
    if (!stack.hooks.empty() && fail_if_non_empty) raise(PyExc_RuntimeError, why);
    stack.disabled_because = *why ? why : "saved tensor hooks are disabled";
    return new_none();
  });
}
PyObject* py_enable(PyObject*, PyObject*) {
  stack.disabled_because.clear();
  return new_none();
}
PyObject* py_is_enabled(PyObject*, PyObject*) { return new_bool(stack.disabled_because.empty()); }
PyObject* py_disabled_message(PyObject*, PyObject*) {
  return guarded(
      [] { return stack.disabled_because.empty() ? new_none() : wrap(stack.disabled_because); });
}
PyObject* py_top(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    auto top = std::dynamic_pointer_cast<PythonHooks>(current_hooks());
    if (!top) return new_none();
    return checked(PyTuple_Pack(2, top->packer, top->unpacker)).release();
  });
}

PyMethodDef functions[] = {
    {"_push_saved_tensors_default_hooks", py_push, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_default_hooks", py_pop, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_disable", py_disable, METH_VARARGS, nullptr},
    {"_saved_tensors_hooks_enable", py_enable, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_is_enabled", py_is_enabled, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_get_disabled_error_message", py_disabled_message, METH_NOARGS, nullptr},
    {"_top_saved_tensors_default_hooks", py_top, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

const std::string& saved_hooks_disabled_because() { return stack.disabled_because; }
void set_saved_hooks_disabled(const std::string& because) { stack.disabled_because = because; }

SavedHooksScope::SavedHooksScope() : before_(stack.hooks) {}
SavedHooksScope::~SavedHooksScope() {
  // The end of hooks may run Python code, which must find the stack in order.
  stack.hooks.swap(before_);
}

std::shared_ptr<autograd::SavedTensorHooks> make_saved_tensor_hooks(PyObject* pack,
                                                                    PyObject* unpack) {
  return std::make_shared<PythonHooks>(pack, unpack);
}

// Public as torch._C._autograd.
bool init_autograd_saved(PyObject* module) {
  PyRef space(PyModule_New("torch._C._autograd"));
  if (!space || PyModule_AddFunctions(space.get(), functions) < 0) return false;
  if (!init_saved_tensor(space.get())) return false;
  return add_object(module, "_autograd", space.release());
}

} // namespace torch::python
