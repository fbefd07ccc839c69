// __torch_dispatch__: operators on tensor subclasses that define it, and under TorchDispatchModes,
// call into Python below autograd.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/NativeMode.h>

#include <vector>

namespace torch::python {

// A handler as a Python value. A mode with a `_mode_key` that has it as its attribute
// `_native_handler` when it is pushed is run by the handler; its __torch_dispatch__ is not called.
PyRef native_handler_object(c10::intrusive_ptr<at::NativeModeHandler> handler);

bool init_python_dispatch(PyObject* module);

// Takes the tracing mode of the PROXY slot out while in scope, for an operation that the mode is
// asked to record; null where there is none.
class ProxyModeScope {
 public:
  ProxyModeScope();
  ~ProxyModeScope();
  ProxyModeScope(const ProxyModeScope&) = delete;
  ProxyModeScope& operator=(const ProxyModeScope&) = delete;
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_ = nullptr;
};

// The dispatch modes of this thread, to be put back later.
class DispatchModes {
 public:
  static DispatchModes now();
  void put_back() const;

 private:
  struct Infra {
    PyRef mode;
    c10::intrusive_ptr<at::NativeModeHandler> native;
  };
  std::vector<Infra> infra_; // of each slot
  std::vector<PyRef> user_;
};

} // namespace torch::python
