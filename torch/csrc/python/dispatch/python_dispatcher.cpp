// See python_dispatcher.h. A kernel for the key of the call is looked for in the operator's
// py_kernels, then those that stand for several keys in the order in which C++ resolves them.
#include <torch/csrc/python/dispatch/python_dispatcher.h>

#include <torch/csrc/python/dispatch/dispatch_keys.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/dispatch/operators.h>

#include <ATen/core/Dispatcher.h>

namespace torch::python {
namespace {
using c10::DispatchKey;

// A borrowed kernel, or null.
PyObject* registered(PyObject* table, DispatchKey key) {
  PyRef name = checked(wrap(key));
  PyObject* found = PyDict_GetItemWithError(table, name.get());
  if (!found && PyErr_Occurred()) throw python_error();
  return found;
}

PyObject* kernel_for(PyObject* table, const at::OperatorEntry& op, DispatchKey key) {
  if (PyObject* exact = registered(table, key)) return exact;
  if (op.has_kernel(key)) return nullptr;
  if (c10::kBackendKeys.has(key)) {
    if (PyObject* f = registered(table, DispatchKey::CompositeExplicitAutograd)) return f;
    if (op.has_kernel(DispatchKey::CompositeExplicitAutograd)) return nullptr;
    return registered(table, DispatchKey::CompositeImplicitAutograd);
  }
  if (!c10::kAutogradKeys.has(key)) return nullptr;
  if (PyObject* f = registered(table, DispatchKey::Autograd)) return f;
  if (op.has_kernel(DispatchKey::Autograd)) return nullptr;
  return registered(table, DispatchKey::CompositeImplicitAutograd);
}

struct PythonDispatcherKernel final : at::BoxedKernel {
  void call(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack& stack) override {
    keys = keys.remove(DispatchKey::PythonDispatcher);
    if (!run_in_python(op, keys.highest(), stack)) op.redispatch_boxed(keys, stack);
  }

 private:
  static bool run_in_python(const at::OperatorEntry& op, DispatchKey key, at::Stack& stack) {
    WithGil gil;
    PyRef func = overload_object(op);
    PyRef table = checked(PyObject_GetAttrString(func.get(), "py_kernels"));
    if (!PyDict_Check(table.get()) || PyDict_GET_SIZE(table.get()) == 0) return false;
    PyObject* kernel = kernel_for(table.get(), op, key);
    if (!kernel) return false;
    const PythonCall call = call_from_stack(op.schema(), stack);
    PyRef result = checked(PyObject_Call(kernel, call.args.get(), call.kwargs.get()));
    push_result(op, stack, result.get());
    return true;
  }
};
} // namespace

void enable_python_dispatcher() {
  static const bool once = [] {
    at::Dispatcher::singleton().register_fallback(DispatchKey::PythonDispatcher,
                                                  c10::make_intrusive<PythonDispatcherKernel>());
    return true;
  }();
  (void)once;
}

} // namespace torch::python
